"""Exact parameters, against the accountants that read them."""

from fractions import Fraction

import pytest

from defocus.privacy.accounting import account
from defocus.privacy.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
)
from defocus.privacy.losses import Bounded, largest_loss, squared_mu


@pytest.mark.parametrize(
    "event",
    [Laplace(Fraction(7, 3)), DiscreteLaplace(2, 5), Pure(0.1), Exponential(Fraction(1, 3)), RandomizedResponse(2, 4)],
)
def test_the_largest_loss_is_the_pure_epsilon(event: Bounded) -> None:
    assert largest_loss(event) <= Fraction(account(event, "basic").epsilon(0))
    assert account(event, "basic").epsilon(0) == pytest.approx(float(largest_loss(event)), rel=1e-15)
    assert account(event, "pld").epsilon(0) == account(event, "basic").epsilon(0)


@pytest.mark.parametrize("event", [Gaussian(Fraction(7, 3)), DiscreteGaussian(9, Fraction(3, 2), 4)])
def test_half_the_squared_mu_is_rho(event: Gaussian | DiscreteGaussian) -> None:
    assert 2 * account(event, "zcdp").rho() == pytest.approx(float(squared_mu(event)), rel=1e-15)
