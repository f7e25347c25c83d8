"""How far a query is, told while it runs."""

import contextlib
import threading
from collections.abc import Callable, Iterator

__all__ = ["watched"]

_POLL = 0.1
"""Seconds between two looks."""


@contextlib.contextmanager
def watched(percent: Callable[[], float | None] | None, progress: Callable[[float], None] | None) -> Iterator[None]:
    """Look at ``percent`` now and then, from another thread, and tell ``progress``, never less than before.

    Where either is None nobody looks. A look that fails is left out: it is no reason to stop the query.

    >>> import time
    >>> told = []
    >>> with watched(lambda: 250.0, told.append):
    ...     time.sleep(0.3)
    >>> set(told)
    {100.0}
    """
    if percent is None or progress is None:
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(percent, progress, done), name="defocus-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(percent: Callable[[], float | None], progress: Callable[[float], None], done: threading.Event) -> None:
    most = 0.0
    while not done.wait(_POLL):
        with contextlib.suppress(Exception):
            found = percent()
            if found is not None:
                most = max(most, min(found, 100.0))
                progress(most)
