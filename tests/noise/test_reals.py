"""Exponential real numbers, bit by bit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from defocus.noise.enclosures import exp_bounds
from defocus.noise.reals import ExponentialReal, _digit, enclosed_choice
from defocus.noise.testing import replay, seeded


@pytest.mark.statistical
def test_the_number_is_exponential_and_nothing_else() -> None:
    bits = seeded(3)
    drawn = [float(ExponentialReal(bits).bounds()[0]) for _ in range(8000)]
    assert stats.kstest(drawn, "expon").pvalue > 1e-4
    assert stats.kstest(np.array(drawn) * 1.1, "expon").pvalue < 1e-6


def test_refining_halves_the_bounds_and_stays_within_them() -> None:
    bits = seeded(4)
    for _ in range(50):
        x = ExponentialReal(bits)
        low, high = x.bounds()
        for _ in range(3):
            x.refine()
            inner_low, inner_high = x.bounds()
            assert low <= inner_low < inner_high <= high
            assert inner_high - inner_low == (high - low) / 2
            low, high = inner_low, inner_high


@pytest.mark.parametrize("place", [1, 2, 5, 65])
def test_a_digit_is_one_with_the_probability_of_the_docstring(place: int) -> None:
    low, high = _digit(place, 80)
    e = math.exp(-(2.0**-place))
    assert low <= high <= low + 4
    assert Fraction(low, 2**80) == pytest.approx(e / (1 + e), rel=1e-15)


def test_a_refined_digit_follows_its_coin() -> None:
    for word, digit in ((0, 1), (2**64 - 1, 0)):
        x = ExponentialReal(replay([], seeded(1)))
        before = x.bounds()[0]
        x._bits = replay([word], seeded(2))
        x.refine()
        assert (x.bounds()[0] > before) == bool(digit)


def thirds(precision: int) -> list[tuple[int, int]]:
    """Weights 1/3, 0, e^-1 and 2, each enclosed."""
    one = 1 << precision
    return [(one // 3, one // 3 + 1), (0, 0), exp_bounds(1, 1, precision), (2 * one, 2 * one)]


@pytest.mark.statistical
def test_choices_follow_the_weights_and_no_others() -> None:
    bits = seeded(8)
    counts = np.bincount([enclosed_choice(thirds, bits) for _ in range(20_000)], minlength=4)
    assert counts[1] == 0
    for factor, fits in ((1.0, True), (1.1, False)):
        weights = np.array([1 / 3, np.exp(-1), 2 * factor])
        p = stats.chisquare(counts[[0, 2, 3]], weights / weights.sum() * counts.sum()).pvalue
        assert (p > 1e-4) if fits else (p < 1e-5)


def test_a_draw_at_a_border_waits_for_more_bits() -> None:
    asked = []

    def halves(precision: int) -> list[tuple[int, int]]:
        asked.append(precision)
        wide = 1
        return [((1 << precision) - wide, (1 << precision) + wide)] * 2

    half = [2**63, 0]
    assert enclosed_choice(halves, replay(half, seeded(1))) == 1
    assert asked == [128, 192]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_only_weight_that_is_not_zero_is_chosen(place: int) -> None:
    weights = [(0, 0)] * 3
    weights[place] = (1, 1)
    assert enclosed_choice(lambda _: weights, seeded(int(Fraction(place)))) == place
