"""An interrupt stops the work and is raised; nothing else changes."""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import HANGS

from defocus.engines import integers
from defocus.engines.engine import interruptible, quietly, watched
from defocus.errors import EngineError, SourceError

longs = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(longs, max_size=20))
def test_integers_arrive_exactly_whatever_type_the_engine_sums_in(values: list[int]) -> None:
    assert integers(pa.chunked_array([pa.array(values, pa.int64())])).tolist() == values
    wide = pa.array([Decimal(value) for value in values], pa.decimal128(38, 0))
    assert integers(pa.chunked_array([wide])).tolist() == values


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0]),
        pa.array([None], pa.int64()),
        pa.array([Decimal(2**63)], pa.decimal128(38, 0)),
        pa.array([Decimal("1.5")], pa.decimal128(38, 1)),
        pa.array(["1"]),
        pa.array([2**63], pa.uint64()),
    ],
)
def test_what_is_not_exact_is_refused_without_quoting_it(column: Any) -> None:
    with pytest.raises(EngineError, match="exact integers were due") as caught:
        integers(pa.chunked_array([column]))
    assert str(2**63) not in str(caught.value)
    assert caught.value.__context__ is None


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
