"""Exact counts of sets of columns, computed where the rows are.

One statement counts a block of columns by their bins, from which all marginals inside the block are added up; what
comes back is at most one number for each cell of the block, however many rows there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from defocus.engines.engine import integers
from defocus.engines.syntax import BIGINT, column, named, sub, typed
from defocus.synthesis.domains import Domain, halved
from defocus.synthesis.prediction import CLASSES, Scores
from defocus.tables.contribution import Bound
from defocus.tables.keys import EVERYTHING
from defocus.tables.rows import Rows, join_public
from defocus.tables.weights import Groups, RowSampler
from defocus.workloads.record_counts import passes

__all__ = ["Bins", "Counter", "counter_of"]

Bins = Sequence[NDArray[np.int64]]
"""For each column the bin of each code."""
_FEW = 64
"""Columns with more values are joined to them instead of being compared one by one."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """Counts rows by their codes, each with the weight that the bound leaves it.

    Guarantee:
        Every row is counted in one cell of each marginal, with a weight that is not negative; one person's weights
        add up to at most ``grid`` times the rows of the bound. So adding or removing a person moves each marginal by
        at most that in L1 norm, and hence in L2 norm.
    """

    rows: Rows
    domains: tuple[Domain, ...]
    joined: Mapping[int, str]
    """Columns to which codes were joined, and what these are called."""
    bound: Bound | None
    grid: int
    chance: RowSampler

    def counts(self, sets: Sequence[tuple[int, ...]], bins: Bins) -> list[NDArray[np.int64]]:
        """The weight in each cell of each set of columns."""
        sizes = tuple(int(own.max()) + 1 for own in bins)
        found: dict[tuple[int, ...], NDArray[np.int64]] = {}
        for block, inside in passes(list(dict.fromkeys(sets)), sizes):
            counts = self._block(block, sizes, bins)
            for chosen in inside:
                away = tuple(place for place, i in enumerate(block) if i not in chosen)
                found[chosen] = counts.sum(axis=away) if away else counts
        return [found[chosen] for chosen in sets]

    def _block(self, block: tuple[int, ...], sizes: Sequence[int], bins: Bins) -> NDArray[np.int64]:
        counts = np.zeros([sizes[i] for i in block], np.int64)
        table = self.rows.engine.run(self.statement(block, bins))
        places = tuple(integers(table[f"b{i}"]) for i in block)
        counts[places] = integers(table["s"])
        return counts

    def by_class(self, scores: Scores, bins: Bins) -> NDArray[np.int64]:
        """The weight of rows in each class of score, by the code of what is predicted."""
        counts = np.zeros((CLASSES, self.domains[scores.target].size), np.int64)
        table = self.rows.engine.run(self.class_statement(scores, bins))
        counts[integers(table["c"]), integers(table["b"])] = integers(table["s"])
        return counts

    def class_statement(self, scores: Scores, bins: Bins) -> exp.Select:
        """The statement that counts rows by class of score: each row's weights are added up, and compared with cuts."""
        groups = Groups(self.rows, (), EVERYTHING, None, self.bound)
        parts = [self._bin(i, own[bins[i]].tolist()) for i, own in enumerate(scores.weights) if i != scores.target]
        score = reduce(lambda one, other: exp.Add(this=one, expression=other), map(_inside, parts))
        keys = {"t": score, "b": self._bin(scores.target, range(self.domains[scores.target].size))}
        weighted = groups.weighted(keys, self.grid, self.chance)
        below = [exp.LT(this=column("t"), expression=exp.Literal.number(cut)) for cut in scores.cuts]
        classes = halved(below, [exp.Literal.number(place) for place in range(CLASSES)])
        known = exp.select(named(classes, "c"), column("b"), column("w")).from_(sub(weighted, "q"), copy=False)
        total = exp.Coalesce(this=exp.Sum(this=column("w")), expressions=[exp.Literal.number(0)])
        return (
            exp.select(column("c"), column("b"), named(total, "s"))
            .from_(sub(known, "p"), copy=False)
            .group_by(column("c"), column("b"), copy=False)
        )

    def statement(self, block: Sequence[int], bins: Bins) -> exp.Select:
        """The statement that counts one block of columns."""
        groups = Groups(self.rows, (), EVERYTHING, None, self.bound)
        weighted = groups.weighted({f"b{i}": self._bin(i, bins[i].tolist()) for i in block}, self.grid, self.chance)
        keys = [column(f"b{i}") for i in block]
        total = exp.Coalesce(this=exp.Sum(this=column("w")), expressions=[exp.Literal.number(0)])
        return (
            exp.select(*(key.copy() for key in keys), named(total, "s"))
            .from_(sub(weighted, "q"), copy=False)
            .group_by(*keys, copy=False)
        )

    def _bin(self, place: int, bins: Sequence[int]) -> exp.Expression:
        domain = self.domains[place]
        value = column(domain.name)
        if place in self.joined:
            return domain.looked_up(value, column(self.joined[place]), bins)
        return domain.binned(value, bins)


def _inside(part: exp.Expression) -> exp.Expression:
    return exp.Paren(this=typed(part, BIGINT))


def counter_of(rows: Rows, domains: Sequence[Domain], *, bound: Bound | None, grid: int, chance: RowSampler) -> Counter:
    """A counter of these columns; values of a large domain are handed to the engine, which is public."""
    joined = {place: f"defocus code {place}" for place, domain in enumerate(domains) if len(domain.values) > _FEW}
    for place, code in joined.items():
        rows = join_public(rows, domains[place].coded(code), domains[place].name, "left")
    return Counter(rows, tuple(domains), joined, bound, grid, chance)
