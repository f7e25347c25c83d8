"""The zero-concentrated accountant: tight where theory says so, sound everywhere."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import UnsupportedEventError
from defocus.privacy import classical
from defocus.privacy.accounting import zcdp
from defocus.privacy.accounting.renyi import curve
from defocus.privacy.accounting.zcdp import delta_from_rho, epsilon_from_rho, rho_for, rho_of
from defocus.privacy.events import (
    NOTHING,
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
)
from defocus.privacy.units import Adjacency

simple = st.one_of(
    st.builds(Gaussian, st.floats(0.1, 50)),
    st.builds(Laplace, st.floats(0.02, 50)),
    st.builds(Pure, st.floats(0.001, 30)),
    st.builds(Exponential, st.floats(0.001, 30)),
    st.builds(RandomizedResponse, st.floats(0.001, 20), st.integers(2, 30)),
    st.builds(DiscreteLaplace, st.floats(0.1, 50), st.integers(1, 20)),
    st.builds(DiscreteGaussian, st.floats(0.1, 50), st.integers(1, 20)),
)


@settings(max_examples=200, deadline=None)
@given(simple, st.floats(-5, 4))
def test_rho_bounds_the_divergence_at_every_order(event: Event, log_order: float) -> None:
    orders = np.array([1 + 10**log_order])
    divergence = float(curve(event, orders, Adjacency.ADD_REMOVE)[0])
    assert divergence <= rho_of(event) * orders[0] * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 8))
def test_pure_and_laplace_are_tight_at_order_one(epsilon: float) -> None:
    """Bun, Steinke (2016); Harrison, Manurangsi (2026): the supremum is the Kullback–Leibler divergence."""
    orders = np.array([1 + 1e-7])
    for event in (Pure(epsilon), Laplace(1 / epsilon)):
        assert rho_of(event) == pytest.approx(float(curve(event, orders, Adjacency.ADD_REMOVE)[0]), rel=1e-5)


def test_laplace_is_accurate_for_tiny_losses() -> None:
    with mp.workdps(40):
        for e in (1e-8, 1e-3, 0.009999, 0.010001, 1.0):
            truth = mp.mpf(e) + mp.expm1(-mp.mpf(e))
            assert 0 <= rho_of(Laplace(1 / Fraction(e))) - truth <= 1e-9 * truth


def test_randomised_response_among_many_costs_less_than_its_epsilon_allows() -> None:
    assert rho_of(RandomizedResponse(1, 20)) < 0.6 * rho_of(Pure(1))
    assert rho_of(RandomizedResponse(1, 2)) == rho_of(Pure(1))
    kl = (math.e - 1) / (math.e + 3)
    assert kl <= rho_of(RandomizedResponse(1, 4)) <= kl * 1.002


def test_formulas_of_the_books() -> None:
    assert rho_of(Gaussian(2)) == 0.125
    assert rho_of(DiscreteGaussian(6, 3)) == 0.125
    assert rho_of(DiscreteGaussian(6, 3, 1000)) == 0.125
    assert rho_of(Exponential(1)) == 0.125
    assert rho_of(Exponential(100)) <= 100
    assert rho_of(Concentrated(Fraction(1, 3))) >= Fraction(1, 3)
    assert zcdp.account(1000 * Laplace(10)).rho() <= 5
    assert zcdp.account(NOTHING).epsilon(0) == 0


def test_a_thousand_laplace_releases_beat_the_published_number() -> None:
    """21.62 with epsilon²/2 and the plain conversion; never below the certified truth."""
    assert 18.9502867 < zcdp.account(1000 * Laplace(10)).epsilon(1e-6) < 21.62


@settings(max_examples=60, deadline=None)
@given(st.floats(-6, 3), st.floats(-100, -0.5))
def test_the_conversion_is_sound_for_gaussians_and_beats_the_plain_one(log_rho: float, log_delta: float) -> None:
    rho, delta = 10**log_rho, 10**log_delta
    exact = classical.epsilon_of(math.sqrt(2 * rho), delta)
    found = epsilon_from_rho(rho, delta)
    plain = rho + 2 * math.sqrt(rho * -math.log(delta))
    assert exact * (1 - 1e-9) <= found <= plain * (1 + 1e-9)
    if found > 1e-3:
        assert delta_from_rho(rho, found) <= delta * (1 + 1e-4)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 20), st.floats(-30, -1))
def test_the_largest_rho_still_fits_and_hardly_more_does(epsilon: float, log_delta: float) -> None:
    rho = rho_for(epsilon, 10**log_delta)
    assert epsilon_from_rho(rho, 10**log_delta) <= epsilon
    assert epsilon_from_rho(rho * 1.001, 10**log_delta) > epsilon


def test_edges_have_an_answer() -> None:
    assert zcdp.account(Gaussian(1)).epsilon(0) == math.inf
    assert zcdp.account(10**400 * Gaussian(1)).epsilon(1e-9) == math.inf
    assert zcdp.account(10**400 * Gaussian(1)).delta(1) == 1.0
    assert zcdp.account(NOTHING).delta(0) == 0
    assert rho_for(1, 0) == 0
    assert rho_of(Sampled(Gaussian(2), 1)) == rho_of(SampledBatch(Gaussian(2), 5, 5)) == 0.125


@pytest.mark.parametrize(
    "event", [Sampled(Gaussian(1), 0.5), SampledBatch(Pure(1), 1, 2), Approximate(1, 1e-9), Selected(Pure(1), 0.5)]
)
def test_events_without_rho_are_refused_by_name(event: Event) -> None:
    with pytest.raises(UnsupportedEventError, match=rf"zcdp accountant cannot express {type(event).__name__}"):
        zcdp.account(Gaussian(1) + event)


def test_a_rho_too_small_for_a_float_is_not_nothing() -> None:
    loss = zcdp.account(10**170 * Pure(1e-170))
    assert loss.rho() > 0
    assert loss.epsilon(0) == math.inf
    assert zcdp.account(Pure(1e-200)).epsilon(0) == math.inf
    assert zcdp.account(Pure(0)).epsilon(0) == 0
