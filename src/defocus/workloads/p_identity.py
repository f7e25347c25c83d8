r"""Good strategies for Laplace noise: an identity and p more rows, improved by gradients.

The strategy is :math:`A = \binom{I}{\Theta} D` with p rows :math:`\Theta \ge 0` and D scaling every column to L1
norm one, :math:`d_j = 1/(1 + \sum_i \Theta_{ij})`. Writing :math:`M = (I_p + \Theta\Theta^T)^{-1}`, Woodbury's identity
gives

.. math:: (A^T A)^{-1} = D^{-1} (I - \Theta^T M \Theta) D^{-1},

so with :math:`s_j = 1/d_j` and :math:`U = S V S` the total variance is
:math:`\mathrm{tr}\,U - \mathrm{tr}(M \Theta U \Theta^T)`: :math:`O(p^2 n)` work beside one product with V, which
takes :math:`O(p n)` for running totals and intervals and :math:`O(p n^2)` for others. Its gradient is in
:func:`_value`. The total variance has many local minima, so the starting point matters: see
:mod:`defocus.workloads.trees`.

Reference: McKenna, Miklau, Hay, Machanavajjhala (2018), Optimizing error of high-dimensional statistical queries under
differential privacy, section 5.2 (p-Identity strategies and OPT_0).
"""

import numpy as np

from defocus.workloads.atoms import Array
from defocus.workloads.grams import Gram
from defocus.workloads.telling import Tell, part, quiet
from defocus.workloads.trees import best_trees

__all__ = ["p_identity"]

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

        found = minimize(
            objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size, callback=step,
            options={"maxiter": steps, "ftol": 1e-6},
        )  # fmt: skip
        if best is None or float(found.fun) * scale < best[0]:
            best = float(found.fun) * scale, found.x.reshape(start.shape)
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
    each = rows * n * (10 * rows + 200 + (0 if gram.structured else n))
    return max(_LEAST, min(_MOST, int(_WORK / each)))


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
