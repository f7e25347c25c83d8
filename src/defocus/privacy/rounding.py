"""From exact numbers to floats that err on the safe side, however large, small or long the number is."""

import math

from defocus.errors import Number

__all__ = ["PAD", "above", "below", "times_up"]

PAD = 1 + 1e-12
"""Covers the rounding of a formula of a few dozen float operations without cancellation."""


def above(value: Number) -> float:
    """The least float that is not below ``value``; infinite beyond the range of floats.

    >>> from fractions import Fraction
    >>> above(Fraction(1, 3)) * 3 >= 1, above(10**400)
    (True, inf)
    """
    nearest = _nearest(value)
    return math.nextafter(nearest, math.inf) if nearest < value else nearest


def below(value: Number) -> float:
    """The largest float that is not above ``value``; the largest of all beyond their range.

    >>> from fractions import Fraction
    >>> below(Fraction(1, 10**400)), below(10**400)
    (0.0, 1.7976931348623157e+308)
    """
    nearest = _nearest(value)
    return math.nextafter(nearest, -math.inf) if nearest > value else nearest


def times_up(times: int, amount: float) -> float:
    """``amount``, ``times`` over, for any number of times: nothing, however often, is nothing.

    >>> times_up(10**400, 0.0), times_up(10**400, 1e-300)
    (0.0, inf)
    """
    return above(times) * amount if amount else 0.0


def _nearest(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
