r"""Strategies for Laplace noise: p-identity, and trees to start from.

Trees of sums with the best weight for each level: where the search for Laplace strategies starts.

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

Good strategies for Laplace noise: an identity and p more rows, improved by gradients.

The strategy is :math:`A = \binom{I}{\Theta} D` with p rows :math:`\Theta \ge 0` and D scaling every column to L1
norm one, :math:`d_j = 1/(1 + \sum_i \Theta_{ij})`. Writing :math:`M = (I_p + \Theta\Theta^T)^{-1}`, Woodbury's identity
gives

.. math:: (A^T A)^{-1} = D^{-1} (I - \Theta^T M \Theta) D^{-1},

so with :math:`s_j = 1/d_j` and :math:`U = S V S` the total variance is
:math:`\mathrm{tr}\,U - \mathrm{tr}(M \Theta U \Theta^T)`: :math:`O(p^2 n)` work beside one product with V, which
takes :math:`O(p n)` for running totals and intervals and :math:`O(p n^2)` for others. Its gradient is in
:func:`_value`. The total variance has many local minima, so the starting point matters: see
:mod:`defocus.workloads.p_identity`.

Reference: McKenna, Miklau, Hay, Machanavajjhala (2018), Optimizing error of high-dimensional statistical queries under
differential privacy, section 5.2 (p-Identity strategies and OPT_0).
"""

from dataclasses import dataclass, field
from typing import final

import numpy as np

from defocus.workloads.optimum import Gram, Tell, part, quiet
from defocus.workloads.queries import Array

__all__ = ["Tree", "best_trees", "p_identity"]


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
    trees = [tree for k in _BRANCHES if k < len(gram) and (tree := _tree(gram, k)) is not None]
    ordered = sorted(trees, key=lambda tree: tree.error)
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
        precisions = np.cumsum(theta**2 * wide)
        error = share / precisions
        total, reach = float(error.sum()), float(theta.sum())
        slope = -2 * theta**2 * wide * np.cumsum((error / precisions)[::-1])[::-1] / total + 2 * theta / reach
        return float(np.log(total) + 2 * np.log(reach)), slope

    bounds = [(-30, 30)] * len(widths)
    optimum = minimize(value, np.zeros(len(widths)), jac=True, method="L-BFGS-B", bounds=bounds)
    theta = np.exp(optimum.x - optimum.x.max())
    theta /= theta.sum()
    kept = [level for level in range(1, len(widths)) if theta[level] > _FAINT]
    if theta[0] <= _FAINT or not kept:
        return None
    return Tree(n, tuple(widths[level] for level in kept), theta[kept] / theta[0], float(np.exp(optimum.fun)))


def _blocks(gram: Array, width: int) -> float:
    """The sum of the entries inside the blocks on the diagonal."""
    if width == 1:
        return float(np.trace(gram))
    return float(sum(gram[at : at + width, at : at + width].sum() for at in range(0, len(gram), width)))


_WORK = 6e10
"""Roughly how many multiplications one search may take: seconds."""
_MOST, _LEAST = 150, 8
"""The most and the fewest iterations."""


def p_identity(gram: Gram, *, rounds: int | None = None, tell: Tell = quiet) -> tuple[Array, float]:
    """A strategy with columns of L1 norm one that is good for this workload, and its total variance.

    Starts from the best trees, and for domains of up to 256 cells from plain block sums and a random point
    too, and keeps the best end. No worse than any of the starting points.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  # half a second that most users of the room never need

    n = len(gram)
    scale = float(np.trace(gram.matrix))
    best: tuple[float, Array] | None = None
    starts = _starts(gram.matrix)
    for number, start in enumerate(starts):
        steps = _affordable(gram, len(start)) if rounds is None else rounds
        mine, taken = part(tell, number / len(starts), (number + 1) / len(starts)), 0

        def objective(flat: Array, rows: int = len(start)) -> tuple[float, Array]:
            value, slope = _value(flat.reshape(rows, n), gram)
            return value / scale, slope.ravel() / scale

        def step(_: Array, steps: int = steps, mine: Tell = mine) -> None:
            nonlocal taken
            taken += 1
            mine(min(1.0, taken / steps))

        optimum = minimize(
            objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size, callback=step,
            options={"maxiter": steps, "ftol": 1e-6},
        )  # fmt: skip
        if best is None or float(optimum.fun) * scale < best[0]:
            best = float(optimum.fun) * scale, optimum.x.reshape(start.shape)
    assert best is not None  # noqa: S101  # there is a start
    theta = best[1]
    full = np.vstack([np.eye(n), theta]) / (1 + theta.sum(axis=0))
    return full[np.abs(full).sum(axis=1) > 1e-9], best[0]


def _value(theta: Array, gram: Gram) -> tuple[float, Array]:
    r"""The total variance and its gradient.

    With :math:`P = I - \Theta^T M \Theta` the value is :math:`\mathrm{tr}(U P)`. Since
    :math:`P = (I + \Theta^T\Theta)^{-1}`, :math:`dP = -P\,d(\Theta^T\Theta)\,P`, which contributes
    :math:`-2 \Theta P U P`, where :math:`\Theta P = M \Theta`; the scales contribute :math:`2 (V S P)_{jj}` to every
    entry of column j.
    """
    sums = 1 + theta.sum(axis=0)
    inner = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    weighted = inner @ theta  # Theta P
    along = gram.times(theta * sums) * sums  # Theta U
    own = np.diagonal(gram.matrix) * sums**2 - (along * weighted).sum(axis=0)  # the diagonal of U P
    asked = inner @ along  # Theta P U
    bent = asked - (asked @ theta.T) @ weighted  # Theta P U P
    return float(own.sum()), 2 * own / sums - 2 * bent


def _affordable(gram: Gram, rows: int) -> int:
    """How many iterations with so many rows are a matter of seconds."""
    n = len(gram)
    work = rows * n * (10 * rows + 200 + (0 if gram.structured else n))
    return max(_LEAST, min(_MOST, int(_WORK / work)))


def _starts(gram: Array) -> list[Array]:
    n = len(gram)
    trees = [tree.rows() for tree in best_trees(gram, 3 if n <= 256 else 1)]
    if n > 256 and trees:
        return trees
    rows = max(1, min(n // 8, 64))
    blocks: list[Array] = []
    width = n
    while width > 1 and len(blocks) < rows:
        for first in range(0, n, width):
            row = np.zeros(n)
            row[first : first + width] = 1.0
            blocks.append(row)
        width //= 4 if n > 64 else 2
    sums = np.array(blocks[:rows]) if blocks else np.ones((1, n))
    steady = np.random.default_rng(0)  # a public starting point of a search: no privacy rests on it
    return [*trees, sums, steady.random((rows, n))] if n <= 256 else [sums]
