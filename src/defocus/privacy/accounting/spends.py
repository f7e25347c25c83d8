r"""Events as (epsilon, delta) pairs: what basic and advanced composition add up.

A release either comes with a fixed pair (pure and approximate ones), or it trades epsilon against a share of delta
(Gaussian and concentrated ones). Sampling at rate q turns :math:`(\varepsilon, \delta)` into
:math:`(\log(1+q(e^\varepsilon-1)),\ q\delta)`, for Poisson samples and fixed batches, under both adjacencies.

Reference:
    Balle, Barthe, Gaboardi (2018), Privacy amplification by subsampling, Theorems 8 and 9.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import final

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy import classical
from defocus.privacy.accounting.shuffling import amplification
from defocus.privacy.accounting.zcdp import epsilon_from_rho, rho_of
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
    Shuffled,
    SubsetResponse,
    parts_of,
)
from defocus.privacy.magnitudes import largest_loss
from defocus.privacy.rounding import PAD, above, times_up
from defocus.privacy.selection import pure_selection_epsilon

__all__ = ["Spend", "spend", "spends"]


@final
@dataclass(frozen=True, slots=True)
class Spend:
    """One release: (epsilon, delta), where each of ``shares`` Gaussian parts also needs a share of delta."""

    epsilon: Callable[[float], float]
    """The epsilon when every share of delta is as given."""
    delta: float = 0.0
    shares: int = 0


def spends(event: Event) -> list[tuple[Spend, int]]:
    """The releases of ``event`` and how often each happened."""
    return [(spend(part), times) for part, times in parts_of(event)]


@singledispatch
def spend(event: Event) -> Spend:
    """The (epsilon, delta) form of one release."""
    raise UnsupportedEventError(
        event,
        accountant="basic",
        why="it has no (epsilon, delta) form",
        fix='use account(event, by="rdp"), or by="pld".',
    )


@spend.register
def _(event: Laplace | DiscreteLaplace | Pure | Exponential | RandomizedResponse | SubsetResponse) -> Spend:
    return _fixed(largest_loss(event))


@spend.register
def _(event: Approximate) -> Spend:
    return _fixed(event.epsilon, above(event.delta))


@spend.register
def _(event: Gaussian) -> Spend:
    mu = above(1 / Fraction(event.ratio))
    return Spend(lambda share: classical.epsilon_of(mu, share), shares=1)


@spend.register
def _(event: DiscreteGaussian | Concentrated) -> Spend:
    rho = rho_of(event)
    return Spend(lambda share: epsilon_from_rho(rho, share), shares=1)


@spend.register
def _(event: Shuffled) -> Spend:
    """A share of delta buys the amplified epsilon; without one the local epsilon is left."""
    found = amplification(event)
    return _fixed(0) if found is None else Spend(found.epsilon_at, shares=1)


@spend.register
def _(event: Selected) -> Spend:
    inner = spends(event.event)
    if any(one.delta or one.shares for one, _ in inner):
        raise UnsupportedEventError(
            event,
            accountant="basic",
            why="selection has a plain bound only among pure releases",
            fix='use account(event, by="rdp").',
        )
    total = sum(Fraction(one.epsilon(0.0)) * times for one, times in inner)
    return _fixed(pure_selection_epsilon(event, total))


@spend.register
def _(event: Sampled) -> Spend:
    return _amplified(event.event, above(event.rate))


@spend.register
def _(event: SampledBatch) -> Spend:
    return _amplified(event.event, above(Fraction(event.size, event.population)))


def _fixed(epsilon: Number, delta: float = 0.0) -> Spend:
    value = above(epsilon)
    return Spend(lambda _share: value, delta)


def _amplified(inner: Event, rate: float) -> Spend:
    q = min(rate, 1.0)
    parts = spends(inner)

    def epsilon(share: float) -> float:
        # A share of δ outside the sample is δ/q inside it.
        whole = sum(times_up(times, one.epsilon(min(share / q, 1 - 1e-15))) for one, times in parts) * PAD
        if whole > 700:
            return whole + math.log(q) + 1 / q * math.exp(-700)
        return _something(math.log1p(q * math.expm1(whole)) * PAD, of=whole)

    lost = sum(times_up(times, one.delta) for one, times in parts)
    return Spend(epsilon, _something(lost * q * PAD, of=lost), sum(times * one.shares for one, times in parts))


def _something(found: float, *, of: float) -> float:
    """What was ``found``, never nothing ``of`` something: so small a number may yet be multiplied."""
    return found or (math.ulp(0.0) if of else 0.0)
