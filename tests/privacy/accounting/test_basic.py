"""Epsilons add, deltas add."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting import basic
from defocus.privacy.accounting.basic import spend, spends
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Concentrated,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Selected,
    SelectedPoisson,
    compose,
)


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 50)), min_size=1, max_size=6))
def test_pure_epsilons_add_up(releases: list[tuple[float, int]]) -> None:
    event = NOTHING
    for epsilon, times in releases:
        event += times * Pure(epsilon)
    exact = sum(Fraction(epsilon) * times for epsilon, times in releases)
    found = basic.account(event).epsilon(0)
    assert exact <= found <= exact * (1 + Fraction(1, 10**11))


def test_deltas_add_up_and_must_fit() -> None:
    loss = basic.account(3 * Approximate(0.5, 1e-7) + RandomizedResponse(1))
    assert loss.epsilon(3.0001e-7) == pytest.approx(2.5)
    assert loss.epsilon(2.9e-7) == math.inf
    assert loss.delta(2.6) == pytest.approx(3e-7)
    assert loss.delta(2.4) == 1.0


@pytest.mark.parametrize(
    ("event", "delta", "published"),
    [
        (1000 * Sampled(Gaussian(1.0), 0.01), 1e-5, 839),
        (10_000 * Sampled(Gaussian(1.0), 0.01), 1e-5, 11_297),
        (14_063 * Sampled(Gaussian(1.1), 256 / 60_000), 1e-5, 5446),
        (1000 * Laplace(10), 1e-6, 100),
    ],
)
def test_naive_composition_reaches_the_published_numbers(event: Sampled, delta: float, published: float) -> None:
    assert basic.account(event).epsilon(delta) == pytest.approx(published, rel=1e-3)


def test_every_pure_form_is_known() -> None:
    event = Laplace(4) + DiscreteLaplace(8, 2) + Exponential(0.5) + RandomizedResponse(1, 3) + Pure(2)
    assert basic.account(event).epsilon() == pytest.approx(4.0)
    assert basic.pure_epsilon(event) == pytest.approx(4.0)
    assert basic.pure_epsilon(event + Gaussian(1)) == math.inf
    assert basic.pure_epsilon(SelectedPoisson(Pure(1), 3)) == math.inf


def test_selection_among_pure_runs_costs_two_runs() -> None:
    """Papernot, Steinke (2022), Corollary 3: (2 + eta) epsilon."""
    assert basic.account(Selected(Pure(0.5), 0.01)).epsilon() == 1.0
    assert basic.account(Selected(Pure(0.5) + Laplace(2), 0.01, 1)).epsilon() == 3.0


def test_gaussian_releases_share_what_delta_is_left() -> None:
    loss = basic.account(2 * Gaussian(5) + Approximate(1, 1e-6))
    assert loss.epsilon(1e-6) == math.inf
    assert loss.epsilon(3e-6) == pytest.approx(1 + 2 * basic.account(Gaussian(5)).epsilon(1e-6), rel=1e-6)
    epsilon = loss.epsilon(1e-5)
    assert loss.delta(epsilon) == pytest.approx(1e-5, rel=1e-4)
    assert basic.account(Concentrated(0.1)).epsilon(1e-6) > 1


def test_events_without_a_plain_form_are_refused_by_name() -> None:
    for event in (SelectedPoisson(Pure(1), 3), Selected(Gaussian(1), 0.5)):
        with pytest.raises(UnsupportedEventError, match=rf"basic accountant cannot express {type(event).__name__}"):
            basic.account(event)


def test_nothing_costs_nothing() -> None:
    assert basic.account(NOTHING).epsilon() == basic.account(NOTHING).delta(0) == 0


@given(st.lists(st.floats(1e-21, 1e-19), min_size=2, max_size=5))
def test_deltas_are_added_without_rounding_down(deltas: list[float]) -> None:
    total = basic.account(compose(Approximate(0, delta) for delta in deltas)).delta(0)
    assert Fraction(total) >= sum(map(Fraction, deltas)) * (1 - Fraction(1, 10**17))


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.floats(0.01, 8), st.floats(0.001, 1))
def test_a_sampled_pure_release_is_as_private_as_claimed(seed: int, epsilon: float, rate: float) -> None:
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.ones(5))
    u, p, r = (base * np.exp(rng.choice([-1, 1], 5) * epsilon / 4) for _ in range(3))
    u, p, r = u / u.sum(), p / p.sum(), r / r.sum()
    claimed = spend(Sampled(Pure(epsilon), rate)).epsilon(0.0)
    mixed, other = (1 - rate) * u + rate * p, (1 - rate) * u + rate * r
    for a, b in ((mixed, u), (u, mixed), (mixed, other)):
        assert np.max(np.log(a / b)) <= claimed + 1e-12


def test_amplification_is_reached_by_randomised_response() -> None:
    e, q = math.exp(2), 0.1
    u, p = np.array([1, e]) / (1 + e), np.array([e, 1]) / (1 + e)
    worst = float(np.max(np.log(((1 - q) * u + q * p) / u)))
    assert spend(Sampled(Pure(2), q)).epsilon(0.0) == pytest.approx(worst)


def test_delta_shrinks_with_the_rate() -> None:
    found = spend(SampledBatch(Approximate(1, 1e-3), 1, 100))
    assert found.delta == pytest.approx(1e-5)
    assert found.epsilon(0.0) == pytest.approx(math.log1p(0.01 * math.expm1(1)))


def test_huge_losses_do_not_overflow() -> None:
    assert spend(Sampled(Pure(5000), 0.01)).epsilon(0.0) == pytest.approx(5000 + math.log(0.01))
    assert spend(Sampled(Pure(10**400), 0.01)).epsilon(0.0) == math.inf


def test_shares_are_counted_inside_samples() -> None:
    ((one, times),) = spends(7 * Sampled(3 * Gaussian(1) + Pure(1), 0.5))
    assert (one.shares, times) == (3, 7)
    assert one.epsilon(1e-6) == pytest.approx(math.log1p(0.5 * math.expm1(1 + 3 * spend(Gaussian(1)).epsilon(2e-6))))
