"""The loss of an event by its privacy-loss distribution, computed for the question asked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.errors import DefocusError, Number
from defocus.privacy import events
from defocus.privacy.accounting.pld.bounds import UpperWindow, lower_epsilon, upper_epsilon
from defocus.privacy.accounting.pld.lowering import Term, lower
from defocus.privacy.accounting.pld.plan import coarse_for, plan_at, plan_for
from defocus.privacy.accounting.pld.profiles import Profile, Reversed, U
from defocus.privacy.accounting.pld.saddle import saddle_for
from defocus.privacy.losses import Interval, Loss, checked_delta, checked_epsilon
from defocus.privacy.units import Adjacency

__all__ = ["PldLoss", "account"]

_TOLERANCE = 2e-5
"""Default width of the certified interval, relative to epsilon."""


def account(
    event: events.Event, adjacency: Adjacency = Adjacency.ADD_REMOVE, *, tolerance: float = _TOLERANCE
) -> "PldLoss":
    """Account for ``event`` by its privacy-loss distribution.

    >>> loss = account(1000 * events.Sampled(events.Gaussian(1), 0.01))
    >>> round(loss.epsilon(1e-5), 3)
    1.828
    """
    return PldLoss(tuple(lower(event, Adjacency(adjacency))), tolerance)


@final
@dataclass(frozen=True, slots=True)
class PldLoss(Loss):
    r"""Certified bounds by tilted connect-the-dots.

    Guarantee:
        ``epsilon`` and ``delta`` are never below the truth, rounding included, and
        ``interval`` contains it. Both directions of the adjacency are evaluated.
    Error:
        The interval is about ``tolerance`` times epsilon wide; a requested delta may be as
        small as 1e-100.
    Reference:
        Doroshenko et al. (2022) for the discretisation; Zhu, Dong, Wang (2022) for sampling.
    """

    terms: tuple[Term, ...]
    tolerance: float = _TOLERANCE

    @property
    def accountant(self) -> str:
        """See :class:`Loss`."""
        return "pld"

    def epsilon(self, delta: Number = 0) -> float:
        """The certified upper bound on epsilon at ``delta``."""
        d = checked_delta(delta)
        pure = self._pure()
        if d == 0 or not self.terms:
            return pure
        return min(pure, max(self._epsilon(direction, d) for direction in self._directions()))

    def delta(self, epsilon: Number) -> float:
        """The certified upper bound on delta at ``epsilon``."""
        e = checked_epsilon(epsilon)
        if not self.terms or e >= self._pure():
            return 0.0
        return min(1.0, max(self._delta(direction, e) for direction in self._directions()))

    def interval(self, delta: Number) -> Interval:
        """Certified bounds on the true epsilon at ``delta``."""
        d = checked_delta(delta)
        upper = self.epsilon(d)
        if any(term.witness is None for term in self.terms):
            raise DefocusError(
                "There is no certified lower bound for this event: no single mechanism is known to attain it.",
                fix="use epsilon(delta), which is certified from above.",
            )
        if d == 0 or upper == 0 or not self.terms:
            return Interval(upper if d == 0 and upper < math.inf else 0.0, upper)
        return Interval(min(upper, max(self._lower(direction, d) for direction in self._directions())), upper)

    def estimate(self, delta: float) -> float:
        """A fast saddle-point estimate of epsilon, for searches; carries no guarantee."""
        found = [
            saddle_for(coarse_for(direction, math.log(delta)), delta, 2.0, 1e-3).epsilon
            for direction in self._directions()
        ]
        return max(0.0, *found)

    def _pure(self) -> float:
        if any(term.profile.at_infinity for term in self.terms):
            return math.inf
        sums = [sum(term.times * term.profile.top for term in direction) for direction in self._directions()]
        return max(0.0, *sums) * (1 + 4 * U * len(self.terms))

    def _directions(self) -> list[Sequence[Term]]:
        """The terms, and the terms with each pair exchanged unless that changes nothing."""
        if all(term.profile.symmetric for term in self.terms):
            return [self.terms]
        return [self.terms, [_reverse(term) for term in self.terms]]

    def _epsilon(self, direction: Sequence[Term], delta: float) -> float:
        if _alone(direction):
            return _crossing(direction[0].profile, delta, 1.0, self._pure())
        plan = plan_for(direction, delta, self.tolerance)
        return upper_epsilon(plan.dots, plan.step, plan.found, delta, plan.accuracy)

    def _lower(self, direction: Sequence[Term], delta: float) -> float:
        witnesses = [term._replace(profile=term.witness) for term in direction if term.witness is not None]
        if _alone(direction):
            return _crossing(witnesses[0].profile, delta, -1.0, self._pure())
        plan = plan_for(direction, delta, self.tolerance)
        upper = upper_epsilon(plan.dots, plan.step, plan.found, delta, plan.accuracy)
        bins = [(w.profile, w.times, i) for w, i in zip(witnesses, plan.indices, strict=True)]
        return lower_epsilon(bins, plan.step, plan.found, delta, upper)

    def _delta(self, direction: Sequence[Term], epsilon: float) -> float:
        if _alone(direction):
            curve = direction[0].profile.curve(np.array([epsilon]))
            return float(curve.excess[0] + curve.pad[0])
        plan = plan_at(direction, epsilon, self.tolerance)
        view = UpperWindow(plan.dots, plan.step, plan.found, epsilon, plan.found.log_delta)
        return math.exp(min(view.log_delta(epsilon), 0.0)) * (1 + 1e-12)


def _reverse(term: Term) -> Term:
    return Term(Reversed(term.profile), term.times, None if term.witness is None else Reversed(term.witness))


def _alone(terms: Sequence[Term]) -> bool:
    """Whether there is nothing to compose, so that the profile itself answers."""
    return len(terms) == 1 and terms[0].times == 1


def _crossing(profile: Profile, delta: float, side: float, pure: float) -> float:
    """The epsilon at which the profile, padded to one side, falls to ``delta``: bisection to the last bit."""

    def exceeds(epsilon: float) -> bool:
        curve = profile.curve(np.array([epsilon]))
        return float(curve.excess[0] + side * curve.pad[0]) > delta

    if not exceeds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < 1e300 and exceeds(high):
        low, high = high, 2 * high
    if high >= 1e300:
        return math.inf if side > 0 else low
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return min(high, pure) if side > 0 else low
