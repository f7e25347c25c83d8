r"""The zero-concentrated accountant: one number per event, and the numbers add.

Guarantee:
    ρ-zCDP means a Rényi divergence of at most αρ at every order α > 1.
Reference:
    Bun, Steinke (2016), Concentrated differential privacy; Canonne, Kamath, Steinke (2020), The discrete Gaussian,
    Corollary 13 for the conversion; Harrison, Manurangsi (2026), Exact zCDP characterizations, for Laplace noise.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import ClassVar, final

import numpy as np

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy import events
from defocus.privacy.accounting.renyi.conversion import delta_at, epsilon_at
from defocus.privacy.accounting.renyi.curves import curve
from defocus.privacy.accounting.shuffling import amplification, replaced_only
from defocus.privacy.losses import Loss, checked_delta, checked_epsilon, largest_loss, squared_mu
from defocus.privacy.numbers import PAD, above, least, times_up
from defocus.privacy.units import Adjacency

__all__ = ["ConcentratedLoss", "account", "delta_from_rho", "epsilon_from_rho", "rho_for", "rho_of"]


@final
@dataclass(frozen=True, slots=True)
class ConcentratedLoss(Loss):
    """A total ρ."""

    total: float
    accountant: ClassVar[str] = "zcdp"

    def rho(self) -> float:
        """The zero-concentrated loss."""
        return self.total

    def epsilon(self, delta: Number = 0) -> float:
        """The least epsilon over all orders at ``delta``."""
        return epsilon_from_rho(self.total, checked_delta(delta))

    def delta(self, epsilon: Number) -> float:
        """The least delta over all orders at ``epsilon``."""
        return delta_from_rho(self.total, checked_epsilon(epsilon))


def account(event: events.Event, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> ConcentratedLoss:
    """What ``event`` costs in ρ.

    >>> from defocus.privacy.events import Gaussian, Pure
    >>> round(account(2 * Gaussian(2) + Pure(0.1)).rho(), 6)
    0.254996
    """
    replaced_only(event, adjacency)  # no other event expressed here depends on it
    return ConcentratedLoss(rho_of(event) if isinstance(event, events.Composed) else _something(event))


def epsilon_from_rho(rho: float, delta: float) -> float:
    """The epsilon of ρ-zCDP at ``delta``, the order chosen freely."""
    if rho == 0:
        return 0.0
    if delta <= 0 or math.isinf(rho):
        return math.inf

    def at(t: float) -> float:
        orders = np.array([1 + math.exp(t)])
        return float(epsilon_at(rho * orders, orders, delta)[0])

    # Any order is sound; these are told apart from 1 and from infinity.
    centre = min(max(0.5 * math.log(max(-math.log(delta), 1e-3) / rho), -30.0), 600.0)
    return max(0.0, least(at, centre - 4, centre + 2, steps=40))


def delta_from_rho(rho: float, epsilon: float) -> float:
    """The delta of ρ-zCDP at ``epsilon``, the order chosen freely."""
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return 1.0

    @np.errstate(over="ignore")
    def at(t: float) -> float:
        orders = np.array([1 + math.exp(t)])
        return float(np.log(delta_at(rho * orders, orders, epsilon)[0]))

    centre = min(math.log(max((epsilon - rho) / (2 * rho), 1e-3)), 600.0)  # delta vanishes before that
    # Where epsilon is below rho the best order is near 2, whatever the centre for small deltas says.
    return min(1.0, math.exp(least(at, min(centre - 3, -2.0), max(centre + 3, 2.0), points=24, steps=40)) * PAD)


def rho_for(epsilon: float, delta: float) -> float:
    """The largest ρ found that is still (epsilon, delta)-DP."""
    if delta <= 0 or epsilon <= 0:
        return 0.0
    low, high = 0.0, epsilon
    while epsilon_from_rho(high, delta) <= epsilon:
        low, high = high, 2 * high
    # Not bisect: from zero, the first steps divide rather than halve.
    for _ in range(60):
        middle = (low + high) / 2 if low else high / 16
        low, high = (middle, high) if epsilon_from_rho(middle, delta) <= epsilon else (low, middle)
    return low


@singledispatch
def rho_of(event: events.Event) -> float:
    """The ρ of an event, rounded up."""
    raise UnsupportedEventError(
        event,
        accountant="zcdp",
        why="it satisfies no useful zero-concentrated guarantee",
        fix='use account(event, method="rdp"), or method="pld".',
    )


@rho_of.register
def _(event: events.Composed) -> float:
    """ρ adds up: the only composition rule of this accountant."""
    return sum(times_up(times, _something(part)) for part, times in event.parts) * (PAD if event.parts else 1.0)


def _something(part: events.Event) -> float:
    """The ρ of one release, never nothing where something is lost: so small a number may yet be multiplied."""
    found = rho_of(part)
    free = 0 in (getattr(part, "epsilon", None), getattr(part, "rho", None))
    return found if found or free else math.ulp(0.0)


@rho_of.register
def _(event: events.SampledGaussian | events.AllocatedGaussian | events.ShuffledGaussian) -> float:
    """Every part of the data may be in the sample, so never more than without sampling, for a unit replaced."""
    return rho_of(events.Gaussian(Fraction(event.ratio) / 2))


@rho_of.register
def _(event: events.Sampled | events.SampledBatch) -> float:
    if (event.rate if isinstance(event, events.Sampled) else Fraction(event.size, event.population)) == 1:
        return rho_of(event.event)
    raise UnsupportedEventError(
        event,
        accountant="zcdp",
        why="a sampled release has heavy tails that no ρ below the inner one covers",
        fix='use account(event, method="pld"), or method="rdp".',
    )


@rho_of.register
def _(event: events.Gaussian | events.DiscreteGaussian) -> float:
    return above(squared_mu(event) / 2)


@rho_of.register
def _(event: events.Concentrated) -> float:
    return above(event.rho)


@rho_of.register
def _(event: events.Pure | events.SubsetResponse) -> float:
    r"""ε·tanh(ε/2), which is tight: it is the divergence of randomised response at order one.

    Its log-moment is :math:`\log\cosh(\varepsilon\sqrt w) - \log\cosh(\varepsilon/2)` with
    :math:`w = (\alpha-1/2)^2`, concave in w since tanh(s)/s decreases, hence below its tangent at w = 1/4:
    :math:`(w - 1/4)\,\varepsilon\tanh(\varepsilon/2) = \alpha(\alpha-1)\,\varepsilon\tanh(\varepsilon/2)`.
    """
    return _pure(above(event.epsilon))


@rho_of.register
def _(event: events.Laplace) -> float:
    """ε + e^(−ε) − 1: tight, Harrison and Manurangsi (2026)."""
    epsilon = above(largest_loss(event))
    if epsilon < 0.01:
        # An alternating series, cut after a positive term.
        series = 1 - epsilon / 3 * (1 - epsilon / 4 * (1 - epsilon / 5 * (1 - epsilon / 6)))
        return epsilon * epsilon / 2 * series * PAD
    return (epsilon + math.expm1(-epsilon)) * PAD


@rho_of.register
def _(event: events.DiscreteLaplace | events.RandomizedResponse) -> float:
    """The pure bound, or the supremum of the divergence over the order where that is smaller."""
    epsilon = above(largest_loss(event))
    return min(_pure(epsilon), _largest_slope(event, epsilon))


@rho_of.register
def _(event: events.Shuffled) -> float:
    """The supremum of the divergence over the order; the local bound where that is smaller."""
    found = amplification(event)
    return min(_pure(found.epsilon), _largest_slope(event, found.epsilon, last=1e7)) if found is not None else 0.0


@rho_of.register
def _(event: events.Exponential) -> float:
    """ε²/8 for a bounded range of ε, or the pure bound where that is smaller."""
    return min(above(Fraction(event.epsilon) ** 2 / 8), _pure(above(event.epsilon)))


def _pure(epsilon: float) -> float:
    return min(epsilon * math.tanh(epsilon / 2) * PAD, epsilon)


@lru_cache(maxsize=256)
def _largest_slope(event: events.Event, epsilon: float, last: float = 1000.0) -> float:
    r"""A certified bound on the supremum of D(α)/α over all α > 1, from finitely many orders.

    D increases, so between two orders a < b the quotient is at most :math:`D_b/a`; beyond the last order it is at
    most the pure ``epsilon`` over that order. The orders are so close that at most 0.2 % is lost.
    """
    orders = np.exp(np.linspace(0.0, math.log(last), 4001))
    with np.errstate(over="ignore"):
        divergences = curve(event, orders[1:], Adjacency.REPLACE)
    return max(float(np.max(divergences / orders[:-1])), epsilon / last) * PAD
