import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from defocus import noise
from defocus.errors import InvalidParameterError
from defocus.noise.enclosures import exp_bounds, ratio_bounds
from defocus.noise.ranges import coin, coin_exp, coins
from defocus.noise.testing import replay, seeded

TOP = (1 << 64) - 1
rationals = st.fractions(0, 1).filter(lambda q: 0 < q < 1)


@given(p=rationals)
def test_a_rational_coin_turns_exactly_at_its_bias(p: Fraction) -> None:
    """The law, read off: True on every real below p and False from p on, to 128 bits."""
    at = (p.numerator << 128) // p.denominator
    for value, expected in ((at - 1, True), (at + 1, False)):
        if 0 <= value < 1 << 128:
            words = [value >> 64, value & TOP]
            assert coin(partial(ratio_bounds, *p.as_integer_ratio()), replay(words, seeded(0))) is expected
            assert bool(coins(partial(ratio_bounds, *p.as_integer_ratio()), 1, replay(words, seeded(0)))[0]) is expected


@given(x=st.fractions(Fraction(1, 10**6), 30))
def test_an_exponential_coin_turns_exactly_at_its_bias(x: Fraction) -> None:
    with mpmath.workprec(400):
        at = int(mpmath.floor(mpmath.ldexp(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), 128)))
    p = partial(exp_bounds, x.numerator, x.denominator)
    for value, expected in ((at - 1, True), (at + 1, False)):
        words = [value >> 64, value & TOP]
        assert coin(p, replay(words, seeded(0))) is expected
        assert bool(coins(p, 1, replay(words, seeded(0)))[0]) is expected


def test_a_tie_of_64_bits_is_settled_by_the_next_ones() -> None:
    third = (1 << 64) // 3  # 0101…01, and so on for ever
    assert noise.bernoulli(Fraction(1, 3), 1, replay([third, 0], seeded(0)))[0]
    assert not noise.bernoulli(Fraction(1, 3), 1, replay([third, TOP], seeded(0)))[0]
    assert noise.bernoulli(Fraction(1, 3), None, replay([third, third, third, third - 1], seeded(0)))
    assert not noise.bernoulli(Fraction(1, 3), None, replay([third, third, third, third + 1], seeded(0)))


@pytest.mark.parametrize(("further", "expected"), [((1 << 64) // 3, True), ((1 << 64) // 3 + 1, False)])
def test_nothing_is_decided_while_the_bias_is_known_too_coarsely(further: int, expected: bool) -> None:
    def third(precision: int) -> tuple[int, int]:
        return ratio_bounds(1, 3, precision) if precision > 200 else (0, 1 << precision)

    words = [(1 << 64) // 3, (1 << 64) // 3, further, 0 if expected else TOP]
    assert coin(third, replay(words, seeded(0))) is expected


def test_a_dyadic_bias_needs_no_tie() -> None:
    assert noise.bernoulli(0.5, 2, replay([(1 << 63) - 1, 1 << 63], seeded(0))).tolist() == [True, False]


@pytest.mark.parametrize("size", [None, 5])
def test_certain_outcomes_are_certain(size: int | None) -> None:
    assert np.all(noise.bernoulli(1, size))
    assert not np.any(noise.bernoulli(0, size))
    assert np.all(noise.bernoulli_exp(0, size))
    assert not np.any(noise.bernoulli_exp(10**40, size))
    assert coin_exp(0, 5, seeded(0))


@pytest.mark.statistical
@pytest.mark.parametrize("p", [Fraction(1, 3), 0.1, Fraction(10**20, 10**21 + 7)])
def test_coins_have_the_declared_bias_and_no_other(p: Fraction | float) -> None:
    heads = int(noise.bernoulli(p, 100_000, seeded(1)).sum())
    assert stats.binomtest(heads, 100_000, float(p)).pvalue > 1e-6
    assert stats.binomtest(heads, 100_000, float(p) * 1.1).pvalue < 1e-6
    assert stats.binomtest(heads, 100_000, float(p) * 0.9).pvalue < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("x", [Fraction(1, 7), 1, 2.5])
def test_exponential_coins_have_the_declared_bias_and_no_other(x: Fraction | float) -> None:
    heads = int(noise.bernoulli_exp(x, 100_000, seeded(2)).sum())
    single = sum(noise.bernoulli_exp(x, None, bits) for bits in [seeded(3)] for _ in range(5_000))
    assert stats.binomtest(heads, 100_000, math.exp(-x)).pvalue > 1e-6
    assert stats.binomtest(heads, 100_000, math.exp(-1.1 * x)).pvalue < 1e-6
    assert stats.binomtest(single, 5_000, math.exp(-x)).pvalue > 1e-6


def test_no_coins_are_an_empty_array() -> None:
    assert noise.bernoulli(0.3, 0).shape == (0,)
    assert noise.bernoulli_exp(0.3, 0).dtype == np.bool_


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf, "0.5", True, None, 10**400])
def test_a_bias_outside_zero_and_one_is_refused(p: object) -> None:
    with pytest.raises(InvalidParameterError, match="p must"):
        noise.bernoulli(p, 3)  # type: ignore[call-overload]  # wrong on purpose


@pytest.mark.parametrize("x", [-1, -1e-300, math.nan, math.inf, "1", True, None])
def test_an_exponent_below_zero_is_refused(x: object) -> None:
    with pytest.raises(InvalidParameterError, match="x must"):
        noise.bernoulli_exp(x, 3)  # type: ignore[call-overload]  # wrong on purpose


@pytest.mark.parametrize("size", [-1, 2.0, "3", True])
def test_a_size_that_is_no_count_is_refused(size: object) -> None:
    with pytest.raises(InvalidParameterError, match="size must be a whole number"):
        noise.bernoulli(0.5, size)  # type: ignore[call-overload]  # wrong on purpose
