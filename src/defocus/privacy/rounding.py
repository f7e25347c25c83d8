"""From exact numbers to floats that err on the safe side, however large, small or long the number is."""

import math
from fractions import Fraction

from defocus.errors import Number

__all__ = ["PAD", "above", "below", "nearest", "product_up", "root_up", "sum_up", "times_up"]

PAD = 1 + 1e-12
"""Covers the rounding of a formula of a few dozen float operations without cancellation."""


def above(value: Number) -> float:
    """The least float that is not below ``value``; infinite beyond the range of floats.

    >>> from fractions import Fraction
    >>> above(Fraction(1, 3)) * 3 >= 1, above(10**400)
    (True, inf)
    """
    number = nearest(value)
    return math.nextafter(number, math.inf) if number < value else number


def below(value: Number) -> float:
    """The largest float that is not above ``value``; the largest of all beyond their range.

    >>> from fractions import Fraction
    >>> below(Fraction(1, 10**400)), below(10**400)
    (0.0, 1.7976931348623157e+308)
    """
    number = nearest(value)
    return math.nextafter(number, -math.inf) if number > value else number


def times_up(times: int, amount: float) -> float:
    """``amount``, ``times`` over, for any number of times: nothing, however often, is nothing.

    >>> times_up(10**400, 0.0), times_up(10**400, 1e-300)
    (0.0, inf)
    """
    return above(times) * amount if amount else 0.0


def product_up(times: int, amount: float) -> float:
    """``amount``, ``times`` over, rounded up; one too small for a float may still add up to something."""
    return math.nextafter((amount or math.ulp(0.0)) * above(times), math.inf)


def sum_up(a: float, b: float) -> float:
    """The sum, rounded up."""
    return a + b if a == 0 or b == 0 else math.nextafter(a + b, math.inf)


def root_up(square: Fraction) -> float:
    """The least float found whose square is not below ``square``.

    >>> root_up(Fraction(4)), Fraction(root_up(Fraction(2))) ** 2 >= 2
    (2.0, True)
    """
    root = math.sqrt(above(square))
    return root if math.isinf(root) or Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)


def nearest(value: Number) -> float:
    """The nearest float; infinite beyond their range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
