"""From epsilon(delta) to delta(epsilon), for losses that only have the one."""

import math
from collections.abc import Callable

__all__ = ["least_delta"]

_SMALLEST = -744.0


def least_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    """The least delta found with ``epsilon_at(delta) <= epsilon``: checked, not interpolated; one if there is none."""
    high = math.log1p(-(2.0**-53))
    if epsilon_at(math.exp(high)) > epsilon:
        return 1.0
    low = _SMALLEST
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon_at(math.exp(middle)) <= epsilon else (middle, high)
        if high - low <= 2**-50 * abs(low):
            break
    return math.exp(high)
