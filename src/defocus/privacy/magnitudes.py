"""How much an event loses at most, or in standard deviations: read from its parameters, exactly."""

from fractions import Fraction
from typing import TypeAlias

from defocus.privacy.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    SubsetResponse,
)

__all__ = ["Bounded", "largest_loss", "squared_mu"]

Bounded: TypeAlias = Laplace | DiscreteLaplace | Pure | Exponential | RandomizedResponse | SubsetResponse
"""The events whose loss is bounded by their own parameters."""


def largest_loss(event: Bounded) -> Fraction:
    """The pure epsilon of one release.

    >>> largest_loss(DiscreteLaplace(10, sensitivity=3))
    Fraction(3, 10)
    """
    match event:
        case Laplace(ratio):
            return 1 / Fraction(ratio)
        case DiscreteLaplace(scale, sensitivity):
            return sensitivity / Fraction(scale)
        case _:
            return Fraction(event.epsilon)


def squared_mu(event: Gaussian | DiscreteGaussian) -> Fraction:
    """The squared sensitivity over the variance of Gaussian noise: twice its rho.

    >>> squared_mu(Gaussian(2)), squared_mu(DiscreteGaussian(4, sensitivity=2))
    (Fraction(1, 4), Fraction(1, 4))
    """
    if isinstance(event, Gaussian):
        return 1 / Fraction(event.ratio) ** 2
    return (Fraction(event.sensitivity) / Fraction(event.sigma)) ** 2
