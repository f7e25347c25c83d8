"""The log of a charged run: which steps it took, and from which sums, so that one charge pays for one run.

A step that is taken twice from different sums draws noise twice, and many such noises could be averaged away, for one
charge. So each run has a log. A step is noted there *before* its noise is added: its number, and a digest of the sums
and of how much noise they get. A run that is resumed and comes to a step that is in the log must have the same digest,
and then adds the same noise again, which tells nothing new. With any other it is refused, and no noise is drawn. It
must also take the steps that were taken, and no others in between: where noise is correlated, a step that is left out
changes the noise of those after it.

Guarantee:
    Of one charge, each step is released from one sum at most, whoever resumes it, from whichever checkpoint, with
    whatever changed. While a run is at work it holds a lock of the operating system on its log, so that nobody else
    goes on with the same charge; the lock is gone when the process is, however it died. Digests are keyed by the secret
    of the run and chained, so a log tells how many steps were taken and nothing about the data, and one that is
    missing, altered, of another run, or cut off before the place where the checkpoint was written is refused. Once the
    end of the run is in the ledger, so is where its log ends: one that is shorter is refused, and nothing is added.
Assumes:
    Sums that differ have different digests, but for collisions of a keyed hash; on a GPU with torch's generator, sums
    of other lengths only: see :func:`defocus.learning.noise.by_length`. The log stays beside the ledger, in
    ``visits.ledger.runs/``, and nobody copies the two, which would copy the budget, too; nor does anybody cut off what
    was noted after the checkpoint of a run that has not ended, which cannot be seen. A ledger in PostgreSQL has no
    folder: there the log is in memory until the first checkpoint is written, and beside that one from then on. A note
    that is written survives the death of the process. The loss of power may take the notes since the last checkpoint
    along, with the steps themselves, which were in memory; what a loop showed of them until then can be shown once
    more with other noise, if anything is changed before they are repeated.
"""

import errno
import gc
import hashlib
import hmac
import os
import stat
import struct
import threading
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple, Self, final

from defocus.errors import BranchedRunError, CheckpointError, InvalidParameterError
from defocus.learning.noise import derive
from defocus.ledger import Ledger, Receipt
from defocus.ledger.lock import LockableFile, sync_directory
from defocus.ledger.runs import make_run_folder, run_folder

__all__ = ["BEFORE_THE_END", "DIGEST_BYTES", "Log", "Mark", "check_folder", "cut_off", "end_of"]


_AGAIN = "start another run, which is charged on its own."
"""What can always be done instead."""
BEFORE_THE_END = "were taken before the end of the run was noted"
"""Which steps the log of a run that has ended must hold."""


def cut_off(path: Path, which: str) -> CheckpointError:
    """The refusal of a log that lacks steps which are known to have been taken."""
    return CheckpointError(
        f"The log {path} lacks steps that {which}: it was cut off, or an older one put back.",
        fix=f"put the newest log back, or {_AGAIN}",
    )


DIGEST_BYTES = 24
_BEGIN = b"defocus steps 1\n"
_ID = 16
_MAC = 32
_NOTE = struct.Struct(f"<Q{DIGEST_BYTES}s")
_RECORD = _NOTE.size + _MAC
"""A power of two, so that pages of a disk hold whole records."""


class Mark(NamedTuple):
    """A place in a log: how many steps were noted, and the code that vouches for all of them."""

    steps: int
    code: bytes


class _Note(NamedTuple):
    step: int
    digest: bytes
    code: bytes


def check_folder(ledger: Ledger) -> None:
    """Refuse a ledger beside which no steps can be noted."""
    folder = run_folder(ledger)
    try:
        if folder is not None:
            make_run_folder(folder)
    except OSError as error:
        raise CheckpointError(
            f"The steps of the run cannot be noted in {folder}: {error.strerror or type(error).__name__}.",
            fix="make the folder of the ledger writable.",
        ) from None


def end_of(path: Path) -> Mark | None:
    """Where a log ends, as its file says; None if there is no such file, or nothing in it."""
    try:
        with path.open("rb") as file:
            records = os.fstat(file.fileno()).st_size // _RECORD
            file.seek(records * _RECORD - _MAC if records else 0)
            return Mark(records - 1, file.read(_MAC)) if records else None
    except OSError:
        return None


@final
class Log:
    """The steps of one run, noted one after the other. Made by :meth:`begin` and :meth:`resume`."""

    __slots__ = (
        "_ahead",
        "_end",
        "_file",
        "_head",
        "_last",
        "_most",
        "_process",
        "_secret",
        "_text",
        "_turn",
        "mark",
        "path",
    )

    def __init__(self, receipt: Receipt, key: bytes, mark: Mark, *, most: int) -> None:
        self._head, self._secret, self._most = _head(receipt), derive(key, "log", size=32), most
        self._text = bytearray()
        self.mark = mark
        """Where this run is in the log."""
        self.path: Path | None = None
        """The file, or None while it is in memory."""
        self._last: _Note | None = None
        self._ahead: deque[_Note] = deque()
        self._end: Mark | None = None
        self._file: LockableFile | None = None
        self._turn = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def begin(cls, path: Path | None, receipt: Receipt, key: bytes, *, most: int) -> Self:
        """The log of a run that was just charged, in a new file or in memory; of no more than ``most`` steps."""
        log = cls(receipt, key, Mark(0, b""), most=most)
        log.mark = Mark(0, _code(log._secret, log._head))
        log._text += log._head + log.mark.code
        if path is not None:
            log.keep(path)
        return log

    @classmethod
    def resume(
        cls, path: Path, receipt: Receipt, key: bytes, mark: Mark, *, most: int, end: Mark | None = None
    ) -> Self:
        """Go on in the log of a run from where a checkpoint was written, if nobody else is at work there.

        Where it ended, if it has, must be in the log; steps are repeated then, and none is added.
        """
        log = cls(receipt, key, mark, most=most)
        log.path, log._end = path, end
        log._take()
        return log

    @property
    def newest(self) -> int:
        """How many steps lie before the end of the log, those that were passed over included."""
        last = self._ahead[-1] if self._ahead else self._last
        return 0 if last is None else last.step + 1

    def note(self, step: int, digest: bytes) -> None:
        """Note that a step is about to be released from sums of this digest; refuse if others were noted before."""
        with self._turn:
            if self.path is None and self._process != os.getpid():
                raise CheckpointError(
                    "This run belongs to the process that this one was forked from.",
                    fix="go on there; or save a checkpoint there, end it, and resume here.",
                )
            if self.path is not None and (self._file is None or self._file.closed):
                self._take()
            if self._last is not None and step <= self._last.step:
                if (step, digest) != self._last[:2]:
                    raise _branched(step, self.newest)
            elif self._ahead:
                if (step, digest) != self._ahead[0][:2]:
                    raise _branched(step, self.newest)
                self._last = self._ahead.popleft()
                self.mark = Mark(self.mark.steps + 1, self._last.code)
            elif self._end is not None:
                raise BranchedRunError(
                    f"Step {step + 1} was passed over before the end of the run was noted. Nothing was drawn.",
                    fix=f"pass it over again; or {_AGAIN}",
                )
            else:
                body = _NOTE.pack(step, digest)
                note = _Note(step, digest, _code(self._secret, self.mark.code + body))
                self._append(body + note.code)
                self._last, self.mark = note, Mark(self.mark.steps + 1, note.code)

    def keep(self, path: Path) -> None:
        """Move a log from memory to a new file, and hold that."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            file = LockableFile(os.open(path, flags, 0o600))
        except OSError as error:
            raise _unwritable(path, error) from None
        try:
            _lock(file, path)
            _write(file.descriptor, bytes(self._text), 0, path)
            os.fsync(file.descriptor)
            sync_directory(path.parent)
            sync_directory(path.parent.parent)
        except BaseException as error:
            file.close()
            path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise _unwritable(path, error) from None
            raise
        self._hold(file, path)

    def sync(self) -> None:
        """Flush what was noted to the disk, so that it outlives a loss of power."""
        if self._file is not None and not self._file.closed and self.path is not None:
            try:
                os.fsync(self._file.descriptor)
            except OSError as error:
                raise _unwritable(self.path, error) from None

    def close(self) -> None:
        """Let go of the log, so that the run can be resumed elsewhere; the next note takes hold of it again."""
        if self._file is not None:
            self._file.close()

    def _append(self, record: bytes) -> None:
        if self._file is None or self.path is None:
            self._text += record
        else:
            _write(self._file.descriptor, record, (1 + self.mark.steps) * _RECORD, self.path)

    def _take(self) -> None:
        """Take hold of the file, and read what was noted there beyond this place, by whomever."""
        path = self.path or Path()
        file = _opened(path)
        try:
            _lock(file, path)
            first, notes = _read(
                _content(file.descriptor, path, most=(1 + self._most) * _RECORD), self._secret, self._head, path
            )
            codes = [first, *(note.code for note in notes)]
            _check(codes, self.mark, path, "the checkpoint holds")
            _check(codes, self._end or self.mark, path, BEFORE_THE_END)
        except BaseException:
            file.close()
            raise
        done = self.mark.steps
        self._last, self._ahead = notes[done - 1] if done else None, deque(notes[done:])
        self._hold(file, path)

    def _hold(self, file: LockableFile, path: Path) -> None:
        self._file, self.path = file, path
        self._text.clear()

    def __reduce_ex__(self, _: object) -> Any:
        raise InvalidParameterError(
            "A run cannot be copied: each copy would go on with the same charge.",
            fix="copy the model; another run is charged on its own.",
        )


def _head(receipt: Receipt) -> bytes:
    return _BEGIN + bytes.fromhex(receipt.hash)[:_ID]


def _code(secret: bytes, text: bytes) -> bytes:
    return hashlib.blake2b(text, key=secret, digest_size=_MAC).digest()


def _read(text: bytes, secret: bytes, head: bytes, path: Path) -> tuple[bytes, list[_Note]]:
    """The code of the head, and all notes, if each is vouched for. One that is cut off has no such code."""
    if text[: len(_BEGIN)] != _BEGIN:
        raise _damaged(path)
    code = _code(secret, head)
    if text[:_RECORD] != head + code:
        raise CheckpointError(
            f"The log {path} is of another run than the checkpoint.", fix=f"put the right one back, or {_AGAIN}"
        )
    first, notes = code, []
    for start in range(_RECORD, len(text), _RECORD):
        body, told = text[start : start + _NOTE.size], text[start + _NOTE.size : start + _RECORD]
        code = _code(secret, code + body)
        if code != told:
            raise _damaged(path)
        step, digest = _NOTE.unpack(body)
        notes.append(_Note(step, digest, code))
    return first, notes


def _check(codes: list[bytes], mark: Mark, path: Path, which: str) -> None:
    if not 0 <= mark.steps < len(codes) or not hmac.compare_digest(codes[mark.steps], mark.code):
        raise cut_off(path, which)


def _branched(step: int, newest: int) -> BranchedRunError:
    return BranchedRunError(
        f"Step {step + 1} was released before, from other sums: again with other noise, it would be a second run, and"
        " one was charged. Nothing was drawn.",
        fix="go on with everything as it was: data, code, learning rate, versions, number of threads and of processes."
        f" Where arithmetic does not repeat itself, as on a GPU, resume a checkpoint of {newest} steps; or {_AGAIN}",
    )


def _opened(path: Path) -> LockableFile:
    """A log that is there, for reading and writing."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        why = "is missing" if error.errno == errno.ENOENT else f"cannot be used ({error.strerror})"
        raise CheckpointError(
            f"The log of this run, {path}, {why}: without it nobody can tell which steps were released.",
            fix=f"put it back, together with the ledger that it belongs to, or {_AGAIN}",
        ) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _damaged(path)
    return LockableFile(file)


def _lock(file: LockableFile, path: Path) -> None:
    """Keep everybody else out until the file is closed, or refuse if somebody is there already."""
    for last in (False, True):
        try:
            if file.lock(timeout=0):
                return
        except OSError as error:
            raise _unwritable(path, error) from None
        if not last:
            gc.collect()  # a run that was dropped in this process may wait to be collected
    raise CheckpointError(
        "Another process, or another Trainer in this one, is at work on this run.",
        fix="wait for its end or stop it, with close() in this process, and resume its newest checkpoint then.",
    )


def _content(file: int, path: Path, *, most: int) -> bytes:
    """All of a file, if it is no longer than it can be."""
    length = os.fstat(file).st_size
    if length > most:
        raise _damaged(path)
    return os.pread(file, length, 0)


def _write(file: int, record: bytes, place: int, path: Path) -> None:
    """Write a record whole or not at all."""
    try:
        written = os.pwrite(file, record, place)
        if written < len(record):
            os.ftruncate(file, place)
    except OSError as error:
        raise _unwritable(path, error) from None
    if written < len(record):
        raise _unwritable(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def _unwritable(path: Path, error: OSError) -> CheckpointError:
    """The refusal where steps cannot be noted."""
    return CheckpointError(
        f"The steps of the run cannot be noted in {path}: {error.strerror or type(error).__name__}.",
        fix="check that the disk has room and that the folder is writable. The charge stays.",
    )


def _damaged(path: Path) -> CheckpointError:
    """The refusal of a log that nobody can have written."""
    return CheckpointError(
        f"The log {path} is damaged: it is cut off, altered, or was never one.",
        fix=f"restore it together with its ledger, or {_AGAIN}",
    )
