"""Elementary filters: what each adds up, and that Gaussians really cover what is charged as Gaussian."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from defocus.privacy import classical
from defocus.privacy.accounting.pld import discrete
from defocus.privacy.elementary_filters import ConcentratedSum, GaussianSum, PureSum, RenyiSum, price
from defocus.privacy.events import (
    Approximate,
    Concentrated,
    DiscreteGaussian,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
)
from defocus.privacy.units import Adjacency

ADD = Adjacency.ADD_REMOVE
FILTERS = (PureSum(1.0), RenyiSum(1.0, 8.0), ConcentratedSum(1.0), GaussianSum(1.0, 1e6))


@pytest.mark.parametrize(
    ("event", "expressible"),
    [
        (Pure(0.5), "pure renyi zcdp gaussian"),
        (Laplace(2), "pure renyi zcdp gaussian"),
        (Exponential(0.5), "pure renyi zcdp gaussian"),
        (RandomizedResponse(0.5, 3), "pure renyi zcdp gaussian"),
        (Gaussian(3), "renyi zcdp gaussian"),
        (DiscreteGaussian(30, 10, 5), "renyi zcdp gaussian"),
        (DiscreteGaussian(0.5), "renyi zcdp"),
        (Concentrated(0.1), "renyi zcdp"),
        (Sampled(Gaussian(1), 0.1), "renyi"),
        (Sampled(Pure(1), 0.1), "pure renyi gaussian"),
        (Approximate(1, 1e-9), ""),
    ],
)
def test_each_filter_prices_what_it_can_express_and_nothing_else(event: Event, expressible: str) -> None:
    for name, one in zip(("pure", "renyi", "zcdp", "gaussian"), FILTERS, strict=True):
        assert math.isfinite(price(one, event, ADD)) == (name in expressible.split()), name


def test_measures_are_named() -> None:
    assert [one.measure for one in FILTERS] == ["epsilon", "Rényi divergence of order 8", "rho", "squared mu"]


@settings(max_examples=200)
@given(st.floats(1e-6, 30), st.floats(0, 1))
def test_a_pure_release_is_covered_by_its_gaussian(epsilon: float, alpha: float) -> None:
    """The Gaussian's trade-off curve lies below that of randomised response everywhere."""
    mu = math.sqrt(GaussianSum(1.0).cost(Pure(epsilon), ADD))
    response = max(0.0, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
    assert float(ndtr(-ndtri(alpha) - mu)) <= response + 1e-12


@settings(max_examples=200)
@given(st.floats(1e-3, 30), st.floats(0.001, 0.999))
def test_a_release_of_bounded_range_is_covered_by_its_gaussian(epsilon: float, where: float) -> None:
    """At the corner of the trade-off curve of each worst pair: losses t and t − epsilon."""
    mu = math.sqrt(GaussianSum(1.0).cost(Exponential(epsilon), ADD))
    t = where * epsilon
    p = (math.exp(epsilon) - math.exp(t)) / math.expm1(epsilon)
    q = -math.expm1(t - epsilon) / -math.expm1(-epsilon) * math.exp(-t)
    assert float(ndtri(p) - ndtri(q)) <= mu + 1e-9


def test_the_probit_of_the_logistic_function_is_steepest_at_zero() -> None:
    """z·R(z) <= 2 − 1/Φ(z) for z >= 0, on short intervals with both sides monotone."""
    z = np.linspace(0.02, 6, 3000)
    mills = np.array([classical._mills(x) for x in z])
    assert np.all((z * mills)[1:] <= (2 - 1 / ndtr(z))[:-1])
    assert classical._mills(0.0) * 1.0 < 4 / math.sqrt(2 * math.pi) * 0.98  # slopes at zero, below the first interval
    assert np.all(ndtr(-z) / ndtr(z) <= 1 / (z**2 + 3) + (z < 2))  # beyond the last one, from R(z) <= (z²+2)/(z³+3z)


def test_discrete_gaussian_noise_is_charged_hardly_more_than_continuous_noise() -> None:
    exact = GaussianSum(0.05, 5e7).cost(Gaussian(50), ADD)
    found = GaussianSum(0.05, 5e7).cost(DiscreteGaussian(500, 10), ADD)
    assert exact < found < exact * 1.0001
    assert math.isinf(GaussianSum(0.05).cost(DiscreteGaussian(500, 10), ADD))


@pytest.mark.parametrize(("sigma", "shift"), [(4.0, 1), (6.0, 5), (20.0, 7)])
def test_the_gaussian_charged_for_discrete_noise_dominates_it(sigma: float, shift: int) -> None:
    mu = math.sqrt(GaussianSum(1.0, 1.0).cost(DiscreteGaussian(sigma, shift), ADD))
    profile = discrete.DiscreteGaussianProfile(sigma, shift)
    for epsilon in np.linspace(0.01, 6 * mu, 40):
        truth = float(profile.curve(np.array([epsilon])).excess[0])
        assert truth <= math.exp(classical.log_delta(mu, epsilon)) * (1 + 1e-6) + 1e-14
