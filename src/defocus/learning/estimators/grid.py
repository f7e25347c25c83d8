r"""Rows on an integer grid, inside a ball: what makes every sum of them exact and its sensitivity certain.

A row becomes a vector of whole numbers whose L2 norm is at most :math:`2^a`, whatever it held: NaN is zero, infinities
are cut, a row outside of the ball is scaled into it. Which vector it becomes depends on that row alone. For that, only
operations that IEEE 754 rounds in one way are used on it, one entry at a time, beside a maximum and sums of whole
numbers below :math:`2^{53}`, which come out the same in any order. A product of such rows with whole numbers is
exact in double precision for the same reason, so the matrix products of BLAS compute it.

Noisy second moments of rows on an integer grid.

The sum of :math:`x x^T` is symmetric, so only entries on and above its diagonal are released, and an error off the
diagonal counts twice. Scaled by :math:`\sqrt2`, entries off the diagonal make a vector of norm exactly
:math:`\|x\|^2`, and deserve noise smaller by :math:`\sqrt2`. On integers, 7/5 stands for :math:`\sqrt2`: with
:math:`v = (5x_i^2,\ 7x_ix_j)_{i<j}`,

.. math:: \|v\|^2 = 25\sum_i x_i^4 + 49\sum_{i<j} x_i^2x_j^2
    \le 25\Big(\sum_i x_i^4 + 2\sum_{i<j} x_i^2x_j^2\Big) = 25\|x\|^4 .

In L1 norm, for d entries, :math:`\|x\|_1^2 \le d\|x\|^2` makes it

.. math:: \|v\|_1 = 5\|x\|^2 + \tfrac72\big(\|x\|_1^2 - \|x\|^2\big)
    \le \big(5 + \tfrac72(d - 1)\big)\|x\|^2 .

Persons with several rows (:class:`Persons`). What a row adds to a sum is a vector v of whole numbers with :math:`\|v\|
\le \Delta`. A person with rows :math:`v_1, \dots, v_k` adds :math:`u = \mathrm{trunc}(\frac1k \sum_i v_i)`, each entry
rounded towards zero. The ball of radius :math:`\Delta` is convex, so the average is in it; rounding an entry towards
zero makes it no larger in size, so :math:`\|u\| \le \|\frac1k \sum_i v_i\| \le \Delta`, in L1 norm as in L2 norm. What
a person adds depends on that person's rows alone, so one who comes or goes moves the sum by at most :math:`\Delta`,
whatever k is: as much as one row does without persons. Entries that are multiplied after rounding, by 5 and 7 above,
keep this, since the average is multiplied as well. With one row a person, u = v.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from defocus.errors import in_range
from defocus.learning.estimators.fit_budget import Noise, Sum, deviation
from defocus.mechanisms.mechanism import IntVector
from defocus.noise import Bits

__all__ = [
    "Ball",
    "Floats",
    "Held",
    "Matrix",
    "Persons",
    "Rows",
    "moment_error",
    "moment_noise",
    "moment_sum",
    "moments",
    "noisy_moments",
    "squares",
    "summed",
    "tallied",
]


Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = Any
"""A numpy array, or a scipy matrix of compressed sparse rows."""

_HUGE = 1e150
"""Infinities become this: its square is finite, and every ball is smaller."""
_JUST_BELOW = 1 - 2.0**-40
_WORTH, _MOSTLY = 1 << 16, 0.2
"""From so many entries on, with so few of them not zero, sparse rows are quicker."""
_CHUNK = 1 << 18
"""How many rows are multiplied at a time; sums over them stay below 2**53 by far."""
_AT_ONCE = 1 << 20
"""How many numbers of persons are held at a time."""


@final
@dataclass(frozen=True, slots=True)
class Ball:
    """How rows become integers: divided by ``norm``, with a ``constant`` beside them, 2**bits for the whole radius.

    With ``l1_norm``, rows whose L1 norm is larger are scaled down to it.
    """

    norm: float
    bits: int
    constant: float = 0.0
    l1_norm: float = math.inf

    @property
    def radius(self) -> int:
        """What the features of a row may measure, in steps."""
        return math.floor((1 << self.bits) / math.sqrt(1 + self.constant**2) * _JUST_BELOW)

    @property
    def intercept(self) -> int:
        """The entry beside them, in steps: radius² + intercept² is at most 4**bits."""
        return math.isqrt((1 << 2 * self.bits) - self.radius * self.radius) if self.constant else 0

    @property
    def _l1_radius(self) -> float:
        """What the features of a row may measure in L1 norm, in steps."""
        return math.inf if math.isinf(self.l1_norm) else math.floor(self.l1_norm / self.norm * self.radius)

    def length(self, width: int) -> float:
        """What a whole row of so many entries measures in L1 norm at most, where 2**bits is one.

        >>> Ball(1.0, 10).length(9), round(Ball(1.0, 10, l1_norm=2.0).length(9), 2)
        (3.0, 2.0)
        """
        return min(math.sqrt(width), (self._l1_radius + self.intercept) / (1 << self.bits))

    def __post_init__(self) -> None:
        in_range("norm", self.norm, 1 / _HUGE, _HUGE)
        if not math.isinf(self.l1_norm):
            in_range("l1_norm", self.l1_norm, self.norm / 2**10, _HUGE)

    def hold(self, X: Matrix) -> Matrix:
        """The rows as whole numbers in double precision, each of norm at most 2**bits."""
        rows = _copied(X)
        sparse = sp.issparse(rows)
        if sparse:
            rows.sum_duplicates()
        _entries(rows, np.nan_to_num(_data(rows), nan=0.0, posinf=_HUGE, neginf=-_HUGE).clip(-_HUGE, _HUGE))
        largest = _column(abs(rows).max(axis=1))
        fits = np.where(largest > self.norm, self.norm / np.maximum(largest, self.norm), 1.0)
        _scale(rows, fits)
        _entries(rows, np.rint(_data(rows) * (self.radius / self.norm)))
        size = squares(rows)
        shrink = np.where(size > self.radius**2, self.radius * _JUST_BELOW / np.sqrt(np.maximum(size, 1.0)), 1.0)
        _scale(rows, shrink)
        _entries(rows, np.trunc(_data(rows)))
        if not math.isinf(self.l1_norm):
            size, most = _column(abs(rows).sum(axis=1)), self._l1_radius  # of whole numbers
            _scale(rows, np.where(size > most, most * _JUST_BELOW / np.maximum(size, 1.0), 1.0))
            _entries(rows, np.trunc(_data(rows)))
            _scale(rows, np.where(_column(abs(rows).sum(axis=1)) <= most, 1.0, 0.0))
        # What follows changes nothing, unless the platform rounds wrongly. A norm that is NaN does not fit.
        _scale(rows, np.where(squares(rows) <= self.radius**2, 1.0, 0.0))
        _entries(rows, np.nan_to_num(_data(rows), nan=0.0, posinf=0.0, neginf=0.0))
        if not self.constant:
            return rows
        beside = np.full((rows.shape[0], 1), float(self.intercept))
        return sp.hstack([rows, sp.csr_matrix(beside)], format="csr") if sparse else np.hstack([rows, beside])


def squares(rows: Matrix) -> Floats:
    """The squared norm of each row of whole numbers, exactly."""
    if sp.issparse(rows):
        return _column(rows.multiply(rows).sum(axis=1))
    norms: Floats = np.einsum("ij,ij->i", rows, rows)
    return norms


@final
class Persons:
    """Whose each row is: a person adds the average of what the rows of that person add, and a row of nobody nothing.

    Guarantee:
        One person moves a sum by at most what one row may, in L2 norm, however many rows each has: the proof is at the
        top of this module.
    Assumes:
        No person has :math:`2^{27}` rows or more, so that sums of one person's rows stay below :math:`2^{53}`.
    """

    __slots__ = ("_members", "_rows", "_starts")

    def __init__(self, owner: NDArray[np.int64]) -> None:
        order = np.argsort(owner, kind="stable")
        self._rows = len(owner)
        self._members = order[np.count_nonzero(owner < 0) :]
        self._starts = np.searchsorted(owner[self._members], np.arange(int(owner.max(initial=-1)) + 2))

    @property
    def shares(self) -> Floats:
        """What each row counts for in an average of its person's, so that a person counts once; of nobody, nothing.

        >>> Persons(np.array([0, 1, 0, -1])).shares.tolist()
        [0.5, 1.0, 0.5, 0.0]
        """
        shares, sizes = np.zeros(self._rows), np.diff(self._starts)
        shares[self._members] = np.repeat(1 / np.maximum(sizes, 1), sizes)
        return shares

    def averages(self, rows: Matrix, weights: Floats) -> Iterator[Matrix]:
        """The averages of each person's rows, each times its whole weight, for some persons after the other."""
        at_once = max(1, _AT_ONCE // rows.shape[1])
        for first in range(0, len(self._starts) - 1, at_once):
            starts = self._starts[first : first + at_once + 1]
            members = self._members[starts[0] : starts[-1]]
            shape = (len(starts) - 1, self._rows)
            summed = sp.csr_matrix((weights[members], members, starts - starts[0]), shape) @ rows
            entries = _data(summed).astype(np.int64)
            sizes = np.maximum(np.diff(starts), 1)
            each = np.repeat(sizes, np.diff(summed.indptr)) if sp.issparse(summed) else sizes[:, np.newaxis]
            _entries(summed, np.sign(entries) * (abs(entries) // each))
            yield summed


def tallied(rows: Matrix, weights: Floats, persons: Persons | None = None) -> IntVector:
    """The sum of all rows, each times its whole ``weights``, exactly: a matrix with one column for each of them.

    With ``persons``, the sum over persons of the average of their rows, each entry rounded towards zero. All sums of
    all estimators are made here.
    """
    total = np.zeros((rows.shape[1], weights.shape[1]), np.int64)
    if persons is not None:
        for column in range(weights.shape[1]):
            for part in persons.averages(rows, weights[:, column]):
                total[:, column] += np.asarray(part.sum(axis=0)).ravel().astype(np.int64)
        return total
    for start in range(0, rows.shape[0], _CHUNK):
        part = rows[start : start + _CHUNK].T @ weights[start : start + _CHUNK]
        total += np.asarray(part).astype(np.int64)
    return total


def summed(rows: Matrix, persons: Persons | None) -> IntVector:
    """The sum of all rows of whole numbers, as :func:`tallied`.

    >>> summed(np.array([[3.0, -1.0], [4.0, 0.0], [5.0, 5.0]]), Persons(np.array([0, 0, -1]))).tolist()
    [3, 0]
    """
    return tallied(rows, np.ones((rows.shape[0], 1)), persons)[:, 0]


class Rows(Protocol):
    """Rows of whole numbers, however they are kept."""

    @property
    def persons(self) -> Persons | None:
        """Whose each row is; None where each is of its own."""
        ...

    @property
    def width(self) -> int:
        """How many entries a row has."""
        ...

    def squares(self) -> Floats:
        """The squared norm of each row."""
        ...

    def times(self, w: Floats) -> Floats:
        """Each row times the whole numbers ``w``, exactly."""
        ...

    def tallied(self, weights: Floats) -> IntVector:
        """The sum of all rows, each times its whole ``weights``, exactly."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Rows kept as a matrix."""

    matrix: Matrix
    persons: Persons | None = None

    @property
    def width(self) -> int:
        """See the protocol."""
        return int(self.matrix.shape[1])

    def squares(self) -> Floats:
        """See the protocol."""
        return squares(self.matrix)

    def times(self, w: Floats) -> Floats:
        """See the protocol."""
        return np.asarray(self.matrix @ w)

    def tallied(self, weights: Floats) -> IntVector:
        """See the protocol."""
        return tallied(self.matrix, weights, self.persons)

    def weighted(self, weights: Floats, bits: int) -> Matrix:
        """Each row times its whole weight of at most 2**bits, over 2**bits, rounded towards zero: no row is longer."""
        return _shortened(self.matrix.copy(), weights, bits)

    def units(self, weights: Floats, bits: int) -> Matrix:
        """The same for each unit: of a person, the average of the weighted rows, with each entry rounded twice."""
        if self.persons is None:
            return self.weighted(weights, bits)
        parts = list(self.persons.averages(self.matrix, weights))
        if not parts:
            return self.matrix[:0]
        whole = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)
        return _shortened(whole, np.ones(whole.shape[0]), bits)


def _shortened(rows: Matrix, weights: Floats, bits: int) -> Matrix:
    """Multiplied in place by whole weights, divided by 2**bits, which is exact, and rounded towards zero."""
    _scale(rows, weights / 2**bits)
    _entries(rows, np.trunc(_data(rows)))
    return rows


def _copied(X: Matrix) -> Matrix:
    """The rows, to be written to; sparse where most entries are zero, which changes the time and nothing else."""
    if sp.issparse(X):
        return X.tocsr().astype(np.float64, copy=True)
    dense = np.array(X, dtype=np.float64)
    if dense.size >= _WORTH and np.count_nonzero(dense) < _MOSTLY * dense.size:
        return sp.csr_matrix(dense)
    return dense


def _data(rows: Matrix) -> Floats:
    values: Floats = rows.data if sp.issparse(rows) else rows
    return values


def _entries(rows: Matrix, values: Floats) -> None:
    """Put ``values`` in place of the entries."""
    if sp.issparse(rows):
        rows.data = values
    else:
        rows[...] = values


def _scale(rows: Matrix, factors: Floats) -> None:
    """Multiply each row by its factor, in place; where that is one, nothing changes."""
    if sp.issparse(rows):
        rows.data = rows.data * np.repeat(factors, np.diff(rows.indptr))
    else:
        rows *= factors[:, np.newaxis]


def _column(values: Any) -> Floats:
    dense = values.toarray() if sp.issparse(values) else values
    return np.asarray(dense, dtype=np.float64).ravel()


_ON, _OFF = 5, 7


def moment_sum(width: int, bits: int, share: float) -> Sum:
    """The release of second moments of rows of norm at most 2**bits."""
    l1_bound = _ON * 4**bits + _OFF * (width - 1) * 4**bits // 2
    return Sum(_ON * 4**bits, width * (width + 1) // 2, share, l1_bound=l1_bound)


def moments(rows: Matrix, persons: Persons | None = None) -> IntVector:
    """The weighted entries on and above the diagonal of the sum of x xᵀ, exactly."""
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    upper = np.triu_indices(rows.shape[1])
    return tallied(rows, dense, persons)[upper] * np.where(upper[0] == upper[1], _ON, _OFF)


def noisy_moments(rows: Matrix, noise: Noise, bits: Bits, persons: Persons | None = None) -> NDArray[np.float64]:
    """The whole symmetric matrix, with noise, in squared steps."""
    width = rows.shape[1]
    upper = np.triu_indices(width)
    noisy = np.asarray(noise.sample(moments(rows, persons), bits)) / np.where(upper[0] == upper[1], _ON, _OFF)
    matrix = np.zeros((width, width))
    matrix[upper] = noisy
    return matrix + np.triu(matrix, 1).T


def moment_noise(noise: Noise) -> tuple[float, float]:
    """The standard errors of an entry on the diagonal and of one off it."""
    return deviation(noise) / _ON, deviation(noise) / _OFF


def moment_error(noise: Noise, width: int) -> float:
    r"""How far the noise moves eigenvalues: about :math:`2\sqrt{d}` times the error of one entry."""
    return 2 * deviation(noise) / _OFF * math.sqrt(width)
