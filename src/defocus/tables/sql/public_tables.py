"""Public tables in a query: their columns may be renamed and their values used as keys, since everybody knows them."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import pyarrow as pa
from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.sources import source
from defocus.engines.syntax import column
from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions import constant
from defocus.tables.rows import Rows
from defocus.tables.sql.query import Named, Scope

__all__ = ["Public", "public_table", "public_values"]


_MOST_VALUES = 10_000
"""Columns with more values are no domain that anybody would want every group of."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Public:
    """A public table: what was declared for it, and its rows."""

    name: str
    data: Any
    table: pa.Table
    kinds: Mapping[str, Kind]

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns that a query can name."""
        return {name: name for name, kind in self.kinds.items() if kind is not Kind.OTHER}

    def renamed(self, names: Mapping[str, str]) -> Any:
        """What to join with, so that its columns have new names; as it was given if they are the same."""
        if all(old == new for old, new in names.items()):
            return self.data
        return self.table.select(list(names)).rename_columns(list(names.values()))

    def declared(self, rows: Rows, names: Mapping[str, str], *, but: Collection[str]) -> Rows:
        """The rows after a join, where the values of the public columns, except some, are domains and bounds."""
        shown = {new: old for old, new in names.items() if new not in but}
        columns = (self._known(own, shown[own.name]) if own.name in shown else own for own in rows.schema)
        return replace(rows, schema=Schema(columns))

    def _known(self, column: Column, name: str) -> Column:
        """A column of the rows with what everybody knows from a public one."""
        values = self.table.column(name).unique().drop_null().to_pylist()
        if column.kind.countable and column.values is None and 0 < len(values) <= _MOST_VALUES:
            column = replace(column, values=tuple(values))
        finite = [value for value in values if column.kind.numeric and math.isfinite(value)]
        if column.low is None and finite and min(finite) < max(finite):
            column = replace(column, low=min(finite), high=max(finite))
        return column


def public_table(name: str, data: Any) -> Public:
    """Open a public table; unlike a private one it is read at once."""
    if data is None:
        raise InvalidParameterError(f"The public table {name!r:.60} is nothing.", fix="pass a path or a frame.")
    opened = source(data)
    try:
        table = opened.engine.run(opened.relation)
    finally:
        opened.engine.close()
    return Public(name, data, table, {column.name: column.kind for column in opened.schema})


_MOST_LISTED = 2_000


def public_values(public: Public, value: exp.Expression, condition: exp.Expression | None) -> list[exp.Expression]:
    """The values of an expression over a public table, each once, as constants; NULL where there is one."""
    opened = source(public.table)
    try:
        scope = Scope(Rows(opened.engine, opened.relation, opened.schema, None), (Named(public.name, public.columns),))
        scope = scope if condition is None else scope.where(condition)
        scope, made = scope.derived("value", value)
        values = opened.engine.run(scope.rows.select([column(made.name)])).column(0).unique().to_pylist()
    finally:
        opened.engine.close()
    if len(values) > _MOST_LISTED:
        raise UnsupportedSqlError(
            f"IN with {len(values)} values of a public table",
            why=f"at most {_MOST_LISTED} are compared",
            fix="join the public table instead.",
        )
    return [constant(one, made.kind) for one in values]
