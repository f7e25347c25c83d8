"""Printed numbers that hold as they are printed."""

import math

from hypothesis import given
from hypothesis import strategies as st

from defocus.privacy.digits import at_least, at_most


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 12))
def test_the_text_is_on_the_safe_side_and_close(value: float, digits: int) -> None:
    low, high = float(at_most(value, digits)), float(at_least(value, digits))
    assert low <= value <= high
    assert high - low <= 2 * 10.0 ** (1 - digits) * value


def test_short_numbers_stay_as_they_are() -> None:
    for number in (0.25, 1.0, 20.0, 1e-9, 0.0):
        assert at_least(number) == at_most(number) == f"{number:.6g}"


def test_an_infinite_number_is_said_to_be_infinite() -> None:
    assert at_least(math.inf) == at_most(math.inf) == "inf"
