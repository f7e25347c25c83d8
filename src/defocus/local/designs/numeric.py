"""Designs for numbers: each report stands for an unbiased guess of where between two ends a number lies."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, in_range, probability, whole
from defocus.local.designs.design import Design
from defocus.local.domains import Interval
from defocus.local.layouts import Cells, Totals
from defocus.local.levels import LARGEST_NUMERIC_EPSILON, Levels, checked_epsilon, growth
from defocus.privacy import events

__all__ = ["STEPS", "Duchi", "Guesses", "Hybrid", "LocalLaplace", "Numeric", "Window", "numeric_epsilon"]


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


STEPS = 1 << 20
"""Numbers are put on a grid of so many steps before a bit is drawn for them, up or down at random, without bias."""

_GRAIN = 1 << 42
"""Weights have so many bits: times the 2**20 steps between the ends they stay below 2**63."""


@final
@dataclass(frozen=True, slots=True)
class Duchi(Numeric):
    r"""Report one bit, which is a one with a probability that rises linearly with the number.

    Guarantee:
        :math:`\varepsilon`-LDP: that probability lies between two integers over their sum, whose ratio is at most
        :math:`e^\varepsilon`, and so does that of a zero.

    Error:
        On [-1, 1] the variance is :math:`\left(\frac{e^\varepsilon+1}{e^\varepsilon-1}\right)^2 - x^2`.
    Reference:
        Duchi, Jordan, Wainwright (2018), Minimax optimal procedures for locally private estimation; Ding, Kulkarni,
        Yekhanin (2017), Collecting telemetry data privately, where it is called 1-bit mean.

    >>> round(Duchi(Interval(-1, 1), 1).worst_variance, 2)
    4.68
    """

    domain: Interval
    epsilon: Number
    name: ClassVar[str] = "duchi"

    @property
    def weights(self) -> tuple[int, int]:
        """The weight of a one at the low end, and at the high end; a zero has them the other way round."""
        below, above = growth(self.epsilon)
        low = int(_GRAIN / (1 + above))
        return low, int(low * below)

    @property
    def layout(self) -> Cells:
        """One bit."""
        return Cells(2)

    @property
    def law(self) -> dict[str, int]:
        """The two weights."""
        low, high = self.weights
        return {"low": low, "high": high}

    @property
    def ratio(self) -> Fraction:
        """One weight over the other."""
        low, high = self.weights
        return Fraction(high, low)

    @property
    def guesses(self) -> Guesses:
        """What a zero and a one stand for."""
        low, high = self.weights
        return np.array([-low / (high - low), high / (high - low)])

    @property
    def event(self) -> events.Event:
        """Randomised response of one bit, of which the number decides the input."""
        return events.RandomizedResponse(self.epsilon)

    def share_variance(self, share: Fraction) -> float:
        """P(1 - P) over the square of how much P rises."""
        low, high = self.weights
        one = (low + (high - low) * share) / (low + high)
        return float(one * (1 - one) / Fraction(high - low, high + low) ** 2)


@final
@dataclass(frozen=True, slots=True)
class LocalLaplace(Numeric):
    r"""Add discrete Laplace noise to the number on a grid. The number is clipped; the noisy one is not.

    Guarantee:
        :math:`\varepsilon`-LDP: two numbers are at most ``steps`` apart on the grid, and the noise has scale
        ``steps`` / epsilon. Values beyond 64 scales are cut off afterwards, one in :math:`e^{64}`.

    Error:
        Unbiased. On [-1, 1] the variance is :math:`8/\varepsilon^2`; cutting the noisy value to the interval, as is
        sometimes done, would make 0 read .316 of the interval and 1 read .684 at epsilon = 1.
    Reference:
        Dwork, McSherry, Nissim, Smith (2006); the discrete law as in Ghosh, Roughgarden, Sundararajan (2012).

    >>> round(LocalLaplace(Interval(-1, 1), 1).worst_variance, 2)
    8.0
    """

    chosen: ClassVar = ("steps",)
    domain: Interval
    epsilon: Number
    steps: int = 1 << 10
    name: ClassVar[str] = "laplace"

    def _complete(self) -> None:
        object.__setattr__(self, "steps", whole("steps", self.steps))
        if not 16 <= self.steps <= 1 << 14:
            raise InvalidParameterError(f"{self.steps} steps are no use.", fix="choose 16 to 2**14 steps.")

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on the grid."""
        return self.steps / Fraction(self.epsilon)

    @property
    def layout(self) -> Totals:
        """The noisy number on the grid."""
        return Totals(self.steps + int(64 * self.scale))

    @property
    def law(self) -> dict[str, int]:
        """Numerator and denominator of the scale."""
        return {"numerator": self.scale.numerator, "denominator": self.scale.denominator}

    @property
    def ratio(self) -> Fraction:
        """e**epsilon, which is not rational: a number just above it."""
        return growth(self.epsilon)[1]

    @property
    def rounding(self) -> float:
        """A quarter of a squared step, for a number half-way between two points of the grid."""
        return 0.25 / self.steps**2

    @property
    def event(self) -> events.Event:
        """Discrete Laplace noise on a number that can move by all steps."""
        return events.DiscreteLaplace(self.scale, self.steps)

    def share_variance(self, share: Fraction) -> float:
        """That of the noise, and that of putting the number on the grid."""
        up = share * self.steps % 1
        return _laplace_variance(self.scale) / self.steps**2 + float(up * (1 - up)) / self.steps**2


@lru_cache(maxsize=64)
def _laplace_variance(scale: Fraction) -> float:
    """2a / (1 - a)² with a = exp(-1/scale)."""
    a = math.exp(-1 / float(scale))
    return 2 * a / (1 - a) ** 2


@final
@dataclass(frozen=True, slots=True)
class Window(Numeric):
    r"""Report one of ``cells`` cells: those of a window that moves with the number are likelier than the others.

    The number is put on the grid of the window's possible places, up or down at random. With the window of
    *piecewise* the mean of a report has the least worst variance; with that of *square wave* the distribution of
    the numbers can be recovered best.

    Guarantee:
        :math:`\varepsilon`-LDP: every place of the window favours as many cells, with the weights of
        :class:`~defocus.local.levels.Levels`.

    Error:
        The mean number of the reported cell is an affine function of the place, so it can be inverted without bias. On
        [-1, 1], piecewise has variance :math:`\frac{x^2}{s-1} + \frac{s+3}{3(s-1)^2}` with
        :math:`s = e^{\varepsilon/2}`, up to the width of a cell.
    Reference:
        Wang et al. (2019), Collecting and analyzing multidimensional data with local differential privacy (piecewise);
        Li et al. (2020), Estimating numerical distributions under local differential privacy (square wave).

    >>> round(Window(Interval(-1, 1), 4).worst_variance, 3)
    0.241
    """

    chosen: ClassVar = ("cells",)
    domain: Interval
    epsilon: Number
    square: bool = False
    cells: int = 0

    def _complete(self) -> None:
        if not isinstance(self.square, bool):
            raise InvalidParameterError("square must be True or False.", fix="choose one of the two.")
        cells = whole("cells", self.cells) or (1 << 10 if self.square else 1 << 16)
        if not 8 <= cells <= 1 << 24:
            raise InvalidParameterError(f"A window over {cells} cells is no use.", fix="choose 8 to 2**24 cells.")
        object.__setattr__(self, "cells", cells)

    @property
    def name(self) -> str:
        """What it is called."""
        return "square-wave" if self.square else "piecewise"

    @property
    def window(self) -> int:
        """How many cells the window has."""
        e = float(self.epsilon)
        grown = math.exp(e)
        if self.square:
            half = (e * grown - grown + 1) / (2 * grown * (grown - 1 - e))
            share = 2 * half / (1 + 2 * half)
        else:
            share = 1 / (math.exp(e / 2) + 1)
        return min(max(round(share * self.cells), 1), self.cells - 1)

    @property
    def places(self) -> int:
        """The window can lie at 0, 1, … up to this place."""
        return self.cells - self.window

    @property
    def levels(self) -> Levels:
        """Cells of the window, and the others."""
        return Levels.of(favoured=self.window, others=self.places, epsilon=self.epsilon)

    @property
    def layout(self) -> Cells:
        """The number of a cell."""
        return Cells(self.cells)

    @property
    def law(self) -> dict[str, int]:
        """The two weights, and the window."""
        return {"high": self.levels.high, "low": self.levels.low, "window": self.window}

    @property
    def ratio(self) -> Fraction:
        """One weight over the other."""
        return self.levels.ratio

    @property
    def _line(self) -> tuple[Fraction, Fraction]:
        """The mean cell is start + rise * share."""
        levels, m, k = self.levels, self.window, self.cells
        extra = levels.high - levels.low
        start = Fraction(extra * (m * (m - 1) // 2) + levels.low * (k * (k - 1) // 2), levels.total)
        return start, Fraction(extra * m * self.places, levels.total)

    @property
    def guesses(self) -> Guesses:
        """What each cell stands for."""
        start, rise = self._line
        return np.asarray((np.arange(self.cells) - float(start)) / float(rise), np.float64)

    def share_variance(self, share: Fraction) -> float:
        """The second moment of the cell less the square of the first, at both places around the share, mixed."""
        place = share * self.places
        low = int(place)
        up = place - low
        start, rise = self._line
        moment = (1 - up) * self._second_moment(low) + up * self._second_moment(min(low + 1, self.places))
        return float((moment - (start + rise * share) ** 2) / rise**2)

    def _second_moment(self, place: int) -> Fraction:
        levels = self.levels
        inside = _squares(place + self.window) - _squares(place)
        return Fraction((levels.high - levels.low) * inside + levels.low * _squares(self.cells), levels.total)


def _squares(n: int) -> int:
    """0² + 1² + … + (n - 1)²."""
    return (n - 1) * n * (2 * n - 1) // 6


@final
@dataclass(frozen=True, slots=True)
class Hybrid(Numeric):
    r"""Toss a coin between *piecewise* and *duchi*: their variances rise and fall with the number and even out.

    Guarantee:
        :math:`\varepsilon`-LDP: the coin is independent of the number, is reported, and both of its sides are.

    Error:
        The least worst variance of all designs here. Piecewise is taken with probability
        :math:`1 - e^{-\varepsilon/2}` for :math:`\varepsilon > 0.61`, and never below.
    Reference:
        Wang et al. (2019), Collecting and analyzing multidimensional data with local differential privacy, Section 3.3.

    >>> round(Hybrid(Interval(-1, 1), 1).worst_variance, 2), round(Hybrid(Interval(-1, 1), 4).worst_variance, 3)
    (4.29, 0.219)
    """

    chosen: ClassVar = ("cells",)
    domain: Interval
    epsilon: Number
    cells: int = 1 << 15
    name: ClassVar[str] = "hybrid"

    def _complete(self) -> None:
        object.__setattr__(self, "cells", self.piecewise.cells)

    @property
    def piecewise(self) -> Window:
        """One side of the coin."""
        return Window(self.domain, self.epsilon, cells=self.cells)

    @property
    def duchi(self) -> Duchi:
        """The other."""
        return Duchi(self.domain, self.epsilon)

    @property
    def coin(self) -> int:
        """Piecewise is taken with this many of 2**32 chances."""
        return round((1 - math.exp(-float(self.epsilon) / 2)) * 2**32) if self.epsilon > 0.61 else 0

    @property
    def layout(self) -> Cells:
        """The cells of piecewise, then the two of duchi."""
        return Cells(self.cells + 2)

    @property
    def law(self) -> dict[str, int]:
        """The integers of both sides, and the coin."""
        sides = {"piecewise": self.piecewise.law, "duchi": self.duchi.law}
        return {"coin": self.coin} | {f"{side}.{key}": n for side, law in sides.items() for key, n in law.items()}

    @property
    def ratio(self) -> Fraction:
        """The larger of both sides'."""
        return max(self.piecewise.ratio, self.duchi.ratio) if self.coin else self.duchi.ratio

    @property
    def guesses(self) -> Guesses:
        """What each cell stands for."""
        return np.concatenate([self.piecewise.guesses, self.duchi.guesses])

    def share_variance(self, share: Fraction) -> float:
        """That of both sides, mixed, since both are unbiased."""
        share_of = self.coin / 2**32
        return share_of * self.piecewise.share_variance(share) + (1 - share_of) * self.duchi.share_variance(share)
