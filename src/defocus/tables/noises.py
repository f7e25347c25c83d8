"""The noise of one measurement: discrete Laplace or discrete Gaussian on every cell of every group."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from defocus.errors import Number
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.values import add
from defocus.noise import Bits, discrete_gaussian
from defocus.privacy.events import DiscreteGaussian, Event

__all__ = ["CellNoise", "Reach", "gaussian", "gaussian_event", "laplace"]

_FINE = 1 << 20
"""Above this many steps, a whole number is as good a scale as any, and easier to read in a ledger."""
_ANY_DIMENSION = 1 << 40
"""More cells than any answer has: how many there are may be found only after the charge."""


@final
@dataclass(frozen=True, slots=True)
class Reach:
    """How far one unit can move the cells of all groups together, in steps of the grid: exact upper bounds."""

    l1: int
    l2: Fraction

    def replaced(self) -> "Reach":
        r"""The same where a unit is replaced by another instead of added or removed.

        The cells then move by b - a with a, b >= 0 and each as long as before: at most twice as far in L1 norm, and
        in L2 norm :math:`|b-a|^2 \le |a|^2 + |b|^2`, so at most √2 times as far.
        """
        # The square root of two, rounded up.
        return Reach(2 * self.l1, self.l2 * Fraction(1_414_213_562_373_096, 10**15))


@final
@dataclass(frozen=True, slots=True)
class CellNoise:
    """Independent noise on each cell for what has this reach, and what it owes."""

    mechanism: Laplace | Gaussian
    reach: Reach

    @property
    def event(self) -> Event:
        """What one release of all cells owes."""
        return self.mechanism.event

    @property
    def variance(self) -> float:
        """The variance of one cell, in squared steps of the grid."""
        return self.mechanism.variance

    @property
    def width(self) -> float:
        """How many standard errors hold 95 % of any linear combination of cells.

        For Laplace noise ln(20)/√2 = 2.118, which is right for one cell; several are closer to a normal law: 1.960.
        """
        return 2.1183 if isinstance(self.mechanism, Laplace) else 1.96

    @property
    def words(self) -> str:
        """The kind of noise."""
        return "discrete Laplace noise" if isinstance(self.mechanism, Laplace) else "discrete Gaussian noise"

    def add(self, cells: npt.NDArray[np.int64], bits: Bits) -> npt.NDArray[np.int64]:
        """The cells with fresh noise."""
        flat = np.ascontiguousarray(cells, dtype=np.int64).ravel()
        if not flat.size:
            return cells
        if isinstance(self.mechanism, Laplace):
            return np.asarray(self.mechanism.sample(flat, bits)).reshape(cells.shape)
        return add(flat, discrete_gaussian(self.mechanism.sigma, len(flat), bits)).reshape(cells.shape)


def laplace(reach: Reach, epsilon: Fraction) -> CellNoise:
    """Noise for a share of a pure budget. On a fine grid the scale is rounded up to a whole number of steps."""
    scale = reach.l1 / epsilon
    return CellNoise(Laplace(scale=math.ceil(scale) if scale > _FINE else scale, sensitivity=reach.l1), reach)


def gaussian(reach: Reach, ratio: Number) -> CellNoise:
    """Noise whose standard deviation is ``ratio`` times how far the cells can move in L2 norm."""
    sigma = float(ratio) * float(reach.l2)
    return CellNoise(Gaussian(sigma=sigma, sensitivity=reach.l2, dimension=_ANY_DIMENSION), reach)


def gaussian_event(reach: Reach, ratio: float) -> DiscreteGaussian:
    """What :func:`gaussian` would owe."""
    return DiscreteGaussian(ratio * float(reach.l2), reach.l2, _ANY_DIMENSION)
