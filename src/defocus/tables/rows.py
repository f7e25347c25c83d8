"""The rows a question is about: one private table, filtered, with derived columns and joined tables.

Every step turns one row into at most one row of the same person, so nothing here needs a budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

from sqlglot import exp

from defocus.engines.engine import Engine
from defocus.engines.files import Files
from defocus.engines.schema import Column, Kind, Schema, lasting
from defocus.engines.syntax import column, named, rows_of
from defocus.errors import InvalidParameterError, UnsupportedSqlError, WrongKindError
from defocus.tables.expressions import Expression, expression

__all__ = ["Division", "Rows"]

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

    @property
    def charged(self) -> tuple[str, ...]:
        """The labels of the parts that a release from these rows is charged to; none for everybody."""
        return () if self.division is None or self.division.apart is None else self.division.chosen

    def where(self, text: str) -> "Rows":
        """The rows for which a condition holds; where it is NULL it does not hold."""
        self._after(1)  # before anything is read
        condition = expression(text, self.schema)
        if condition.kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"A condition must be true or false, but {condition.text!r:.80} is of kind {condition.kind}.",
                fix='compare it with something: where("age >= 18").',
            )
        kept = self._select(self.schema.names).where(condition.condition, copy=False)
        return self._then(kept, [condition], [f"only rows where {condition.text}"])

    def derive(self, columns: Mapping[str, str]) -> "Rows":
        """More columns, each computed from the same row."""
        self._after(1)  # before anything is read
        made: dict[str, Expression] = {}
        for name, text in columns.items():
            if not name or name in self.schema:
                raise InvalidParameterError(
                    f"A derived column cannot be called {name!r:.60}.",
                    fix="give it a name that the table does not have.",
                )
            made[name] = expression(text, self.schema)
        schema = Schema((*self.schema, *(_column(name, value) for name, value in made.items())))
        _refuse_long(schema)
        select = self._select(self.schema.names)
        for name, value in made.items():
            select = select.select(named(value.sql, name), copy=False)
        words = [f"{name} is {value.text}" for name, value in made.items()]
        return replace(self._then(select, list(made.values()), words), schema=schema)

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

    def joined(self, relation: exp.Expression, schema: Schema, words: str, steps: int) -> "Rows":
        """These rows after a join, which must keep every row with its person."""
        _refuse_long(schema)
        return replace(self, relation=relation, schema=schema, words=(*self.words, words), steps=steps)

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

    def _then(self, select: exp.Select, read: Sequence[Expression], words: Sequence[str]) -> "Rows":
        levels = max((_levels(tree) for each in read for tree in (each.sql, each.condition)), default=0)
        steps = self._after(1 + max(0, levels - _DEEP) // 4)
        return replace(self, relation=select, words=(*self.words, *words), steps=steps)


def _column(name: str, value: Expression) -> Column:
    """A derived column, which remembers how much longer than the data its texts can be."""
    return Column(name, value.kind, growth=value.growth) if value.kind is Kind.TEXT else Column(name, value.kind)


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
