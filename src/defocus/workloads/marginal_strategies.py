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
:mod:`defocus.workloads.marginal_strategies`.

Which tables to measure for marginals with Laplace noise: a local search among sets of tables.

Measuring whole tables B with weights :math:`\theta_B` tells the residual of A with precision
:math:`\sum_{B \supseteq A} \theta_B^2 \prod_{i \in B \setminus A} n_i^{-1}` at the L1 sensitivity
:math:`\sum_B \theta_B`. The best weights of given tables are found by gradients. Which tables is another matter:
leaving one out is a local optimum always, since its precision grows with the square of its weight and its cost
with the weight itself. So tables are joined, enlarged, reduced, split and left out, one at a time, as long as that
lowers the total variance.

Reference: McKenna, Miklau, Hay, Machanavajjhala (2018), Optimizing error of high-dimensional statistical queries under
differential privacy, section 6.4 (OPT_M, from random weights of all sets).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from defocus.errors import UnmeasuredTablesError
from defocus.workloads import residuals as core
from defocus.workloads.marginals import Index, Lattice, Marginals, levels_of
from defocus.workloads.optimum import Tell, quiet
from defocus.workloads.queries import Array
from defocus.workloads.record_counts import tables
from defocus.workloads.strategy import Design, IntArray, Norms

__all__ = ["Cover", "MarginalStrategy", "best_cover", "flat_weights", "laplace_design", "residual_design"]


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
        reaches = self.multiples * (peak if self.residual else 1.0)
        return math.ceil(float(np.abs(reaches).max()) * (1 + 1e-9))

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
        measured = {name for name, is_finite in zip(self.lattice.names(), finite, strict=True) if is_finite}
        missing = [chosen for chosen in workload.sets() if not measured.issuperset(_subsets(chosen))]
        if missing:
            others = f" and of {len(missing) - 1} more" if len(missing) > 1 else ""
            raise UnmeasuredTablesError(f"{missing[0]}{others}")

    def scales(self) -> Array:
        """s_A² for each subset, in multiples of the variance of one noise entry."""
        if self.residual:
            precision = self.multiples != 0  # an attribute with a single value has no residual, and no error
            return np.where(precision, 1 / (np.where(precision, self.multiples, 1) * self._cells()) ** 2, 0.0)
        precision = self._precision(self.multiples.astype(np.float64) ** 2)
        nothing = self.lattice.product(np.minimum(np.array(self.sizes, np.float64) - 1, 1)) == 0
        return np.where(nothing, 0.0, np.where(precision > 0, 1 / np.where(precision > 0, precision, 1), np.inf))

    def answers(self, workload: Marginals, noisy: Any) -> Array:
        """All marginals, rebuilt from estimated residuals."""
        residuals = self.residuals(noisy)
        if workload.lattice is self.lattice:
            return core.rebuilt(workload, residuals)
        number = {name: i for i, name in enumerate(self.lattice.names())}
        return core.rebuilt(workload, [residuals[number[name]] for name in workload.lattice.names()])

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
        variances = self.cell_variances(workload)
        parts = [
            np.repeat(variances[order], workload.table_cells(order).astype(np.int64)) for order in sorted(variances)
        ]
        return np.concatenate(parts)

    def greatest(self, workload: Marginals) -> float:
        """The largest of these variances."""
        return max(float(variances.max()) for variances in self.cell_variances(workload).values())

    def total(self, workload: Marginals) -> float:
        """The weighted sum of all variances."""
        variances = self.cell_variances(workload)
        sums = ((workload.weights[order] * workload.table_cells(order) * variances[order]).sum() for order in variances)
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
        precisions = np.zeros(self.lattice.count)
        ones = np.ones(len(self.sizes))
        for order, links in whole.links.items():
            start = self.lattice.start[order]
            own = squares[start : start + len(links)]
            terms = own[:, None] * whole.spread(order, ones, 1 / np.array(self.sizes, np.float64))
            precisions += np.bincount(links.ravel(), terms.ravel(), self.lattice.count)
        return precisions


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


_MANY = 120
"""With more tables than this the search would take too long."""
_ATTRIBUTES = 40
_ORDER, _CELLS = 10, 100_000
"""No table is joined or enlarged beyond this many attributes and cells."""
_TRIES = 2000
"""How many sets of tables are tried from each start, at some milliseconds each."""
_BETTER = 1 - 1e-3
"""What lowers the error by less than a thousandth is not worth it."""
_FAINT = 1e-3
"""A table of less than this share of the sensitivity is left out."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Tables to measure, their shares of the sensitivity, and the weighted total variance at sensitivity one."""

    tables: tuple[tuple[int, ...], ...]
    weights: Array = field(repr=False)
    error: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Tables as bits of their attributes."""

    tables: tuple[int, ...]
    weights: Array
    error: float


def best_cover(workload: Marginals, tell: Tell = quiet) -> Cover | None:
    """The best tables found, from those that are asked and from the whole table; None if there are too many."""
    if workload.number > _MANY or len(workload.sizes) > _ATTRIBUTES:
        return None
    problem = _Problem.of(workload)
    asked = [_bits(chosen) for chosen in workload.sets()]
    everything = (1 << len(workload.sizes)) - 1
    starts = [asked, [everything]] if problem.small(everything) else [asked]
    states = []
    for number, start in enumerate(starts):
        states.append(_improved(problem, problem.fitted(start)))
        tell((number + 1) / len(starts))
    best = min(states, key=lambda state: state.error)
    final = problem.fitted(best.tables, best.weights, steps=300)
    return Cover(tuple(_members(table) for table in final.tables), final.weights, final.error)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """What is asked: the subsets whose residuals matter, as bits, and how much."""

    sizes: tuple[int, ...]
    wanted: IntArray
    cells: Array
    importance: Array
    known: dict[int, Array] = field(default_factory=dict)

    @staticmethod
    def of(workload: Marginals) -> "_Problem":
        importance = core.importances(workload)
        names = [name for name, matters in zip(workload.lattice.names(), importance, strict=True) if matters > 0]
        cells = [math.prod(workload.sizes[i] for i in name) for name in names]
        bits = np.array([_bits(name) for name in names], np.int64)
        return _Problem(workload.sizes, bits, np.array(cells, np.float64), importance[importance > 0])

    def small(self, table: int) -> bool:
        members = _members(table)
        return len(members) <= _ORDER and math.prod(self.sizes[i] for i in members) <= _CELLS

    def precision(self, table: int) -> Array:
        """What measuring the table with weight one tells about each wanted residual."""
        if table not in self.known:
            own = math.prod(self.sizes[i] for i in _members(table))
            self.known[table] = np.where((self.wanted & ~table) == 0, self.cells / own, 0.0)
        return self.known[table]

    def fitted(self, tables: Sequence[int], start: Array | None = None, *, steps: int = 40) -> _State:
        """The tables with the best weights, faint ones left out; of infinite error if they leave a residual open."""
        from scipy.optimize import minimize  # noqa: PLC0415  # half a second that most users of the room never need

        told = np.array([self.precision(table) for table in tables])
        if not told.any(axis=0).all():
            return _State(tuple(tables), np.ones(len(tables)), math.inf)

        def value(log_theta: Array) -> tuple[float, Array]:
            theta = np.exp(log_theta - log_theta.max())
            squares, reach = theta**2, float(theta.sum())
            precisions = squares @ told
            error = self.importance / precisions
            total = float(error.sum())
            slope = -2 * squares * (told @ (error / precisions)) / total + 2 * theta / reach
            return float(np.log(total) + 2 * np.log(reach)), slope

        begin = np.zeros(len(tables)) if start is None else np.log(start / start.max())
        options = {"maxiter": steps, "ftol": 1e-7}
        optimum = minimize(value, begin, jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * len(tables), options=options)
        theta = np.exp(optimum.x - optimum.x.max())
        theta /= theta.sum()
        kept = theta > _FAINT
        if kept.all() or not told[kept].any(axis=0).all():
            return _State(tuple(tables), theta, float(np.exp(optimum.fun)))
        left = theta[kept] / theta[kept].sum()
        error = float((self.importance / (left**2 @ told[kept])).sum())
        return _State(tuple(table for table, keep in zip(tables, kept, strict=True) if keep), left, error)


def _improved(problem: _Problem, state: _State) -> _State:
    """Take the first change that helps, again and again, until none does."""
    seen: set[frozenset[int]] = set()
    better = True
    while better:
        better = False
        for gone, come in _changes(problem, state.tables):
            kept = [i for i, table in enumerate(state.tables) if table not in gone and table not in come]
            tables = [*(state.tables[i] for i in kept), *come]
            if frozenset(tables) in seen:
                continue
            if len(seen) >= _TRIES:
                return state
            seen.add(frozenset(tables))
            freed = max(1.0 - float(state.weights[kept].sum()), 0.1)
            tried = problem.fitted(tables, np.array([*state.weights[kept], *([freed / len(come)] * len(come))]))
            if tried.error < _BETTER * state.error:
                state, better = tried, True
                break
    return state


def _changes(problem: _Problem, tables: Sequence[int]) -> Iterator[tuple[set[int], list[int]]]:
    """Tables to give up and tables to measure instead."""
    everything = [1 << i for i in range(len(problem.sizes))]
    joined = sorted(itertools.combinations(tables, 2), key=lambda pair: math.prod(
        problem.sizes[i] for i in _members(pair[0] | pair[1])
    ))  # fmt: skip
    yield from (({a, b}, [a | b]) for a, b in joined if problem.small(a | b))
    for table in tables:
        for one in everything:
            if problem.small(table ^ one) or table & one:
                yield {table}, [table ^ one]
                yield set(), [table ^ one]
    for table in tables:
        inside = [one for one in everything if table & one]
        for number in (2, 3):
            for left_out in itertools.combinations(inside, number):
                yield {table}, [table ^ one for one in left_out]


def _bits(members: Sequence[int]) -> int:
    return sum(1 << member for member in members)


def _members(table: int) -> tuple[int, ...]:
    return tuple(i for i in range(table.bit_length()) if table >> i & 1)


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
        variances = core.cell_variances(workload, scales)
        spread = np.concatenate([variances[order] for order in levels])
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
        precisions = np.zeros(lattice.count)
        for order, links in whole.links.items():
            own = squares[lattice.start[order] : lattice.start[order] + len(links)]
            precisions += np.bincount(links.ravel(), (own[:, None] * spreads[order]).ravel(), lattice.count)
        return precisions

    def value(log_theta: Array) -> tuple[float, Array]:
        theta = np.exp(log_theta - log_theta.max())
        squares, reach = theta**2, float(theta.sum())
        precisions = np.maximum(precision(squares), 1e-300)
        error = v / precisions
        slopes = [((error / precisions)[whole.links[o]] * spreads[o]).sum(axis=1) for o in sorted(whole.links)]
        total = float(error.sum())
        slope = -2 * squares * np.concatenate(slopes) / total + 2 * theta / reach
        return float(np.log(total) + 2 * np.log(reach)), slope

    names, asked = lattice.names(), set(workload.sets())
    start = np.array([0.0 if name in asked else -4.0 for name in names])
    bounds, options = [(-40, 40)] * lattice.count, {"maxiter": rounds, "ftol": 1e-10}
    optimum = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    theta = np.exp(optimum.x - optimum.x.max())
    theta[theta < 1e-4] = 0.0
    unknown = (precision(theta**2) == 0) & (v > 0)
    theta[unknown] = 1e-3  # whatever is asked must be determined by something
    theta /= theta.sum()
    final = precision(theta**2)
    error = float((v[v > 0] / final[v > 0]).sum())
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
