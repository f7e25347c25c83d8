"""Floats err on the side asked for."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from defocus.privacy.rounding import above, below, product_up, root_up, sum_up, times_up


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


@given(st.integers(0, 10**400), st.floats(0, 1e300))
def test_amounts_taken_many_times_are_never_less_and_never_undefined(times: int, amount: float) -> None:
    found = times_up(times, amount)
    assert found == 0 if not amount else found >= 0
    assert found * (1 + 2**-52) + 5e-324 >= times * Fraction(amount)


@given(st.integers(1, 10**30), st.floats(0, 1e200), st.floats(0, 1e200))
def test_sums_and_products_are_never_less_than_exact_ones(times: int, a: float, b: float) -> None:
    assert sum_up(a, b) >= Fraction(a) + Fraction(b)
    assert product_up(times, a) >= times * Fraction(a)
    assert product_up(times, 0.0) > 0


@given(st.fractions(min_value=0))
def test_a_root_is_never_too_small_and_hardly_too_large(square: Fraction) -> None:
    root = root_up(square)
    assert square <= Fraction(root) ** 2 <= square * (1 + Fraction(1, 2**50)) + Fraction(1, 10**300)


def test_a_root_beyond_floats_is_infinite() -> None:
    assert root_up(Fraction(10**700)) == math.inf
