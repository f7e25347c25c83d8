"""The noise of one measurement: discrete Laplace or discrete Gaussian on every cell of every group."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from defocus.errors import Number
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.mechanism import add
from defocus.noise import Bits, discrete_gaussian
from defocus.privacy.events import DiscreteGaussian, Event
from defocus.privacy.sensitivity import Sensitivity

__all__ = ["CellNoise", "gaussian", "gaussian_event", "laplace"]

_FINE = 1 << 20
"""Above this many steps, a whole number is as good a scale as any, and easier to read in a ledger."""
_ANY_DIMENSION = 1 << 40
"""More cells than any answer has: how many there are may be found only after the charge."""


@final
@dataclass(frozen=True, slots=True)
class CellNoise:
    """Independent noise on each cell for what has this sensitivity, and what it owes."""

    mechanism: Laplace | Gaussian
    sensitivity: Sensitivity

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


def laplace(sensitivity: Sensitivity, epsilon: Fraction) -> CellNoise:
    """Noise for a share of a pure budget. On a fine grid the scale is rounded up to a whole number of steps."""
    exact = sensitivity.l1 / epsilon
    scale = math.ceil(exact) if exact > _FINE else exact
    return CellNoise(Laplace(scale=scale, sensitivity=sensitivity.l1), sensitivity)


def gaussian(sensitivity: Sensitivity, ratio: Number) -> CellNoise:
    """Noise whose standard deviation is ``ratio`` times how far the cells can move in L2 norm."""
    sigma = float(ratio) * float(sensitivity.l2)
    return CellNoise(Gaussian(sigma=sigma, sensitivity=sensitivity.l2, dimension=_ANY_DIMENSION), sensitivity)


def gaussian_event(sensitivity: Sensitivity, ratio: float) -> DiscreteGaussian:
    """What :func:`gaussian` would owe."""
    return DiscreteGaussian(ratio * float(sensitivity.l2), sensitivity.l2, _ANY_DIMENSION)
