"""One direction of an adjacency, answered by the simplest way that is exact enough."""

import math
from collections.abc import Sequence

import numpy as np

from defocus.privacy.accounting.pld.bounds import UpperWindow, lower_epsilon, upper_epsilon
from defocus.privacy.accounting.pld.exact import enumerated
from defocus.privacy.accounting.pld.lowering import Term
from defocus.privacy.accounting.pld.plan import coarse_for, plan_at, plan_for
from defocus.privacy.accounting.pld.profiles import Profile
from defocus.privacy.accounting.pld.saddle import saddle_for
from defocus.privacy.accounting.pld.sampling import Reversed
from defocus.privacy.searching import turning

__all__ = ["both_ways", "delta_above", "epsilon_above", "epsilon_below", "epsilon_near"]

_MOST_STEPS = 2**43
_FARTHEST = 1e18
"""No loss on a grid is larger than this, so delta is flat beyond it."""


def both_ways(terms: Sequence[Term]) -> list[Sequence[Term]]:
    """The terms, and the terms with each pair exchanged unless that changes nothing."""
    if all(term.profile.symmetric for term in terms):
        return [terms]
    return [terms, [term._replace(profile=Reversed(term.profile), witness=None) for term in terms]]


def epsilon_above(terms: Sequence[Term], delta: float, tolerance: float) -> float:
    """A certified upper bound on epsilon at ``delta``."""
    whole = _whole(terms)
    if whole is not None:
        return _crossing(whole, delta, 1.0)
    if _too_many(terms):
        return math.inf
    plan = plan_for(terms, delta, tolerance)
    if plan is None:
        return math.inf
    if plan.found.epsilon < 0.3 * plan.found.spread and delta_above(terms, 0.0, tolerance) <= delta:
        return 0.0
    return upper_epsilon(plan.dots, plan.step, plan.found, delta, plan.accuracy)


def epsilon_below(terms: Sequence[Term], delta: float, tolerance: float) -> float:
    """A certified lower bound on epsilon at ``delta`` for these very pairs."""
    whole = _whole(terms)
    if whole is not None:
        return _crossing(whole, delta, -1.0)
    if _too_many(terms):
        return 0.0
    plan = plan_for(terms, delta, tolerance)
    if plan is None:
        return 0.0
    upper = upper_epsilon(plan.dots, plan.step, plan.found, delta, plan.accuracy)
    bins = [(term.profile, term.times, places) for term, places in zip(terms, plan.indices, strict=True)]
    return lower_epsilon(bins, plan.step, plan.found, delta, upper)


def epsilon_near(terms: Sequence[Term], delta: float) -> float:
    """A fast saddle-point estimate of epsilon, for searches; carries no guarantee."""
    if len(terms) == 1 and terms[0].times == 1:
        return _crossing(terms[0].profile, delta, 0.0)
    return max(0.0, saddle_for(coarse_for(terms, math.log(delta)), delta, 2.0, 1e-3).epsilon)


def delta_above(terms: Sequence[Term], epsilon: float, tolerance: float) -> float:
    """A certified upper bound on delta at ``epsilon``."""
    whole = _whole(terms)
    if whole is not None:
        curve = whole.curve(np.array([epsilon]))
        return float(curve.excess[0] + curve.pad[0])
    if _too_many(terms):
        return 1.0
    epsilon = min(epsilon, _FARTHEST)
    plan = plan_at(terms, epsilon, tolerance)
    view = UpperWindow(plan.dots, plan.step, plan.found, epsilon, plan.found.log_delta)
    return math.exp(min(view.log_delta(epsilon), 0.0)) * (1 + 1e-12)


def _too_many(terms: Sequence[Term]) -> bool:
    """Whether the rounding of so many steps, some hundred units each, would drown the answer."""
    return sum(term.times for term in terms) > _MOST_STEPS


def _whole(terms: Sequence[Term]) -> Profile | None:
    """The profile of everything, where nothing needs composing or the atoms can be enumerated."""
    if len(terms) == 1 and terms[0].times == 1:
        return terms[0].profile
    return enumerated([(term.profile, term.times) for term in terms])


def _crossing(profile: Profile, delta: float, side: float) -> float:
    """The epsilon at which the profile, padded to one side, falls to ``delta``: bisection to the last bit."""

    def exceeds(epsilon: float) -> bool:
        curve = profile.curve(np.array([epsilon]))
        value = float(curve.excess[0] + side * curve.pad[0])
        return value > delta if side < 0 else not value <= delta

    if not exceeds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < 1e300 and exceeds(high):
        low, high = high, 16 * high
    if high >= 1e300:
        return low if side < 0 else math.inf
    found = turning(lambda epsilon: not exceeds(epsilon), low, high, steps=200)
    return found.no if side < 0 else found.yes
