r"""Strategies for marginals: residuals with Gaussian noise, whole marginals with Laplace noise.

*Gaussian.* Measuring :math:`c_A \otimes_{i \in A} (n_i I - J)\, m_A`, integers, with independent noise of variance
v on every cell, and projecting the noise as well, estimates :math:`r_A` with
:math:`s_A^2 = v / (c_A \prod_{i \in A} n_i)^2`. Every column of this block has the squared norm
:math:`c_A^2 \prod_{i \in A} n_i (n_i - 1)`. Minimising :math:`\sum_A v_A s_A^2` at
:math:`\sum_A p_A / s_A^2 = 1` gives :math:`s_A^2 = \sqrt{p_A / v_A} \sum \sqrt{v p}`, with the total
:math:`(\sum_A \sqrt{v_A p_A})^2`, which is the SVD bound: no strategy is better.

*Laplace.* L1 sensitivity punishes spreading a record over many rows, so whole marginals are measured,
:math:`\theta_B m_B`, one cell of each holding the record: :math:`\Delta_1 = \sum_B \theta_B`. Summed down to A,
:math:`B` tells :math:`m_A` with variance :math:`v \prod_{i \in B \setminus A} n_i / \theta_B^2`; combining all B
by their precision is generalised least squares. Which B, and with which :math:`\theta`, is a search: see
:mod:`defocus.workloads.covers`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from defocus.errors import UnmeasuredTablesError
from defocus.workloads import residuals as core
from defocus.workloads.atoms import Array
from defocus.workloads.counting import tables
from defocus.workloads.lattice import Index, Lattice
from defocus.workloads.marginals import Marginals
from defocus.workloads.strategy import IntArray, Norms

__all__ = ["MarginalStrategy"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class MarginalStrategy:
    """Integer multiples of residuals, or of whole marginals, over every subset of a workload's sets.

    ``multiples`` holds one integer for each subset of the lattice; zero leaves it out.
    """

    sizes: tuple[int, ...]
    lattice: Lattice = field(repr=False)
    multiples: IntArray = field(repr=False)
    residual: bool

    @property
    def measured(self) -> list[int]:
        """The numbers of the subsets that are measured."""
        return np.flatnonzero(self.multiples).tolist()

    @property
    def rows(self) -> int:
        """The cells of all measured tables."""
        return int(self._cells()[self.multiples != 0].sum())

    @property
    def largest(self) -> int:
        """The largest coefficient."""
        peak = self.lattice.product(np.maximum(np.array(self.sizes, np.float64) - 1, 1))
        each = self.multiples * (peak if self.residual else 1.0)
        return math.ceil(float(np.abs(each).max()) * (1 + 1e-9))

    def content(self) -> tuple[Any, ...]:
        """The multiple of each subset."""
        return self.sizes, self.lattice.subsets, self.multiples, self.residual

    def norms(self) -> Norms:
        r"""Every column is equally large, so the norms are sums over subsets, in exact integers.

        Two columns of a residual block have the inner product :math:`\prod_i n_i (n_i [x_i = y_i] - 1)`, at least
        :math:`-1/(\min n_i - 1)` times the squared norm; of a whole marginal, at least 0. Records that differ in every
        attribute are in different cells of every table that has several, so the distances of whole marginals are exact.
        """
        l1 = l2 = apart_l1 = apart = 0
        for order in sorted(self.lattice.subsets):
            start, rows = self.lattice.start[order], self.lattice.subsets[order]
            own = self.multiples[start : start + len(rows)]
            for shape, chosen in _shapes(np.array(self.sizes, np.int64), rows):
                once, squared = _sums(own if chosen is None else own[chosen])
                moved = max(shape, default=1) > 1  # else the table has one cell, which holds everybody
                if not self.residual:
                    l1, l2 = l1 + once, l2 + squared
                    apart_l1, apart = apart_l1 + 2 * once * moved, apart + 2 * squared * moved
                    continue
                block = squared * math.prod(n * (n - 1) for n in shape)
                reach = once * math.prod(2 * (n - 1) for n in shape)
                l1, l2, apart_l1 = l1 + reach, l2 + block, apart_l1 + 2 * reach * moved
                if moved and block:
                    apart += 2 * block + -(-2 * block // (min(shape) - 1))
        return Norms(l1, l2, apart_l1, apart)

    def measure(self, data: Any) -> IntArray:
        """All blocks one after another, modulo 2**64."""
        counts = tables(data, self.sizes, self.lattice.names())
        parts = []
        for number in self.measured:
            block = np.atleast_1d(counts[number])
            if self.residual and counts[number].ndim:
                for axis, n in enumerate(block.shape):
                    block = n * block - block.sum(axis=axis, keepdims=True)
            parts.append((self.multiples[number] * block).ravel())
        return np.concatenate(parts)

    def check(self, workload: Marginals) -> None:
        """Refuse a workload with tables that do not follow from the measured ones."""
        finite = self.scales() < np.inf
        known = {name for name, known in zip(self.lattice.names(), finite, strict=True) if known}
        missing = [chosen for chosen in workload.sets() if not known.issuperset(_subsets(chosen))]
        if missing:
            others = f" and of {len(missing) - 1} more" if len(missing) > 1 else ""
            raise UnmeasuredTablesError(f"{missing[0]}{others}")

    def scales(self) -> Array:
        """s_A² for each subset, in multiples of the variance of one noise entry."""
        if self.residual:
            known = self.multiples != 0  # an attribute with a single value has no residual, and no error
            return np.where(known, 1 / (np.where(known, self.multiples, 1) * self._cells()) ** 2, 0.0)
        known = self._precision(self.multiples.astype(np.float64) ** 2)
        nothing = self.lattice.product(np.minimum(np.array(self.sizes, np.float64) - 1, 1)) == 0
        return np.where(nothing, 0.0, np.where(known > 0, 1 / np.where(known > 0, known, 1), np.inf))

    def answers(self, workload: Marginals, noisy: Any) -> Array:
        """All marginals, rebuilt from estimated residuals."""
        found = self.residuals(noisy)
        if workload.lattice is self.lattice:
            return core.rebuilt(workload, found)
        number = {name: i for i, name in enumerate(self.lattice.names())}
        return core.rebuilt(workload, [found[number[name]] for name in workload.lattice.names()])

    def residuals(self, noisy: Any) -> list[Array]:
        """The least-squares estimate of every residual."""
        names = self.lattice.names()
        y, at = np.asarray(noisy, np.float64), 0
        sums: list[Any] = [np.zeros([self.sizes[i] for i in name]) for name in names]
        above = {name: number for number, name in enumerate(names)}
        for number in self.measured:
            shape = sums[number].shape
            block = y[at : at + math.prod(shape)].reshape(shape)
            at += block.size
            if self.residual:
                sums[number] = block / (float(self.multiples[number]) * math.prod(shape))
            else:
                _collect(sums, above, names[number], float(self.multiples[number]) * block)
        if self.residual:
            return [core.centred(table) for table in sums]
        scales = self.scales()
        return [
            core.centred(table) * scale for table, scale in zip(sums, np.where(scales < np.inf, scales, 0), strict=True)
        ]

    def cell_variances(self, workload: Marginals) -> dict[int, Array]:
        """The variance of a cell of each marginal, by order."""
        return core.cell_variances(workload, self._for(workload))

    def variances(self, workload: Marginals) -> Array:
        """The variance of each cell of each marginal."""
        each = self.cell_variances(workload)
        parts = [np.repeat(each[order], workload.table_cells(order).astype(np.int64)) for order in sorted(each)]
        return np.concatenate(parts)

    def greatest(self, workload: Marginals) -> float:
        """The largest of these variances."""
        return max(float(each.max()) for each in self.cell_variances(workload).values())

    def total(self, workload: Marginals) -> float:
        """The weighted sum of all variances."""
        each = self.cell_variances(workload)
        sums = ((workload.weights[order] * workload.table_cells(order) * each[order]).sum() for order in each)
        return float(sum(sums))

    def covariance(self, workload: Marginals, chosen: tuple[int, ...]) -> Array:
        """The covariance of the cells of one marginal."""
        number = {name: i for i, name in enumerate(self.lattice.names())}
        scales = self.scales()
        return core.covariance(
            [workload.sizes[i] for i in chosen], [float(scales[number[smaller]]) for smaller in _subsets(chosen)]
        )

    def _for(self, workload: Marginals) -> Array:
        """The scales in the numbering of another workload's lattice."""
        if workload.lattice is self.lattice:
            return self.scales()
        number = {name: i for i, name in enumerate(self.lattice.names())}
        return self.scales()[[number[name] for name in workload.lattice.names()]]

    def _cells(self) -> Array:
        return self.lattice.product(np.array(self.sizes, np.float64))

    def _precision(self, squares: Array) -> Array:
        """For each A, the sum over supersets B of the squared multiple over the cells that are summed away."""
        whole = self.lattice.again(len(self.sizes))
        found = np.zeros(self.lattice.count)
        ones = np.ones(len(self.sizes))
        for order, links in whole.links.items():
            start = self.lattice.start[order]
            own = squares[start : start + len(links)]
            terms = own[:, None] * whole.spread(order, ones, 1 / np.array(self.sizes, np.float64))
            found += np.bincount(links.ravel(), terms.ravel(), self.lattice.count)
        return found


def _shapes(sizes: Index, rows: Index) -> Iterator[tuple[list[int], Any]]:
    """The distinct shapes of tables over these sets, and which sets have each; None for all of them."""
    distinct, kind = np.unique(sizes, return_inverse=True)
    if len(distinct) == 1 or not rows.shape[1]:
        yield [int(distinct[0])] * rows.shape[1], None
        return
    kinds = np.sort(kind.reshape(-1)[rows], axis=1)
    if len(distinct) ** rows.shape[1] < 1 << 62:
        keys = kinds @ np.array([len(distinct) ** c for c in range(rows.shape[1])], np.int64)
        _, first, where = np.unique(keys, return_index=True, return_inverse=True)
        shapes = kinds[first]
    else:
        shapes, where = np.unique(kinds, axis=0, return_inverse=True)
    for number, shape in enumerate(shapes.tolist()):
        yield [int(distinct[k]) for k in shape], where.reshape(-1) == number


def _sums(values: IntArray) -> tuple[int, int]:
    """The sum and the sum of squares, exactly."""
    peak = int(values.max(initial=0))
    if len(values) * peak * peak < 1 << 62:
        return int(values.sum()), int((values * values).sum())
    exact = values.astype(object)
    return int(exact.sum()), int((exact * exact).sum())


def _subsets(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return (tuple(m for c, m in enumerate(chosen) if pattern >> c & 1) for pattern in range(1 << len(chosen)))


def _collect(sums: list[Any], number: dict[tuple[int, ...], int], name: tuple[int, ...], block: Array) -> None:
    """Add a weighted marginal to the sums of all its subsets, each divided by the cells summed away."""
    for smaller in _subsets(name):
        away = tuple(c for c, member in enumerate(name) if member not in smaller)
        sums[number[smaller]] += block.mean(axis=away) if away else block
