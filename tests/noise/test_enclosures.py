"""Intervals of positive numbers hold the truth, whatever its size."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.noise.enclosures import (
    NOTHING,
    Enclosed,
    aligned,
    exp_bounds,
    exponential,
    ln2_bounds,
    plus,
    ratio_bounds,
    times,
)


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


CTX = mpmath.MPContext()
CTX.prec = 400
numbers = st.builds(
    lambda low, more, exponent: Enclosed(low, low + more, exponent),
    st.integers(0, 2**80),
    st.integers(0, 5),
    st.integers(-500, 500),
)


def ends(x: Enclosed) -> tuple[Fraction, Fraction]:
    return x.low * Fraction(2) ** x.exponent, x.high * Fraction(2) ** x.exponent


@pytest.mark.parametrize(
    "x", [0, 1, -1, Fraction(1, 3), -Fraction(7, 11), 40, -900, 10**12, -(10**12), Fraction(10**30)]
)
@pytest.mark.parametrize("precision", [64, 192])
def test_exponentials_of_any_size_are_enclosed_tightly(x: Fraction | int, precision: int) -> None:
    found = exponential(Fraction(x), precision)
    scaled = CTX.exp(CTX.mpf(Fraction(x).numerator) / Fraction(x).denominator - found.exponent * CTX.ln(2))
    assert found.low <= scaled * (1 + CTX.mpf(2) ** -300)
    assert scaled * (1 - CTX.mpf(2) ** -300) <= found.high
    assert found.high - found.low <= 16
    assert found.low.bit_length() > precision - 8


@given(numbers, numbers, st.integers(8, 200))
def test_products_are_enclosed(a: Enclosed, b: Enclosed, precision: int) -> None:
    low, high = ends(times(a, b, precision))
    assert low <= ends(a)[0] * ends(b)[0]
    assert ends(a)[1] * ends(b)[1] <= high
    assert times(a, b, precision).high.bit_length() <= precision + 1


@given(st.lists(numbers, max_size=5), st.integers(8, 200))
def test_sums_are_enclosed(terms: list[Enclosed], precision: int) -> None:
    low, high = ends(plus(terms, precision))
    assert low <= sum(ends(t)[0] for t in terms)
    assert sum(ends(t)[1] for t in terms) <= high


@given(st.lists(numbers, min_size=1, max_size=5))
def test_aligned_numbers_keep_their_bounds_and_their_zeros(terms: list[Enclosed]) -> None:
    found = aligned([*terms, NOTHING])
    assert found[-1] == (0, 0)
    largest = max(range(len(terms)), key=lambda i: ends(terms[i])[1])
    if terms[largest].high:
        unit = ends(terms[largest])[1] / found[largest][1]
        for term, (low, high) in zip(terms, found, strict=False):
            assert low * unit <= ends(term)[0]
            assert ends(term)[1] <= high * unit


def test_nothing_added_to_nothing_is_nothing() -> None:
    assert plus([], 64) == plus([NOTHING], 64) == NOTHING
    assert aligned([NOTHING, NOTHING]) == [(0, 0), (0, 0)]
