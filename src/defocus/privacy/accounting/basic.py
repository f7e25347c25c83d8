r"""Events as (epsilon, delta) pairs: what basic and advanced composition add up.

A release either comes with a fixed pair (pure and approximate ones), or it trades epsilon against a share of delta
(Gaussian and concentrated ones). Sampling at rate q turns :math:`(\varepsilon, \delta)` into
:math:`(\log(1+q(e^\varepsilon-1)),\ q\delta)`, for Poisson samples and fixed batches, under both adjacencies.

Reference:
    Balle, Barthe, Gaboardi (2018), Privacy amplification by subsampling, Theorems 8 and 9.

Basic composition: epsilons add, and deltas add.

Guarantee:
    Valid for any releases, also when later parameters are chosen after seeing earlier answers.
Reference:
    Dwork, Kenthapadi, McSherry, Mironov, Naor (2006); Rogers, Roth, Ullman, Vadhan (2016) for adaptive parameters.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import ClassVar, final

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy import classical, events
from defocus.privacy.accounting.shuffling import amplification, replaced_only
from defocus.privacy.accounting.zcdp import epsilon_from_rho, rho_of
from defocus.privacy.losses import Bounded, Loss, checked_delta, checked_epsilon, largest_loss, least_delta
from defocus.privacy.numbers import PAD, above, times_up
from defocus.privacy.selection import pure_selection_epsilon
from defocus.privacy.units import Adjacency

__all__ = ["BasicLoss", "Spend", "account", "fixed_delta", "pure_epsilon", "spend", "spends"]


@final
@dataclass(frozen=True, slots=True)
class Spend:
    """One release: (epsilon, delta), where each of ``shares`` Gaussian parts also needs a share of delta."""

    epsilon: Callable[[float], float]
    """The epsilon when every share of delta is as given."""
    delta: float = 0.0
    shares: int = 0


def spends(event: events.Event) -> list[tuple[Spend, int]]:
    """The releases of ``event`` and how often each happened."""
    return [(spend(part), times) for part, times in events.parts_of(event)]


@singledispatch
def spend(event: events.Event) -> Spend:
    """The (epsilon, delta) form of one release."""
    raise UnsupportedEventError(
        event,
        accountant="basic",
        why="it has no (epsilon, delta) form",
        fix='use account(event, method="rdp"), or method="pld".',
    )


@spend.register
def _(event: Bounded) -> Spend:
    return _fixed(largest_loss(event))


@spend.register
def _(event: events.Approximate) -> Spend:
    return _fixed(event.epsilon, above(event.delta))


@spend.register
def _(event: events.Gaussian) -> Spend:
    mu = above(1 / Fraction(event.ratio))
    return Spend(lambda share: classical.epsilon_of(mu, share), shares=1)


@spend.register
def _(event: events.DiscreteGaussian | events.Concentrated) -> Spend:
    rho = rho_of(event)
    return Spend(lambda share: epsilon_from_rho(rho, share), shares=1)


@spend.register
def _(event: events.Shuffled) -> Spend:
    """A share of delta buys the amplified epsilon; without one the local epsilon is left."""
    found = amplification(event)
    return _fixed(0) if found is None else Spend(found.epsilon_at, shares=1)


@spend.register
def _(event: events.Selected) -> Spend:
    inner = spends(event.event)
    if any(one.delta or one.shares for one, _ in inner):
        raise UnsupportedEventError(
            event,
            accountant="basic",
            why="selection has a plain bound only among pure releases",
            fix='use account(event, method="rdp").',
        )
    total = sum(Fraction(one.epsilon(0.0)) * times for one, times in inner)
    return _fixed(pure_selection_epsilon(event, total))


@spend.register
def _(event: events.Sampled) -> Spend:
    return _amplified(event.event, above(event.rate))


@spend.register
def _(event: events.SampledBatch) -> Spend:
    return _amplified(event.event, above(Fraction(event.size, event.population)))


@spend.register
def _(event: events.SampledGaussian) -> Spend:
    """For a unit that is replaced, which is never less than for one added or removed."""
    return _amplified(events.Gaussian(Fraction(event.ratio) / 2), above(event.rate))


@spend.register
def _(event: events.AllocatedGaussian | events.ShuffledGaussian) -> Spend:
    """As one release, in which a unit is replaced: never less than for one added or removed."""
    return spend(events.Gaussian(Fraction(event.ratio) / 2))


def _fixed(epsilon: Number, delta: float = 0.0) -> Spend:
    value = above(epsilon)
    return Spend(lambda _share: value, delta)


def _amplified(inner: events.Event, rate: float) -> Spend:
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


@final
@dataclass(frozen=True, slots=True)
class BasicLoss(Loss):
    """Releases as (epsilon, delta) pairs; what delta is left is shared evenly by the releases that need some."""

    releases: tuple[tuple[Spend, int], ...]
    accountant: ClassVar[str] = "basic"

    def epsilon(self, delta: Number = 0) -> float:
        """The sum of the epsilons, if the sum of the deltas fits in ``delta``; else infinite."""
        left = checked_delta(delta) - fixed_delta(self.releases)
        shares = sum(one.shares * times for one, times in self.releases)
        if left < 0:
            return math.inf
        share = left / above(shares) * (1 - 1e-15) if shares else 0.0
        return sum(times_up(times, one.epsilon(share)) for one, times in self.releases) * _pad(self.releases)

    def delta(self, epsilon: Number) -> float:
        """The least delta at which the sum of the epsilons fits in ``epsilon``; one if none does."""
        target = checked_epsilon(epsilon)
        if not any(one.shares for one, _ in self.releases):
            return (
                min(1.0, fixed_delta(self.releases))
                if self.epsilon(min(fixed_delta(self.releases), 1 - 1e-16)) <= target
                else 1.0
            )
        return least_delta(self.epsilon, target)


def account(event: events.Event, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> BasicLoss:
    """What ``event`` costs by addition.

    >>> from defocus.privacy.events import Approximate, Laplace
    >>> loss = account(10 * Laplace(10) + Approximate(1, 1e-6))
    >>> round(loss.epsilon(1e-6), 9), loss.epsilon(0)
    (2.0, inf)
    """
    replaced_only(event, adjacency)  # every other (epsilon, delta) form used here holds under both
    return BasicLoss(tuple(spends(event)))


def fixed_delta(releases: tuple[tuple[Spend, int], ...]) -> float:
    """The sum of the deltas that were already part of the releases."""
    return above(sum((times * Fraction(one.delta) for one, times in releases), Fraction(0)))


def pure_epsilon(event: events.Event, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float:
    """The sum of pure epsilons; infinite as soon as one release is not pure."""
    try:
        return account(event, adjacency).epsilon(0)
    except UnsupportedEventError:
        return math.inf


def _pad(releases: tuple[tuple[Spend, int], ...]) -> float:
    """A single pair is exact already; sums are rounded up."""
    return 1.0 if len(releases) == 1 and releases[0][1] == 1 else PAD
