import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.answers.digits import brief, decimals, rounded, written


@given(st.floats(1e-12, 1e12))
def test_rounding_steps_are_between_a_twentieth_and_half_of_the_error(error: float) -> None:
    places = decimals(np.array([error]))
    assert places is not None
    step = 10.0**-places
    assert error / 20 * (1 - 1e-9) <= step <= error / 2 * (1 + 1e-9)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1), st.floats(-1e6, 1e6))
def test_a_column_is_rounded_by_less_than_a_quarter_of_its_least_error(errors: list[float], value: float) -> None:
    spread = np.array(errors)
    moved = abs(float(rounded(np.array([value]), decimals(spread))[0]) - value)
    assert moved <= spread.min() / 4 * (1 + 1e-6) + 1e-9


def test_counts_have_no_decimals_and_unknown_errors_decide_nothing() -> None:
    assert decimals(np.array([0.001]), integral=True) == 0
    assert decimals(np.array([np.nan, np.inf, 0.0])) is None
    assert decimals(np.array([np.nan, 0.5])) == 1
    assert rounded(np.array([1 / 3]), None)[0] == 1 / 3


def test_nothing_is_written_as_minus_zero() -> None:
    assert written(-0.2, 0) == "0"
    assert math.copysign(1, float(rounded(np.array([-0.01]), 1)[0])) == 1


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (1234567.891, 2, "1 234 567.89"),
        (-1234.5, -2, "-1 200"),
        (5, 0, "5"),
        (1e20, 0, "1e+20"),
        (1 / 3, None, "0.333333"),
        (math.nan, 1, "–"),
        (math.inf, 1, "∞"),
        (-math.inf, 1, "-∞"),
        (1e-20, 400, "1e-20"),
    ],
)
def test_numbers_are_written_for_people(value: float, places: int | None, text: str) -> None:
    assert written(value, places) == text


@given(st.floats(1e-9, 1e12))
def test_two_digits_are_within_a_twentieth(value: float) -> None:
    assert float(brief(value).replace(" ", "")) == pytest.approx(value, rel=0.0501)


def test_errors_that_are_none_are_dashes() -> None:
    assert brief(math.nan) == "–"
    assert brief(math.inf) == "∞"
