"""Intervals of positive numbers hold the truth, whatever its size."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.noise.intervals import NOTHING, Enclosed, aligned, exponential, plus, times

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
