"""The rows a question is about: one private table, filtered, with derived columns and joined tables.

Every step turns one row into at most one row of the same person, or a person's rows into rows of that person
(:mod:`defocus.tables.person_features`), so nothing here needs a budget.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import pyarrow as pa
from sqlglot import exp

from defocus.engines.engine import Engine
from defocus.engines.files import Files
from defocus.engines.schema import Column, Kind, Schema, check_names, lasting
from defocus.engines.sources import source
from defocus.engines.syntax import column, named, quoted, rows_of, sub
from defocus.errors import InvalidParameterError, SourceError, UnsupportedSqlError, WrongKindError, choice
from defocus.tables.expressions import Expression, expression
from defocus.tables.expressions.conditions import confined

__all__ = ["Division", "Rows", "join_private", "join_public", "renamed"]


_MOST_STEPS = 48
"""How often rows can be filtered, derived from and joined. Each step is a layer of SQL, which is written and read by
recursion: refused here, it costs nothing; once a budget is charged, failing would waste it."""
_JOIN = 6
_DEEP = 12
_MOST_TEXTS, _MOST_EXTRA = 2_048, 131_072
"""How long all derived texts of a row can be together, as :class:`Column` bounds each."""


@final
@dataclass(frozen=True, slots=True)
class Division:
    """What divides the rows into parts, and which parts these rows are; see :mod:`defocus.tables.parts`."""

    column: str
    kind: str
    apart: str | None = None
    """Why a release from one part costs the others nothing; None where it costs everybody."""
    chosen: tuple[str, ...] = ()
    """The labels of the parts that these rows are restricted to; none where they are of all parts."""
    files: Files | None = field(default=None, repr=False, compare=False)
    """The files of the opened table, if folders divide them."""


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """A relation that the engine can read, what its columns are, and which of them names the person."""

    engine: Engine
    relation: exp.Expression
    schema: Schema
    unit: str | None
    """The column that names the person; None where each row is its own unit."""
    words: tuple[str, ...] = ()
    """What was done to the rows, for people."""
    steps: int = 0
    """How many layers that made."""
    division: Division | None = None
    """Follows the rows it is about through every step; those of another table keep their own, which is none."""
    single: bool = False
    """Whether nobody has more than one row, so that no bound on contributions is needed."""
    multiplied: bool = False
    """Whether one row of the table may be several, since it met those of another."""
    counted: str | None = None
    """A column of the relation, and not of the schema, with the number of rows of the row's person, if there is one."""

    @property
    def charged(self) -> tuple[str, ...]:
        """The labels of the parts that a release from these rows is charged to; none for everybody."""
        return () if self.division is None or self.division.apart is None else self.division.chosen

    @property
    def number_is_declared(self) -> bool:
        """Whether how many rows there are follows from the unit alone: no row is left out for what it holds.

        A filter leaves rows out, also one in a view, and so does a reader of lines that cannot be read. What views are
        in other engines is not seen here, so there the number is never taken for declared.
        """
        untouched = not self.steps and not self.words and self.engine.name == "DuckDB"
        return untouched and self.relation.find(exp.Where, exp.ReadCSV) is None

    def where(self, text: str) -> "Rows":
        """The rows for which a condition holds; where it is NULL it does not hold.

        Columns are then known to lie between the ends that it tells, so that an aggregate needs no others.
        """
        self._after(1)  # before anything is read
        condition = expression(text, self.schema)
        if condition.kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"A condition must be true or false, but {condition.text!r:.80} is of kind {condition.kind}.",
                fix='compare it with something: where("age >= 18").',
            )
        kept = self._select(self.schema.names).where(condition.condition, copy=False)
        then = self._then(kept, [condition], [f"only rows where {condition.text}"])
        return replace(then, schema=confined(self.schema, condition.ends))

    def derive(self, columns: Mapping[str, str | Expression], kept: Sequence[str] | None = None) -> "Rows":
        """More columns, each computed from the same row; only those of them and of the others that are ``kept``."""
        self._after(1)  # before anything is read
        derived: dict[str, Expression] = {}
        for name, text in columns.items():
            if not name or name in self.schema:
                raise InvalidParameterError(
                    f"A derived column cannot be called {name!r:.60}.",
                    fix="give it a name that the table does not have.",
                )
            derived[name] = text if isinstance(text, Expression) else expression(text, self.schema)
        schema = Schema((*self.schema, *(_column(name, value) for name, value in derived.items())))
        if kept is not None:
            schema = Schema(schema[name] for name in kept)
        _refuse_long(schema)
        taken = {name.casefold() for name in derived}
        counted = None if self.counted is None or self.counted.casefold() in taken else self.counted
        select = self._select([] if counted is None else [counted])
        for name in schema.names:
            select = select.select(named(derived[name].sql, name) if name in derived else column(name), copy=False)
        words = [f"{name} is {value.text}" for name, value in derived.items()]
        return replace(self._then(select, list(derived.values()), words), schema=schema, counted=counted)

    def renamed(self, names: Any) -> "Rows":
        """The rows with other names for some columns."""
        if not isinstance(names, Mapping) or not all(isinstance(new, str) and new.strip() for new in names.values()):
            raise InvalidParameterError("Columns are renamed by a dict.", fix='pass {"dep_delay": "delay"}.')
        for name in names:
            self.schema.usable(name)
        if self.division is not None and self.division.column in names:
            raise InvalidParameterError(
                f"{self.division.column!r:.60} divides the table into parts.", fix="rename another column."
            )
        called = {own: names.get(own, own) for own in self.schema.names}
        check_names(called.values(), "the renamed table")
        words = (*self.words, *(f"{old} is called {new}" for old, new in names.items()))
        return replace(renamed(self, called), words=words, steps=self._after(1))

    def select(self, columns: Sequence[exp.Expression]) -> exp.Select:
        """The given expressions over rows that belong to somebody."""
        select = exp.select(*columns).from_(self._from(), copy=False)
        if self.unit is not None:
            select = select.where(column(self.unit).is_(exp.null()).not_(), copy=False)
        return select

    def facts(self) -> str:
        """Which rows these are, the same each time they are asked for: without the names given to published tables."""
        relation = self.relation.sql("duckdb", identify=True, comments=False)
        return "; ".join((*self.words, lasting(relation)))

    def values(self, text: str) -> Expression:
        """An expression over one row."""
        return expression(text, self.schema)

    def joinable(self, other: int = 0) -> int:
        """How many steps there are after a join with rows that have taken some already, unless they are too many."""
        return self._after(_JOIN + other)

    def joined(self, relation: exp.Expression, schema: Schema, words: str, steps: int, *, single: bool) -> "Rows":
        """These rows after a join, which must keep every row with its person."""
        _refuse_long(schema)
        told = (*self.words, words)
        return replace(self, relation=relation, schema=schema, words=told, steps=steps, single=single, counted=None)

    def made(
        self, select: exp.Select, schema: Schema, read: Sequence[Expression], words: Sequence[str], *, layers: int
    ) -> "Rows":
        """Rows that a statement makes of these, each of the person whose rows it is made of."""
        _refuse_long(schema)
        return replace(self._then(select, read, words, layers), schema=schema)

    def _after(self, more: int) -> int:
        """How many steps there are after more of them, unless they are too many."""
        if self.steps + more > _MOST_STEPS:
            raise UnsupportedSqlError(
                f"A question with more than {_MOST_STEPS} filters, derived columns and joins",
                why=f"each is a layer for the engine, a join counts for {_JOIN}, and deep nesting for several",
                fix="join conditions with AND in one filter, derive several columns at once, or ask smaller questions.",
            )
        return self.steps + more

    def _select(self, names: Sequence[str]) -> exp.Select:
        return exp.select(*(column(name) for name in names)).from_(self._from(), copy=False)

    def _from(self) -> exp.Expression:
        return rows_of(self.relation)

    def _then(self, select: exp.Select, read: Sequence[Expression], words: Sequence[str], layers: int = 1) -> "Rows":
        levels = max((_levels(tree) for one in read for tree in (one.sql, one.condition)), default=0)
        steps = self._after(layers + max(0, levels - _DEEP) // 4)
        return replace(self, relation=select, words=(*self.words, *words), steps=steps, counted=None)


def _column(name: str, value: Expression) -> Column:
    """A derived column, with what its form tells about its values and how much longer than the data texts can be."""
    column = Column(name, value.kind, values=value.values, growth=value.growth if value.kind is Kind.TEXT else None)
    if not value.kind.numeric or value.bounds is None or value.bounds[0] >= value.bounds[1]:
        return column
    return replace(column, low=value.bounds[0], high=value.bounds[1])


def _refuse_long(schema: Schema) -> None:
    """Refuse derived columns that may together fill the memory on one row, which would tell that it is there."""
    grown = [column.growth for column in schema if column.growth is not None]
    if sum(texts for texts, _ in grown) > _MOST_TEXTS or sum(extra for _, extra in grown) > _MOST_EXTRA:
        raise UnsupportedSqlError(
            "So many derived columns of long text",
            why="together they may exceed the memory for one row",
            fix="derive fewer of them, or use shorter replacements and fewer concatenations.",
        )


def _levels(tree: exp.Expression) -> int:
    """How deep a tree is, without recursion."""
    levels, row = 0, [tree]
    while row:
        levels, row = levels + 1, [child for node in row for child in node.iter_expressions()]
    return levels


_HOW = ("left", "inner")


def renamed(rows: Rows, names: Mapping[str, str]) -> Rows:
    """The same rows with some columns only, under new names; the one that names the person must be among them."""
    kept = [own for own in rows.schema if own.name in names]
    relation = rows.select([named(column(one.name), names[one.name]) for one in kept])
    schema = Schema(replace(one, name=names[one.name]) for one in kept)
    unit = None if rows.unit is None else names[rows.unit]
    return replace(rows, relation=relation, schema=schema, unit=unit, counted=None)


def join_public(rows: Rows, other: Any, on: object, how: object) -> Rows:
    """The rows with the columns of a public table in which each key appears once.

    Every row then has at most one match, so it stays one row of the same person.
    """
    pairs, side, steps = _on(on), choice("join", how, _HOW), rows.joinable()
    names = list(pairs)
    opened = source(other)
    try:
        table = opened.engine.run(opened.relation)
    finally:
        opened.engine.close()
    for mine, theirs in pairs.items():
        _matching(rows.schema.usable(mine), opened.schema.usable(theirs))
    opened, table = _as_here(opened, table, pairs)
    if table.group_by(names).aggregate([]).num_rows != table.num_rows:
        raise SourceError(
            f"The public table has several rows for the same {', '.join(names)}, so one row would become many.",
            fix="keep one row for each key of the public table.",
        )
    added = [column for column in opened.schema if column.name not in names and column.kind is not Kind.OTHER]
    kept = table.select([*names, *(column.name for column in added)])
    # Its content is part of the name, so that two questions about different public tables can be told apart.
    published = rows.engine.publish(f"joined {_digest(kept)}", kept)
    words = f"joined with {opened.description} on {', '.join(names)}"
    return _joined(rows, published, added, on=names, side=side, words=words, steps=steps, single=rows.single)


def join_private(rows: Rows, other: Rows, on: object, how: object) -> Rows:
    """The rows with those of another private table of the same people, matched by the person.

    A row may meet several of the same person's rows; bounds on contributions are held after the join.
    """
    pairs, side = _on(on), choice("join", how, _HOW)
    if any(mine != theirs for mine, theirs in pairs.items()):
        called = {theirs: mine for mine, theirs in pairs.items()}
        _refuse_taken(called, other.schema.names)
        other = renamed(other, {own: called.get(own, own) for own in other.schema.names})
    names = list(pairs)
    if rows.unit is None or other.unit is None or rows.unit not in names:
        raise InvalidParameterError(
            "Private tables can be joined only on the column that names the person in both.",
            fix='protect people with unit=user("…"), and put that column in on=.',
        )
    if rows.unit != other.unit:
        raise InvalidParameterError(
            f"One table calls the person {rows.unit!r}, the other {other.unit!r}.", fix="rename one of the columns."
        )
    if rows.engine is not other.engine:
        raise InvalidParameterError(
            "The two private tables were not opened together.",
            fix='open both at once, dp.open(data, private={"patients": …}), and join them by that name.',
        )
    steps = rows.joinable(other.steps)
    for name in names:
        _matching(rows.schema.usable(name), other.schema.usable(name))
    added = [theirs for theirs in other.schema if theirs.name not in names and theirs.kind is not Kind.OTHER]
    relation = other.select([column(name) for name in (*names, *(theirs.name for theirs in added))])
    words = "; ".join(("joined with another private table of the same people", *other.words))
    single, several = rows.single and other.single, rows.multiplied or other.multiplied or not other.single
    both = _joined(rows, relation.subquery(), added, on=names, side=side, words=words, steps=steps, single=single)
    return replace(both, multiplied=several)


def _joined(
    rows: Rows,
    right: exp.Expression,
    added: Sequence[Column],
    *,
    on: Sequence[str],
    side: str,
    words: str,
    steps: int,
    single: bool,
) -> Rows:
    schema = Schema((*rows.schema, *added))
    left = rows.select([column(name) for name in rows.schema.names])
    columns = [column(name, "l") for name in rows.schema.names]
    columns += [column(theirs.name, "j") for theirs in added]
    same = [exp.EQ(this=column(name, "l"), expression=column(name, "j")) for name in on]
    other = exp.alias_(right, quoted("j"), table=True)
    relation = (
        exp.select(*columns)
        .from_(sub(left, "l"), copy=False)
        .join(other, on=exp.and_(*same), join_type=side, copy=False)
    )
    return rows.joined(relation, schema, words, steps, single=single)


def _digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:16]


def _on(on: object) -> dict[str, str]:
    """The columns here, each with its partner in the other table."""
    names = [on] if isinstance(on, str) else on
    same = [(name, name) for name in names] if isinstance(names, list) else []
    listed = list(names.items()) if isinstance(names, Mapping) else same
    if not listed or not all(isinstance(name, str) for pair in listed for name in pair):
        raise InvalidParameterError(
            "A join needs columns.",
            fix='pass on="department", on=["ward", "year"], or on={"dest": "faa"} where the other table calls it so.',
        )
    pairs = dict(listed)
    if len(set(pairs.values())) != len(pairs):
        raise InvalidParameterError("A join has one column twice.", fix="give each column one partner.")
    return pairs


def _refuse_taken(called: Mapping[str, str], names: Sequence[str]) -> None:
    """Refuse to call a column of another table as a different column there is called."""
    for theirs, mine in called.items():
        if mine != theirs and mine in names and mine not in called:
            raise InvalidParameterError(
                f"The other table has a column {mine!r:.60} besides {theirs!r:.60}.", fix="rename or drop one of them."
            )


def _as_here(opened: Any, table: pa.Table, pairs: Mapping[str, str]) -> tuple[Any, pa.Table]:
    """A public table whose keys are called as they are here."""
    called = {theirs: mine for mine, theirs in pairs.items()}
    if all(mine == theirs for mine, theirs in pairs.items()):
        return opened, table
    _refuse_taken(called, opened.schema.names)
    names = {own: called.get(own, own) for own in opened.schema.names}
    schema = Schema(replace(own, name=names[own.name]) for own in opened.schema)
    return replace(opened, schema=schema), table.rename_columns([names[own] for own in table.column_names])


def _matching(mine: Column, theirs: Column) -> None:
    if mine.kind is not theirs.kind or not mine.kind.countable:
        raise WrongKindError(
            f"{mine.name!r} is of kind {mine.kind} here and {theirs.kind} there.",
            fix="join on columns of the same kind, and not on floats.",
        )
