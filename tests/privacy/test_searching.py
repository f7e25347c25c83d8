"""Searches find what they look for, and have asked about what they return."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.privacy.searching import least, turning


@given(st.floats(-100, 100), st.booleans())
def test_a_turn_is_found_to_the_last_bit_from_either_side(threshold: float, rising: bool) -> None:
    def holds(x: float) -> bool:
        return x >= threshold if rising else x <= threshold

    found = turning(holds, *((-101.0, 101.0) if rising else (101.0, -101.0)))
    assert holds(found.yes)
    assert not holds(found.no)
    assert found.yes == threshold
    assert abs(found.yes - found.no) <= math.ulp(threshold)


def test_a_turn_is_searched_no_further_than_asked() -> None:
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return x >= 1 / 3

    assert turning(holds, 0.0, 1.0, steps=3) == (0.25, 0.375)
    assert asked == [0.5, 0.25, 0.375]
    wide = turning(holds, 0.0, 1.0, width=0.1)
    assert wide.yes - wide.no == 0.0625
    near = turning(holds, 0.0, 1.0, relative=0.1)
    assert 0 < near.yes - near.no <= 0.1 * near.yes


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_the_least_value_of_a_bowl_is_found(centre: float, steepness: float) -> None:
    found = least(lambda x: steepness * (x - centre) ** 2, -4, 4)
    assert 0 <= found <= 1e-9


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_the_least_value_was_really_seen(shape: list[float]) -> None:
    a, b, c = shape
    seen: list[float] = []

    def function(x: float) -> float:
        seen.append(a * math.sin(5 * x) + b * x + c * x * x)
        return seen[-1]

    assert least(function, -2, 2) == min(seen)


def test_the_ends_belong_to_the_search() -> None:
    assert least(lambda x: x, 1, 2) == 1
    assert least(lambda x: -x, 1, 2) == -2


def test_where_there_is_no_number_there_is_no_bound() -> None:
    assert least(lambda _: math.nan, 0, 1) == math.inf
    assert least(lambda x: math.nan if x < 0.5 else x, 0, 1) == pytest.approx(0.5, abs=0.01)
    assert least(lambda _: math.inf, 0, 1) == math.inf
