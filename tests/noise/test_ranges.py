import itertools
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
from defocus.errors import DefocusError, InvalidParameterError, NoiseOverflowError
from defocus.noise.enclosures import exp_bounds, ratio_bounds
from defocus.noise.ranges import LARGEST_SCALE, coin, coin_exp, coins, fitting, rational_scale
from defocus.noise.testing import replay, seeded

TOP = (1 << 64) - 1


@given(below=st.integers(1, 1 << 200))
def test_one_integer_stays_in_its_range(below: int) -> None:
    assert 0 <= noise.uniform(below, None, seeded(below % 997)) < below


@given(below=st.integers(1, 1 << 63), size=st.integers(0, 50))
def test_arrays_stay_in_their_range(below: int, size: int) -> None:
    values = noise.uniform(below, size, seeded(size))
    assert values.dtype == np.int64
    assert values.shape == (size,)
    assert ((values >= 0) & (values < below)).all()


@given(below=st.integers(1, 1 << 63), words=st.lists(st.integers(0, TOP), min_size=1, max_size=5))
def test_each_word_of_a_complete_run_gives_its_remainder(below: int, words: list[int]) -> None:
    """The law, read off: equally many words lead to every value, and all others are drawn again."""
    complete = (1 << 64) // below * below
    kept = [word for word in words if word < complete]
    values = noise.uniform(below, len(words), replay(words, seeded(0)))
    expected = [word % below for word in words]
    assert all(v == e for v, e, w in zip(values.tolist(), expected, words, strict=True) if w < complete)
    assert len(kept) == len(words) or complete < 1 << 64


def test_a_word_of_the_incomplete_run_is_drawn_again() -> None:
    assert noise.uniform(3, 1, replay([TOP, 5], seeded(0))).tolist() == [2]  # 2**64 - 1 is a multiple of 3
    assert noise.uniform(3, None, replay([TOP, 1 << 62], seeded(0))) == 1


@pytest.mark.statistical
@pytest.mark.parametrize("below", [2, 3, 10, 100])
def test_uniform_integers_are_even(below: int) -> None:
    values = noise.uniform(below, 100_000, seeded(below))
    assert stats.chisquare(np.bincount(values, minlength=below)).pvalue > 1e-6
    bits = seeded(below)
    single = [noise.uniform(below, None, bits) for _ in range(10_000)]
    assert stats.chisquare(np.bincount(single, minlength=below)).pvalue > 1e-6


@pytest.mark.statistical
def test_wide_ranges_are_even_in_their_quantiles() -> None:
    below = 3 << 61  # a quarter of all words is drawn again
    values = noise.uniform(below, 50_000, seeded(1)).astype(float) / below
    assert stats.kstest(values, "uniform").pvalue > 1e-6
    assert stats.kstest(values * 1.1, "uniform").pvalue < 1e-6


@pytest.mark.parametrize("below", [0, -1, 1.0, math.nan, "7", True, None])
def test_an_empty_range_is_refused(below: object) -> None:
    with pytest.raises(InvalidParameterError, match="below must be a whole number of at least 1"):
        noise.uniform(below, 2)  # type: ignore[call-overload]  # wrong on purpose


def test_arrays_beyond_64_bits_are_refused_and_single_integers_named_as_the_way_out() -> None:
    assert noise.uniform(1 << 63, 3).shape == (3,)
    with pytest.raises(InvalidParameterError, match=r"(?s)64 bits.*To fix: draw one integer at a time"):
        noise.uniform((1 << 63) + 1, 3)


@given(n=st.integers(0, 300), seed=st.integers(0, 1000))
def test_a_permutation_has_every_index_once(n: int, seed: int) -> None:
    assert sorted(noise.permutation(n, seeded(seed)).tolist()) == list(range(n))


@pytest.mark.statistical
def test_every_order_is_equally_likely() -> None:
    bits = seeded(4)
    orders = dict.fromkeys(itertools.permutations(range(4)), 0)
    for _ in range(12_000):
        orders[tuple(noise.permutation(4, bits).tolist())] += 1
    assert stats.chisquare(list(orders.values())).pvalue > 1e-6


def test_the_order_is_that_of_the_keys() -> None:
    assert noise.permutation(4, replay([9, 3, TOP, 4], seeded(0))).tolist() == [1, 3, 0, 2]


def test_equal_keys_are_ordered_by_further_bits() -> None:
    def order(*further: int) -> list[int]:
        return [*noise.permutation(5, replay([7, 5, 7, 1, 7, *further], seeded(0))).tolist()]

    middle = {tuple(order(*keys)[2:]) for keys in itertools.permutations([10, 20, 30])}
    assert middle == set(itertools.permutations([0, 2, 4]))
    assert order(1, 2, 3)[:2] == [3, 1]


def test_several_runs_of_equal_keys_are_ordered_apart() -> None:
    first = noise.permutation(6, replay([5, 5, 1, 9, 9, 9, 2, 1, 3, 2, 1], seeded(0))).tolist()
    assert first == [2, 1, 0, 5, 4, 3]


@pytest.mark.parametrize("n", [-1, 1.0, "3", True])
def test_a_permutation_of_no_count_is_refused(n: object) -> None:
    with pytest.raises(InvalidParameterError, match="n must be a whole number"):
        noise.permutation(n)  # type: ignore[arg-type]  # wrong on purpose


def test_a_float_scale_means_what_it_stores() -> None:
    assert rational_scale("scale", 0.1) == Fraction(0.1) != Fraction(1, 10)
    assert rational_scale("scale", np.float32(0.1)) == Fraction(float(np.float32(0.1)))
    assert rational_scale("scale", np.int64(3)) == 3


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "1", True, None, Fraction(0)])
def test_a_scale_that_is_not_positive_is_refused(scale: object) -> None:
    with pytest.raises(InvalidParameterError, match="scale must be"):
        rational_scale("scale", scale)


@pytest.mark.parametrize(
    "scale", [LARGEST_SCALE + 1, LARGEST_SCALE + Fraction(1, 10**30), 1e300, pytest.param(10**5000, id="huge")]
)
def test_a_scale_above_the_largest_is_refused_in_few_words(scale: object) -> None:
    with pytest.raises(
        InvalidParameterError, match=r"(?s)at most 2\*\*40.*To fix: release on a coarser grid"
    ) as caught:
        rational_scale("sigma", scale)
    assert len(str(caught.value)) < 300


def test_the_largest_scale_is_allowed() -> None:
    assert rational_scale("sigma", LARGEST_SCALE) == 2**40


@pytest.mark.parametrize("value", [0, (1 << 63) - 1, -(1 << 63)])
def test_what_fits_is_returned(value: int) -> None:
    assert fitting(value) == value


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 1 << 1000])
def test_what_does_not_fit_is_refused_and_never_wrapped(value: int) -> None:
    with pytest.raises(NoiseOverflowError, match=r"(?s)does not fit a 64-bit integer.*To fix:"):
        fitting(value)
    assert issubclass(NoiseOverflowError, DefocusError)


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
