r"""Trees of sums with the best weight for each level: where the search for Laplace strategies starts.

A tree of k branches measures the sums of the blocks of :math:`w_l = k^l` cells, level l with weight
:math:`\theta_l`, so its L1 sensitivity is :math:`\sum_l \theta_l`. Let :math:`E_l` replace each cell by the mean of its
block of level l. On a domain of a power of k cells, :math:`A^T A = \sum_l \theta_l^2 w_l E_l`, the
:math:`P_m = E_m - E_{m+1}` are orthogonal projections, and the total variance is

.. math:: \sum_m \mathrm{tr}(V P_m) \Big/ \sum_{l \le m} \theta_l^2 w_l ,

which takes a few numbers, once :math:`\mathrm{tr}(V E_l)` is known for every level. A domain of another size is part of
a larger one whose other cells are known to be empty; knowing so can only help, so the formula bounds its error.

Reference: Hay, Rastogi, Miklau, Suciu (2010), Boosting the accuracy of differentially private histograms through
consistency; Qardaji, Yang, Li (2013), Understanding hierarchical methods for differentially private histograms
(branches beyond two).
"""

from dataclasses import dataclass, field
from typing import final

import numpy as np

from defocus.workloads.atoms import Array

__all__ = ["Tree", "best_trees"]

_BRANCHES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64)
_FAINT = 1e-3
"""A level of less than this share of the sensitivity is left out."""
_CLOSE = 1.02
"""Errors within this factor are equally good, and the tree with the fewest sums is the cheapest to improve."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Block sums beside single cells: their widths, their weights if a cell weighs one, and a bound on the error."""

    cells: int
    widths: tuple[int, ...]
    weights: Array = field(repr=False)
    error: float

    @property
    def sums(self) -> int:
        """How many sums are measured beside the cells."""
        return sum(-(-self.cells // width) for width in self.widths)

    def rows(self) -> Array:
        """The sums as rows."""
        cells = np.arange(self.cells)
        levels = [
            weight * (cells // width == np.arange(-(-self.cells // width))[:, None])
            for width, weight in zip(self.widths, self.weights, strict=True)
        ]
        return np.vstack(levels).astype(np.float64)


def best_trees(gram: Array, number: int) -> list[Tree]:
    """The best trees with different branches, best first, of those that measure more than single cells."""
    found = [tree for k in _BRANCHES if k < len(gram) and (tree := _tree(gram, k)) is not None]
    ordered = sorted(found, key=lambda tree: tree.error)
    close = [tree for tree in ordered if tree.error <= _CLOSE * ordered[0].error]
    first = sorted(close, key=lambda tree: tree.sums)
    return list({tree.widths: tree for tree in [*first, *ordered]}.values())[:number]


def _tree(gram: Array, branches: int) -> Tree | None:
    from scipy.optimize import minimize  # noqa: PLC0415  # half a second that most users of the room never need

    n = len(gram)
    widths = [1]
    while widths[-1] < n:
        widths.append(widths[-1] * branches)
    within = [_blocks(gram, width) / width for width in widths]  # tr(V E_l)
    share = np.maximum(-np.diff([*within, 0.0]), 0.0)  # tr(V P_m)
    wide = np.array(widths, np.float64)

    def value(log_theta: Array) -> tuple[float, Array]:
        theta = np.exp(log_theta - log_theta.max())
        known = np.cumsum(theta**2 * wide)
        error = share / known
        total, reach = float(error.sum()), float(theta.sum())
        slope = -2 * theta**2 * wide * np.cumsum((error / known)[::-1])[::-1] / total + 2 * theta / reach
        return float(np.log(total) + 2 * np.log(reach)), slope

    bounds = [(-30, 30)] * len(widths)
    found = minimize(value, np.zeros(len(widths)), jac=True, method="L-BFGS-B", bounds=bounds)
    theta = np.exp(found.x - found.x.max())
    theta /= theta.sum()
    kept = [level for level in range(1, len(widths)) if theta[level] > _FAINT]
    if theta[0] <= _FAINT or not kept:
        return None
    return Tree(n, tuple(widths[level] for level in kept), theta[kept] / theta[0], float(np.exp(found.fun)))


def _blocks(gram: Array, width: int) -> float:
    """The sum of the entries inside the blocks on the diagonal."""
    if width == 1:
        return float(np.trace(gram))
    return float(sum(gram[at : at + width, at : at + width].sum() for at in range(0, len(gram), width)))
