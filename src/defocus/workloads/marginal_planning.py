"""Designs for marginals: closed form for the total, certified ascent for the largest, gradients for Laplace."""

import numpy as np

from defocus.workloads import residuals as core
from defocus.workloads.atoms import Array
from defocus.workloads.lattice import Lattice, all_sets
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.marginals import Marginals
from defocus.workloads.strategy import Design

__all__ = ["flat_weights", "laplace_design", "residual_design"]

_FEW, _SMALL = 10, 100_000
"""Up to this many attributes and cells the full table may be measured beside the marginals."""


def residual_design(workload: Marginals, weights: dict[int, Array] | None = None) -> Design:
    """The strategy of least weighted total variance for Gaussian noise, optimal among all strategies."""
    lattice = workload.lattice
    v, p = core.importances(workload, weights), core.shares(workload)
    cells = lattice.product(np.array(workload.sizes, np.float64))
    asked = (v > 0) & (p > 0)  # an attribute with a single value has no residual
    inverse = np.zeros(lattice.count)
    inverse[asked] = np.sqrt(np.sqrt(v[asked] / p[asked]) / np.sqrt(v * p).sum()) / cells[asked]
    peak = float((inverse * lattice.product(np.maximum(np.array(workload.sizes, np.float64) - 1, 1))).max())

    def make(precision: int) -> MarginalStrategy:
        multiples = np.where(asked, np.maximum(np.rint(inverse * 2.0**precision), 1), 0).astype(np.int64)
        return MarginalStrategy(workload.sizes, lattice, multiples, residual=True)

    return Design("residuals of all subsets", make, peak, 48)


def flat_weights(workload: Marginals, *, tolerance: float = 1e-3, rounds: int = 500) -> dict[int, Array]:
    r"""Weights under which the least total variance has the least largest variance.

    The dual of the largest variance is the concave function :math:`(\sum_A \sqrt{v_A(w) p_A})^2` of weights w that
    sum to one; by Jensen's inequality :math:`w_B \leftarrow w_B \mathrm{Var}_B^2`, normalised, never lowers it. Stops
    when the largest variance is within ``tolerance`` of the dual, which no strategy can beat.
    """
    levels = sorted(workload.levels)
    cells = np.concatenate([workload.table_cells(order) for order in levels])
    lengths = np.cumsum([len(workload.levels[order]) for order in levels])[:-1]
    p = core.shares(workload)
    share = np.full(workload.number, 1 / workload.number)  # the weight of a whole marginal
    best, least = share, np.inf
    for _ in range(rounds):
        parts = dict(zip(levels, np.split(share / cells, lengths), strict=True))
        v = core.importances(workload, parts)
        root = float(np.sqrt(v * p).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            scales = np.where(v * p > 0, np.sqrt(p / v) * root, 0.0)
        each = core.cell_variances(workload, scales)
        spread = np.concatenate([each[order] for order in levels])
        if float(spread.max()) < least:
            best, least = share, float(spread.max())
        if least <= (1 + tolerance) * root**2:
            break
        share = share * (spread / spread.max()) ** 2
        share = np.maximum(share / share.sum(), 1e-300)
    return dict(zip(levels, np.split(best / cells, lengths), strict=True))


def laplace_design(workload: Marginals, *, rounds: int = 200) -> Design:
    """Whole marginals weighted by gradient descent on the total variance at L1 sensitivity one.

    The full table is among them where it is small enough to be worth a thought.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  # half a second that most users of the room never need

    lattice, v = _candidates(workload)
    whole = lattice.again(len(workload.sizes))
    ones, inverse = np.ones(len(workload.sizes)), core.inverse_sizes(workload)
    spreads = {order: whole.spread(order, ones, inverse) for order in whole.levels}

    def precision(squares: Array) -> Array:
        found = np.zeros(lattice.count)
        for order, links in whole.links.items():
            own = squares[lattice.start[order] : lattice.start[order] + len(links)]
            found += np.bincount(links.ravel(), (own[:, None] * spreads[order]).ravel(), lattice.count)
        return found

    def value(log_theta: Array) -> tuple[float, Array]:
        theta = np.exp(log_theta - log_theta.max())
        squares, reach = theta**2, float(theta.sum())
        known = np.maximum(precision(squares), 1e-300)
        error = v / known
        each = [((error / known)[whole.links[o]] * spreads[o]).sum(axis=1) for o in sorted(whole.links)]
        total = float(error.sum())
        slope = -2 * squares * np.concatenate(each) / total + 2 * theta / reach
        return float(np.log(total) + 2 * np.log(reach)), slope

    low, asked = np.full(lattice.count, -4.0), set(workload.sets())
    tops = low.copy()
    tops[[number for number, name in enumerate(lattice.names()) if name in asked]] = 0.0
    last = low.copy()
    last[-1] = 0.0
    bounds, options = [(-40, 40)] * lattice.count, {"maxiter": rounds, "ftol": 1e-10}
    starts = [tops, last] if lattice is not workload.lattice else [tops]
    ends = [minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options) for start in starts]
    found = min(ends, key=lambda end: float(end.fun))
    theta = np.exp(found.x - found.x.max())
    theta[theta < 1e-4] = 0.0
    unknown = (precision(theta**2) == 0) & (v > 0)
    theta[unknown] = 1e-3  # whatever is asked must be determined by something
    theta /= theta.sum()

    def make(bits: int) -> MarginalStrategy:
        multiples = np.rint(theta * 2.0**bits).astype(np.int64)
        multiples[(theta > 0) & (multiples == 0)] = 1
        return MarginalStrategy(workload.sizes, lattice, multiples, residual=False)

    return Design("weighted marginals", make, float(theta.max()), 48)


def _candidates(workload: Marginals) -> tuple[Lattice, Array]:
    """The sets that may be measured, as a lattice, and how much the error in each residual matters."""
    lattice, v = workload.lattice, core.importances(workload)
    attributes = len(workload.sizes)
    if attributes > _FEW or workload.cells > _SMALL or attributes in workload.levels:
        return lattice, v
    larger = Lattice.below(workload.levels | all_sets(attributes, [attributes]), attributes)
    number = {name: i for i, name in enumerate(larger.names())}
    spread = np.zeros(larger.count)
    spread[[number[name] for name in lattice.names()]] = v
    return larger, spread
