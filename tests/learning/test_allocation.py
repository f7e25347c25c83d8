"""Balls in bins: the bound holds against the exact law, and says nothing where there is nothing to gain."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from defocus.learning.allocation import allocated_rate
from defocus.noise.testing import seeded
from defocus.privacy import Approximate, Gaussian, Sampled, account

Floats = npt.NDArray[np.float64]


def normals(rows: int, columns: int, seed: int) -> Floats:
    words = seeded(seed).words(rows * columns).reshape(rows, columns)
    return np.asarray(stats.norm.ppf((words.astype(np.float64) + 0.5) / 2.0**64))


@pytest.mark.statistical
@pytest.mark.parametrize(("ratio", "steps"), [(1.5, 59), (2.0, 59), (5.0, 20), (1.0, 400)])
def test_the_exact_law_of_an_epoch_loses_no_more_than_is_charged(ratio: float, steps: int) -> None:
    """Under Q every step is noise alone, and P over Q is the mean of the likelihood ratios of the places."""
    rate = allocated_rate(ratio, steps, 1e-9)
    assert rate is not None
    loss = account(steps * Sampled(Gaussian(ratio), rate) + Approximate(0, 2e-9))
    y = normals(1_200_000 // steps, steps, 7) * ratio
    likelihood = np.exp(y / ratio**2 - 0.5 / ratio**2).mean(axis=1)
    seen = 0
    for epsilon in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        removed = np.maximum(likelihood - math.exp(epsilon), 0)
        added = np.maximum(1 - math.exp(epsilon) * likelihood, 0)
        for side in (removed, added):
            assert side.mean() - 5 * side.std() / math.sqrt(len(side)) <= loss.delta(epsilon)
            seen += side.mean() > 0
    assert seen >= 3
    assert loss.delta(0.5) < 0.3 * account(Gaussian(ratio)).delta(0.5)  # a gain over one release


@pytest.mark.statistical
def test_the_chance_of_a_higher_rate_is_below_the_one_charged() -> None:
    """The first passage of the martingale, for a probability that can be seen."""
    ratio, steps, failing = 2.0, 59, 0.05
    rate = allocated_rate(ratio, steps, failing)
    assert rate is not None
    y = normals(20_000, steps, 8) * ratio
    moved = np.cumsum(1 - np.exp(y / ratio**2 - 0.5 / ratio**2), axis=1)
    beyond = int(((1 / (steps - moved[:, :-1])).max(axis=1) > rate).sum())
    assert stats.binomtest(beyond, len(y), failing, alternative="greater").pvalue > 1e-6
    assert beyond > 10


@given(ratio=st.floats(0.06, 20), steps=st.integers(2, 5000), failing=st.floats(1e-15, 1e-3))
def test_the_rate_is_above_that_of_the_draw_and_falls_with_noise(ratio: float, steps: int, failing: float) -> None:
    rate = allocated_rate(ratio, steps, failing)
    if rate is None:
        return
    assert 1 / steps < rate < 1
    more = allocated_rate(1.5 * ratio, steps, failing)
    assert more is not None
    assert more <= rate
    surer = allocated_rate(ratio, steps, failing / 100)
    assert surer is None or surer >= rate


@pytest.mark.parametrize(
    ("ratio", "steps", "failing"), [(0.5, 10, 1e-8), (5.0, 1, 1e-8), (5.0, 100, 0.0), (0.01, 10**6, 1e-8)]
)
def test_nothing_is_claimed_where_nothing_is_gained(ratio: float, steps: int, failing: float) -> None:
    assert allocated_rate(ratio, steps, failing) is None
