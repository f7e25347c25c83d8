"""Ctrl-C while an engine computes in this process: the engine is stopped, and the interrupt is not lost."""

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["interruptible"]

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
