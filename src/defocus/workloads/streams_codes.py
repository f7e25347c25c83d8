"""Which state of a stream is the newest: noted beside its ledger, where whoever holds a state cannot change it.

A state is a secret of its holder, and so is a checksum inside of it: an edited state would only need a new one. So the
checksum of the newest state is noted elsewhere, before anybody sees a sum of that state. A state whose checksum is not
the one noted was edited, was resumed before, or is an older copy, and is refused. Checksums follow one another: only
who comes from the newest state notes the next, whatever other processes, machines and copies do meanwhile.

Each state holds 32 random bytes that are drawn for it alone: its checksum tells nothing about the sums in it, and who
holds a state cannot make the next one out of it. A stream without a file notes one state when it is resumed, which
nobody is ever given, and the next when it is saved: in between there is none that could be resumed.

Assumes:
    Nobody rewrites what is beside the ledger, as nobody rewrites the ledger itself. A ledger in an SQLite file has a
    folder beside it, ``visits.ledger.runs/``, and a file there for each stream. One in PostgreSQL has none: there each
    state is noted in an entry that costs nothing.
"""

import fcntl
import os
import re
from pathlib import Path
from typing import Protocol, final

from defocus.errors import StreamStateError
from defocus.ledger import Ledger
from defocus.ledger.disk import sync_directory
from defocus.ledger.entries import CHARGE
from defocus.privacy.events import NOTHING

__all__ = ["Codes", "FileCodes", "LedgerCodes", "codes_of", "not_the_newest"]

_CODE = 64


class Codes(Protocol):
    """The checksum of the newest state of one stream."""

    def ready(self) -> None:
        """Refuse where nothing could be noted."""

    def newest(self) -> str | None:
        """The checksum that was noted last, or None if none was."""

    def follow(self, before: str | None, after: str) -> None:
        """Note ``after`` if the newest is ``before``, for good; refuse if it is another."""


@final
class FileCodes:
    """A file for one stream, in the folder beside its ledger."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def ready(self) -> None:
        """See the protocol."""
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from None
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise self._unusable(PermissionError(0, "it is not writable"))

    def newest(self) -> str | None:
        """See the protocol."""
        try:
            return self.path.read_bytes().decode("ascii", "replace") or None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from None

    def follow(self, before: str | None, after: str) -> None:
        """See the protocol. Of several at once, each waits for the one before."""
        self.ready()
        fresh = os.O_CREAT | os.O_EXCL if before is None else 0
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | fresh, 0o600)
        except (FileExistsError, FileNotFoundError):
            raise not_the_newest() from None
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.pread(handle, _CODE + 1, 0) != (before or "").encode("ascii"):
                raise not_the_newest()
            os.pwrite(handle, after.encode("ascii"), 0)
            os.fsync(handle)
            if before is None:
                sync_directory(self.path.parent)
                sync_directory(self.path.parent.parent)
        except OSError as error:
            raise self._unusable(error) from None
        finally:
            os.close(handle)

    def _unusable(self, error: OSError) -> StreamStateError:
        return StreamStateError(
            f"The states of the stream cannot be noted in {self.path}: {error.strerror or type(error).__name__}.",
            fix="make the folder of the ledger writable.",
        )


@final
class LedgerCodes:
    """Entries of a ledger that cost nothing; the first that follows a state is the one that counts."""

    __slots__ = ("_ledger", "_stream")

    def __init__(self, ledger: Ledger, digest: str) -> None:
        self._ledger, self._stream = ledger, f"running sum {digest[:32]}: "

    def ready(self) -> None:
        """See the protocol: a ledger that was charged can note."""

    def newest(self) -> str | None:
        """See the protocol."""
        found: str | None = None
        for entry in self._ledger.entries():
            request = entry.content["request"] if entry.kind == CHARGE else None
            if request is not None and request.startswith(self._stream):
                step = re.fullmatch(r"(start|\w+) is followed by (\w+)", request.removeprefix(self._stream))
                found = step[2] if step is not None and step[1] == (found or "start") else found
        return found

    def follow(self, before: str | None, after: str) -> None:
        """See the protocol."""
        name = f"{self._stream}{before or 'start'} is followed by {after}"
        if self.newest() == before:
            self._ledger.charge(NOTHING, purpose="keep a state of a running sum", request=name)
        if self.newest() != after:
            raise not_the_newest()


def codes_of(ledger: Ledger, *, sequence: int, digest: str) -> Codes:
    """Where states of the stream that this charge paid for are noted."""
    if "://" in ledger.where:
        return LedgerCodes(ledger, digest)
    return FileCodes(Path(f"{ledger.where}.runs").resolve() / f"{sequence}-{digest[:16]}.sum")


def not_the_newest() -> StreamStateError:
    """The refusal of any other state."""
    return StreamStateError(
        "This state of the stream was resumed before, or is an older or altered copy: going on from it would noise the"
        " same steps twice.",
        fix="resume the newest state as it is, or start a new stream, which is charged on its own.",
    )
