"""What the engine computes exactly for each group, before any noise: integers, and nothing but integers.

Every function builds one statement, runs it, and returns an array with one row for each group. Groups without rows
have zeros. None of it may be shown to anyone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from defocus.engines.engine import integers
from defocus.engines.syntax import BIGINT, DOUBLE, column, decimal, mild, named, sub, typed, whole
from defocus.mechanisms.partition_selection import PartitionSelection
from defocus.mechanisms.ranges import RangeFinding
from defocus.noise import Bits
from defocus.tables.contribution import Bound
from defocus.tables.keys import EVERYTHING
from defocus.tables.lower_bound import Ladder
from defocus.tables.splits import Argument, Split
from defocus.tables.weights import Groups, RowSampler

__all__ = ["Exact", "Measuring", "Statement", "Tallies"]


Exact: TypeAlias = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Measuring:
    """Groups, the grid on which a full row weighs ``grid``, and the key of this release's chance."""

    groups: Groups
    grid: int
    chance: RowSampler
    progress: Callable[[float], None] | None = None
    tallies: "Tallies | None" = None
    """What was counted of the same rows already."""

    def cells(self, splits: Sequence[Split]) -> list[Exact]:
        """The cells of every split, in one pass over the rows."""
        return [cells for (cells,) in self.laddered(splits, (), None)]

    def laddered(self, splits: Sequence[Split], lower: Sequence[Split], ladder: Ladder | None) -> list[list[Exact]]:
        """The same with each bound of a ladder, for the splits in ``lower``; for the others with the first alone."""
        if self.is_tallied(splits):
            tallies = self.tallies
            if tallies is None or tallies.splits != tuple(splits):
                tallies = self.tallied(splits)
            return tallies.cells(self, lower, ladder)
        table = self._run(self.cells_sql(splits, lower, ladder))
        sums = iter([self._column(table, name) for name in table.column_names if name != "g"])
        cells: dict[Split, list[Exact]] = {split: [] for split in splits}
        for measured in self._rounds(splits, lower, ladder):
            total = next(sums)
            for split in measured:
                others = [next(sums) for _ in range(split.cells - 1)]
                cells[split].append(np.stack([total - sum(others, np.zeros_like(total)), *others], axis=1))
        return [cells[split] for split in splits]

    @staticmethod
    def _rounds(splits: Sequence[Split], lower: Sequence[Split], ladder: Ladder | None) -> list[Sequence[Split]]:
        """What is measured with each bound."""
        return [splits, *([lower] * (0 if ladder is None else len(ladder.steps) - 1))]

    def cells_sql(
        self, splits: Sequence[Split], lower: Sequence[Split] = (), ladder: Ladder | None = None
    ) -> exp.Select:
        """The statement of :meth:`laddered`: values and weights, then values in [0, 1], then the sums of all cells."""
        numbers, scaled, names = self._values(splits)
        weighted = self.groups.weighted(numbers, self.grid, self.chance, ladder)
        rounds = self._rounds(splits, lower, ladder)
        weights = [f"w{place or ''}" for place in range(len(rounds))]
        rows = exp.select(column("g"), *map(column, weights), *scaled).from_(sub(weighted, "h"), copy=False)
        sums = []
        for weight, measured in zip(weights, rounds, strict=True):
            sums.append(named(_total(column(weight)), f"s{weight[1:]}"))
            for i, split in enumerate(measured):
                parts = split.parts(column(weight), [column(names[value]) for value in split.values])
                sums += [named(_total(part), f"s{weight[1:]}_{i}_{j}") for j, part in enumerate(parts)]
        return self._by_group(sums, rows)

    def is_tallied(self, splits: Sequence[Split]) -> bool:
        """Whether people are grouped by how many rows they have, and weighed after that: see :class:`Tallies`."""
        values = {value for split in splits for value in split.values}
        return self.groups.by_number and all(value.is_two_valued(self.groups.rows) for value in values)

    def tallied(self, splits: Sequence[Split]) -> "Tallies":
        """The tallies of these splits, in one pass over the rows."""
        table = self._run(self.tallies_sql(splits))
        return Tallies(tuple(splits), {name: integers(table[name]).tolist() for name in table.column_names})

    def tallies_sql(self, splits: Sequence[Split]) -> exp.Select:
        """The statement of :meth:`tallied`: each person's rows and parts of a weight of one, then people alike in n."""
        numbers, scaled, names = self._values(splits)
        rows = exp.select(column("unit"), *scaled).from_(sub(self.groups.plain(numbers), "h"), copy=False)
        parts = {
            f"s_{i}_{j}": part
            for i, split in enumerate(splits)
            for j, part in enumerate(split.parts(whole(1), [column(names[value]) for value in split.values]))
        }
        number = exp.Count(this=exp.Star(), big_int=True)
        own = [named(typed(_total(part), BIGINT), name) for name, part in parts.items()]
        person = exp.select(named(number, "n"), *own).from_(sub(rows, "q"), copy=False).group_by(column("unit"))
        sums = [named(_total(column(name)), name) for name in parts]
        return (
            exp.select(column("n"), named(number.copy(), "p"), *sums)
            .from_(sub(person, "c"), copy=False)
            .group_by(column("n"), copy=False)
        )

    def _values(
        self, splits: Sequence[Split]
    ) -> tuple[dict[str, exp.Expression], list[exp.Expression], dict[Argument, str]]:
        """The values of some splits as floats, then in [0, 1], and what they are called."""
        values = sorted({value for split in splits for value in split.values}, key=repr)
        names = {value: f"v{i}" for i, value in enumerate(values)}
        numbers = {names[value]: value.number(self.groups.rows.values(value.text)) for value in values}
        return numbers, [named(value.scaled(column(names[value])), names[value]) for value in values], names

    def keys_sql(self) -> exp.Select:
        """Every key with the number of people who have it, where one person has at most as many as the bound says."""
        rows, by, bound = self.groups.rows, self.groups.by, self.groups.bound
        keys = [f"k{i}" for i in range(len(by))]
        columns = [named(column(name), key) for name, key in zip(by, keys, strict=True)]
        if rows.unit is None or rows.single:
            people = rows.select(columns)
        else:
            pairs = rows.select([*columns, named(column(rows.unit), "unit")]).distinct()
            people = self.chance.first(pairs, 1 if bound is None else bound.keys_of, keys, choice="keys")
        return (
            exp.select(*map(column, keys), named(exp.Count(this=exp.Star(), big_int=True), "n"))
            .from_(sub(people, "p"), copy=False)
            .group_by(*map(column, keys), copy=False)
        )

    def found_keys(self, selection: PartitionSelection, bits: Bits) -> pa.Table:
        """The keys that enough people have, in columns k0, k1 and so on. Which others there are is forgotten."""
        table = self._run(self.keys_sql())
        numbers = integers(table["n"])
        kept = selection.keep(numbers, bits) if len(numbers) else np.zeros(0, np.bool_)
        return table.select(range(len(self.groups.by))).filter(pa.array(kept))

    def contributions(self, edges: Sequence[int], *, groups: bool = False) -> Exact:
        """How many people have more rows than one edge and at most the next; the last counts all others.

        With ``groups``, how many are in more groups.
        """
        if self.tallies is not None and not groups:
            return self.tallies.people(edges)
        table = self._run(self.contributions_sql(edges, groups=groups))
        people = np.zeros(len(edges), np.int64)
        people[integers(table["b"])] = integers(table["s"])
        return people

    def contributions_sql(self, edges: Sequence[int], *, groups: bool = False) -> exp.Select:
        """The statement of :meth:`contributions`."""
        number = exp.Count(this=exp.Star(), big_int=True)
        rows = self.groups.plain({})
        if groups:
            rows = exp.select(column("unit"), column("g")).distinct().from_(sub(rows, "r"), copy=False)
        people = (
            exp.select(column("unit"), named(number, "n"))
            .from_(sub(rows, "a"), copy=False)
            .group_by(column("unit"), copy=False)
        )
        place = exp.case()
        for i, edge in enumerate(edges[:-1]):
            place = place.when(exp.LTE(this=column("n"), expression=whole(edge)), exp.Literal.number(i), copy=False)
        bucket = typed(place.else_(exp.Literal.number(len(edges) - 1), copy=False), BIGINT)
        placed = exp.select(named(bucket, "b")).from_(sub(people, "n"), copy=False)
        return (
            exp.select(column("b"), named(number.copy(), "s"))
            .from_(sub(placed, "c"), copy=False)
            .group_by(column("b"), copy=False)
        )

    def people_sql(self) -> exp.Select:
        """The weight of the people in each group."""
        return self._by_group([named(_total(column("w")), "s")], self.groups.people(self.grid, self.chance))

    def distinct_sql(self, text: str, at_most: int, weight: int = 1) -> exp.Select:
        """The weight of the different values of each group, of which one person brought at most ``at_most``."""
        value = self.groups.rows.values(text).sql
        rows = self.groups.plain({"v0": value})
        present = column("v0").is_(exp.null()).not_()
        if self.groups.rows.unit is None:
            chosen = exp.select(column("g"), column("v0")).from_(sub(rows, "a"), copy=False).where(present, copy=False)
        else:
            chosen = self.chance.first(self._brought(text), at_most, ("g", "v0"), choice="values")
        values = exp.select(column("g"), column("v0")).distinct().from_(sub(chosen, "b"), copy=False)
        number: exp.Expression = exp.Count(this=exp.Star(), big_int=True)
        if weight != 1:
            number = exp.Mul(this=number, expression=whole(weight))
        return self._by_group([named(number, "s")], values)

    def new_values_sql(self, text: str, numbers: Sequence[int]) -> exp.Select:
        """How many values each group has if everybody brings at most numbers[0], and how many more with each other.

        A value counts for the first of these numbers with which somebody brings it. The order in which people bring
        values is the same for all of them, and that of :meth:`distinct_sql`.
        """
        ranked = self.chance.ranked(self._brought(text), ("g", "v0"), choice="values")
        first = (
            exp.select(column("g"), named(exp.Min(this=column("rank")), "n"))
            .from_(sub(ranked, "a"), copy=False)
            .group_by(column("g"), column("v0"), copy=False)
        )
        place = exp.case()
        for i, number in enumerate(numbers):
            place = place.when(exp.LTE(this=column("n"), expression=whole(number)), exp.Literal.number(i), copy=False)
        placed = exp.select(column("g"), named(typed(place.else_(exp.null(), copy=False), BIGINT), "b"))
        return (
            exp.select(column("g"), column("b"), named(exp.Count(this=exp.Star(), big_int=True), "s"))
            .from_(sub(placed.from_(sub(first, "b"), copy=False), "c"), copy=False)
            .where(column("b").is_(exp.null()).not_(), copy=False)
            .group_by(column("g"), column("b"), copy=False)
        )

    def _brought(self, text: str) -> exp.Select:
        """Each value of each person in each group once."""
        rows = self.groups.plain({"v0": self.groups.rows.values(text).sql})
        return (
            exp.select(column("unit"), column("g"), column("v0"))
            .distinct()
            .from_(sub(rows, "a"), copy=False)
            .where(column("v0").is_(exp.null()).not_(), copy=False)
        )

    def buckets_sql(self, value: Argument, number: int) -> exp.Select:
        """The weight of each group in equal buckets between the bounds of a value; missing values are left out."""
        given = value.number(self.groups.rows.values(value.text))
        scaled = value.scaled(given)
        bucket = exp.Floor(this=mild(exp.Mul(this=exp.paren(scaled), expression=decimal(float(number)))))
        place = exp.Least(this=typed(bucket, BIGINT), expressions=[whole(number - 1)], ignore_nulls=True)
        return self._histogram_sql(exp.case().when(given.is_(exp.null()), exp.null()).else_(place))

    def between_sql(self, text: str, edges: Sequence[float]) -> exp.Select:
        """The weight of each group between neighbouring edges."""
        value = typed(self.groups.rows.values(text).sql, DOUBLE)
        place = exp.case().when(value.is_(exp.null()), exp.null(), copy=False)
        place = place.else_(_halved(value, edges, 0, len(edges) - 2), copy=False)
        return self._histogram_sql(typed(place, BIGINT))

    def everybody(self) -> "Measuring":
        """All rows in one group, in which everybody weighs the same, so that few people do not hide all others.

        Each of a person's n rows weighs 1/n of what a person may weigh by the bound, rounded down: together no more.
        """
        rows, bound = self.groups.rows, self.groups.bound
        if bound is None:
            return replace(self, groups=Groups(rows, (), EVERYTHING, None, None))
        return replace(self, groups=Groups(rows, (), EVERYTHING, None, Bound(rows=1)), grid=self.grid * bound.total)

    def spread(self, text: str, finding: RangeFinding) -> Exact:
        """The weight of all rows between the public edges in which bounds are searched."""
        edges = [float(edge) for edge in finding.edges]
        return np.asarray(self.exact(self.between_sql(text, edges), len(edges) - 1).sum(axis=0))

    def exact(self, select: exp.Select, cells: int) -> Exact:
        """What a statement counts for each group in so many cells."""
        table = self._run(select)
        if "b" not in table.column_names:
            return self._column(table, "s")[:, None]
        counts = np.zeros((self.groups.keys.number, cells), np.int64)
        counts[self.groups.places(table), integers(table["b"])] = integers(table["s"])
        return counts

    def _histogram_sql(self, place: exp.Expression) -> exp.Select:
        weighted = self.groups.weighted({"b": place}, self.grid, self.chance)
        return (
            exp.select(column("g"), column("b"), named(_total(column("w")), "s"))
            .from_(sub(weighted, "h"), copy=False)
            .where(column("b").is_(exp.null()).not_(), copy=False)
            .group_by(column("g"), column("b"), copy=False)
        )

    def _by_group(self, columns: Sequence[exp.Expression], rows: exp.Select) -> exp.Select:
        return exp.select(column("g"), *columns).from_(sub(rows, "q"), copy=False).group_by(column("g"), copy=False)

    def _run(self, select: exp.Select) -> pa.Table:
        return self.groups.rows.engine.run(select, progress=self.progress)

    def _column(self, table: pa.Table, name: str) -> Exact:
        sums = np.zeros(self.groups.keys.number, np.int64)
        sums[self.groups.places(table)] = integers(table[name])
        return sums


def _halved(value: exp.Expression, edges: Sequence[float], first: int, last: int) -> exp.Expression:
    """In which bucket from first to last a value is, by halves: few comparisons for each row, however many edges."""
    if first == last:
        return exp.Literal.number(first)
    middle = (first + last + 1) // 2
    below = exp.LT(this=value.copy(), expression=decimal(edges[middle]))
    left, right = _halved(value, edges, first, middle - 1), _halved(value, edges, middle, last)
    return exp.case().when(below, left, copy=False).else_(right, copy=False)


def _total(sql: exp.Expression) -> exp.Expression:
    """A sum that is 0 where there is nothing to add."""
    return exp.Coalesce(this=exp.Sum(this=sql), expressions=[exp.Literal.number(0)])


@final
@dataclass(frozen=True, slots=True)
class Tallies:
    r"""How many people have n rows, and how many of all their rows are in each cell, for every n that there is.

    Of one group, where each row has one cell: its values are two, so it gives that cell its whole weight. What a row
    weighs follows from n. So this tells the cells for every bound, and how many people have how many rows.

    Guarantee:
        The cells are those that :meth:`Measuring.cells_sql` adds up row by row, to the last bit: a part of a weight w
        is :math:`\lfloor w x \rfloor` with x = 0 or 1, and so w times the part of a weight of one. Whatever is in a
        row, its parts of a weight of one are non-negative integers that add up to one, so that the n rows of a person
        move all cells together by n weights at most.

    >>> Tallies((Split(),), {"n": [1, 3], "p": [5, 2]}).people((1, 2, 4)).tolist()
    [5, 0, 2]
    """

    splits: tuple[Split, ...]
    columns: Mapping[str, Sequence[int]]

    def people(self, edges: Sequence[int]) -> Exact:
        """How many people have more rows than one edge and at most the next; the last counts all others."""
        people = np.zeros(len(edges), np.int64)
        places = np.minimum(np.searchsorted(edges, np.array(self.columns["n"], np.int64)), len(edges) - 1)
        np.add.at(people, places, np.array(self.columns["p"], np.int64))
        return people

    def cells(self, measuring: Measuring, lower: Sequence[Split], ladder: Ladder | None) -> list[list[Exact]]:
        """The cells of every split with each bound, as :meth:`Measuring.laddered` gives them."""
        numbers = self.columns["n"]
        weights = [measuring.groups.weights_of(number, measuring.grid, ladder) for number in numbers]
        rows = [number * people for number, people in zip(numbers, self.columns["p"], strict=True)]

        def weighed(counts: Sequence[int], place: int) -> int:
            return sum(weight[place] * count for weight, count in zip(weights, counts, strict=True))

        cells: list[list[Exact]] = []
        for i, split in enumerate(self.splits):
            rounds = range(1 if ladder is None or split not in lower else len(ladder.steps))
            parts = [self.columns[f"s_{i}_{j}"] for j in range(split.cells - 1)]
            firsts = [row - sum(others) for row, *others in zip(rows, *parts, strict=True)]
            cells.append([_exact([weighed(counts, place) for counts in (firsts, *parts)])[None, :] for place in rounds])
        return cells


def _exact(sums: Sequence[int]) -> Exact:
    """Sums as an engine gives them: as integers of 64 bits, or not at all."""
    return integers(pa.chunked_array([pa.array([Decimal(one) for one in sums], pa.decimal128(38, 0))]))


@final
@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a release: what it is for, its text, and the work it asks for, outermost first."""

    purpose: str
    sql: str
    work: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.purpose, *(f"  {line}" for line in self.work)])
