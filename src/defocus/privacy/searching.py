"""Searches along a line: where an answer turns from no to yes, and where a function is least."""

import math
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Turn", "least", "turning"]


class Turn(NamedTuple):
    """Two points close to each other, the answer being no at the first and yes at the second."""

    no: float
    yes: float


def turning(
    holds: Callable[[float], bool],
    no: float,
    yes: float,
    *,
    width: float = 0.0,
    relative: float = 0.0,
    steps: int = 2000,
) -> Turn:
    """Where ``holds`` turns from no to yes, by bisection, whichever of the two points is the larger.

    Ends when they are ``width`` apart, or ``relative`` to the larger of them, or no float lies between, or after so
    many ``steps``. Take the side that errs as it should: every ``yes`` returned but the first was asked about.

    >>> turning(lambda x: x * x >= 2, 0, 2, width=1e-9).yes
    1.41421356...
    """
    for _ in range(steps):
        middle = (no + yes) / 2
        if abs(yes - no) <= max(width, relative * max(no, yes)) or middle in {no, yes}:
            break
        no, yes = (no, middle) if holds(middle) else (middle, yes)
    return Turn(no, yes)


def least(function: Callable[[float], float], low: float, high: float, *, points: int = 12, steps: int = 32) -> float:
    """The least value found on [low, high]: a coarse scan, then golden-section search around its best point.

    For bounds that hold at every point, so that a missed minimum costs tightness and never soundness;
    where the function is not a number, there is no bound.
    """

    def at(x: float) -> float:
        value = function(x)
        return math.inf if math.isnan(value) else value

    scanned = [low + (high - low) * i / points for i in range(points + 1)]
    values = [at(x) for x in scanned]
    best = min(range(points + 1), key=values.__getitem__)
    a, b = scanned[max(best - 1, 0)], scanned[min(best + 1, points)]
    found = values[best]
    golden = (math.sqrt(5) - 1) / 2
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = at(c), at(d)
    for _ in range(steps):
        found = min(found, at_c, at_d)
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - golden * (b - a)
            at_c = at(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + golden * (b - a)
            at_d = at(d)
    return min(found, at_c, at_d)
