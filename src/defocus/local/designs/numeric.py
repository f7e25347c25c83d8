"""Designs for numbers: each report stands for an unbiased guess of where between two ends a number lies."""

from abc import abstractmethod
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, in_range, probability
from defocus.local.designs.design import Design
from defocus.local.domains import Interval
from defocus.local.levels import LARGEST_NUMERIC_EPSILON, checked_epsilon

__all__ = ["Guesses", "Numeric", "numeric_epsilon"]

Guesses: TypeAlias = NDArray[np.float64]

_SINGLE_BIT = 1e-6
"""So near to -1 the quadratic term is that of a single bit, up to rounding."""


class Numeric(Design):
    """A design whose reports are unbiased for numbers of an interval, measured from 0 (its low end) to 1."""

    __slots__ = ()
    domain: Interval

    def _suits(self) -> None:
        given: object = self.domain
        if not isinstance(given, Interval):
            raise InvalidParameterError(
                f"A domain of numbers is needed, but it is {type(given).__name__}.",
                fix="pass Interval; for categories choose a frequency oracle.",
            )
        object.__setattr__(self, "epsilon", numeric_epsilon(self.epsilon))

    @property
    def guesses(self) -> Guesses:
        """What each reported cell stands for, as a share of the interval; none where reports are numbers."""
        return np.empty(0)

    @abstractmethod
    def share_variance(self, share: Fraction) -> float:
        """The variance of one report's guess for a number at this share of the interval."""

    def mean_variance(self, first: float, second: float) -> float:
        r"""The variance of a guess, on average over the people, from the mean guess and the mean squared guess.

        It is a quadratic :math:`a + bx + cx^2` of the share x, and guesses are unbiased, so their squares have the mean
        :math:`a + b\,\overline{x} + (1 + c)\,\overline{x^2}`: solved for :math:`\overline{x^2}`, which lies between
        :math:`\overline{x}^2` and :math:`\overline{x}`. Where :math:`c = -1`, as for a single bit, reports do not tell,
        and the largest variance is taken, which is right if all numbers are alike.
        """
        low, middle, high = (self.share_variance(Fraction(i, 2)) for i in range(3))
        c = 2 * (low + high - 2 * middle)
        b = high - low - c
        mean = min(max(first, 0.0), 1.0)
        told = mean**2 if 1 + c < _SINGLE_BIT else (second - low - b * mean) / (1 + c)
        return low + b * mean + c * min(max(told, mean**2), mean) + self.rounding

    @property
    def rounding(self) -> float:
        """What putting a number on the grid adds to the variance at most, where it matters."""
        return 0.0

    def variance(self, share: Number) -> float:
        """The variance of one report's guess, in the domain's own units, for a number at ``share`` of the interval."""
        at = Fraction(probability("share", share))
        width = float(self.domain.width)
        return self.share_variance(at) * width * width

    @property
    def worst_variance(self) -> float:
        """The largest variance of one report's guess over the interval, which is at an end or in the middle."""
        return max(self.variance(Fraction(i, 8)) for i in range(9))


def numeric_epsilon(epsilon: object) -> Number:
    """Epsilon of a report about a number."""
    return in_range("epsilon", checked_epsilon(epsilon), 0, LARGEST_NUMERIC_EPSILON)
