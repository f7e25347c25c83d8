r"""Marginals through residuals: the algebra that makes planning and reconstruction closed-form.

For an attribute with n values let :math:`P = I - J/n` be the projection to vectors of sum zero. The residual of a set A
of attributes is :math:`r_A = (\otimes_{i \in A} P_i)\, m_A`, the marginal :math:`m_A` with everything its subsets know
taken away. Residuals of different sets are orthogonal, and a marginal is the sum of those of its subsets,

.. math:: m_B = \sum_{A \subseteq B} \Big(\prod_{i \in B \setminus A} \tfrac{1}{n_i}\Big)\, r_A \otimes 1.

If every residual is estimated without bias and with covariance :math:`s_A^2 \otimes_{i \in A} P_i`, independently, a
cell of :math:`m_B` has variance :math:`\sum_{A \subseteq B} s_A^2\, p_A \prod_{i \in B \setminus A} n_i^{-2}` where
:math:`p_A = \prod_{i \in A} (1 - 1/n_i)`. So the weighted total is :math:`\sum_A v_A s_A^2` with

.. math:: v_A = \sum_{B \supseteq A} w_B \prod_{i \in A} (n_i - 1) \prod_{i \in B \setminus A} n_i^{-1}.

Reference: Xiao, He, Zhang, Kifer (2023), An optimal and scalable matrix mechanism for noisy marginals under convex loss
functions (ResidualPlanner).
"""

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from defocus.workloads.marginals import Marginals
from defocus.workloads.queries import Array

__all__ = [
    "cell_variances",
    "centred",
    "covariance",
    "importances",
    "inverse_sizes",
    "rebuilt",
    "shares",
    "total_bound",
]


def inverse_sizes(workload: Marginals) -> Array:
    """1/n for each attribute."""
    return 1 / np.array(workload.sizes, np.float64)


def shares(workload: Marginals) -> Array:
    """p_A for each subset of the lattice."""
    return workload.lattice.product(1 - inverse_sizes(workload))


def importances(workload: Marginals, weights: dict[int, Array] | None = None) -> Array:
    """v_A for each subset of the lattice."""
    lattice, sizes = workload.lattice, np.array(workload.sizes, np.float64)
    totals = np.zeros(lattice.count)
    for order in lattice.levels:
        weight = (workload.weights if weights is None else weights)[order]
        terms = weight[:, None] * lattice.spread(order, sizes - 1, 1 / sizes)
        totals += np.bincount(lattice.links[order].ravel(), terms.ravel(), lattice.count)
    return totals


def cell_variances(workload: Marginals, scales: Array) -> dict[int, Array]:
    """The variance of a cell of each marginal, by order, when ``scales`` holds s_A² for each subset."""
    lattice, inverse = workload.lattice, inverse_sizes(workload)
    return {
        order: (scales[lattice.links[order]] * lattice.spread(order, 1 - inverse, inverse**2)).sum(axis=1)
        for order in sorted(lattice.levels)
    }


def total_bound(workload: Marginals, *, without_total: bool = False) -> float:
    r"""The SVD bound on the weighted total variance at sensitivity one.

    On the residuals of A the workload's gram matrix has the eigenvalue
    :math:`\sum_{B \supseteq A} w_B \prod_{i \notin B} n_i`, :math:`\prod_{i \in A} (n_i - 1)` times over.
    """
    lattice, sizes = workload.lattice, np.array(workload.sizes, np.float64)
    values = np.zeros(lattice.count)  # divided by the number of cells
    for order, links in lattice.links.items():
        per_cell = workload.weights[order] / sizes[lattice.levels[order]].prod(axis=1)
        values += np.bincount(links.ravel(), np.repeat(per_cell, links.shape[1]), lattice.count)
    multiplicity = lattice.product(sizes - 1)
    roots = multiplicity * np.sqrt(values)
    return float((roots.sum() - (roots[0] if without_total else 0)) ** 2)


def centred(table: Array) -> Array:
    """The residual of a table: its mean along every axis taken away."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def rebuilt(workload: Marginals, residuals: Sequence[Array]) -> Array:
    """All marginals, cell by cell, from the residuals of all subsets."""
    sizes, lattice = workload.sizes, workload.lattice
    parts: list[Array] = []
    for order in sorted(lattice.levels):
        for chosen, links in zip(lattice.levels[order].tolist(), lattice.links[order].tolist(), strict=True):
            shape = [sizes[i] for i in chosen]
            table = np.zeros(shape)
            for pattern, number in enumerate(links):
                inside = [pattern >> c & 1 for c in range(order)]
                spread = math.prod(n for n, kept in zip(shape, inside, strict=True) if not kept)
                table += residuals[number].reshape([n if k else 1 for n, k in zip(shape, inside, strict=True)]) / spread
            parts.append(table.ravel())
    return np.concatenate(parts)


def covariance(sizes: Sequence[int], scales: Sequence[float]) -> Array:
    """The covariance of the cells of one marginal; ``scales`` holds s_A² for each pattern of its attributes."""
    order, cells = len(sizes), math.prod(sizes)
    matrix = np.zeros((cells, cells))
    for pattern, scale in enumerate(scales):
        factors = [np.eye(n) - 1 / n if pattern >> c & 1 else np.full((n, n), 1 / n**2) for c, n in enumerate(sizes)]
        matrix += scale * (reduce(np.kron, factors) if order else np.ones((1, 1)))
    return matrix
