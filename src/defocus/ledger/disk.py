"""Flushing what the standard library leaves unflushed, and files that belong to whom another belongs."""

import contextlib
import os
from pathlib import Path

__all__ = ["sync_directory", "take_after"]


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
