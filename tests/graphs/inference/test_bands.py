"""Intervals for what never falls: they hold as often as they say, and are narrow where noise averages out."""

from fractions import Fraction

import numpy as np
import pytest

from defocus.graphs.inference.bands import level_bounds, step_bounds, sum_reach
from defocus.graphs.questions.node_counts import difference
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise.testing import seeded

LAPLACE = Laplace(scale=Fraction(4))
GAUSSIAN = Gaussian(sigma=Fraction(4), sensitivity=Fraction(1), dimension=450)
COUNTS = np.concatenate([[40, 90, 60, 30, 12, 5, 3], np.zeros(40), [1], np.zeros(300), [2], np.zeros(101)])
CHAIN = np.cumsum(COUNTS).astype(np.int64)


def bounds(mechanism: Laplace | Gaussian, noisy: np.ndarray, *, total: bool) -> tuple[np.ndarray, np.ndarray]:
    first = difference(mechanism, 0.02), difference(mechanism, 0.04)
    if total:
        return step_bounds(noisy[:-1].astype(float), mechanism, total=float(CHAIN[-1]), first=first)
    return step_bounds(noisy.astype(float), mechanism, total=None, first=first)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(9)])
@pytest.mark.parametrize("terms", [1, 4, 16])
def test_sums_of_laplace_noise_exceed_their_reach_as_rarely_as_they_say(scale: Fraction, terms: int) -> None:
    """By the exact law of the sum, and not much more rarely."""
    far = int(40 * scale) + 10
    one = np.exp(-np.abs(np.arange(-far, far + 1)) / float(scale))
    law = np.ones(1)
    for _ in range(terms):
        law = np.convolve(law, one / one.sum())
    values = np.arange(len(law)) - len(law) // 2
    for outside in (0.02, 0.002):
        reach = sum_reach(Laplace(scale=scale), terms, outside)
        assert law[values > reach].sum() <= outside
        assert scale < 1 or terms == 1 or law[values > 0.6 * reach].sum() > outside


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("total", [True, False])
def test_ends_of_steps_hold_at_every_step(mechanism: Laplace | Gaussian, total: bool) -> None:
    bits, held = seeded(3), []
    for _ in range(400):
        low, high = bounds(mechanism, mechanism.sample(CHAIN, bits), total=total)
        held.append((low <= COUNTS) & (high >= COUNTS))
    assert np.mean(held, axis=0).min() > 0.93


@pytest.mark.statistical
def test_ends_of_steps_made_for_less_noise_do_not_hold() -> None:
    bits, held = seeded(3), []
    for _ in range(100):
        low, high = bounds(LAPLACE, Laplace(scale=Fraction(8)).sample(CHAIN, bits), total=True)
        held.append((low <= COUNTS) & (high >= COUNTS))
    assert np.mean(held, axis=0).min() < 0.9


def test_steps_that_are_zero_far_and_wide_are_known_nearly_exactly() -> None:
    low, high = bounds(LAPLACE, LAPLACE.sample(CHAIN, seeded(5)), total=True)
    assert (high - low)[150:250].max() <= 5
    assert (high - low)[:4].min() > 20


@pytest.mark.statistical
def test_ends_of_levels_hold_and_are_narrow_where_a_vector_is_flat() -> None:
    levels = np.repeat([1, 2, 3, 7, 30], [400, 100, 30, 8, 2]).astype(np.int64)
    bits, held = seeded(7), []
    low = high = np.zeros(0)
    for _ in range(300):
        noisy = LAPLACE.sample(levels, bits).astype(float)
        low, high = level_bounds(noisy, LAPLACE)
        held.append((low <= levels) & (levels <= high))
    assert np.mean(held, axis=0).min() > 0.93
    assert (high - low)[200] < 4
