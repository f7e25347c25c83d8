"""Choices with enclosed weights."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from defocus.noise.enclosures import exp_bounds
from defocus.noise.testing import replay, seeded
from defocus.noise.weights import enclosed_choice


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
