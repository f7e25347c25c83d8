r"""Good strategies for Laplace noise: an identity and p more rows, improved by gradients.

The strategy is :math:`A = \binom{I}{\Theta} D` with p rows :math:`\Theta \ge 0` and D scaling every column to L1
norm one, :math:`d_j = 1/(1 + \sum_i \Theta_{ij})`. Writing :math:`M = (I_p + \Theta\Theta^T)^{-1}`, Woodbury's identity
gives

.. math:: (A^T A)^{-1} = D^{-1} (I - \Theta^T M \Theta) D^{-1},

so with :math:`s_j = 1/d_j` and :math:`U = S V S` the total variance is
:math:`\mathrm{tr}\,U - \mathrm{tr}(M \Theta U \Theta^T)`: :math:`O(p n^2)` work. Its gradient is in :func:`_value`.

Reference: McKenna, Miklau, Hay, Machanavajjhala (2018), Optimizing error of high-dimensional statistical queries under
differential privacy, section 5.2 (p-Identity strategies and OPT_0).
"""

import numpy as np

from defocus.workloads.atoms import Array

__all__ = ["p_identity"]


def p_identity(gram: Array, *, rounds: int | None = None) -> tuple[Array, float]:
    """A strategy with columns of L1 norm one that is good for this workload, and its total variance.

    Starts from block sums of several widths, which suit ordered domains, and for domains of up to 256 cells
    from a random point too, and keeps the better end.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  # half a second that most users of the room never need

    n = len(gram)
    scale = float(np.trace(gram))
    best: tuple[float, Array] | None = None
    steps = (150 if n <= 1024 else 60) if rounds is None else rounds
    for start in _starts(gram, max(1, min(n // 8, 64))):
        shape = start.shape

        def objective(flat: Array, shape: tuple[int, ...] = shape) -> tuple[float, Array]:
            value, slope = _value(flat.reshape(shape), gram)
            return value / scale, slope.ravel() / scale

        found = minimize(
            objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size,
            options={"maxiter": steps, "ftol": 1e-6},
        )  # fmt: skip
        if best is None or float(found.fun) * scale < best[0]:
            best = float(found.fun) * scale, found.x.reshape(shape)
    assert best is not None  # noqa: S101  # there is a start
    theta = best[1]
    full = np.vstack([np.eye(n), theta]) / (1 + theta.sum(axis=0))
    return full[np.abs(full).sum(axis=1) > 1e-9], best[0]


def _value(theta: Array, gram: Array) -> tuple[float, Array]:
    r"""The total variance and its gradient.

    With :math:`P = I - \Theta^T M \Theta` the value is :math:`\mathrm{tr}(U P)`. Since
    :math:`P = (I + \Theta^T\Theta)^{-1}`, :math:`dP = -P\,d(\Theta^T\Theta)\,P`, which contributes
    :math:`-2 \Theta P U P = -2 M \Theta U P`; the scales contribute :math:`2 (V S P)_{jj}` to every entry of column j.
    """
    sums = 1 + theta.sum(axis=0)
    inner = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    weighted = inner @ theta  # = Theta P
    scaled = sums[:, None] * gram * sums
    along = theta @ scaled
    value = float(np.trace(scaled) - (weighted * along).sum())
    asked = weighted @ scaled  # Theta P U
    bent = asked - (asked @ theta.T) @ weighted  # Theta P U P
    # diagonal of V S P = diagonal of (U P) divided by the scales
    own = (np.diagonal(scaled) - (along * weighted).sum(axis=0)) / sums
    return value, 2 * own - 2 * bent


def _starts(gram: Array, rows: int) -> list[Array]:
    n = len(gram)
    blocks: list[Array] = []
    width = n
    while width > 1 and len(blocks) < rows:
        for first in range(0, n, width):
            row = np.zeros(n)
            row[first : first + width] = 1.0
            blocks.append(row)
        width //= 4 if n > 64 else 2
    tree = np.array(blocks[:rows]) if blocks else np.ones((1, n))
    steady = np.random.default_rng(0)  # a public starting point of a search: no privacy rests on it
    return [tree, steady.random((rows, n))] if n <= 256 else [tree]
