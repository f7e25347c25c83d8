from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.noise.enclosures import exp_bounds, ln2_bounds, ratio_bounds


@given(
    x=st.one_of(st.fractions(0, 10, max_denominator=10**6), st.fractions(0, 10**4), st.floats(0, 1e-3).map(Fraction)),
    precision=st.integers(1, 400),
)
def test_exp_is_enclosed_within_three_units(x: Fraction, precision: int) -> None:
    low, high = exp_bounds(x.numerator, x.denominator, precision)
    with mpmath.workprec(precision + 20_000):
        truth = mpmath.ldexp(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), precision)
        assert low <= truth <= high
    assert low >= 0
    assert high <= 1 << precision
    assert high - low <= 3


def test_exp_of_zero_is_one() -> None:
    assert exp_bounds(0, 7, 50) == (1 << 50, 1 << 50)


def test_exp_of_a_tiny_number_stays_below_one() -> None:
    low, high = exp_bounds(1, 10**300, 64)
    assert low < high == 1 << 64


@pytest.mark.parametrize("x", [10**3, 10**30, 10**300])
def test_exp_of_a_huge_number_is_almost_zero_at_once(x: int) -> None:
    assert exp_bounds(x, 1, 64) == (0, 1)


def test_unreduced_quotients_give_the_same_bounds() -> None:
    assert exp_bounds(6, 4, 90) == exp_bounds(3, 2, 90)


@given(precision=st.integers(1, 500))
def test_ln2_is_enclosed(precision: int) -> None:
    low, high = ln2_bounds(precision)
    with mpmath.workprec(precision + 50):
        assert low <= mpmath.ldexp(mpmath.log(2), precision) <= high
    assert high - low == precision + 1


@given(q=st.fractions(0, 1), precision=st.integers(0, 200))
def test_ratios_are_enclosed_by_floor_and_ceiling(q: Fraction, precision: int) -> None:
    low, high = ratio_bounds(q.numerator, q.denominator, precision)
    assert low <= q * 2**precision <= high
    assert high - low <= 1
    assert (high == low) == ((q * 2**precision).denominator == 1)
