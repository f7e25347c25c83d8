"""States of a stream, kept so that no step is ever noised twice.

Two releases of one step with fresh noise each could be averaged; two of one noise with different data could be
subtracted. Either breaks the promise that was charged. So:

- A step is *kept before it is shown*: with a ``state_file`` the new state is on disk (written beside, flushed,
  noted as the newest, renamed, directory flushed) before the running sum is returned. After a crash the file, or the
  one beside it, says either that the step never happened, and nobody saw it, or that it did, and its sum is in there.
- A state is resumed *as it was kept, and if it is the newest*. A checksum inside of it would not tell: whoever edits a
  state makes a new one. So the checksum of the newest state is noted beside the ledger, before anybody sees a sum of
  that state. One whose checksum is not the one noted was edited, was resumed before, or is an older copy, and is
  refused. Checksums follow one another: only who comes from the newest state notes the next, whatever other processes,
  machines and copies do meanwhile.
- A state is *left once*: going on from it first takes its number in the ledger, by a charge of nothing under a
  name of its own. The first to do so wins, in whatever process; every other copy of that state is refused.
- One process at a time: whoever runs a stream with a ``state_file`` holds a lock beside it. A state remembers the file
  it was kept in, so a copy of it under another name is not resumed either while that lock is held.

A copy that is resumed on another machine while the stream runs on takes it over: the first of both to note its next
state goes on, and the other one ends before it shows a sum. The file is secret (it holds sums of the data without
noise); its access is for its owner only.

Each state holds 32 random bytes that are drawn for it alone: its checksum tells nothing about the sums in it, and who
holds a state cannot make the next one out of it. A stream without a file notes one state when it is resumed, which
nobody is ever given, and the next when it is saved: in between there is none that could be resumed.

Assumes:
    Nobody rewrites what is beside the ledger, as nobody rewrites the ledger itself. A ledger in an SQLite file has a
    folder beside it, with a file for each stream: see :mod:`defocus.ledger.runs`. One in PostgreSQL has none: there
    each state is noted in an entry that costs nothing.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, final

from defocus.errors import DefocusError, InvalidParameterError, StreamStateError
from defocus.ledger import Ledger, Receipt
from defocus.ledger.entries import CHARGE
from defocus.ledger.lock import LockableFile, file_lock, lock_path, sync_directory
from defocus.ledger.runs import charge_of, make_run_folder, run_file
from defocus.privacy.events import NOTHING, Event
from defocus.release.charge import charge
from defocus.workloads.streams.design import Design

__all__ = [
    "Codes",
    "FileCodes",
    "LedgerCodes",
    "StateFile",
    "codes_of",
    "design_of",
    "load",
    "must_be_ledger",
    "newest",
    "not_the_newest",
    "opened",
    "paid",
    "resting",
    "sealed",
    "take",
]


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
            make_run_folder(self.path.parent)
        except OSError as error:
            raise self._unusable(error) from None

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
        file = LockableFile(handle)
        try:
            file.lock(timeout=None)
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
            file.close()

    def _unusable(self, error: OSError) -> StreamStateError:
        return StreamStateError(
            f"The states of the stream cannot be noted in {self.path}: {error.strerror or type(error).__name__}.",
            fix="make the folder of the ledger writable.",
        )


@final
class LedgerCodes:
    """Entries of a ledger that cost nothing; the first that follows a state is the one that counts."""

    __slots__ = ("_digest", "_ledger", "_stream")

    def __init__(self, ledger: Ledger, digest: str) -> None:
        self._ledger, self._digest, self._stream = ledger, digest, f"running sum {digest[:32]}: "

    def ready(self) -> None:
        """See the protocol: a ledger that was charged can note."""

    def newest(self) -> str | None:
        """See the protocol."""
        last: str | None = None
        for entry in self._ledger.entries():
            request = entry.content["request"] if entry.kind == CHARGE else None
            if request is not None and request.startswith(self._stream):
                step = re.fullmatch(r"(start|\w+) is followed by (\w+)", request.removeprefix(self._stream))
                last = step[2] if step is not None and step[1] == (last or "start") else last
        return last

    def follow(self, before: str | None, after: str) -> None:
        """See the protocol."""
        name = f"{self._stream}{before or 'start'} is followed by {after}"
        if self.newest() == before:
            _note(self._ledger, self._digest, "keep a state of a running sum", request=name)
        if self.newest() != after:
            raise not_the_newest()


def codes_of(ledger: Ledger, *, sequence: int, digest: str) -> Codes:
    """Where states of the stream that this charge paid for are noted."""
    path = run_file(ledger, sequence, digest, ".sum")
    return LedgerCodes(ledger, digest) if path is None else FileCodes(path)


def not_the_newest() -> StreamStateError:
    """The refusal of any other state."""
    return StreamStateError(
        "This state of the stream was resumed before, or is an older or altered copy: going on from it would noise the"
        " same steps twice.",
        fix="resume the newest state as it is, or start a new stream, which is charged on its own.",
    )


_FORMAT = "defocus running sum 2"


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """A state with its format and a checksum, with JSON types only."""
    body = {"format": _FORMAT, **_body(content)}
    return {**body, "checksum": _checksum(body)}


def opened(state: object) -> dict[str, Any]:
    """A sealed state, if it is whole."""
    if not isinstance(state, Mapping) or state.get("format") != _FORMAT:
        raise StreamStateError(
            "This is not the state of a running sum.", fix="pass what save() returned, or the path of a state file."
        )
    try:
        whole = state.get("checksum") == _checksum(_body(state))
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise StreamStateError(
            "The state of this running sum is damaged: its checksum does not fit.",
            fix="restore the newest copy, or start a new stream, which is charged on its own.",
        )
    return dict(state)


def _body(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name != "checksum"}


def _checksum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def paid(ledger: Ledger, kept: Mapping[str, Any]) -> Event:
    """What was charged to this ledger for the stream of a state."""
    charged = charge_of(ledger, kept.get("charge"), kept.get("hash"))
    if charged is None:
        raise StreamStateError(
            "This stream was not charged to this ledger.", fix="resume it with the ledger that it was started with."
        )
    return charged[0].event


def _note(ledger: Ledger, digest: str, what: str, *, request: str, who: str | None = None) -> Receipt:
    """An entry that costs nothing, for the purpose of the charge that paid for the stream."""
    paid_for = (entry.purpose for entry in ledger.entries() if entry.kind == CHARGE and entry.hash == digest)
    purpose = next(paid_for, what)
    return charge(NOTHING, ledger=ledger, purpose=purpose, question=what, who=who, request=request)


def take(ledger: Ledger, *, digest: str, number: int, who: str | None) -> None:
    """Leave state ``number`` of the stream that the charge with this hash paid for, or refuse if that was done before.

    The ledger appends one entry at a time, so of several that try, one comes first.
    """
    name = f"running sum {digest[:32]}: state {number} is left"
    mine = _note(ledger, digest, "resume a running sum", request=name, who=who)
    takers = (entry for entry in ledger.entries() if entry.kind == CHARGE and entry.content["request"] == name)
    if next(takers).sequence != mine.sequence:
        raise not_the_newest()


@final
class StateFile:
    """A file that holds the newest state of one running stream, and the lock that keeps it to one process."""

    __slots__ = ("_lock", "path")

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock: LockableFile | None = None

    @property
    def home(self) -> str:
        """Where the file is, by one name however it was reached; a link counts as a file of its own."""
        return str(self.path.parent.resolve() / self.path.name)

    def may_run(self, digest: str) -> bool:
        """Whether the stream that this charge paid for may be running here: one did, and the file is not another's."""
        try:
            return lock_path(self.path).exists() and self.read().get("hash") == digest
        except StreamStateError:
            return True
        except OSError:
            return False

    def hold(self, *, new: bool) -> None:
        """Take the lock; ``new`` says that there must be no file yet."""
        try:
            self._lock = file_lock(self.path, timeout=0)
        except OSError as error:
            raise self._unusable(error) from None
        if self._lock is None:
            raise StreamStateError(
                f"Another process is running the stream of {self.path}.", fix="stop it first, or use another file."
            )
        if new and self.path.exists():
            self.let_go()
            raise StreamStateError(
                f"{self.path} already exists.", fix="resume it: RunningSum.resume(path, ledger=…); or name a new file."
            )

    def let_go(self) -> None:
        """Give up the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def read(self, *, beside: bool = False) -> dict[str, Any]:
        """The state in the file; or in the one ``beside`` it, that the last :meth:`write` did not come to rename."""
        path = self._temporary if beside else self.path
        try:
            return opened(json.loads(path.read_text(encoding="ascii")))
        except OSError as error:
            raise self._unusable(error) from None
        except ValueError:
            raise StreamStateError(
                f"{path} is not a state file, or is damaged.", fix="restore the newest copy of it."
            ) from None

    def write(self, state: Mapping[str, Any], note: Callable[[], None]) -> None:
        """Put a state on disk, whole or not at all, ``note`` it, and give it its name.

        When this returns, a crash cannot lose it. One that is noted is on disk already, beside the file.
        """
        temporary = self._temporary
        try:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with open(handle, "w", encoding="ascii") as file:  # noqa: PTH123 # a descriptor, for its permissions
                json.dump(state, file, allow_nan=False)
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self.path.parent)
            note()
            temporary.replace(self.path)  # if this is lost, :meth:`read` finds the state beside the file
        except OSError as error:
            raise self._unusable(error) from None

    @property
    def _temporary(self) -> Path:
        return self.path.with_name(f"{self.path.name}.new")

    def _unusable(self, error: OSError) -> StreamStateError:
        return StreamStateError(
            f"The state file {self.path} cannot be used: {error.strerror or type(error).__name__}.",
            fix="check that its folder exists and can be written to.",
        )


@contextlib.contextmanager
def resting(kept: Mapping[str, Any], file: StateFile | None) -> Iterator[None]:
    """Keep the stream in the file that this state is from, if it is not ``file``, from running meanwhile.

    Refused while it runs: the state is then a copy, and both would noise the same steps. Once the state is taken, what
    is left in that file is refused by the ledger.
    """
    home = kept.get("file")
    origin = None if home is None or (file is not None and file.home == home) else StateFile(home)
    if origin is not None and origin.may_run(kept["hash"]):
        origin.hold(new=False)
    try:
        yield
    finally:
        if origin is not None:
            origin.let_go()


def newest(kept: dict[str, Any], file: StateFile | None, codes: Codes) -> dict[str, Any]:
    """The state, or the one beside its file if a crash came between noting that and renaming it; no other."""
    noted = codes.newest()
    if noted is not None and kept["checksum"] == noted:
        return kept
    if file is not None:
        with contextlib.suppress(StreamStateError):
            kept = file.read(beside=True)
    if noted is None or kept["checksum"] != noted:
        raise not_the_newest()
    return kept


def design_of(kept: Mapping[str, Any], event: Event) -> Design:
    """The design that a state is of, with the noise that was charged."""
    try:
        design = Design.of(kept["design"])
    except (DefocusError, KeyError, TypeError, ValueError):
        raise _unreadable() from None
    if design.noise.event != event:
        raise _unreadable()
    return design


def load(memory: Any, kept: Mapping[str, Any]) -> None:
    """Put back what a state remembers."""
    try:
        memory.load(kept["memory"])
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise _unreadable() from None


def _unreadable() -> StreamStateError:
    return StreamStateError(
        "The state of this running sum cannot be read.",
        fix="resume it with the version of Defocus that saved it, or start a new stream, which is charged on its own.",
    )


def must_be_ledger(ledger: object) -> None:
    """Refuse anything else."""
    if not isinstance(ledger, Ledger):
        raise InvalidParameterError(
            f"A stream is charged to a Ledger, but got {type(ledger).__name__}.", fix="open one: Ledger.open(path, …)."
        )
