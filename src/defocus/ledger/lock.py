"""The lock on a file, between threads and processes, and directories that are flushed to disk.

Flushing what the standard library leaves unflushed, and files that belong to whom another belongs.

Taking turns on a file beside the ledger, with a lock that nothing else in the process can drop.

SQLite's own locks are POSIX record locks. When any other part of the process opens the ledger's
file and closes it again, to copy it, to hash it or to upload it, the kernel drops all of them, and
a second writer walks in. The lock here is ``flock`` on a file of its own: it belongs to one open
descriptor, which nobody else holds, and ends with the process that took it.
"""

import contextlib
import errno
import fcntl
import os
import time
import weakref
from pathlib import Path
from typing import final

__all__ = ["LockableFile", "file_lock", "lock_path", "sync_directory", "take_after"]


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


@final
class LockableFile:
    """An open file that can be locked. It is closed, and with it the lock, by :meth:`close` or when it is collected.

    A forked child closes its copy at once, so that the lock ends with the process that took it.
    """

    __slots__ = ("__weakref__", "_closing", "_descriptor")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._closing = weakref.finalize(self, _close, descriptor, os.getpid())
        _OPEN.add(self)

    @property
    def closed(self) -> bool:
        """Whether it was closed, here or by a fork."""
        return not self._closing.alive

    @property
    def descriptor(self) -> int:
        """The open file. A number that was closed may be another file's, so it is not given out."""
        if self.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._descriptor

    def lock(self, *, exclusive: bool = True, timeout: float | None) -> bool:
        """Whether the lock, shared or exclusive, was had within ``timeout`` seconds; without one, wait for it."""
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        if timeout is None:
            fcntl.flock(self.descriptor, kind)
            return True
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_PAUSE)
            else:
                return True

    def close(self) -> None:
        """Let go of the lock and the file; a second time does nothing."""
        self._closing()


_OPEN: weakref.WeakSet[LockableFile] = weakref.WeakSet()


def _close(descriptor: int, process: int) -> None:
    try:
        if os.getpid() == process:  # a child that shares the file lets go of its copy alone
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _forked() -> None:
    for each in list(_OPEN):
        each.close()


os.register_at_fork(after_in_child=_forked)


def lock_path(path: Path) -> Path:
    """The lock file beside ``path``."""
    return path.with_name(f"{path.name}.lock")


def file_lock(
    path: Path, *, exclusive: bool = True, timeout: float | None, like: Path | None = None
) -> LockableFile | None:
    """The lock beside ``path``, shared or exclusive, until it is closed; None if not had within ``timeout`` seconds.

    Without a timeout it waits for as long as it takes. A lock file that is removed or replaced
    meanwhile is opened again, so that all who hold the lock hold the same one. A new lock file is for those who may
    use ``path``, or the file that it is to be ``like``.
    """
    lock, deadline = lock_path(path), None if timeout is None else time.monotonic() + timeout
    while True:
        file = LockableFile(_opened(lock, path, like))
        try:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            had = file.lock(exclusive=exclusive, timeout=left)
            if had and _is_at(file.descriptor, lock):
                return file
        except BaseException:
            file.close()
            raise
        file.close()
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


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        found, held = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
