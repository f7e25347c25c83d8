"""An anchor: the number and hash of one entry, kept where the ledger's keeper cannot reach it.

A hash chain shows that a history is consistent, not that it is complete: an older copy put back, or
a chain rewritten from scratch, is consistent too. Whoever holds an anchor can tell.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerUnavailableError
from defocus.ledger.lock import file_lock, sync_directory, take_after

__all__ = ["Anchor", "AnchorFile", "anchor_path", "as_anchor"]

_TEXT = re.compile(r"(\d{1,18}):([0-9a-f]{64})")
_FILE = re.compile(r"defocus ledger anchor 1\n(\d{1,18}:[0-9a-f]{64})\n")


@final
@dataclass(frozen=True, slots=True)
class Anchor:
    """Entry ``sequence`` has hash ``hash``. Print it, mail it, keep it; ``str`` and :meth:`parse` are inverse.

    >>> str(Anchor(3, "ab" * 32))[:8]
    '3:ababab'
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "Anchor":
        """Read ``sequence:hash`` back."""
        match = _TEXT.fullmatch(text.strip())
        if not match:
            raise InvalidParameterError(
                "An anchor is written sequence:hash, with 64 hexadecimal digits.",
                fix="copy the whole text that ledger.anchor() printed.",
            )
        return cls(int(match[1]), match[2])

    def save(self, path: str | Path) -> None:
        """Write this anchor to a file that ``Ledger.open(anchor_file=…)`` reads; the file is replaced as a whole."""
        AnchorFile(Path(path).resolve()).write(self)


def as_anchor(anchor: Any) -> Anchor | None:
    """An anchor from what a caller may hold: an Anchor, its text, or the pair (sequence, hash)."""
    if anchor is None or isinstance(anchor, Anchor):
        return anchor
    if isinstance(anchor, str):
        return Anchor.parse(anchor)
    if isinstance(anchor, tuple | list) and len(anchor) == 2 and type(anchor[0]) is int:
        return Anchor.parse(f"{anchor[0]}:{anchor[1]}")
    raise InvalidParameterError(
        f"An anchor cannot be made of {type(anchor).__name__}.",
        fix='pass what ledger.anchor() returned, its text "sequence:hash", or the pair (sequence, hash).',
    )


def anchor_path(ledger: Path) -> Path:
    """Where the anchor file of a ledger is by default: beside it."""
    return ledger.with_name(f"{ledger.name}.anchor")


@final
@dataclass(frozen=True, slots=True)
class AnchorFile:
    """A file that follows the ledger: moved forward after each commit, before the receipt is given.

    Guarantee:
        Once a receipt was given, the file holds its entry or a later one, after a power cut too where its place was
        chosen. It never moves back: writers take turns on a lock file beside it.
    """

    path: Path
    first_use: bool = False
    """Whether it may be started for a ledger that has entries: nobody chose its place, so it may be new there."""
    like: Path | None = None
    """The ledger beside it, for whose readers and writers it is."""

    @property
    def anew(self) -> str:
        """What an owner does who really means to begin again."""
        return (
            f"Only if the budget is really meant to start anew, remove {self.path} and its ledger by hand: what was"
            " released stays released, and nothing counts it any more."
        )

    def read(self) -> Anchor | None:
        """The anchor on file, or None if there is no such file."""
        try:
            text = self.path.read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._unusable(error) from None
        match = _FILE.fullmatch(text)
        if not match:
            raise LedgerDamagedError(
                f"The anchor file {self.path} does not hold an anchor.",
                fix="restore it from a trusted copy; if there is none, verify the ledger, and if nothing is wrong with"
                " it save a new anchor over this file, or remove the file if it lies beside the ledger.",
            )
        return Anchor.parse(match[1])

    def advance(self, anchor: Anchor) -> None:
        """Put ``anchor`` on file unless a later one is there already."""
        with self.lock():
            known = self.read()
            if known is None or known.sequence < anchor.sequence:
                self.replace(anchor)
            elif known.sequence == anchor.sequence and known.hash != anchor.hash:
                raise LedgerDamagedError(
                    f"The anchor file {self.path} already holds another entry {anchor.sequence}. No receipt was given.",
                    fix="find out who wrote past the ledger's lock, and run ledger.verify().",
                )

    def write(self, anchor: Anchor) -> None:
        """Put ``anchor`` on file, whatever was there."""
        with self.lock():
            self.replace(anchor)

    def replace(self, anchor: Anchor) -> None:
        """Write a temporary file, flush it, rename it over the old one, flush the directory, under the lock."""
        temporary = self.path.with_name(f"{self.path.name}.new")
        try:
            temporary.unlink(missing_ok=True)  # what a killed process, perhaps of another account, left
            with open(temporary, "x", encoding="ascii", opener=self._opener) as file:
                file.write(f"defocus ledger anchor 1\n{anchor}\n")
                file.flush()
                os.fsync(file.fileno())
            old = self.first_use and self.path.exists()
            temporary.replace(self.path)
            if not old:  # beside its ledger, a file that a power cut leaves behind by an entry is worth no second flush
                sync_directory(self.path.parent)
        except OSError as error:
            raise self._unusable(error) from None

    def _opener(self, path: str, flags: int) -> int:
        """A file for its owner alone, or for those who may use the one it replaces."""
        handle = os.open(path, flags | os.O_CLOEXEC, 0o600)
        take_after(handle, self.like, self.path)
        return handle

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep every other writer of this file waiting."""
        try:
            held = file_lock(self.path, timeout=None, like=self.like)
        except OSError as error:
            raise self._unusable(error) from None
        with contextlib.nullcontext() if held is None else contextlib.closing(held):
            yield

    def _unusable(self, error: Exception) -> LedgerUnavailableError:
        return LedgerUnavailableError(
            f"The anchor file {self.path} cannot be used: {getattr(error, 'strerror', None) or error}."
            " No receipt was given; a charge that was already committed stays.",
            fix="make the anchor file and its directory readable and writable for this process, and its disk not full.",
        )
