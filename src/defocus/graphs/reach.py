"""How far one unit can move a vector of whole numbers, exactly."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import Number, count
from defocus.privacy.rounding import root_up
from defocus.privacy.sensitivity import Norm, Sensitivity

__all__ = ["Reach"]


@final
@dataclass(frozen=True, slots=True)
class Reach:
    """The largest L1 norm, and the largest squared L2 norm, of the change between neighbours. Both are integers.

    They need not be reached by the same pair of neighbours.

    >>> degrees = Reach(2, 2)
    >>> degrees.l1, round(float(degrees.l2), 3), degrees + Reach(1, 1)
    (2, 1.414, Reach(l1=3, l2_squared=3))
    """

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        count("l1", self.l1)
        object.__setattr__(self, "l2_squared", max(1, int(self.l2_squared)))

    @property
    def l2(self) -> Number:
        """The L2 norm; where it is irrational, the next float above."""
        root = math.isqrt(self.l2_squared)
        return root if root * root == self.l2_squared else root_up(Fraction(self.l2_squared))

    @property
    def sensitivities(self) -> tuple[Sensitivity, Sensitivity]:
        """The same as the privacy floor says it: L1, then L2."""
        return Sensitivity(Norm.L1, self.l1), Sensitivity(Norm.L2, self.l2)

    def __add__(self, other: "Reach") -> "Reach":
        """The reach of both vectors in one: exact if one pair of neighbours moves both as far as it can."""
        return Reach(self.l1 + other.l1, self.l2_squared + other.l2_squared)

    def times(self, changes: int) -> "Reach":
        """The reach of so many changes, one after the other: the triangle inequality in both norms."""
        return Reach(changes * self.l1, changes * changes * self.l2_squared)
