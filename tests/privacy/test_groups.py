"""What an event means for several units at once."""

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError, UnsupportedEventError
from defocus.privacy.accounting import account, basic
from defocus.privacy.accounting.zcdp import rho_of
from defocus.privacy.events import (
    AllocatedGaussian,
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    SampledGaussian,
    Selected,
    SelectedPoisson,
)
from defocus.privacy.groups import group, user_level
from defocus.privacy.units import Adjacency


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_group_of_groups_is_a_group(a: int, b: int) -> None:
    for event in (
        Gaussian(3.7),
        Laplace(2),
        Pure(0.1),
        Concentrated(0.1),
        DiscreteGaussian(4, 2),
        DiscreteLaplace(4, 2),
    ):
        assert group(group(event, a), b) == group(event, a * b) or a == 1 or b == 1
        assert basic.pure_epsilon(group(event, a)) == pytest.approx(a * basic.pure_epsilon(event))


def test_noise_is_spread_over_the_group() -> None:
    assert group(Gaussian(10), 5) == Gaussian(2)
    assert group(Laplace(10), 5) == Laplace(2)
    assert group(DiscreteGaussian(10, 2, 7), 5) == DiscreteGaussian(10, 10, 7)
    assert group(DiscreteLaplace(10, 2), 5) == DiscreteLaplace(10, 10)
    assert group(Exponential(1), 5) == Exponential(5)
    assert group(RandomizedResponse(1, 3), 5) == 5 * RandomizedResponse(1, 3)
    assert group(Concentrated(Fraction(1, 50)), 5) == Concentrated(Fraction(1, 2))
    assert rho_of(group(Gaussian(7), 3)) == pytest.approx(9 * rho_of(Gaussian(7)))
    assert group(Selected(Gaussian(10), 0.5, 1), 5) == Selected(Gaussian(2), 0.5, 1)
    assert group(SelectedPoisson(Gaussian(10), 3), 5) == SelectedPoisson(Gaussian(2), 3)
    assert group(2 * Gaussian(10) + Pure(1), 2) == 2 * Gaussian(5) + Pure(2)


def test_one_unit_is_left_as_it_is() -> None:
    event = Sampled(Gaussian(1), 0.1)
    assert group(event, 1) is event


@given(st.floats(0, 3), st.integers(2, 6), st.integers(0, 2**32))
def test_the_group_guarantee_of_an_approximate_release_covers_chains_of_it(
    epsilon: float, size: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    delta = 1e-9
    chain = [rng.dirichlet(np.ones(4))]
    for _ in range(size):
        tilt = chain[-1] * np.exp(rng.choice([-1, 1], 4) * epsilon / 2)
        tilt = (1 - delta) * tilt / tilt.sum() + delta * np.eye(4)[int(rng.integers(4))]
        chain.append(tilt)
    worst = 0.0
    for a, b in pairwise(chain):
        worst = max(
            worst, np.maximum(a - math.exp(epsilon) * b, 0).sum(), np.maximum(b - math.exp(epsilon) * a, 0).sum()
        )
    found = group(Approximate(epsilon, worst), size)
    assert isinstance(found, Approximate)
    p, q = chain[0], chain[-1]
    assert np.maximum(p - math.exp(float(found.epsilon)) * q, 0).sum() <= float(found.delta) + 1e-15


def test_a_person_with_many_records_is_a_group() -> None:
    assert user_level(Laplace(30), contributions=3) == Laplace(10)
    assert user_level(Pure(Fraction(1, 10)), contributions=7) == Pure(Fraction(7, 10))


def test_sampled_events_are_refused_with_a_way_out() -> None:
    for event in (Sampled(Gaussian(1), 0.1), SampledBatch(Gaussian(1), 1, 10), Gaussian(1) + Sampled(Gaussian(1), 0.1)):
        with pytest.raises(UnsupportedEventError, match=r"^Group privacy.*group is in the sample[\s\S]*Approximate"):
            group(event, 2)
    with pytest.raises(UnsupportedEventError, match="no group guarantee"):
        group(Event(), 2)


def _law(grid: list[Any], weights: Any, means: Any, sigma: float) -> Any:
    """A mixture of Gaussians on a grid, as masses; means are points of it."""
    width = math.prod(float(axis[1] - axis[0]) for axis in grid)
    total = 0.0
    for weight, mean in zip(weights, means, strict=True):
        parts = [norm.pdf(axis, centre, sigma) for axis, centre in zip(grid, np.atleast_1d(mean), strict=True)]
        total = total + weight * (np.multiply.outer(*parts) if len(parts) == 2 else parts[0])
    return total * width


def _covers(event: Event, one: Any, other: Any, adjacency: Adjacency) -> bool:
    """Whether the event promises at least as much as these two laws owe, in both directions."""
    loss = account(event, adjacency=adjacency)
    return all(
        np.maximum(p - math.exp(epsilon) * q, 0).sum() <= loss.delta(epsilon) + 1e-9
        for p, q in ((one, other), (other, one))
        for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0)
    )


@pytest.mark.parametrize(("size", "rate", "sigma"), [(2, 0.1, 0.7), (3, 0.3, 1.5), (5, 0.05, 2.0), (8, 0.01, 6.0)])
def test_a_group_in_a_poisson_sample_owes_no_more_than_is_charged(size: int, rate: float, sigma: float) -> None:
    axis = np.linspace(-12 * sigma, size + 12 * sigma, 40_001)
    weights = binom.pmf(np.arange(size + 1), size, rate)
    there, absent = _law([axis], weights, np.arange(size + 1), sigma), _law([axis], [1], [0], sigma)
    charged = group(SampledGaussian(sigma, rate), size)
    assert _covers(charged, there, absent, Adjacency.ADD_REMOVE)
    less = size * SampledGaussian(sigma, rate)
    assert not _covers(less, there, absent, Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("moves", [(1, 1), (1, -1), (0, 1), (-1, -1), (1, 0)])
@pytest.mark.parametrize("others", [(-1, -1), (1, -1), (0, 0), (-1, 1), (0, -1)])
def test_a_group_that_is_replaced_in_a_poisson_sample_owes_no_more_than_is_charged(
    moves: tuple[int, int], others: tuple[int, int]
) -> None:
    sigma, rate = 0.8, 0.2
    axis = np.linspace(-12, 12, 20_001)
    coins = list(product((0, 1), repeat=2))
    weights = [math.prod(rate if coin else 1 - rate for coin in each) for each in coins]
    laws = [_law([axis], weights, [np.dot(each, vector) for each in coins], sigma) for vector in (moves, others)]
    assert _covers(group(SampledGaussian(sigma, rate), 2), laws[0], laws[1], Adjacency.REPLACE)


def test_a_group_among_balls_in_bins_owes_no_more_than_is_charged() -> None:
    sigma = 1.0
    axis = np.linspace(-8, 10, 901)
    means = [(2, 0), (1, 1), (1, 1), (0, 2)]
    there, absent = _law([axis, axis], [0.25] * 4, means, sigma), _law([axis, axis], [1], [(0, 0)], sigma)
    epoch = AllocatedGaussian(sigma, Fraction(1, 2), 2)
    assert _covers(group(epoch, 2), there, absent, Adjacency.ADD_REMOVE)
    assert not _covers(2 * epoch, there, absent, Adjacency.ADD_REMOVE)


def test_where_there_is_much_noise_a_group_is_charged_hardly_more_than_it_owes() -> None:
    size, rate, sigma = 4, 0.1, 12.0
    axis = np.linspace(-12 * sigma, size + 12 * sigma, 40_001)
    weights = binom.pmf(np.arange(size + 1), size, rate)
    there, absent = _law([axis], weights, np.arange(size + 1), sigma), _law([axis], [1], [0], sigma)
    owed = float(np.maximum(there - absent, 0).sum())
    assert account(group(SampledGaussian(sigma, rate), size)).delta(0) < 1.03 * owed


def test_a_group_of_which_all_are_drawn_is_one_of_gaussian_noise() -> None:
    assert group(SampledGaussian(6, 1), 3) == SampledGaussian(2, 1)


def test_a_guarantee_that_promises_nothing_is_refused() -> None:
    for event, size in ((Approximate(1, 1e-3), 10), (Approximate(10, 1e-300), 10**6), (Approximate(0, 0.6), 2)):
        with pytest.raises(FormulaOutOfRangeError, match="promises nothing"):
            group(event, size)
    found = group(Approximate(0, 0.3), 2)
    assert isinstance(found, Approximate)
    assert float(found.delta) == pytest.approx(0.6, rel=1e-9)
    assert Fraction(found.delta) >= 2 * Fraction(0.3)


def test_a_group_of_ten_costs_ten_deltas_even_where_epsilon_is_below_the_least_float() -> None:
    found = group(Approximate(Fraction(1, 10**400), 1e-6), 10)
    assert isinstance(found, Approximate)
    assert float(found.delta) >= 1e-5


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None, 2**63, float("nan")])
def test_a_size_that_is_no_size_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        group(Gaussian(1), bad)
