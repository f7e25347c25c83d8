"""Series of interactions: one event moves one step by one, whatever it is; noise; refusals."""

import math
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from tests.graphs.asking.small import public, ways

from defocus import Budget, edge, item
from defocus.errors import DefocusError, NotDeclaredError
from defocus.graphs.data import MISSING_TIME, Data, Pairs
from defocus.graphs.questions import AskInteractions
from defocus.graphs.statistics.weights import counted
from defocus.noise.testing import seeded
from defocus.privacy import events

DAYS = AskInteractions("1d", "2024-01-01", "2024-01-11")
NUMBERS = AskInteractions(10, 0, 95)


def pairs(times: list[int], left: list[int] | None = None) -> Pairs:
    ends = np.array(left if left is not None else [0] * len(times), np.int64)
    return Pairs(ends, np.ones(len(times), np.int64), None, np.array(times, np.int64))


def data(times: list[int]) -> Data:
    return Data(lambda: (pairs(times), range(2)))


def test_no_event_moves_the_series_by_more_than_one() -> None:
    """L1 = 1 for the whole series, for an event at any time and with any ends."""
    base = [3, 12, 12, 94]
    before = counted(pairs(base), NUMBERS.bounds)
    worst = 0
    for time in (*range(-5, 100), MISSING_TIME, 2**62, -(2**62)):
        for end in (0, -1):
            after = counted(pairs([*base, time], [0, 0, 0, 0, end]), NUMBERS.bounds)
            worst = max(worst, int(np.abs(after - before).sum()))
    assert worst == 1
    assert before.tolist() == [1, 2, 0, 0, 0, 0, 0, 0, 0, 1]


def test_steps_are_cut_from_what_is_declared() -> None:
    assert len(DAYS.bounds) == 11
    assert NUMBERS.bounds.tolist() == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95]
    same = AskInteractions(timedelta(days=1), date(2024, 1, 1), datetime(2024, 1, 11))  # noqa: DTZ001  # as users write it
    assert same.bounds.tolist() == DAYS.bounds.tolist()


@pytest.mark.parametrize(("unit", "sensitivity"), [(item(), 1), (item(replace=True), 2)])
def test_the_whole_series_is_one_event(unit: Any, sensitivity: int) -> None:
    method = ways(DAYS, 2, Budget(1), unit)["laplace"]
    assert method.event == events.DiscreteLaplace(sensitivity, sensitivity)
    ways(DAYS, 2, Budget(1, 1e-6), unit)


@pytest.mark.statistical
def test_noise_has_the_declared_scale_and_no_other() -> None:
    many = AskInteractions(1, 0, 4000)
    method = ways(many, 2, Budget(0.5), item())["laplace"]
    sizes = np.abs(method.run(data([]), seeded(2)).columns[0].values)
    expected = 1 / math.sinh(0.5)
    assert abs(sizes.mean() / expected - 1) < 5 / math.sqrt(4000)
    assert abs(sizes.mean() / (1.1 * expected) - 1) > 0.04


def test_totals_are_far_less_noisy_than_sums_of_noisy_steps() -> None:
    question = AskInteractions(1, 0, 512, running=True)
    times = list(np.random.default_rng(1).integers(0, 512, 5000))
    truth = np.cumsum(np.bincount(times, minlength=512))
    (planned,) = ways(question, 2, Budget(1), item()).values()
    assert planned.name == "matrix mechanism"
    column = planned.run(data(times), seeded(1)).columns[0]
    off = np.abs(column.values - truth)
    assert off.mean() < 3 * planned.error
    assert off.mean() < 0.6 * math.sqrt(512)
    assert ((column.low <= truth) & (truth <= column.high)).mean() > 0.9


def test_very_long_series_of_totals_add_up_their_steps() -> None:
    question = AskInteractions(1, 0, 5000, running=True)
    method = ways(question, 2, Budget(1), item())["laplace"]
    column = method.run(data([5, 10]), seeded(1)).columns[0]
    assert column.low[-1] <= 2 <= column.high[-1]


def test_dates_are_shown_as_dates_and_numbers_as_numbers() -> None:
    for question, first in ((DAYS, datetime.fromisoformat("2024-01-01")), (NUMBERS, 0)):
        assert ways(question, 2, Budget(1), item())["laplace"].run(data([]), seeded(1)).keys["from"][0] == first


@pytest.mark.parametrize(
    ("every", "start", "end"),
    [
        ("1 fortnight", 0, 10),
        ("0d", 0, 10),
        (0, 0, 10),
        (-1, 0, 10),
        (1.5, 0, 10),
        (True, 0, 10),
        (1, 10, 10),
        (1, 10, 0),
        (1, 0, 10**9),
        (1, "yesterday", 10),
        (1, 0.5, 10),
        (1, True, 10),
        (1, 0, 2**70),
    ],
)
def test_steps_that_make_no_series_are_refused(every: Any, start: Any, end: Any) -> None:
    with pytest.raises(DefocusError):
        AskInteractions(every, start, end)


def test_start_and_end_are_never_read_off_the_data() -> None:
    for start, end in ((None, 5), (0, None)):
        with pytest.raises(NotDeclaredError, match="not read off the data"):
            AskInteractions(1, start, end)
    with pytest.raises(DefocusError, match="protect events"):
        DAYS.methods(public(5, edge()), Budget(1))
