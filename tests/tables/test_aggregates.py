"""What can be asked is checked as soon as it is written."""

import math
from fractions import Fraction
from typing import Any

import pytest

from defocus import tables as ask
from defocus.errors import DefocusError, InvalidParameterError

BOUNDED: list[Any] = [
    ask.sum,
    ask.mean,
    ask.variance,
    ask.std,
    ask.median,
    ask.min,
    ask.max,
]
WRONG = [
    (1, 1),
    (2, 1),
    (math.nan, 1),
    (0, math.inf),
    ("0", "1"),
    (True, 2),
    (None, 1),
    (0, 10**400),
    (2**53, 2**53 + 1),
    (Fraction(1), 1 + Fraction(1, 10**30)),
    (0, 1e76),
    (0, 1e-300),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize("make", BOUNDED, ids=lambda make: str(make.__name__))
def test_bounds_that_are_none_are_refused(make: Any, wrong: tuple[Any, Any]) -> None:
    with pytest.raises(DefocusError):
        make("x", *wrong)
    with pytest.raises(DefocusError):
        make("x", bounds=wrong)


@pytest.mark.parametrize("wrong", ["", " ", None, 3, b"x", ["x"]])
def test_an_aggregate_is_about_a_column(wrong: Any) -> None:
    for make in (*BOUNDED, ask.count_distinct):
        with pytest.raises(InvalidParameterError, match="about a column"):
            make(wrong)
    with pytest.raises(InvalidParameterError):
        ask.histogram(wrong, [0, 1])


def test_bounds_are_given_once_and_both() -> None:
    with pytest.raises(InvalidParameterError, match="twice"):
        ask.mean("x", 0, 1, bounds=(0, 1))
    with pytest.raises(InvalidParameterError, match="only one bound"):
        ask.mean("x", 0)
    with pytest.raises(InvalidParameterError, match="not understood"):
        ask.mean("x", bounds="found")
    with pytest.raises(InvalidParameterError, match="known bounds"):
        ask.mean("x", bounds="find", missing=0)
    with pytest.raises(InvalidParameterError, match="within the bounds"):
        ask.mean("x", 0, 1, missing=2)


def test_a_ledger_remembers_aggregates_by_these_texts() -> None:
    """An answer is recalled by a digest of them, so that of an older version is found only if they stay."""
    age = "Argument(text='age', low=0, high=120, find=False, missing=None)"
    found = "Argument(text='age', low=None, high=None, find=True, missing=None)"
    texts = {
        "Statistic(operation='count', arguments=())": ask.count(),
        f"Statistic(operation='mean', arguments=({age},))": ask.mean("age", 0, 120),
        f"Statistic(operation='sum', arguments=({found},))": ask.sum("age", bounds="find"),
        f"Statistic(operation='covariance', arguments=({age}, {age}))": ask.covariance(
            "age", "age", x_bounds=(0, 120), y_bounds=(0, 120)
        ),
        "Units()": ask.count_units(),
        "Distinct(text='ward', at_most=2)": ask.count_distinct("ward", at_most=2),
        "Histogram(text='age', edges=(0.0, 18.0))": ask.histogram("age", [0, 18]),
        f"Quantile(argument={age}, levels=(Fraction(1, 2),), buckets=1024, single=True, intervals=False)": ask.median(
            "age", 0, 120
        ),
    }
    assert [repr(aggregate) for aggregate in texts.values()] == list(texts)


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, math.nan, "0.5", True])
def test_levels_lie_between_zero_and_one(level: Any) -> None:
    with pytest.raises(DefocusError):
        ask.quantile("x", level, 0, 1)


@pytest.mark.parametrize("levels", [[], [0.5, 0.5], [0.9, 0.1]])
def test_levels_rise(levels: list[float]) -> None:
    with pytest.raises(InvalidParameterError, match="rising order"):
        ask.quantiles("x", levels, 0, 1)


def test_levels_are_exactly_what_was_written() -> None:
    assert ask.quantile("x", 0.9, 0, 1).levels == (Fraction(9, 10),)
    assert ask.max("x", 0, 1).levels == (Fraction(199, 200),)


@pytest.mark.parametrize("edges", [[], [0], [0, 0], [1, 0], [0, math.nan], [0, math.inf], ["0", "1"]])
def test_edges_rise(edges: Any) -> None:
    with pytest.raises(DefocusError):
        ask.histogram("x", edges)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
def test_numbers_are_whole(wrong: Any) -> None:
    with pytest.raises(DefocusError):
        ask.count_distinct("x", at_most=wrong)
    with pytest.raises(DefocusError):
        ask.median("x", 0, 1, buckets=wrong)
    with pytest.raises(InvalidParameterError, match="65536"):
        ask.median("x", 0, 1, buckets=1 << 17)
