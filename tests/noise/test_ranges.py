import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from defocus import noise
from defocus.errors import DefocusError, InvalidParameterError, NoiseOverflowError
from defocus.noise.ranges import LARGEST_SCALE, fitting, rational_scale
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
