"""Floats err on the side asked for."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from defocus.privacy.rounding import above, below


@given(st.fractions())
def test_a_number_lies_between_its_two_neighbouring_floats(value: Fraction) -> None:
    low, high = below(value), above(value)
    assert low <= value <= high
    assert high <= math.nextafter(low, math.inf)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_left_as_it_is(value: float) -> None:
    assert above(value) == below(value) == value


def test_numbers_beyond_the_range_of_floats_stay_on_their_side() -> None:
    assert above(10**400) == math.inf
    assert below(10**400) == 1.7976931348623157e308
    assert above(-(10**400)) == -1.7976931348623157e308
    assert below(Fraction(1, 10**400)) == 0.0
    assert above(Fraction(1, 10**400)) == 5e-324
