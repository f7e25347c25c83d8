"""What an event means for several units at once."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError, UnsupportedEventError
from defocus.privacy.accounting import basic
from defocus.privacy.accounting.zcdp import rho_of
from defocus.privacy.events import (
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
    Selected,
    SelectedPoisson,
)
from defocus.privacy.groups import group, user_level


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
