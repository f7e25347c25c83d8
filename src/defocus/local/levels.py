"""Two weights whose ratio is at most e to the epsilon: the exact law behind most local oracles."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, in_range
from defocus.local.domains import canonical
from defocus.noise import Bits
from defocus.noise.bits import Words
from defocus.noise.enclosures import exp_bounds

__all__ = [
    "LARGEST_EPSILON",
    "LARGEST_NUMERIC_EPSILON",
    "SMALLEST_EPSILON",
    "Levels",
    "checked_epsilon",
    "flipping_words",
    "growth",
]

SMALLEST_EPSILON = Fraction(1, 1 << 10)
LARGEST_EPSILON = 32
"""e**32 is below 2**47: weights of this ratio leave room for many cells in a total of 2**64."""
LARGEST_NUMERIC_EPSILON = 16
"""Of a report about a number: as far as the grids of numbers are fine enough."""
_PRECISION = 192
"""Binary digits around e**epsilon: far more than the weights have."""
_LEAST = 1 << 12
"""A weight this large follows e**epsilon to within 1/4096: never above it, and hardly below."""


def checked_epsilon(epsilon: object) -> Number:
    """Epsilon of one report: between 1/1024 and 32, where the integer weights below are tight."""
    return canonical(in_range("epsilon", epsilon, SMALLEST_EPSILON, LARGEST_EPSILON))


@lru_cache(maxsize=256)
def growth(epsilon: Number) -> tuple[Fraction, Fraction]:
    """Rationals just below and just above e**epsilon, equal to 150 bits and more.

    >>> low, high = growth(1)
    >>> low < high, float(low)
    (True, 2.718281828459045)
    """
    x = Fraction(epsilon)
    low, high = exp_bounds(x.numerator, x.denominator, _PRECISION)
    return Fraction(1 << _PRECISION, high), Fraction(1 << _PRECISION, low)


@lru_cache(maxsize=256)
def flipping_words(epsilon: Number, bits: int) -> int:
    """The fewest of 2**bits words that must flip a bit, so that keeping it is at most e**epsilon times as likely.

    >>> flipping_words(1, 4)
    5
    """
    below, _ = growth(epsilon)
    return -int(-(1 << bits) // (1 + below))


@final
@dataclass(frozen=True, slots=True)
class Levels:
    r"""``favoured`` cells that weigh ``high`` each and ``others`` that weigh ``low`` each, one of them drawn by weight.

    Guarantee:
        Weights are integers with :math:`high \le e^\varepsilon\,low` and a total of at most :math:`2^{64}`. A uniform
        word below the total names the cell by integer division; words above it are drawn again. So every cell has
        exactly its weight over the total, a rational number, and whatever cells another value favours instead
        (as many of them), no outcome is more than :math:`e^\varepsilon` times as likely under one as under the other.

    >>> levels = Levels.of(favoured=1, others=3, epsilon=1)
    >>> 2.718 < levels.high / levels.low <= 2.718281828459046
    True
    """

    favoured: int
    others: int
    high: int
    low: int

    @staticmethod
    def of(*, favoured: int, others: int, epsilon: Number) -> "Levels":
        """The largest weights that 64 random bits can serve."""
        return _levels(favoured, others, Fraction(epsilon))

    @property
    def total(self) -> int:
        """The weight of all cells."""
        return self.favoured * self.high + self.others * self.low

    @property
    def ratio(self) -> Fraction:
        """The weight of a favoured cell over that of another."""
        return Fraction(self.high, self.low)

    @property
    def chance(self) -> Fraction:
        """The probability that a favoured cell is drawn."""
        return Fraction(self.favoured * self.high, self.total)

    def draw(self, size: int, bits: Bits) -> tuple[NDArray[np.bool_], Words]:
        """Whether a favoured cell was drawn, and which one of its level, from 0 on."""
        words = bits.words(size)
        last = np.uint64(self.total - 1)
        again = np.flatnonzero(words > last)
        while again.size:
            words[again] = bits.words(again.size)
            again = again[words[again] > last]
        split = np.uint64(self.favoured * self.high)
        hit = words < split
        if self.favoured == 1:
            words -= split
            words //= np.uint64(self.low)
            words[hit] = 0
            return hit, words
        return hit, np.where(hit, words // np.uint64(self.high), (words - split) // np.uint64(self.low))


@lru_cache(maxsize=256)
def _levels(favoured: int, others: int, epsilon: Fraction) -> Levels:
    below, above = growth(epsilon)
    low = int((1 << 64) / (others + favoured * above))
    if low < _LEAST:
        raise InvalidParameterError(
            f"{favoured + others} cells at epsilon = {float(epsilon):g} are too many for 64 random bits each.",
            fix="use fewer categories, or another oracle: oue and cms have no such limit.",
        )
    return Levels(favoured, others, int(low * below), low)
