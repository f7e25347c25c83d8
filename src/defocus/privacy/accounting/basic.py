"""Basic composition: epsilons add, and deltas add.

Guarantee:
    Valid for any releases, also when later parameters are chosen after seeing earlier answers.
Reference:
    Dwork, Kenthapadi, McSherry, Mironov, Naor (2006); Rogers, Roth, Ullman, Vadhan (2016) for adaptive parameters.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy.accounting.inversion import least_delta
from defocus.privacy.accounting.shuffling import replaced_only
from defocus.privacy.accounting.spends import Spend, spends
from defocus.privacy.events import Event
from defocus.privacy.losses import Loss, checked_delta, checked_epsilon
from defocus.privacy.rounding import PAD, above, times_up
from defocus.privacy.units import Adjacency

__all__ = ["BasicLoss", "account", "fixed_delta", "pure_epsilon"]


@final
@dataclass(frozen=True, slots=True)
class BasicLoss(Loss):
    """Releases as (epsilon, delta) pairs; what delta is left is shared evenly by the releases that need some."""

    releases: tuple[tuple[Spend, int], ...]

    @property
    def accountant(self) -> str:
        """Which accountant made it."""
        return "basic"

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


def account(event: Event, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> BasicLoss:
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


def pure_epsilon(event: Event, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float:
    """The sum of pure epsilons; infinite as soon as one release is not pure."""
    try:
        return account(event, adjacency).epsilon(0)
    except UnsupportedEventError:
        return math.inf


def _pad(releases: tuple[tuple[Spend, int], ...]) -> float:
    """A single pair is exact already; sums are rounded up."""
    return 1.0 if len(releases) == 1 and releases[0][1] == 1 else PAD
