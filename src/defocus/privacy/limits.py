"""How much of a budget each elementary filter gets: shares of delta, orders, and the limits they buy."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from defocus.errors import Number
from defocus.privacy import classical
from defocus.privacy.accounting.renyi.conversion import epsilon_at
from defocus.privacy.accounting.zcdp import rho_for
from defocus.privacy.budgets import Budget
from defocus.privacy.elementary import ConcentratedSum, Elementary, GaussianSum, PureSum, RenyiSum
from defocus.privacy.rounding import below

__all__ = ["Made", "makers"]

_ROOM = 1 + 1e-9
"""A budget the owner states in decimals is kept to one part in a billion, so that ten charges of 0.1 fit in 1."""

_BLUR = 1e-9
"""The part of epsilon set aside for the difference between discrete and continuous Gaussians."""

_SLACK_SHARE, _GAUSSIAN_SHARE = 1 / 8, 3 / 8
_RENYI_SHARES = ((1.0, 3 / 16), (0.8, 1 / 8), (0.6, 1 / 8), (2.0, 1 / 16))
"""Orders, as multiples of (the best order for Gaussian runs − 1), and their shares of delta."""

Made: TypeAlias = tuple[float, tuple[Elementary, ...], float]
"""What the deltas of releases may add up to; the elementary filters; and what deltas may add up to instead where the
first release exceeds that, if it decides."""


def makers(budget: Budget) -> dict[str, Callable[[], Made]]:
    """The filters a budget can have, by name."""
    if budget.rho is not None:
        limit = _limit(budget.rho)
        return dict.fromkeys(("union", "zcdp"), lambda: (0.0, (ConcentratedSum(limit),), 0.0))
    if budget.mu is not None:
        squared = min(below(budget.mu), 1e150) ** 2 * _ROOM
        return dict.fromkeys(("union", "gaussian"), lambda: (0.0, (GaussianSum(squared),), 0.0))
    epsilon, delta = below(budget.epsilon or 0), below(budget.delta)
    pure = PureSum(_limit(epsilon))
    if delta == 0:
        return dict.fromkeys(("union", "basic"), lambda: (0.0, (pure,), 0.0))

    def union(whole: float) -> Made:
        gaussian = _gaussian(epsilon, _GAUSSIAN_SHARE * delta)
        renyi = (_renyi(epsilon, share * delta, factor) for factor, share in _RENYI_SHARES)
        return _SLACK_SHARE * delta, (pure, gaussian, *renyi), whole

    return {
        "union": lambda: union(0.0),
        "first": lambda: union(delta * _ROOM),
        "basic": lambda: (delta * _ROOM, (pure,), 0.0),
        "renyi": lambda: (0.0, (_renyi(epsilon, delta, 1.0),), 0.0),
        "zcdp": lambda: (0.0, (ConcentratedSum(rho_for(epsilon, delta)),), 0.0),
        "gaussian": lambda: (0.0, (_gaussian(epsilon, delta),), 0.0),
    }


def _limit(allowed: Number) -> float:
    """What may add up to so much; always finite, so that an infinite cost never fits."""
    return min(below(allowed) * _ROOM, 1e308)


@lru_cache(maxsize=1024)
def _gaussian(epsilon: float, delta: float) -> GaussianSum:
    blur = _BLUR * min(1.0, epsilon)
    limit = classical.mu_for(epsilon - blur, delta * math.exp(-blur)) ** 2 * (1 - 1e-12)
    return GaussianSum(limit, limit / blur)


@lru_cache(maxsize=1024)
def _renyi(epsilon: float, delta: float, factor: float) -> RenyiSum:
    """At ``factor`` times the order that admits the longest Gaussian run."""

    def room(t: float) -> float:
        order = 1 + math.exp(t)
        return -_rest(epsilon, delta, order) / order

    low, high = -6.0, 20.0
    points = [low + (high - low) * i / 400 for i in range(401)]
    order = 1 + factor * math.exp(min(points, key=room))
    if order > 16:
        order = float(round(order))
    return RenyiSum(max(0.0, _rest(epsilon, delta, order)), order)


def _rest(epsilon: float, delta: float, order: float) -> float:
    """What is left of epsilon for the divergence once the conversion is paid."""
    at = np.array([order])
    return (epsilon - float(epsilon_at(np.zeros(1), at, delta)[0])) * (1 - 1e-12)
