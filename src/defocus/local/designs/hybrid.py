"""The hybrid mechanism: a coin between a window and a bit."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.errors import Number
from defocus.local.designs.numeric import Duchi, Guesses, Numeric, Window
from defocus.local.domains import Interval
from defocus.local.layouts import Cells

__all__ = ["Hybrid"]


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

    domain: Interval
    epsilon: Number
    cells: int = 1 << 15

    def _complete(self) -> None:
        object.__setattr__(self, "cells", self.piecewise.cells)

    @property
    def name(self) -> str:
        """What it is called."""
        return "hybrid"

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
    def options(self) -> dict[str, Any]:
        """How many cells piecewise has."""
        return {"cells": self.cells}

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
