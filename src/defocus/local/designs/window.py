"""A window over cells that moves with a number: the piecewise mechanism and the square wave."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.numeric import Guesses, Numeric
from defocus.local.domains import Interval
from defocus.local.layouts import Cells
from defocus.local.levels import Levels

__all__ = ["Window"]


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
        _ = self.levels  # refused here rather than at the first report

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
    def options(self) -> dict[str, Any]:
        """How many cells there are."""
        return {"cells": self.cells}

    @property
    def ratio(self) -> Fraction:
        """One weight over the other."""
        return Fraction(self.levels.high, self.levels.low)

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
