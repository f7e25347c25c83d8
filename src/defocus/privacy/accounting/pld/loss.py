"""The loss of an event by its privacy-loss distribution, computed for the question asked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from defocus.errors import DefocusError, Number
from defocus.privacy import events
from defocus.privacy.accounting.pld.bounds import UpperWindow, lower_epsilon, upper_epsilon
from defocus.privacy.accounting.pld.exact import enumerated
from defocus.privacy.accounting.pld.lowering import Term, lower, round_up
from defocus.privacy.accounting.pld.plan import coarse_for, plan_at, plan_for
from defocus.privacy.accounting.pld.profiles import Profile, Reversed, U
from defocus.privacy.accounting.pld.saddle import saddle_for
from defocus.privacy.losses import Interval, Loss, checked_delta, checked_epsilon
from defocus.privacy.units import Adjacency

__all__ = ["PldLoss", "account"]

_TOLERANCE = 5e-6
"""Default width of the certified interval, relative to epsilon."""
_ROUGH = 1e-3


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
        first, *others = self._directions()
        answer = self._epsilon(first, d)
        rough = replace(self, tolerance=max(self.tolerance, _ROUGH))
        for direction in others:
            # Usually one direction is clearly worse, and a rough bound on the other shows it.
            if rough._delta(direction, answer) > d:
                answer = max(answer, self._epsilon(direction, d))
        return min(pure, answer)

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
        real = [Term(term.witness, term.times, term.witness, term.pure) for term in self.terms if term.witness]
        attained = PldLoss(tuple(real), self.tolerance)
        rough = replace(attained, tolerance=max(self.tolerance, _ROUGH))
        lower = 0.0
        for direction in attained._directions():
            if lower == 0 or rough._delta(direction, lower) > d:
                lower = max(lower, attained._lower(direction, d))
        return Interval(min(upper, lower), upper)

    def estimate(self, delta: float) -> float:
        """A fast saddle-point estimate of epsilon, for searches; carries no guarantee."""
        terms = self._directions()[0]
        if len(terms) == 1 and terms[0].times == 1:
            return _crossing(terms[0].profile, delta, 0.0, math.inf)
        return max(0.0, saddle_for(coarse_for(terms, math.log(delta)), delta, 2.0, 1e-3).epsilon)

    def _pure(self) -> float:
        """The sum of the largest losses: exact where the parameters are."""
        bounds = [term.times * term.pure for term in self.terms if term.pure is not None]
        return round_up(sum(bounds, Fraction(0))) if len(bounds) == len(self.terms) else math.inf

    def _directions(self) -> list[Sequence[Term]]:
        """The terms, and the terms with each pair exchanged unless that changes nothing."""
        if all(term.profile.symmetric for term in self.terms):
            return [self.terms]
        return [self.terms, [_reverse(term) for term in self.terms]]

    def _epsilon(self, direction: Sequence[Term], delta: float) -> float:
        whole = _whole([(term.profile, term.times) for term in direction])
        if whole is not None:
            return _crossing(whole, delta, 1.0, self._pure())
        plan = plan_for(direction, delta, self.tolerance)
        if plan.found.epsilon < 0.3 * plan.found.spread and self._delta(direction, 0.0) <= delta:
            return 0.0
        return upper_epsilon(plan.dots, plan.step, plan.found, delta, plan.accuracy)

    def _lower(self, direction: Sequence[Term], delta: float) -> float:
        profiles = [(term.profile, term.times) for term in direction]
        whole = _whole(profiles)
        if whole is not None:
            return _crossing(whole, delta, -1.0, self._pure())
        plan = plan_for(direction, delta, self.tolerance)
        upper = upper_epsilon(plan.dots, plan.step, plan.found, delta, plan.accuracy)
        bins = [(profile, times, i) for (profile, times), i in zip(profiles, plan.indices, strict=True)]
        return lower_epsilon(bins, plan.step, plan.found, delta, upper)

    def _delta(self, direction: Sequence[Term], epsilon: float) -> float:
        whole = _whole([(term.profile, term.times) for term in direction])
        if whole is not None:
            curve = whole.curve(np.array([epsilon]))
            return float(curve.excess[0] + curve.pad[0])
        plan = plan_at(direction, epsilon, self.tolerance)
        view = UpperWindow(plan.dots, plan.step, plan.found, epsilon, plan.found.log_delta)
        return math.exp(min(view.log_delta(epsilon), 0.0)) * (1 + 1e-12)


def _reverse(term: Term) -> Term:
    return term._replace(
        profile=Reversed(term.profile), witness=None if term.witness is None else Reversed(term.witness)
    )


def _whole(profiles: Sequence[tuple[Profile, int]]) -> Profile | None:
    """The profile of everything, where nothing needs composing or the atoms can be enumerated."""
    if len(profiles) == 1 and profiles[0][1] == 1:
        return profiles[0][0]
    return enumerated(profiles)


def _crossing(profile: Profile, delta: float, side: float, pure: float) -> float:
    """The epsilon at which the profile, padded to one side, falls to ``delta``: bisection to the last bit."""

    def exceeds(epsilon: float) -> bool:
        curve = profile.curve(np.array([epsilon]))
        return float(curve.excess[0] + side * curve.pad[0]) > delta

    if not exceeds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < 1e300 and exceeds(high):
        low, high = high, 16 * high
    if high >= 1e300:
        return low if side < 0 else math.inf
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low if side < 0 else min(high, pure)
