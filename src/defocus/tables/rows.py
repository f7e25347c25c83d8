"""The rows a question is about: one private table, filtered, with derived columns and joined tables.

Every step turns one row into at most one row of the same person, so nothing here needs a budget.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from sqlglot import exp

from defocus.errors import InvalidParameterError, WrongKindError
from defocus.tables.columns import Column, Schema
from defocus.tables.engines.engine import Engine
from defocus.tables.expressions import Expression, expression
from defocus.tables.kinds import Kind

__all__ = ["Rows", "named"]


_TOKEN = re.compile(r" [0-9a-f]{32}\b")
"""What makes the name of a published table unlike any other."""


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

    def where(self, text: str) -> "Rows":
        """The rows for which a condition holds; where it is NULL it does not hold."""
        condition = expression(text, self.schema)
        if condition.kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"A condition must be true or false, but {condition.text!r:.80} is of kind {condition.kind}.",
                fix='compare it with something: where("age >= 18").',
            )
        kept = self._select(self.schema.names).where(condition.condition, copy=False)
        return self._then(kept, f"only rows where {condition.text}")

    def derive(self, columns: Mapping[str, str]) -> "Rows":
        """More columns, each computed from the same row."""
        made: dict[str, Expression] = {}
        for name, text in columns.items():
            if not name or name in self.schema:
                raise InvalidParameterError(
                    f"A derived column cannot be called {name!r:.60}.",
                    fix="give it a name that the table does not have.",
                )
            made[name] = expression(text, self.schema)
        schema = Schema((*self.schema, *(Column(name, value.kind) for name, value in made.items())))
        select = self._select(self.schema.names)
        for name, value in made.items():
            select = select.select(named(value.sql, name), copy=False)
        words = [f"{name} is {value.text}" for name, value in made.items()]
        return replace(self._then(select, *words), schema=schema)

    def select(self, columns: Sequence[exp.Expression]) -> exp.Select:
        """The given expressions over rows that belong to somebody."""
        select = exp.select(*columns).from_(self._from(), copy=False)
        if self.unit is not None:
            select = select.where(exp.column(self.unit, quoted=True).is_(exp.null()).not_(), copy=False)
        return select

    def facts(self) -> str:
        """Which rows these are, the same each time they are asked for: without the names given to published tables."""
        relation = self.relation.sql("duckdb", identify=True, comments=False)
        return "; ".join((*self.words, _TOKEN.sub("", relation)))

    def values(self, text: str) -> Expression:
        """An expression over one row."""
        return expression(text, self.schema)

    def joined(self, relation: exp.Expression, schema: Schema, words: str) -> "Rows":
        """These rows after a join, which must keep every row with its person."""
        return replace(self, relation=relation, schema=schema, words=(*self.words, words))

    def _select(self, names: Sequence[str]) -> exp.Select:
        return exp.select(*(exp.column(name, quoted=True) for name in names)).from_(self._from(), copy=False)

    def _from(self) -> exp.Expression:
        if isinstance(self.relation, exp.Select):
            return self.relation.subquery(exp.to_identifier("t", quoted=True))
        return self.relation.copy()

    def _then(self, select: exp.Select, *words: str) -> "Rows":
        return replace(self, relation=select, words=(*self.words, *words))


def named(sql: exp.Expression, name: str) -> exp.Expression:
    """An expression under a quoted name."""
    return exp.Alias(this=sql, alias=exp.to_identifier(name, quoted=True))
