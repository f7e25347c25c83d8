"""Weights of rows under a contribution bound, or a private sample of each person's rows.

A private choice among each person's rows, made in the engine with a key that nobody keeps.

Guarantee:
    The rows of a person are numbered in the order of what they hold, and ranked by SHA-256 of a fresh 128-bit key, the
    person and the number. Numbers of one person are distinct, so the ranks of all rows are independent and uniform:
    every subset of a person's rows is chosen as likely as every other of its size, and which one says nothing about,
    and depends on nothing in, the rows of anybody else. Rows that hold the same are interchangeable, so for one key
    every engine chooses the same rows, in whatever order it reads them.

    Each choice has a name, which is hashed too: the same number in two choices is two independent ranks.
Assumes:
    SHA-256 with a secret prefix is a random function to whoever does not know the key: a computational guarantee,
    unlike that of the noise. The key is forgotten after the query, but it is part of the SQL text: an engine that logs
    its statements keeps it, so such logs are as private as the data.

Rows with their weights, in the engine's SQL: what holds a bound on one person exactly.

Everybody's rows, after filters and without those of other groups than the public ones, get an integer weight ``w``.
A full row weighs ``grid``, a number that is public or was paid for.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from defocus.engines.engine import integers
from defocus.engines.syntax import BIGINT, TEXT, column, named, over, quoted, sub, typed, whole
from defocus.noise import Bits
from defocus.tables.contribution import Bound
from defocus.tables.keys import Keys, StoredKeys
from defocus.tables.lower_bound import Ladder
from defocus.tables.rows import Rows

__all__ = ["AMONG_KEYS", "Groups", "RowSampler", "first_of_range", "group_of", "numbered", "published"]


AMONG_KEYS = "among keys"
"""Marks the condition that stands for a join with keys."""


@final
@dataclass(frozen=True, slots=True)
class RowSampler:
    """One key. Drawn anew for every release."""

    key: str = field(repr=False)
    statement: str = ""
    """For which statement of the release rows are chosen."""

    @classmethod
    def drawn(cls, bits: Bits) -> "RowSampler":
        """A fresh key."""
        return cls(f"{bits.integer(128):032x}")

    def of(self, statement: str) -> "RowSampler":
        """The same key for one statement, whose choices are independent of those of all others."""
        return replace(self, statement=statement)

    def first(
        self, rows: exp.Select, most: int, kept: Sequence[str], *, choice: str, within: Sequence[str] = ("unit",)
    ) -> exp.Select:
        """At most ``most`` rows of each person, or of each person ``within`` a group."""
        few = exp.LTE(this=column("rank"), expression=exp.Literal.number(most))
        return (
            exp.select(*map(column, dict.fromkeys((*within, *kept))))
            .from_(sub(self.ranked(rows, kept, choice=choice, within=within), "c"), copy=False)
            .where(few, copy=False)
        )

    def ranked(
        self, rows: exp.Select, kept: Sequence[str], *, choice: str, within: Sequence[str] = ("unit",)
    ) -> exp.Select:
        """The rows of each person in a random order, each with its place in it as ``rank``."""
        names = list(dict.fromkeys((*within, *kept)))
        held = [name for name in names if name not in within]
        numbered = exp.select(*map(column, names), named(_place(within, [column(name) for name in held]), "no"))
        identity = [*map(column, within), column("no")]
        ranked = exp.select(*map(column, names), named(_place(within, [self.rank(identity, choice)]), "rank"))
        return ranked.from_(sub(numbered.from_(sub(rows, "a")), "b"))

    def pairs(self, pairs: exp.Select, most: int) -> exp.Select:
        """At most ``most`` of the distinct groups of each person, the same ones in every statement of a release."""
        return self.of("").first(pairs, most, ("g",), choice="groups")

    def groups(self, rows: exp.Select, most: int, kept: Sequence[str]) -> exp.Select:
        """All rows of each person in at most ``most`` groups."""
        pairs = exp.select(column("unit"), column("g")).distinct().from_(sub(rows, "a"), copy=False)
        chosen = self.pairs(pairs, most)
        names = list(dict.fromkeys(("unit", *kept)))
        same = [exp.EQ(this=column(name, "x"), expression=column(name, "y")) for name in ("unit", "g")]
        return (
            exp.select(*(column(name, "x") for name in names))
            .from_(sub(rows, "x"), copy=False)
            .join(sub(chosen, "y"), on=exp.and_(*same), copy=False)
        )

    def rank(self, identity: Sequence[exp.Expression], choice: str) -> exp.Expression:
        """SHA-256 of the key, of what the choice is called, and of what tells a row apart, in hexadecimal.

        Parts are written with their lengths, so that two rows never share a text.
        """
        called = "".join(f"#{len(part)}:{part}" for part in (self.statement, choice))
        text: exp.Expression = exp.Literal.string(self.key + called)
        for part in identity:
            words = exp.func("coalesce", typed(part.copy(), TEXT), exp.Literal.string(""))
            size = typed(exp.Length(this=words.copy()), TEXT)
            absent = (
                exp.case().when(part.copy().is_(exp.null()), exp.Literal.string("n")).else_(exp.Literal.string("v"))
            )
            for piece in (absent, size, exp.Literal.string(":"), words):
                text = exp.DPipe(this=text, expression=piece, safe=True)
        return exp.SHA2(this=text, length=exp.Literal.number(256))


def _place(within: Sequence[str], order: Sequence[exp.Expression]) -> exp.Expression:
    """The number of a row among those of the same person, in this order; rows that tie are interchangeable."""
    ordered = [exp.Ordered(this=one, nulls_first=True) for one in order]
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[column(name) for name in within],
        order=exp.Order(expressions=ordered) if ordered else None,
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows in groups that are known by number, and how much one person may weigh in them.

    ``bound`` is None where each row is a unit of its own.
    """

    rows: Rows
    by: tuple[str, ...]
    keys: Keys | StoredKeys
    published: exp.Table | None
    """The keys where the engine finds them, with their numbers in the column ``g``; None where it needs none."""
    bound: Bound | None
    first: int | None = None
    """The least key where keys are whole numbers without a gap: such a group is called by its key, without a join."""

    def plain(self, values: Mapping[str, exp.Expression], *, unit: bool = True) -> exp.Select:
        """One row for each row: ``unit``, its group ``g``, and ``values``."""
        columns = [named(sql.copy(), name) for name, sql in values.items()]
        if self.rows.unit is not None and unit:
            columns.append(named(column(self.rows.unit), "unit"))
        if isinstance(self.keys, StoredKeys):
            return self._named(self.keys, columns)
        if self.first is not None:
            key, last = column(self.by[0]), self.first + self.keys.number - 1
            among = exp.Between(this=key.copy(), low=whole(self.first), high=whole(last))
            among.meta[AMONG_KEYS] = True
            return self.rows.select([*columns, named(key, "g")]).where(among, copy=False)
        if self.published is None:
            return self.rows.select([*columns, named(exp.Literal.number(0), "g")])
        keyed = [named(column(name), f"k{i}") for i, name in enumerate(self.by)]
        inner = self.rows.select([*columns, *keyed])
        kept = [column(name, "r") for name in values] + ([column("unit", "r")] if unit and self.rows.unit else [])
        matches = [
            (exp.NullSafeEQ if self.keys.nullable else exp.EQ)(
                this=column(f"k{i}", "r"), expression=column(f"k{i}", "p")
            )
            for i in range(len(self.by))
        ]
        return (
            exp.select(*kept, column("g", "p"))
            .from_(sub(inner, "r"), copy=False)
            .join(exp.alias_(self.published.copy(), quoted("p"), table=True), on=exp.and_(*matches), copy=False)
        )

    def _named(self, keys: StoredKeys, columns: Sequence[exp.Expression]) -> exp.Select:
        """The same where groups are called by their keys: a semi-join, in which a key that is there twice counts once.

        Where there is no bound to hold, a row of another group changes nothing in these, and whoever adds them up
        leaves its group out; no join is needed before that.
        """
        called = [named(column(name), f"k{i}") for i, name in enumerate(self.by)]
        inner = sub(self.rows.select([*columns, *called]), "r")
        shown = [column(part.alias, "r") for part in columns]
        select = exp.select(*shown, named(group_of(len(self.by), "r"), "g")).from_(inner, copy=False)
        if self.bound is None or self.rows.single:
            return select
        same = [exp.EQ(this=column(f"k{i}", "r"), expression=column(f"k{i}", "p")) for i in range(len(self.by))]
        there = exp.select(exp.Literal.number(1)).from_(sub(keys.relation.copy(), "p")).where(exp.and_(*same))
        return select.where(exp.Exists(this=there), copy=False)

    def weighted(
        self, values: Mapping[str, exp.Expression], grid: int, chance: RowSampler, ladder: Ladder | None = None
    ) -> exp.Select:
        """One row for each row that counts: ``g``, its weight ``w``, and ``values``.

        With a ``ladder``, whose first bound is this one, there are weights ``w1`` for its lower one.
        """
        if self.bound is None or self.rows.single:  # under every bound one row of a person is a full row
            grids = [grid] if ladder is None else ladder.grids
            return self.plain({**values, **{_weight(i): whole(one) for i, one in enumerate(grids)}}, unit=False)
        if self.bound.by == "sampling":
            return self._sampled(values, grid, chance)
        if self.rows.counted is not None and self._is_one and self.bound.per_group is None:
            return self.plain({**values, **self._shares(grid, column(self.rows.counted), ladder)}, unit=False)
        if self._once:
            return self._beside(values, grid, ladder)
        if self.bound.per_group is None:
            return self._joined(values, self._by_person(grid, ladder), ("unit",), ladder)
        return self._joined(values, self._by_person_and_group(grid), ("unit", "g"))

    def _shares(self, grid: int, number: exp.Expression, ladder: Ladder | None) -> dict[str, exp.Expression]:
        """The weights of a row of somebody with this number of them: grid·R // max(n, R), so n weigh at most grid·R."""
        total = _bound(self.bound).total
        if ladder is None:
            return {"w": _share(grid * total, number, total)}
        together = [_share(most, number.copy(), rows) for most, rows in ladder.steps]
        lower = [exp.paren(exp.Sub(this=after, expression=before.copy())) for before, after in pairwise(together)]
        return {_weight(i): share for i, share in enumerate([together[0], *lower])}

    @property
    def by_number(self) -> bool:
        """Whether what a row weighs follows from how many rows its person has, and from nothing else."""
        bounded = self.bound is not None and self.bound.by == "weights" and self.bound.per_group is None
        return bounded and self._is_one and not self.rows.single

    def weights_of(self, number: int, grid: int, ladder: Ladder | None = None) -> list[int]:
        """What each row of somebody with so many weighs: what :meth:`weighted` gives it, with each bound."""
        total = _bound(self.bound).total
        return [grid * total // max(number, total)] if ladder is None else ladder.weights(number)

    def people(self, grid: int, chance: RowSampler) -> exp.Select:
        """One row for each person in each group: ``g`` and the person's weight ``w`` there."""
        if self.bound is None or self.rows.single:
            return self.plain({"w": whole(grid)}, unit=False)
        pairs = exp.select(column("unit"), column("g")).distinct().from_(self._inner({}), copy=False)
        most = self.bound.people_in
        if self._is_one or most >= self.keys.number:
            return exp.select(column("g"), named(whole(grid), "w")).from_(sub(pairs, "d"), copy=False)
        if self.bound.by == "sampling":
            return _full(chance.pairs(pairs, most), ("g",), grid)
        if self._once:
            share = _share(grid * most, over(exp.Count(this=exp.Star(), big_int=True), "unit"), most)
            return exp.select(column("g"), named(share, "w")).from_(sub(pairs, "d"), copy=False)
        shares = (
            exp.select(column("unit"), named(_share(grid * most, exp.Count(this=exp.Star(), big_int=True), most), "w"))
            .from_(sub(pairs.copy(), "d"), copy=False)
            .group_by(column("unit"), copy=False)
        )
        return (
            exp.select(column("g", "r"), column("w", "c"))
            .from_(sub(pairs, "r"), copy=False)
            .join(sub(shares, "c"), on=_same("unit"), copy=False)
        )

    def places(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """The numbers of the groups in what the engine found."""
        return integers(table["g"]) - (self.first or 0)

    @property
    def _is_one(self) -> bool:
        """Whether all rows are one group."""
        return self.published is None and self.first is None and not isinstance(self.keys, StoredKeys)

    @property
    def _once(self) -> bool:
        """Whether rows are counted beside each of them, since reading them is dear: windows in them are, say."""
        return self.rows.engine.reads_once or self.rows.relation.find(exp.Window) is not None

    def _inner(self, values: Mapping[str, exp.Expression]) -> exp.Subquery:
        return sub(self.plain(values), "i")

    def _by_person(self, grid: int, ladder: Ladder | None) -> exp.Select:
        """``unit`` and the weights of each of its rows."""
        shares = self._shares(grid, exp.Count(this=exp.Star(), big_int=True), ladder)
        return (
            exp.select(column("unit"), *(named(share, name) for name, share in shares.items()))
            .from_(self._inner({}), copy=False)
            .group_by(column("unit"), copy=False)
        )

    def _by_person_and_group(self, grid: int) -> exp.Select:
        """``unit``, ``g`` and the weight of each row there.

        A row weighs a = grid·P // max(n, P), so a group weighs at most grid·min(n, P); with t the sum of the
        min(n, P) over a person's groups, a·C // max(t, C) makes all of them weigh at most grid·C.
        """
        bound = _bound(self.bound)
        most = bound.per_group or bound.total
        counted = (
            exp.select(column("unit"), column("g"), named(exp.Count(this=exp.Star(), big_int=True), "n"))
            .from_(self._inner({}), copy=False)
            .group_by(column("unit"), column("g"), copy=False)
        )
        at_most = exp.Least(this=column("n"), expressions=[whole(most)], ignore_nulls=True)
        totals = (
            exp.select(column("unit"), named(typed(exp.Sum(this=at_most), BIGINT), "t"))
            .from_(sub(counted.copy(), "n"), copy=False)
            .group_by(column("unit"), copy=False)
        )
        weight = _share_of_share(grid, bound, column("n", "r"), column("t", "c"))
        return (
            exp.select(column("unit", "r"), column("g", "r"), named(weight, "w"))
            .from_(sub(counted, "r"), copy=False)
            .join(sub(totals, "c"), on=_same("unit"), copy=False)
        )

    def _joined(
        self,
        values: Mapping[str, exp.Expression],
        weights: exp.Select,
        on: Sequence[str],
        ladder: Ladder | None = None,
    ) -> exp.Select:
        weighed = [column(_weight(i), "c") for i in range(1 if ladder is None else len(ladder.steps))]
        return (
            exp.select(column("g", "r"), *weighed, *(column(name, "r") for name in values))
            .from_(sub(self.plain(values), "r"), copy=False)
            .join(sub(weights, "c"), on=exp.and_(*map(_same, on)), copy=False)
        )

    def _beside(self, values: Mapping[str, exp.Expression], grid: int, ladder: Ladder | None) -> exp.Select:
        """The same weights, counted beside each row: the rows are read once, and weighed as they were counted."""
        bound, kept = _bound(self.bound), ("g", *values)
        number = exp.Count(this=exp.Star(), big_int=True)
        shown = [column(name) for name in kept]
        if bound.per_group is None:
            shares = self._shares(grid, over(number, "unit"), ladder)
            weighed = [named(share, name) for name, share in shares.items()]
            return exp.select(*shown, *weighed).from_(self._inner(values), copy=False)
        # Of the rows of a person in a group, the first min(n, P) are counted.
        place = named(over(exp.RowNumber(), "unit", "g"), "no")
        counted = exp.select(*shown, column("unit"), named(over(number, "unit", "g"), "n"), place)
        few = exp.LTE(this=column("no"), expression=whole(bound.per_group))
        within = exp.Sum(this=exp.case().when(few, whole(1)).else_(whole(0)))
        totals = exp.select(*shown, column("n"), named(typed(over(within, "unit"), BIGINT), "t"))
        weight = _share_of_share(grid, bound, column("n"), column("t"))
        return exp.select(*shown, named(weight, "w")).from_(
            sub(totals.from_(sub(counted.from_(self._inner(values)), "a")), "b"), copy=False
        )

    def _sampled(self, values: Mapping[str, exp.Expression], grid: int, chance: RowSampler) -> exp.Select:
        bound, kept = _bound(self.bound), ("g", *values)
        rows = self.plain(values)
        if bound.per_group is not None:
            rows = chance.first(rows, bound.per_group, kept, within=("unit", "g"), choice="rows of a group")
        if bound.groups is not None:
            rows = chance.groups(rows, bound.groups, kept)
        return _full(chance.first(rows, bound.total, kept, choice="rows"), kept, grid)


def group_of(number: int, table: str) -> exp.Expression:
    """What a group is called where keys are not numbered: its key, or a struct of so many of them."""
    if number == 1:
        return column("k0", table)
    fields = [exp.PropertyEQ(this=quoted(f"k{i}"), expression=column(f"k{i}", table)) for i in range(number)]
    return exp.Struct(expressions=fields)


def numbered(rows: Rows, by: tuple[str, ...], keys: Keys | StoredKeys, bound: Bound | None) -> Groups:
    """Rows in numbered groups, or in those of keys that the engine reads. Keys are public, so it may see them."""
    if isinstance(keys, StoredKeys) or not keys.table.num_columns:
        return Groups(rows, by, keys, None, bound)
    first = first_of_range(keys)
    if first is not None:
        return Groups(rows, by, keys, None, bound, first)
    table = keys.table.rename_columns([f"k{i}" for i in range(keys.table.num_columns)])
    table = table.append_column("g", pa.array(np.arange(keys.number), pa.int64()))
    return Groups(rows, by, keys, rows.engine.publish("keys", table), bound)


def first_of_range(keys: Keys) -> int | None:
    """The least of keys that are whole numbers in order and without a gap."""
    if keys.table.num_columns != 1 or not keys.number or keys.nullable or not pa.types.is_integer(keys.table[0].type):
        return None
    values = integers(keys.table[0])
    return int(values[0]) if (np.diff(values) == 1).all() else None


@contextmanager
def published(rows: Rows, by: tuple[str, ...], keys: Keys | StoredKeys, bound: Bound | None) -> Iterator[Groups]:
    """The same for as long as it takes; the engine forgets the keys afterwards."""
    groups = numbered(rows, by, keys, bound)
    try:
        yield groups
    finally:
        if groups.published is not None:
            rows.engine.withdraw(groups.published)


def _weight(place: int) -> str:
    """The column with the weights of a bound, by its place in a ladder."""
    return f"w{place or ''}"


def _same(name: str) -> exp.Expression:
    return exp.EQ(this=column(name, "r"), expression=column(name, "c"))


def _share(total: int, number: exp.Expression, at_least: int) -> exp.Expression:
    """The whole part of total / max(number, at_least), in 64-bit integers."""
    return exp.IntDiv(
        this=whole(total), expression=exp.Greatest(this=number, expressions=[whole(at_least)], ignore_nulls=True)
    )


def _share_of_share(grid: int, bound: Bound, in_group: exp.Expression, in_all: exp.Expression) -> exp.Expression:
    """The weight of a row by the rows of its person in its group, and by those that all groups count."""
    most = bound.per_group or bound.total
    row = exp.paren(_share(grid * most, in_group, most))
    return exp.IntDiv(
        this=exp.Mul(this=row, expression=whole(bound.total)),
        expression=exp.Greatest(this=in_all, expressions=[whole(bound.total)], ignore_nulls=True),
    )


def _full(rows: exp.Select, kept: Sequence[str], grid: int) -> exp.Select:
    columns = [column(name) for name in kept]
    return exp.select(*columns, named(whole(grid), "w")).from_(sub(rows, "s"), copy=False)


def _bound(bound: Bound | None) -> Bound:
    assert bound is not None  # noqa: S101  # only asked where people have several rows
    return bound
