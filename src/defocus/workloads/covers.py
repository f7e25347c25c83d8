r"""Which tables to measure for marginals with Laplace noise: a local search among sets of tables.

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
from typing import final

import numpy as np

from defocus.workloads import residuals as core
from defocus.workloads.atoms import Array
from defocus.workloads.marginals import Marginals
from defocus.workloads.strategy import IntArray
from defocus.workloads.telling import Tell, quiet

__all__ = ["Cover", "best_cover"]

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
    found = []
    for number, start in enumerate(starts):
        found.append(_improved(problem, problem.fitted(start)))
        tell((number + 1) / len(starts))
    best = min(found, key=lambda state: state.error)
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
            known = squares @ told
            error = self.importance / known
            total = float(error.sum())
            slope = -2 * squares * (told @ (error / known)) / total + 2 * theta / reach
            return float(np.log(total) + 2 * np.log(reach)), slope

        begin = np.zeros(len(tables)) if start is None else np.log(start / start.max())
        options = {"maxiter": steps, "ftol": 1e-7}
        found = minimize(value, begin, jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * len(tables), options=options)
        theta = np.exp(found.x - found.x.max())
        theta /= theta.sum()
        kept = theta > _FAINT
        if kept.all() or not told[kept].any(axis=0).all():
            return _State(tuple(tables), theta, float(np.exp(found.fun)))
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
