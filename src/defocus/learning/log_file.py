"""The file of a run's log: opened, locked, read and written whole, or refused with what can be done."""

import errno
import gc
import os
import stat
from pathlib import Path

from defocus.errors import CheckpointError
from defocus.ledger.lock import LockableFile

__all__ = ["AGAIN", "content", "damaged", "lock", "opened", "unwritable", "write"]


AGAIN = "start another run, which is charged on its own."
"""What can always be done instead."""


def opened(path: Path) -> LockableFile:
    """A log that is there, for reading and writing."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        why = "is missing" if error.errno == errno.ENOENT else f"cannot be used ({error.strerror})"
        raise CheckpointError(
            f"The log of this run, {path}, {why}: without it nobody can tell which steps were released.",
            fix=f"put it back, together with the ledger that it belongs to, or {AGAIN}",
        ) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise damaged(path)
    return LockableFile(file)


def lock(file: LockableFile, path: Path) -> None:
    """Keep everybody else out until the file is closed, or refuse if somebody is there already."""
    for last in (False, True):
        try:
            if file.lock(timeout=0):
                return
        except OSError as error:
            raise unwritable(path, error) from None
        if not last:
            gc.collect()  # a run that was dropped in this process may wait to be collected
    raise CheckpointError(
        "Another process, or another Trainer in this one, is at work on this run.",
        fix="wait for its end or stop it, with close() in this process, and resume its newest checkpoint then.",
    )


def content(file: int, path: Path, *, most: int) -> bytes:
    """All of a file, if it is no longer than it can be."""
    length = os.fstat(file).st_size
    if length > most:
        raise damaged(path)
    return os.pread(file, length, 0)


def write(file: int, record: bytes, place: int, path: Path) -> None:
    """Write a record whole or not at all."""
    try:
        written = os.pwrite(file, record, place)
        if written < len(record):
            os.ftruncate(file, place)
    except OSError as error:
        raise unwritable(path, error) from None
    if written < len(record):
        raise unwritable(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def unwritable(path: Path, error: OSError) -> CheckpointError:
    """The refusal where steps cannot be noted."""
    return CheckpointError(
        f"The steps of the run cannot be noted in {path}: {error.strerror or type(error).__name__}.",
        fix="check that the disk has room and that the folder is writable. The charge stays.",
    )


def damaged(path: Path) -> CheckpointError:
    """The refusal of a log that nobody can have written."""
    return CheckpointError(
        f"The log {path} is damaged: it is cut off, altered, or was never one.",
        fix=f"restore it together with its ledger, or {AGAIN}",
    )
