"""What is drawn is what is charged."""

import math
from collections import Counter
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.utils.data import WeightedRandomSampler

from defocus.errors import InvalidParameterError, UnaccountedSamplingError
from defocus.learning.sampling import BallsInBins, Cyclic, FixedSize, Poisson, Shuffled, allocated_rate, planned
from defocus.noise.testing import seeded
from defocus.privacy import Adjacency, Approximate, Gaussian, Sampled, SampledBatch, SampledGaussian, account

KEY = bytes(range(32))


def drawn(sampling: Any, units: int) -> list[list[int]]:
    return [sampling.draw(step, units, KEY).tolist() for step in range(sampling.steps)]


def test_poisson_steps_are_sampled_gaussians_at_the_rate_they_are_drawn_with() -> None:
    assert Poisson(100, Fraction(1, 10), 5).event([2.0] * 5) == 5 * Sampled(Gaussian(2.0), Fraction(1, 10))
    assert Poisson(100, Fraction(1), 2).event([2.0] * 2) == 2 * Gaussian(2.0)
    replaced = Poisson(100, Fraction(1, 10), 3, replace=True)
    assert replaced.event([2.0] * 3) == 3 * SampledGaussian(2.0, Fraction(1, 10))
    several = Poisson(100, Fraction(1, 10), 3).event([2.0, 1.0, 2.0])
    assert several == 2 * Sampled(Gaussian(2.0), Fraction(1, 10)) + Sampled(Gaussian(1.0), Fraction(1, 10))


@pytest.mark.statistical
def test_poisson_draws_at_its_rate_and_not_ten_percent_off() -> None:
    sampling = Poisson(1000, Fraction(1, 50), 400)
    taken = sum(len(step) for step in drawn(sampling, 1000))
    assert stats.binomtest(taken, 400_000, 1 / 50).pvalue > 1e-6
    assert stats.binomtest(taken, 400_000, 1.1 / 50).pvalue < 1e-6
    sizes = Counter(len(step) for step in drawn(sampling, 1000))
    assert np.var(list(sizes.elements())) > 10  # 19.6 for independent coins, 0 for batches of one size


def test_poisson_steps_and_units_are_drawn_apart() -> None:
    sampling = Poisson(200, Fraction(1, 2), 64)
    table = np.zeros((64, 200))
    for step, units in enumerate(drawn(sampling, 200)):
        table[step, units] = 1
    assert np.abs(np.asarray(np.corrcoef(table))[np.triu_indices(64, 1)]).max() < 0.4
    assert len({tuple(row) for row in table}) == 64


def test_some_poisson_batches_are_empty() -> None:
    assert [] in drawn(Poisson(4, Fraction(1, 10), 50), 4)


def test_a_batch_of_fixed_size_is_charged_for_a_unit_replaced_under_either_adjacency() -> None:
    for replace in (False, True):
        sampling = FixedSize(40, 8, 3, replace)
        assert sampling.event([2.0] * 3) == 3 * SampledBatch(Gaussian(1.0), 8, 40)
        assert all(len(step) == len(set(step)) == 8 for step in drawn(sampling, 40))


@given(bins=st.integers(1, 9), epochs=st.integers(1, 3))
def test_balls_fall_into_one_bin_an_epoch(bins: int, epochs: int) -> None:
    sampling = BallsInBins(30, bins, bins * epochs)
    steps = drawn(sampling, 30)
    for epoch in range(epochs):
        together = [unit for step in steps[epoch * bins : (epoch + 1) * bins] for unit in step]
        assert sorted(together) == list(range(30))


def test_an_epoch_of_balls_in_bins_is_one_release_at_its_least_noise() -> None:
    assert BallsInBins(30, 3, 6).event([2.0] * 6) == 2 * Gaussian(2.0)
    assert BallsInBins(30, 3, 6).event([3.0, 2.0, 4.0, 5.0, 6.0, 7.0]) == Gaussian(2.0) + Gaussian(5.0)
    assert BallsInBins(30, 3, 6).event([2.0] * 4) == 2 * Gaussian(2.0)  # an epoch begun is an epoch
    assert BallsInBins(30, 3, 6, replace=True).event([2.0] * 3) == Gaussian(1.0)


def test_with_enough_noise_and_steps_an_epoch_is_counted_as_poisson_steps() -> None:
    sampling = BallsInBins(2000, 200, 400, failing=1e-9)
    rate = allocated_rate(2.0, 200, 1e-9)
    assert rate is not None
    assert sampling.event([2.0] * 400) == 400 * Sampled(Gaussian(2.0), rate) + 2 * Approximate(0, 2e-9)
    begun = sampling.event([2.0] * 230)
    assert begun == 230 * Sampled(Gaussian(2.0), rate) + 2 * Approximate(0, 2e-9)
    assert BallsInBins(2000, 200, 400, replace=True, failing=1e-9).event([2.0] * 400) == 2 * Gaussian(1.0)
    assert BallsInBins(2000, 200, 400).event([2.0] * 400) == 2 * Gaussian(2.0)
    mixed = sampling.event([2.0] * 100 + [3.0] * 100)
    assert mixed == 100 * Sampled(Gaussian(2.0), rate) + 100 * Sampled(Gaussian(3.0), rate) + Approximate(0, 2e-9)


def test_a_place_among_balls_and_bins_does_not_depend_on_who_else_is_there() -> None:
    sampling = BallsInBins(30, 5, 5)
    more, fewer = drawn(sampling, 30), drawn(sampling, 29)
    assert [[unit for unit in step if unit < 29] for step in more] == fewer


def test_shuffled_batches_hold_everyone_once_and_are_for_replaced_units_only() -> None:
    sampling = Shuffled(10, 4, 6)
    steps = drawn(sampling, 10)
    assert [len(step) for step in steps] == [4, 4, 2, 4, 4, 2]
    assert sorted(chain(*steps[:3])) == list(range(10)) == sorted(chain(*steps[3:]))
    assert steps[:3] != steps[3:]
    assert sampling.event([2.0] * 6) == 2 * Gaussian(1.0)
    with pytest.raises(UnaccountedSamplingError, match="move others between batches") as caught:
        Shuffled(10, 4, 6, replace=False)
    assert "balls in bins" in caught.value.fix


def test_cyclic_units_take_part_when_it_is_their_turn() -> None:
    sampling = Cyclic(60, 4, Fraction(1), 12)
    steps = drawn(sampling, 60)
    assert steps[:4] == steps[4:8] == steps[8:]
    assert sorted(chain(*steps[:4])) == list(range(60))
    assert sampling.event([2.0] * 12) == 3 * Gaussian(2.0)
    assert sampling.event([2.0] * 9) == 3 * Gaussian(2.0)
    thinned = Cyclic(60, 4, Fraction(1, 2), 12)
    assert thinned.event([2.0] * 12) == 3 * Sampled(Gaussian(2.0), Fraction(1, 2))
    for step, units in enumerate(drawn(thinned, 60)):
        assert set(units) <= set(steps[step])
    assert thinned.batch == Fraction(60, 8)
    assert thinned.event([]) == 0 * Gaussian(1)


def test_a_replaced_unit_costs_more_than_an_added_one() -> None:
    """What is replaced moves a sum by twice what is added or removed, but is seldom in the sample at all."""
    added, replaced = (Poisson(1000, Fraction(1, 100), 100, replace) for replace in (False, True))
    here = account(added.event([1.0] * 100)).epsilon(1e-5)
    there = account(replaced.event([1.0] * 100), adjacency=Adjacency.REPLACE).epsilon(1e-5)
    assert here * 1.2 < there < here * 1.3


def test_samplings_are_planned_by_name() -> None:
    assert planned("poisson", size=100, batch=8, steps=3, replace=False) == Poisson(100, Fraction(2, 25), 3)
    assert planned("balls in bins", size=100, batch=8, steps=3, replace=False) == BallsInBins(100, 12, 3)
    half = planned("balls in bins", size=100, batch=8, steps=24, replace=False, delta=5 / 2**10)
    assert half == BallsInBins(100, 12, 24, failing=2.0**-14)
    assert planned("fixed size", size=100, batch=8, steps=3, replace=False) == FixedSize(100, 8, 3)
    assert planned("shuffled", size=100, batch=8, steps=3, replace=True) == Shuffled(100, 8, 3)


def test_weighted_samplers_and_unknown_names_are_refused() -> None:
    with pytest.raises(UnaccountedSamplingError, match="got WeightedRandomSampler") as caught:
        planned(WeightedRandomSampler([0.1, 0.9], 2), size=100, batch=8, steps=3, replace=False)
    assert "in the loss" in caught.value.fix
    with pytest.raises(InvalidParameterError, match="no sampling called 'weighted'"):
        planned("weighted", size=100, batch=8, steps=3, replace=False)
    with pytest.raises(InvalidParameterError, match="whole number"):
        planned("fixed size", size=100, batch=Fraction(17, 2), steps=3, replace=False)


@pytest.mark.parametrize(
    "sampling",
    [
        Poisson(10, Fraction(1, 10), 5),
        FixedSize(10, 2, 5),
        BallsInBins(10, 5, 5),
        Shuffled(10, 2, 5),
        Cyclic(10, 5, Fraction(1), 5),
        Cyclic(10, 5, Fraction(10**7 - 1, 10**7), 5),
    ],
    ids=str,
)
def test_every_sampling_says_what_it_does(sampling: Any) -> None:
    assert len(sampling.words()) > 30
    assert sampling.batch > 0


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
