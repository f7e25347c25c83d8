"""What is drawn is what is charged."""

from collections import Counter
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.utils.data import WeightedRandomSampler

from defocus.errors import InvalidParameterError, UnaccountedSamplingError
from defocus.learning.sampling import BallsInBins, Cyclic, FixedSize, Poisson, Shuffled, planned
from defocus.privacy import (
    Adjacency,
    AllocatedGaussian,
    Gaussian,
    Sampled,
    SampledBatch,
    SampledGaussian,
    ShuffledGaussian,
    account,
)

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


def test_an_epoch_of_balls_in_bins_is_a_random_allocation_at_its_least_noise() -> None:
    third = Fraction(1, 3)
    assert BallsInBins(30, 3, 6).event([2.0] * 6) == 2 * AllocatedGaussian(2.0, third, 3)
    mixed = BallsInBins(30, 3, 6).event([3.0, 2.0, 4.0, 5.0, 6.0, 7.0])
    assert mixed == AllocatedGaussian(2.0, third, 3) + AllocatedGaussian(5.0, third, 3)
    begun = BallsInBins(30, 3, 6).event([2.0] * 4)
    assert begun == AllocatedGaussian(2.0, third, 3) + AllocatedGaussian(2.0, third, 1)
    assert BallsInBins(30, 3, 6, replace=True).event([2.0] * 3) == AllocatedGaussian(2.0, third, 3)
    assert BallsInBins(30, 1, 2, replace=True).event([2.0] * 2) == 2 * Gaussian(1.0)


def test_a_place_among_balls_and_bins_does_not_depend_on_who_else_is_there() -> None:
    sampling = BallsInBins(30, 5, 5)
    more, fewer = drawn(sampling, 30), drawn(sampling, 29)
    assert [[unit for unit in step if unit < 29] for step in more] == fewer


@pytest.mark.parametrize("replace", [False, True])
def test_shuffled_batches_are_of_one_size_and_leave_someone_out(replace: bool) -> None:
    sampling = Shuffled(12, 4, 4, replace)
    steps = drawn(sampling, 12)
    assert [len(step) for step in steps] == [4, 4, 4, 4]
    assert len(set(chain(*steps[:2]))) == 8 == len(set(chain(*steps[2:])))
    assert steps[:2] != steps[2:]
    event = ShuffledGaussian(2.0, 4, 12, 2)
    assert sampling.event([2.0] * 4) == 2 * event
    assert sampling.event([2.0] * 3) == event + ShuffledGaussian(2.0, 4, 12, 1)
    assert Shuffled(13, 4, 3).batches == 3
    with pytest.raises(UnaccountedSamplingError, match="holds all 12") as caught:
        Shuffled(12, 12, 1)
    assert "smaller batch_size" in caught.value.fix


def test_everybody_is_as_often_in_a_place_of_a_shuffled_epoch() -> None:
    sampling = Shuffled(7, 2, 3 * 2000)
    places = np.zeros((3, 7))
    for step in range(sampling.steps):
        places[step % 3, sampling.draw(step, 7, KEY)] += 1
    expected = np.full(7, 2000 * 2 / 7)
    assert all(stats.chisquare(row, expected).pvalue > 1e-6 for row in places)


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
    assert planned("fixed size", size=100, batch=8, steps=3, replace=False) == FixedSize(100, 8, 3)
    assert planned("shuffled", size=100, batch=8, steps=3, replace=True) == Shuffled(100, 8, 3, replace=True)


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
