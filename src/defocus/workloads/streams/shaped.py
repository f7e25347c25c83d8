r"""A banded strategy whose columns all have one length and whose coefficients are searched for.

Row t has the coefficient :math:`C_{t,t-a} = 2^b f_a\, E(t, a)\, w_{t-a}`, rounded, for ages a below the bandwidth:
those of the square root of summation, :math:`f_a`, times a smooth positive factor, times what gives column t−a the
length :math:`2^b`. The factor is interpolated between a few hundred knots, which are found by descent on a
short stream first, then on longer ones. The Toeplitz square root is the case E = w = 1. What is gained: the first rows
lean more on few steps, the last ones forget sooner, and every column is as long as the noise allows.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types of its own

from defocus.workloads.streams.strategies import Floats, Ints, square_root

__all__ = ["LONGEST_SHAPED", "Shaped", "shape_of"]

LONGEST_SHAPED = 2048
"""Streams are shaped up to this many steps: the errors of longer ones would take long to compute."""
_LONGEST_SEARCHED = 1024
_EARLY = (0, 0.008, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.985)
_SECOND = (0, 0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96)
_THIRD = (0, 0.05, 0.1, 0.35, 0.5)
"""Rows of knots in the first three bands, in parts of a band: dense where the factor bends."""
_LATE = (2, 1.5, 1.2, 1, 0.85, 0.7, 0.55, 0.4, 0.25, 0.15, 0.06, 0.02, 0.008, 0)
"""The same before the end."""
_MIDDLE = 4
_AGES = (0, 0.008, 0.02, 0.05, 0.1, 0.18, 0.3, 0.42, 0.55, 0.67, 0.78, 0.87, 0.94, 0.98, 1)
_STAGES = ((256, 150), (512, 50), (_LONGEST_SEARCHED, 45))
"""Lengths of the streams that the knots are fitted to, and the most steps of each descent."""
_FEWEST = 12
"""A shorter stream stands for a longer one if its band has at least so many ages."""


@final
class Shaped:
    r"""Integers, made of knots row by row, by operations that IEEE arithmetic rounds alike everywhere.

    Guarantee:
        Two participations are at least ``separation`` steps apart, and the band is no wider, so no row meets
        both: columns of one unit are orthogonal. For vectors :math:`v_i` no longer than one in k participations,
        :math:`\|\sum_i c_i v_i^T\|_F^2 = \sum_i \|c_i\|^2 \|v_i\|^2`, at most k times the largest squared
        column, which is that of the very integers in use.
    Reference:
        McKenna (2024), Scaling up the banded matrix factorization mechanism for differentially private ML
        (column-normalised banded strategies).
    """

    __slots__ = ("_ages", "_below", "_norms", "_part", "_reach", "_weights", "bandwidth", "bits", "shape", "steps")

    spread = None
    """No two steps share a coefficient."""

    def __init__(self, steps: int, *, bits: int, bandwidth: int, shape: Sequence[Sequence[float]]) -> None:
        self.steps, self.bits, self.bandwidth = steps, bits, min(steps, bandwidth)
        knots = np.array(shape, np.float64)
        rows, ages = _knots(steps, self.bandwidth)
        if knots.shape != (len(rows), len(ages)) or not (np.isfinite(knots) & (knots > 0)).all():
            raise ValueError
        self.shape = tuple(tuple(row) for row in knots.tolist())
        below, part = _between(np.arange(self.bandwidth, dtype=np.float64), ages)
        along = knots[:, below] * (1 - part) + knots[:, below + 1] * part
        self._ages = along * square_root(self.bandwidth)
        self._below, self._part = _between(np.arange(steps, dtype=np.float64), rows)
        energy = np.zeros(steps)
        for t in range(steps):
            first = max(0, t + 1 - self.bandwidth)
            energy[first : t + 1] += self._real(t, first) ** 2
        self._weights = 2.0**bits / np.sqrt(energy)
        self._norms, self._reach = np.zeros(steps, np.int64), 0
        for t in range(steps):
            row = self._integers(t, first := max(0, t + 1 - self.bandwidth))
            self._norms[first : t + 1] += row * row
            self._reach = max(self._reach, int(row.sum()))

    def _real(self, t: int, first: int) -> Floats:
        """Row t from column ``first`` on, before columns get their length."""
        low, part = self._below[t], self._part[t]
        ages = (self._ages[low] * (1 - part) + self._ages[low + 1] * part)[: t - first + 1]
        return np.asarray(ages[::-1])

    def _integers(self, t: int, first: int) -> Ints:
        return np.asarray(np.rint(self._real(t, first) * self._weights[first : t + 1]), dtype=np.int64)

    def row(self, t: int, first: Ints) -> Ints:
        """The integers of row t in the columns ``first``: the newest ones, without a gap."""
        return self._integers(t, int(first[0]))

    def weight(self, step: int) -> int:
        """Rows hold the weights of their columns."""
        del step
        return 1

    @property
    def rows(self) -> int:
        """One row for each step."""
        return self.steps

    @property
    def reach(self) -> int:
        """The largest row; no remembered step counts for more than one."""
        return max(self._reach, 1)

    @property
    def memory(self) -> int:
        """As many steps as the band is wide."""
        return self.bandwidth

    @property
    def capacity(self) -> int:
        """Room for the steps at every row."""
        return self.bandwidth + 1

    def squared_sensitivity(self, participations: int, separation: int) -> int:
        """As many times the longest column as there can be participations, each with rows of its own."""
        if participations > 1 and separation < min(self.bandwidth, self.steps):
            raise ValueError
        return min(participations, -(-self.steps // separation)) * int(self._norms.max())

    def variances(self) -> Iterator[float]:
        """Sums of squares of the rows of A·C⁻¹, each solved from the rows of C⁻¹ in its band."""
        inverse, total = np.zeros((self.steps, self.steps)), np.zeros(self.steps)
        for t in range(self.steps):
            first = max(0, t + 1 - self.bandwidth)
            row = self._integers(t, first).astype(np.float64)
            inverse[t, :t] = -(row[:-1] @ inverse[first:t, :t]) / row[-1]
            inverse[t, t] = 1 / row[-1]
            total += inverse[t]
            yield float(total @ total)


@lru_cache(maxsize=16)
def shape_of(steps: int, bandwidth: int) -> tuple[tuple[float, ...], ...]:
    """Knots with about the least mean variance of all sums, searched for in seconds."""
    from scipy.optimize import minimize  # noqa: PLC0415  # 13 MB that most users of the room never need

    bandwidth = min(steps, bandwidth)
    rows, ages = _knots(steps, bandwidth)
    found = np.zeros((len(rows), len(ages)))
    with threadpool_limits(1):
        for length, tries in _STAGES:
            many = min(length, steps)
            wide = min(many, max(1, round(bandwidth * many / steps)))
            if wide < _FEWEST and many < min(steps, _LONGEST_SEARCHED):
                continue
            fit = _Fit(many, wide)
            ended = minimize(
                fit.value, found.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": tries, "maxcor": 20}
            )
            found = ended.x.reshape(found.shape)
            if many == steps:
                break
    return tuple(tuple(row) for row in np.exp(found).tolist())


@final
class _Fit:
    """The mean variance for knots whose logarithms are given, and its slope."""

    __slots__ = ("_age", "_along_ages", "_along_rows", "_column", "_plain", "_row", "_steps")

    def __init__(self, steps: int, bandwidth: int) -> None:
        rows, ages = _knots(steps, bandwidth)
        self._steps = steps
        self._along_rows = _hats(steps, rows)
        self._along_ages = _hats(bandwidth, ages)
        self._plain = square_root(bandwidth)
        columns = np.arange(steps)[:, None] + np.arange(bandwidth) < steps
        self._column, self._age = np.nonzero(columns)
        self._row = self._column + self._age

    def value(self, logarithms: Floats) -> tuple[float, Any]:
        """With B = A·C⁻¹, a change of C by D changes ‖B‖² by −2⟨BᵀB·C⁻ᵀ, D⟩."""
        n = self._steps
        knots = np.exp(logarithms.clip(-30, 30)).reshape(self._along_rows.shape[1], -1)
        factors = self._along_rows @ knots @ self._along_ages.T
        strategy = np.zeros((n, n))
        strategy[self._row, self._column] = (factors * self._plain)[self._row, self._age]
        norms = np.sqrt((strategy**2).sum(axis=0))
        strategy /= norms
        inverse = solve_triangular(strategy, np.eye(n), lower=True, check_finite=False)
        sums = np.cumsum(inverse, axis=0)
        total = float((sums**2).sum())
        slope = (-2 * (sums.T @ sums) @ inverse.T)[self._row, self._column]
        entries = strategy[self._row, self._column]
        along = np.bincount(self._column, slope * entries, minlength=n)
        slope = (slope - entries * along[self._column]) / norms[self._column] * self._plain[self._age]
        by_age = np.zeros((n, len(self._plain)))
        by_age[self._row, self._age] = slope
        return math.log(total), (self._along_rows.T @ by_age @ self._along_ages * knots).ravel() / total


def _knots(steps: int, bandwidth: int) -> tuple[Floats, Floats]:
    """Rows and ages of the knots: dense where a band begins or ends, as many for every stream."""
    band, last = min(bandwidth, steps / 6), steps - 1.0
    first = [*_EARLY, *(1 + part for part in _SECOND), *(2 + part for part in _THIRD)]
    early = [band * part for part in (*first, 2.8, 3, 3.1, 3.4)]
    late = [last - band * part for part in _LATE]
    gap = (late[0] - early[-1]) / (_MIDDLE + 1)
    rows = [*early, *(early[-1] + gap * i for i in range(1, _MIDDLE + 1)), *late]
    return np.array(sorted(rows)), np.array([age * (bandwidth - 1) for age in _AGES])


def _between(places: Floats, knots: Floats) -> tuple[Ints, Floats]:
    """The knot below each place, and how much of the way to the next it lies."""
    below = np.clip(np.searchsorted(knots, places, side="right") - 1, 0, len(knots) - 2)
    width = knots[below + 1] - knots[below]
    return below, np.clip((places - knots[below]) / np.where(width > 0, width, 1), 0, 1)


def _hats(length: int, knots: Floats) -> Floats:
    """What each knot contributes to each place."""
    below, part = _between(np.arange(length, dtype=np.float64), knots)
    hats, every = np.zeros((length, len(knots))), np.arange(length)
    hats[every, below] = 1 - part
    hats[every, below + 1] += part
    return hats
