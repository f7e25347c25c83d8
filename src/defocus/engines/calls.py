"""Ctrl-C while an engine computes in this process: the engine is stopped, and the interrupt is not lost."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from defocus.errors import DefocusError

__all__ = ["interruptible", "quietly", "watched"]


_T = TypeVar("_T")
_AGAIN = 0.05
"""Seconds between two attempts to stop: what has not begun yet cannot be stopped."""


def interruptible(work: Callable[[], _T], stop: Callable[[], object]) -> _T:
    """What ``work`` gives. On an interrupt ``stop`` is called until the work has ended; then the interrupt is raised.

    Python tells the main thread alone of an interrupt, and only between two of its own steps, so the work is done in
    another thread while the main one waits. A computation that looks for interrupts by itself may do it late, or take
    one for a failure of its own.

    >>> interruptible(lambda: 6 * 7, lambda: None)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[_T] = []
    failures: list[BaseException] = []
    begun, given_up = threading.Event(), threading.Event()  # whichever comes second sees the first
    ended = threading.Event()  # joining a thread is no test of its end: an interrupted join takes it for ended

    def run() -> None:
        begun.set()
        try:
            if not given_up.is_set():
                results.append(work())
        except BaseException as failure:  # noqa: BLE001  # raised in the thread that asked
            failures.append(failure)
        finally:
            ended.set()

    worker = threading.Thread(target=run, name="defocus-engine", daemon=True)
    try:
        worker.start()
        ended.wait()
    except BaseException:
        given_up.set()
        if begun.is_set():
            _stopped(ended, stop)
        raise
    if failures:
        raise failures.pop()
    return results.pop()


def _stopped(ended: threading.Event, stop: Callable[[], object]) -> None:
    """Wait until the work has ended, however often somebody interrupts the waiting."""
    while not ended.is_set():
        try:
            stop()
            ended.wait(_AGAIN)
        except KeyboardInterrupt:
            continue


def quietly(work: Callable[[], _T], refusal: Callable[[Exception], DefocusError]) -> _T:
    """Do the work, or refuse without quoting: the failure is gone when the refusal is raised, so it is no context.

    >>> from defocus.errors import EngineError
    >>> quietly(lambda: int("secret"), lambda problem: EngineError("It failed.", fix="ask again."))
    Traceback (most recent call last):
    ...
    defocus.errors.rooms.EngineError: It failed.
    To fix: ask again.
    """
    try:
        return work()
    except DefocusError as refused:
        known = refused
    except Exception as error:  # noqa: BLE001 - whatever it is, it may quote a value
        known = refusal(error)
    raise known


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
