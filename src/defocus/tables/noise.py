"""The noise of one measurement: how far one person moves it, noise on every cell of every group, and noisy cells."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, final

import numpy as np
import numpy.typing as npt

from defocus.answers import AnswerColumn, Tails
from defocus.answers.noise_sources import Noise
from defocus.errors import Number
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.mechanism import add
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.noise import Bits, discrete_gaussian
from defocus.privacy.events import NOTHING, DiscreteGaussian, Event
from defocus.privacy.sensitivity import Sensitivity
from defocus.tables.contribution import Bound, root_above
from defocus.tables.power import Law

__all__ = ["CellNoise", "Noisy", "PersonWeight", "Together", "gaussian", "gaussian_event", "laplace"]

_FINE = 1 << 20
"""Above this many steps, a whole number is as good a scale as any, and easier to read in a ledger."""
_ANY_DIMENSION = 1 << 40
"""More cells than any answer has: how many there are may be found only after the charge."""


@final
@dataclass(frozen=True, slots=True)
class PersonWeight:
    """What one person weighs, and how far that moves each kind of measurement, in steps of the grid."""

    bound: Bound | None
    person: int
    people_grid: int
    people_in: int
    replace: bool
    """Whether a row or person is replaced by another; else as many ``changes`` come or go."""
    changes: int = 1
    number_is_public: bool = False
    """Whether all rows are asked about, in one group, and how many there are is public."""
    sites: int = 1
    """How many owners of tables that are added up may know one person."""

    @property
    def find(self) -> bool:
        """Whether the number of rows is yet to be found."""
        return self.bound is not None and self.bound.find

    @property
    def grid(self) -> int:
        """What a full row weighs."""
        return self.person if self.bound is None else self.person // self.bound.total

    @property
    def rows(self) -> Sensitivity:
        """How far weights of rows move."""
        if self.bound is None or self.find:
            return self.moved(Sensitivity(self.person))
        return self.moved(Sensitivity(self.person, (self.grid * self.bound.l2()) ** 2))

    @property
    def people(self) -> Sensitivity:
        """How far weights of people move."""
        l2 = self.people_grid * root_above(self.people_in)
        return self.moved(Sensitivity(self.people_grid * self.people_in, l2**2))

    @property
    def heaviest(self) -> int:
        """What all that comes or goes weighs; of a row or person that is replaced, what either weighs."""
        return self.person * self.changes

    def cells(self, number: int) -> Sensitivity | None:
        """How far what is measured of the cells of one division of rows moves; None if it does not.

        Where the number of rows is public, so is the sum of all cells: see :func:`_measured`. A row moves one of two
        cells by at most its weight, and several, or a difference of two, as any it replaces.
        """
        if not self.number_is_public:
            return self.rows
        return None if number == 1 else Sensitivity(self.person) if number == 2 else self.rows

    def moved(self, sensitivity: Sensitivity) -> Sensitivity:
        """The same under the neighbours of the ledger; a person who moves several sums moves their sum by all of it."""
        return (sensitivity.replaced() if self.replace else sensitivity.times(self.changes)).times(self.sites)


class Together(Protocol):
    """How several owners answer one question, each from rows of its own."""

    @property
    def key(self) -> int:
        """128 bits by which all of them choose rows, where people have too many; they protect nobody."""

    @property
    def overlap(self) -> int:
        """How many of them may know one person."""

    def share(self, mechanism: Laplace | Gaussian) -> NoiseShare:
        """The noise of a sum over all of them."""


@final
@dataclass(frozen=True, slots=True)
class CellNoise:
    """Independent noise on each cell for what has this sensitivity, and what it owes; none where nothing moves."""

    mechanism: Laplace | Gaussian | NoiseShare | None
    sensitivity: Sensitivity | None
    total: bool = False
    """Whether the sum of all cells is public."""

    @property
    def event(self) -> Event:
        """What one release of all cells owes."""
        return NOTHING if self.mechanism is None else self.mechanism.event

    @property
    def variance(self) -> float:
        """The variance of one cell, in squared steps of the grid."""
        return 0.0 if self.mechanism is None else self.mechanism.variance

    @property
    def law_of(self) -> Laplace | Gaussian | None:
        """The noise of each cell, whoever drew it."""
        return self.mechanism.mechanism if isinstance(self.mechanism, NoiseShare) else self.mechanism

    @property
    def is_laplace(self) -> bool:
        """Whether it is Laplace noise, for a pure budget."""
        return isinstance(self.law_of, Laplace)

    @property
    def width(self) -> float:
        """How many standard errors hold 95 % of any linear combination of cells.

        For Laplace noise ln(20)/√2 = 2.118, which is right for one cell; several are closer to a normal law: 1.960.
        """
        return 2.1183 if self.is_laplace else 1.96

    @property
    def words(self) -> str:
        """The kind of noise."""
        if self.mechanism is None:
            return "no noise, since the number of rows is public,"
        shared = f" in {self.mechanism.parties} shares" if isinstance(self.mechanism, NoiseShare) else ""
        return f"discrete {'Laplace' if self.is_laplace else 'Gaussian'} noise{shared}"

    def law(self, coefficients: npt.NDArray[np.float64], grid: int) -> Law:
        """The law of the noise in the cells multiplied with these coefficients, in rows."""
        felt = self.around(np.zeros((0, len(coefficients))), grid).felt(coefficients)
        if isinstance(self.law_of, Laplace):
            return Law(0.0, tuple(abs(float(x)) * float(self.law_of.scale) / grid for x in felt if x))
        return Law(float(np.sqrt(self.variance * np.square(felt).sum())) / grid)

    def noisy(self, cells: npt.NDArray[np.int64], bits: Bits, grid: int) -> "Noisy":
        """The cells with fresh noise, in rows."""
        if not self.total:
            return self.around(self.add(cells, bits) / grid, grid)
        measured, solution, shares = self._measured(cells.shape[1])
        noised = self.add(cells @ measured.T, bits)
        return self.around((noised @ solution.T + cells.sum(axis=1, keepdims=True) * shares) / grid, grid)

    def around(self, cells: npt.NDArray[np.float64], grid: int) -> "Noisy":
        """Cells that have, or would have, this noise."""
        solution = self._measured(cells.shape[1])[1] if self.total else None
        return Noisy(cells, self.variance / grid**2, self.width, self.words, solution)

    def _measured(self, cells: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        r"""What is measured of cells c whose sum n is public: B, and A and r with c = A(Bc) + nr.

        A row that is replaced moves its weight w between cells, so that they move by Δ with
        :math:`\sum_i\Delta_i = 0` and :math:`\|\Delta\|_1 \le 2w`. *Two cells*: the second is measured, which moves by
        at most w. *Three under Laplace noise*, for a mean with missing values: the difference of the first two and the
        third, which move by
        :math:`|\Delta_1 - \Delta_0| + |\Delta_2| \le \|\Delta\|_1`. The mean of values in [0, 1] is
        :math:`1/2 + (c_1 - c_0) / 2(n - c_2)`, so that it errs as it would without missing values where it is 1/2, and
        never more than √2 times that. *Else*: all cells, and least squares spread what the noise adds to their sum.
        """
        if cells == 2:
            measured, solution, shares = [[0, 1]], [[-1.0], [1.0]], [1.0, 0.0]
        elif cells == 3 and self.is_laplace:
            measured, solution, shares = (
                [[-1, 1, 0], [0, 0, 1]],
                [[-0.5, -0.5], [0.5, -0.5], [0.0, 1.0]],
                [0.5, 0.5, 0.0],
            )
        else:
            identity = np.eye(cells)
            return np.eye(cells, dtype=np.int64), identity - 1 / cells, np.full(cells, 1 / cells)
        return np.array(measured), np.array(solution), np.array(shares)

    def shared(self, together: "Together") -> "CellNoise":
        """The same noise in shares, each drawn by another owner of rows."""
        return replace(self, mechanism=None if self.law_of is None else together.share(self.law_of))

    def add(self, cells: npt.NDArray[np.int64], bits: Bits) -> npt.NDArray[np.int64]:
        """The cells with fresh noise."""
        if self.mechanism is None:
            return cells
        flat = np.ascontiguousarray(cells, dtype=np.int64).ravel()
        if not flat.size:
            return cells
        if isinstance(self.mechanism, Laplace | NoiseShare):
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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """The noisy cells of one measurement, in units of rows, one line for each group."""

    cells: npt.NDArray[np.float64]
    variance: float | npt.NDArray[np.float64]
    """Of one cell, in squared rows; or of each group's, where they differ."""
    width: float
    """How many standard errors make a 95 % interval."""
    words: str
    solution: npt.NDArray[np.float64] | None = None
    """What the noise is multiplied with in the cells, where their sum is exact; else each cell has noise of its own."""
    source: str = ""
    """Which measurement of the release it is, if the noise of each group is independent of that of the others."""

    def felt(self, coefficients: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What each noise is multiplied with in a combination of cells; the last axis counts cells."""
        return coefficients if self.solution is None else coefficients @ self.solution

    def noise(self, coefficients: npt.NDArray[np.float64], *, linear: bool) -> Noise | None:
        """The noise of combinations of cells: a line of coefficients for each group, or one for all."""
        if not self.source:
            return None
        factors = np.atleast_2d(self.felt(coefficients)) * math.sqrt(self.variance)
        return Noise({self.source: factors} if factors.any() else {}, self.width, linear=linear)

    def count(self, name: str, coefficients: npt.NDArray[np.float64], how: str) -> AnswerColumn:
        """A number that is the cells multiplied with these coefficients."""
        values = self.cells @ coefficients
        errors = np.full(len(values), np.sqrt(np.square(self.felt(coefficients)).sum() * self.variance))
        half = self.width * errors
        low, high = values - half, values + half
        noise = self.noise(coefficients, linear=True)
        return AnswerColumn(
            name, values, errors, low, high, integral=True, how=how, tails=Tails.LOG_CONCAVE, noise=noise
        )
