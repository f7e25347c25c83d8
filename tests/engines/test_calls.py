"""An interrupt stops the work and is raised; nothing else changes."""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable

import pytest
from tests.waiting import HANGS

from defocus.engines.calls import interruptible, quietly, watched
from defocus.errors import EngineError, SourceError


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


def failing(problem: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise problem

    return work


def test_a_failure_leaves_nothing_behind() -> None:
    work = failing(ValueError("secret"))
    with pytest.raises(EngineError) as caught:
        quietly(work, lambda _: EngineError("It failed.", fix="ask again."))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_refusal_of_our_own_stays_as_it_is() -> None:
    known = SourceError("The table was closed.", fix="open it again.")
    with pytest.raises(SourceError) as caught:
        quietly(failing(known), lambda _: EngineError("It failed.", fix="ask again."))
    assert caught.value is known


def test_an_interrupt_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        quietly(failing(KeyboardInterrupt()), lambda _: EngineError("It failed.", fix="ask again."))


def test_what_the_work_gives_comes_back() -> None:
    assert quietly(lambda: 42, lambda _: EngineError("It failed.", fix="ask again.")) == 42


def test_what_is_told_never_goes_back_and_never_exceeds_a_hundred() -> None:
    looks: list[Callable[[], float | None]] = [lambda: None, lambda: 30.0, lambda: 10.0, lambda: 1 / 0, lambda: 250.0]
    told: list[float] = []
    enough = threading.Event()

    def percent() -> float | None:
        if looks:
            return looks.pop(0)()
        enough.set()
        return None

    with watched(percent, told.append):
        assert enough.wait(HANGS)
    assert told == [30.0, 30.0, 100.0]


def test_nobody_looks_where_nobody_listens_and_nobody_is_told_where_nothing_is_known() -> None:
    told: list[float] = []
    before = threading.active_count()
    with watched(lambda: 50.0, None), watched(None, told.append):
        assert threading.active_count() == before
    assert told == []


def test_the_watcher_is_gone_when_the_query_has_ended_and_its_failure_is_kept() -> None:
    def fail() -> None:
        raise ValueError("the query")

    with pytest.raises(ValueError, match="the query"), watched(lambda: 50.0, lambda _: None):
        fail()
    assert not any(one.name == "defocus-progress" for one in threading.enumerate())
