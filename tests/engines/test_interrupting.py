"""An interrupt stops the work and is raised; nothing else changes."""

import os
import signal
import threading
import time

import pytest
from tests.waiting import HANGS

from defocus.engines.interrupting import interruptible


def test_what_the_work_gives_or_raises_comes_back() -> None:
    assert interruptible(lambda: 5, lambda: pytest.fail("stopped")) == 5
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, lambda: pytest.fail("stopped"))


def test_other_threads_are_never_interrupted_so_they_work_themselves() -> None:
    seen: list[str] = []

    def ask() -> None:
        seen.append(interruptible(lambda: threading.current_thread().name, lambda: None))

    thread = threading.Thread(target=ask, name="another")
    thread.start()
    thread.join()
    assert seen == ["another"]


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_stops_the_work_and_is_raised_when_it_has_ended() -> None:
    go_on, ended = threading.Event(), threading.Event()
    stops: list[float] = []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)  # the main thread may not even be waiting yet
        go_on.wait(HANGS)
        time.sleep(0.2)
        ended.set()

    def stop() -> None:
        stops.append(time.monotonic())
        if len(stops) == 2:
            os.kill(os.getpid(), signal.SIGINT)  # impatient
        if len(stops) > 2:
            go_on.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible(work, stop)
    assert ended.is_set()
    assert len(stops) > 2
