"""Gaussian privacy, exact or not at all."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import UnsupportedEventError
from defocus.privacy import classical
from defocus.privacy.accounting import gdp
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Concentrated,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    Pure,
    Sampled,
    SampledBatch,
)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=5), st.integers(1, 1000))
def test_composed_gaussians_are_one_gaussian(ratios: list[float], times: int) -> None:
    event: Event = NOTHING
    for ratio in ratios:
        event += times * Gaussian(ratio)
    loss = gdp.account(event)
    mu = math.sqrt(times * math.fsum(1 / ratio**2 for ratio in ratios))
    assert loss.mu() == pytest.approx(mu, rel=1e-12)
    assert loss.epsilon(1e-6) == pytest.approx(classical.epsilon_of(mu, 1e-6), rel=1e-9)


def test_the_square_root_is_rounded_up() -> None:
    for times in range(1, 60):
        mu = gdp.account(times * Gaussian(1)).mu()
        assert times <= Fraction(mu) ** 2
        assert mu <= math.nextafter(math.sqrt(times), math.inf)


def test_the_interval_holds_the_exact_value() -> None:
    lower, upper = gdp.account(4 * Gaussian(2)).interval(1e-5)
    assert classical.log_delta(1.0, lower) > math.log(1e-5) >= classical.log_delta(1.0, upper)
    assert upper - lower < 1e-8
    assert gdp.account(Gaussian(1)).interval(0) == (math.inf, math.inf)


def test_ten_thousand_gaussians_keep_their_digits_at_tiny_delta() -> None:
    loss = gdp.account(10_000 * Gaussian(100))
    for delta, truth in ((1e-10, 6.54792), (1e-12, 7.2385), (1e-14, 7.869)):
        assert loss.epsilon(delta) == pytest.approx(truth, abs=1e-4 if delta > 1e-14 else 1e-3)
    assert loss.delta(loss.epsilon(1e-100)) <= 1e-100


def test_nothing_costs_nothing() -> None:
    assert gdp.account(NOTHING).mu() == gdp.account(NOTHING).epsilon(0) == gdp.account(NOTHING).delta(0) == 0


@pytest.mark.parametrize(
    "event",
    [
        Sampled(Gaussian(1), 0.01),
        SampledBatch(Gaussian(1), 1, 100),
        DiscreteGaussian(100),
        Laplace(1),
        Pure(1),
        Approximate(1, 1e-9),
        Concentrated(1),
    ],
)
def test_everything_that_is_not_exactly_gaussian_is_refused_by_name(event: Event) -> None:
    with pytest.raises(UnsupportedEventError, match=rf"gdp accountant cannot express {type(event).__name__}[\s\S]*pld"):
        gdp.account(Gaussian(1) + event)
