"""From epsilon(delta) to delta(epsilon), for losses that only have the one."""

import math
from collections.abc import Callable

from defocus.privacy.searching import turning

__all__ = ["least_delta"]

_SMALLEST = -744.0


def least_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    """The least delta found with ``epsilon_at(delta) <= epsilon``: checked, not interpolated; one if there is none."""
    high = math.log1p(-(2.0**-53))
    if epsilon_at(math.exp(high)) > epsilon:
        return 1.0
    return math.exp(turning(lambda t: epsilon_at(math.exp(t)) <= epsilon, _SMALLEST, high, width=1e-10).yes)
