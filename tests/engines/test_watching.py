"""Progress is told while a query runs, and whatever goes wrong with it the query goes on."""

import threading
from collections.abc import Callable

import pytest
from tests.waiting import HANGS

from defocus.engines.watching import watched


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
