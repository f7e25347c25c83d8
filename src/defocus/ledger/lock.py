"""Flushing what the standard library leaves unflushed, and files that belong to whom another belongs.

Taking turns on a file beside the ledger, with a lock that nothing else in the process can drop.

SQLite's own locks are POSIX record locks. When any other part of the process opens the ledger's
file and closes it again, to copy it, to hash it or to upload it, the kernel drops all of them, and
a second writer walks in. The lock here is ``flock`` on a file of its own: it belongs to one open
descriptor, which nobody else holds.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["file_lock", "lock_path", "sync_directory", "take_after"]


def sync_directory(directory: Path) -> None:
    """Flush a directory, so that the names in it are as durable as the files."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take_after(handle: int, *files: Path | None) -> None:
    """Give an open file the mode and the group of the first of ``files`` that there is."""
    for path in files:
        with contextlib.suppress(OSError):
            found = None if path is None else path.stat()
            if found is not None:
                with contextlib.suppress(OSError):  # who is not in the group keeps their own
                    os.fchown(handle, -1, found.st_gid)
                os.fchmod(handle, found.st_mode & 0o777)
                return


_PAUSE = 0.002


def lock_path(path: Path) -> Path:
    """The lock file beside ``path``."""
    return path.with_name(f"{path.name}.lock")


@contextlib.contextmanager
def file_lock(path: Path, *, exclusive: bool, timeout: float | None, like: Path | None = None) -> Iterator[bool]:
    """Hold the lock beside ``path``, shared or exclusive; yields False if it was not had within ``timeout`` seconds.

    Without a timeout it waits for as long as it takes. A lock file that is removed or replaced
    meanwhile is opened again, so that all who hold the lock hold the same one. A new lock file is for those who may
    use ``path``, or the file that it is to be ``like``.
    """
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    deadline = None if timeout is None else time.monotonic() + timeout
    descriptor = _locked(path, like, kind, deadline)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            # A child forked meanwhile shares the descriptor: unlock it for both, then let go.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _locked(path: Path, like: Path | None, kind: int, deadline: float | None) -> int | None:
    lock = lock_path(path)
    while True:
        descriptor = _opened(lock, path, like)
        try:
            had = _waited(descriptor, kind, deadline)
            same = had and _is_at(descriptor, lock)
        except BaseException:
            os.close(descriptor)
            raise
        if same:
            return descriptor
        os.close(descriptor)
        if not had:
            return None


def _opened(lock: Path, *like: Path | None) -> int:
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
    try:
        descriptor = os.open(lock, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(lock, flags, 0o600)
    take_after(descriptor, *like)
    return descriptor


def _waited(descriptor: int, kind: int, deadline: float | None) -> bool:
    if deadline is None:
        fcntl.flock(descriptor, kind)
        return True
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        found, held = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
