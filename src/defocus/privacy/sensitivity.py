"""The sensitivity of a vector: how far one unit can move it, exactly."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import Number, count, positive
from defocus.privacy.numbers import root_up

__all__ = ["Sensitivity"]

_ROOT_OF_TWO = Fraction(1_414_213_562_373_096, 10**15)
"""Rounded up."""


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far an integer vector can move between neighbours: bounds on the L1 norm and the squared L2 norm.

    The two bounds need not be attained by the same pair of neighbours. Without ``l2_squared`` the L2 norm is
    bounded by the L1 norm, as it always is.

    >>> degrees = Sensitivity(2, 2)
    >>> degrees.l1, round(float(degrees.l2), 3), degrees + Sensitivity(1)
    (2, 1.414, Sensitivity(l1=3, l2_squared=3))
    """

    l1: int
    l2_squared: int | Fraction

    def __init__(self, l1: int, l2_squared: Number | None = None) -> None:
        object.__setattr__(self, "l1", count("l1", l1))
        squared = Fraction(self.l1**2 if l2_squared is None else positive("l2_squared", l2_squared))
        object.__setattr__(self, "l2_squared", squared.numerator if squared.denominator == 1 else squared)

    @property
    def l2(self) -> Number:
        """The L2 norm: exact where it is rational, and the next float above where it is not."""
        root = Fraction(math.isqrt(self.l2_squared.numerator), math.isqrt(self.l2_squared.denominator))
        return root if root**2 == self.l2_squared else root_up(Fraction(self.l2_squared))

    def __add__(self, other: "Sensitivity") -> "Sensitivity":
        """The sensitivity of both vectors together: exact if one pair of neighbours moves both as far as it can."""
        return Sensitivity(self.l1 + other.l1, self.l2_squared + other.l2_squared)

    def times(self, changes: int) -> "Sensitivity":
        """The sensitivity to so many changes one after the other: the triangle inequality in both norms."""
        return Sensitivity(changes * self.l1, changes**2 * self.l2_squared)

    def replaced(self) -> "Sensitivity":
        r"""The sensitivity where a unit is replaced by another, for what each unit can only raise.

        The vector then moves by b - a with a, b >= 0, each within this bound: at most twice as far in L1 norm, and
        since :math:`|b-a|^2 \le |a|^2 + |b|^2`, at most √2 times as far in L2 norm.

        >>> Sensitivity(1).replaced().l1
        2
        """
        return Sensitivity(2 * self.l1, self.l2_squared * _ROOT_OF_TWO**2)
