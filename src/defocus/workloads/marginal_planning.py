"""Designs for marginals: closed form for the total, certified ascent for the largest, a search for Laplace."""

from collections.abc import Sequence

import numpy as np

from defocus.workloads import residuals as core
from defocus.workloads.atoms import Array
from defocus.workloads.covers import Cover, best_cover
from defocus.workloads.lattice import Lattice, levels_of
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.marginals import Marginals
from defocus.workloads.strategy import Design
from defocus.workloads.telling import Tell, quiet

__all__ = ["flat_weights", "laplace_design", "residual_design"]

_SHORT = 60
"""Lists of tables up to this length are shown."""


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


def laplace_design(workload: Marginals, *, rounds: int = 200, tell: Tell = quiet) -> Design:
    """Whole tables with weights: the better of a search among sets of tables and of gradients over all subsets."""
    cover = _over_subsets(workload, rounds)
    searched = best_cover(workload, tell)
    if searched is not None and searched.error < cover.error:
        cover = searched
    lattice = _holding(workload, cover.tables)
    share = dict(zip(cover.tables, cover.weights.tolist(), strict=True))
    theta = np.array([share.get(name, 0.0) for name in lattice.names()])

    def make(bits: int) -> MarginalStrategy:
        multiples = np.rint(theta * 2.0**bits).astype(np.int64)
        multiples[(theta > 0) & (multiples == 0)] = 1
        return MarginalStrategy(workload.sizes, lattice, multiples, residual=False)

    return Design(_named(cover.tables, len(workload.sizes)), make, float(theta.max()), 48)


def _over_subsets(workload: Marginals, rounds: int) -> Cover:
    """Gradient descent over the weights of all subsets of what is asked, from equal weights of what is asked."""
    from scipy.optimize import minimize  # noqa: PLC0415  # half a second that most users of the room never need

    lattice, v = workload.lattice, core.importances(workload)
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

    names, asked = lattice.names(), set(workload.sets())
    start = np.array([0.0 if name in asked else -4.0 for name in names])
    bounds, options = [(-40, 40)] * lattice.count, {"maxiter": rounds, "ftol": 1e-10}
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    theta = np.exp(found.x - found.x.max())
    theta[theta < 1e-4] = 0.0
    unknown = (precision(theta**2) == 0) & (v > 0)
    theta[unknown] = 1e-3  # whatever is asked must be determined by something
    theta /= theta.sum()
    known = precision(theta**2)
    error = float((v[v > 0] / known[v > 0]).sum())
    measured = np.flatnonzero(theta)
    return Cover(tuple(names[number] for number in measured), theta[measured], error)


def _holding(workload: Marginals, tables: Sequence[tuple[int, ...]]) -> Lattice:
    """The workload's lattice, and these tables in it."""
    if set(tables) <= set(workload.lattice.names()):
        return workload.lattice
    return Lattice.below(levels_of(sorted({*workload.sets(), *tables}))[0], len(workload.sizes))


def _named(tables: Sequence[tuple[int, ...]], attributes: int) -> str:
    """What is measured, in few words."""
    if len(tables) == 1:
        everything = tables[0] == tuple(range(attributes))
        return "every cell" if everything else f"the table {tables[0]}"
    listed = f"tables {', '.join(map(str, tables))}"
    return listed if len(listed) <= _SHORT else f"{len(tables)} weighted tables"
