r"""The Gaussian accountant, offered only where it is exact: Gaussian noise composed with Gaussian noise.

Guarantee:
    Gaussians with ratios :math:`r_i` are together exactly as private as one with
    :math:`\mu = \sqrt{\sum 1/r_i^2}`, at every epsilon and delta; only rounding is added. Everything else is refused:
    the limit theorem that replaces other mechanisms by a Gaussian errs on the unsafe side.
Reference:
    Dong, Roth, Su (2022), Gaussian differential privacy, Corollary 3.3.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import ClassVar, final

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy import classical, losses
from defocus.privacy.events import (
    AllocatedGaussian,
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    Sampled,
    SampledBatch,
    SampledGaussian,
    ShuffledGaussian,
)
from defocus.privacy.losses import Interval, Loss, checked_delta, checked_epsilon
from defocus.privacy.numbers import root_up
from defocus.privacy.units import Adjacency

__all__ = ["GaussianLoss", "account", "squared_mu"]


@final
@dataclass(frozen=True, slots=True)
class GaussianLoss(Loss):
    """A total μ, kept as its exact square."""

    squared: Fraction
    accountant: ClassVar[str] = "gdp"

    def mu(self) -> float:
        """The Gaussian loss, rounded up."""
        return root_up(self.squared)

    def epsilon(self, delta: Number = 0) -> float:
        """The exact epsilon at ``delta``, rounded up."""
        return classical.epsilon_of(self.mu(), checked_delta(delta))

    def delta(self, epsilon: Number) -> float:
        """The exact delta at ``epsilon``, rounded up."""
        if not self.squared:
            return 0.0
        return max(5e-324, math.exp(classical.log_delta(self.mu(), checked_epsilon(epsilon))))

    def interval(self, delta: Number) -> Interval:
        """The exact epsilon at ``delta``, with the rounding made visible on both sides."""
        upper = self.epsilon(delta)
        return Interval(upper if math.isinf(upper) else upper * (1 - 1e-9), upper)


def account(event: Event, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> GaussianLoss:
    """What Gaussian releases cost together.

    >>> account(4 * Gaussian(2)).mu()
    1.0
    """
    del adjacency  # a Gaussian's ratio already refers to it
    return GaussianLoss(squared_mu(event))


@singledispatch
def squared_mu(event: Event) -> Fraction:
    """The sum of 1/ratio², exactly."""
    raise _refusal(event, "Gaussian privacy is exact only for Gaussian noise")


@squared_mu.register
def _(event: Composed) -> Fraction:
    """Squares add up: the only composition rule of this accountant."""
    return sum((times * squared_mu(part) for part, times in event.parts), Fraction(0))


@squared_mu.register
def _(event: Gaussian) -> Fraction:
    return losses.squared_mu(event)


@squared_mu.register
def _(event: Sampled | SampledBatch | SampledGaussian | AllocatedGaussian | ShuffledGaussian) -> Fraction:
    raise _refusal(event, "the Gaussian limit of sampled releases under-reports epsilon", ', or method="rdp"')


@squared_mu.register
def _(event: DiscreteGaussian) -> Fraction:
    why = "discrete Gaussian noise is close to the continuous one but not exactly as private"
    raise _refusal(event, why, ', or method="zcdp"')


def _refusal(event: Event, why: str, other: str = "") -> UnsupportedEventError:
    fix = f'use account(event, method="pld"){other}.'
    return UnsupportedEventError(event, accountant="gdp", why=why, fix=fix)
