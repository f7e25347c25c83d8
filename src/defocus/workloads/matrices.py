"""Strategies held as a dense integer matrix, for domains of at most 4096 cells."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy.linalg import blas, lapack

from defocus.errors import UnanswerableWorkloadError
from defocus.workloads.queries import Array
from defocus.workloads.record_counts import histogram
from defocus.workloads.strategy import Design, IntArray, Norms
from defocus.workloads.workload import Workload

__all__ = ["MatrixStrategy", "column_norms", "matrix_design", "refined", "whole_multiple"]

_FLAT = 1e-12
"""Directions in which the squared strategy is this much smaller than at its largest count as not measured."""
_HUGE = 2.0**61
"""No estimate of a cell is larger, but of rows that were wrapped around."""
_EXACT = 53
"""Floats hold sums of products of integers exactly up to this many bits."""
_PAIRS = 1 << 27
"""Columns are compared pair by pair in L1 norm if that takes at most this many differences."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class MatrixStrategy:
    r"""An integer matrix over the cells of a domain, with the covariance of the least-squares estimate of the cells.

    Error:
        With independent noise of variance v on each row, the estimate of the cells
        :math:`\hat x = (A^T A)^+ A^T y` has covariance :math:`v (A^T A)^+`, and by Gauss and Markov no unbiased linear
        estimate of an answerable query has a smaller variance.
    """

    sizes: tuple[int, ...]
    matrix: IntArray = field(repr=False)
    covariance: Array = field(repr=False)
    rank: int
    exact: Norms = field(repr=False)

    @staticmethod
    def of(sizes: tuple[int, ...], matrix: IntArray) -> "MatrixStrategy":
        """The strategy with these integer rows."""
        unit = float(np.abs(matrix).max())
        inner = _inner_products(matrix)
        if inner is None:
            scaled = matrix / unit
            inner, norms = scaled.T @ scaled, column_norms(matrix)
        else:
            norms = column_norms(matrix, inner)
            inner /= unit**2
        covariance, rank = _inverse(inner)
        return MatrixStrategy(sizes, matrix, covariance / unit**2, rank, norms)

    @property
    def rows(self) -> int:
        """The rows of the matrix."""
        return int(self.matrix.shape[0])

    @property
    def largest(self) -> int:
        """The largest coefficient."""
        return int(np.abs(self.matrix).max())

    def content(self) -> tuple[Any, ...]:
        """The matrix over its domain."""
        return self.sizes, self.matrix

    def norms(self) -> Norms:
        """Exact column norms."""
        return self.exact

    def measure(self, data: Any) -> IntArray:
        """The matrix times the histogram, modulo 2**64."""
        product: IntArray = self.matrix @ histogram(data, self.sizes)
        return product

    def check(self, workload: Workload) -> None:
        """Refuse a workload that the rows do not determine."""
        if self.rank == self.matrix.shape[1]:
            return
        squared = self.matrix.astype(np.float64)
        seen = self.covariance @ (squared.T @ squared)
        # of each product by itself and of every query alike, however little they weigh
        share = max(1 - float((term.even_gram() * seen.T).sum()) / term.queries for term in workload.terms)
        if share > 1e-9:
            raise UnanswerableWorkloadError(self.rank, self.matrix.shape[1], share)

    def cells(self, noisy: Any) -> Array:
        """The estimate of every cell."""
        across = self.matrix.T.astype(np.float64)
        return refined(lambda rows: self.covariance @ (across @ rows), self.measure, noisy)

    def answers(self, workload: Workload, noisy: Any) -> Array:
        """The workload on the estimated cells."""
        return workload.answer(self.cells(noisy))

    def variances(self, workload: Workload) -> Array:
        """From the covariance of the cells."""
        return workload.variances(self.covariance)

    def greatest(self, workload: Workload) -> float:
        """The largest of these variances."""
        return float(self.variances(workload).max())

    def total(self, workload: Workload) -> float:
        """The trace of gram times covariance."""
        return float((workload.gram() * self.covariance).sum())


def refined(estimate: Callable[[Array], Array], measure: Callable[[IntArray], IntArray], noisy: Any) -> Array:
    """The estimate of the cells from noisy rows, as exact for many records as for few.

    Floats lose digits in proportion to the rows, the more the worse the strategy is conditioned. So the nearest
    whole cells are taken out of the rows, in exact integers, and what is left is estimated again, until that is small.
    """
    rows = np.asarray(noisy)
    part = estimate(rows.astype(np.float64))
    whole: IntArray = np.zeros(len(part), np.int64)
    for _ in range(4):
        whole = whole + np.rint(np.clip(part, -_HUGE, _HUGE)).astype(np.int64)
        part = estimate((rows - measure(whole)).astype(np.float64))
        if float(np.abs(part).max()) < 1:
            break
    return np.asarray(whole + part)


def matrix_design(name: str, sizes: tuple[int, ...], real: Array, norm: float) -> Design:
    """A design that brings ``real``, whose largest column has this ``norm``, to integers.

    A matrix of integers, or of fractions that a small power of two makes integers, is multiplied by a whole number,
    which keeps its row space; any other is scaled by a power of two and rounded.
    """
    exact = whole_multiple(real)
    peak = float(np.abs(real).max()) / norm
    bits = (_EXACT - math.ceil(math.log2(len(real) + 1))) // 2 - max(0, math.frexp(peak)[1])

    def make(precision: int) -> MatrixStrategy:
        if exact is not None:
            times = norm * float(np.abs(exact).max() / np.abs(real).max())
            return MatrixStrategy.of(sizes, exact * max(1, math.floor(2.0**precision / times)))
        return MatrixStrategy.of(sizes, np.rint(real * (2.0**precision / norm)).astype(np.int64))

    return Design(name, make, peak, bits)


def whole_multiple(real: Array) -> IntArray | None:
    """The matrix times the least power of two that makes it whole and below 2**20; None if there is none."""
    for bits in range(17):
        scaled = real * 2.0**bits
        if float(np.abs(scaled).max()) >= 2**20:
            return None
        if (scaled == np.rint(scaled)).all():
            return scaled.astype(np.int64)
    return None


def column_norms(matrix: IntArray, inner: Array | None = None) -> Norms:
    """The norms of the columns and of their differences, without a rounding anywhere.

    In L2 norm differences are compared through the ``inner`` products of all columns, the lower half of them, if these
    are exact integers in floats; else they are bounded by the sum of both norms.
    """
    peak, rows = int(np.abs(matrix).max()), matrix.shape[0]
    whole = matrix if rows * peak * peak < 1 << 62 else matrix.astype(object)
    l1, squares = int(np.abs(whole).sum(axis=0).max()), int((whole * whole).sum(axis=0).max())
    inner = _inner_products(matrix) if inner is None else inner
    apart = 4 * squares
    if inner is not None:
        own = np.diagonal(inner).astype(np.int64)  # sums of these are up to four times as large: no floats
        apart = max(
            int((own[i] + own[: i + 1] - 2 * inner[i, : i + 1].astype(np.int64)).max()) for i in range(len(own))
        )
    return Norms(l1, squares, _apart_l1(whole), apart)


def _apart_l1(whole: Any) -> int:
    r"""The largest L1 distance of two columns, from above if there are many of them.

    For any numbers :math:`m_r`, :math:`\|a_i - a_j\|_1 \le \sum_r |a_{ri} - m_r| + \sum_r |a_{rj} - m_r|`: twice the
    largest column once :math:`m_r` is taken off row r. Here that is the number nearest to zero between the least and
    the largest entry of the row, so that a row that counts everybody alike does not count.
    """
    rows, columns = whole.shape
    if rows * columns * columns <= 2 * _PAIRS:
        pairs = (np.abs(whole[:, i:] - whole[:, i : i + 1]).sum(axis=0).max() for i in range(columns))
        return max(int(distance) for distance in pairs)
    common = np.minimum(np.maximum(whole.min(axis=1), 0), whole.max(axis=1))
    return 2 * int(np.abs(whole - common[:, None]).sum(axis=0).max())


def _inner_products(matrix: IntArray) -> Array | None:
    """The lower half of the inner products of all columns, if floats hold every sum exactly; zero above."""
    peak = int(np.abs(matrix).max())
    if matrix.shape[0] * peak * peak >= 1 << _EXACT:
        return None
    lower: Array = blas.dsyrk(1.0, np.asfortranarray(matrix, np.float64), trans=1, lower=1)
    return lower


def _inverse(gram: Array) -> tuple[Array, int]:
    """The inverse of a matrix of which the lower half is given, or its pseudoinverse, and the rank."""
    factor, failed = lapack.dpotrf(gram, lower=1)
    diagonal = np.diagonal(factor)
    if not failed and diagonal.min() > 1e-5 * diagonal.max():
        half, _ = lapack.dpotri(factor, lower=1)
        return np.tril(half) + np.tril(half, -1).T, len(gram)
    values, vectors = np.linalg.eigh(gram)  # which reads the lower half only
    kept = values > _FLAT * values[-1]
    basis = vectors[:, kept]
    return (basis / values[kept]) @ basis.T, int(kept.sum())
