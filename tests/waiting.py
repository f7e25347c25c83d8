"""What tests do while something else happens: they wait for it, and not for time, since a busy machine is slow."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HANGS = 600
"""Seconds after which a program is taken to hang; less than a test may take."""


@contextmanager
def again_and_again(act: Callable[[], object], every: float = 0.2) -> Iterator[None]:
    """Do something in another thread until the block ends: whatever it is meant for may not have begun yet."""
    done = threading.Event()

    def keep_acting() -> None:
        while not done.wait(every):
            act()

    thread = threading.Thread(target=keep_acting)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
