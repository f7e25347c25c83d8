"""Relations in a query: private tables, public tables, joins and names.

Public tables in a query: their columns may be renamed and their values used as keys, since everybody knows them.
"""

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import pyarrow as pa
from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.sources import source
from defocus.engines.syntax import column, named
from defocus.errors import InvalidParameterError, UnknownColumnError, UnsupportedSqlError
from defocus.tables.rows import Rows, join_private, join_public
from defocus.tables.sql.aggregates import is_aggregate
from defocus.tables.sql.parser import only, refuse_inside
from defocus.tables.sql.person_features import of_each_person, with_windows
from defocus.tables.sql.query import Named, Scope, matching, unused

__all__ = ["Catalogue", "Public", "from_clause", "joined", "public_table", "renamed"]


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


def renamed(rows: Rows, names: Mapping[str, str]) -> Rows:
    """The same rows with some columns only, under new names; the one that names the person must be among them."""
    kept = [own for own in rows.schema if own.name in names]
    relation = rows.select([named(column(one.name), names[one.name]) for one in kept])
    schema = Schema(replace(one, name=names[one.name]) for one in kept)
    unit = None if rows.unit is None else names[rows.unit]
    return replace(rows, relation=relation, schema=schema, unit=unit, counted=None)


def joined(scope: Scope, right: Scope | Public, join: exp.Join) -> Scope:
    """The rows so far with the columns of one more table."""
    side = _side(join)
    called = right.name if isinstance(right, Public) else right.tables[0].name
    if called and matching(exp.to_identifier(called), [table.name for table in scope.tables]):
        raise InvalidParameterError(f"Two tables are called {called!r:.60}.", fix="give one an alias with AS.")
    theirs = right.columns if isinstance(right, Public) else right.tables[0].columns
    pairs = _pairs(scope, Named(called, theirs), join)
    if len(dict(pairs)) != len(pairs) or len({mine for _, mine in pairs}) != len(pairs):
        raise UnsupportedSqlError(
            "A join with one column twice", why="each column has one partner", fix="compare each column once."
        )
    if not isinstance(right, Public):
        _refuse_strangers(scope, right, pairs)
    mine = dict(pairs)
    taken = scope.rows.schema.names
    names: dict[str, str] = {}
    for physical in dict.fromkeys(theirs.values()):
        names[physical] = mine.get(physical) or unused(physical, [*taken, *names.values()])
    on = [mine_ for _, mine_ in pairs]
    if isinstance(right, Public):
        after = join_public(scope.rows, right.renamed(names), on, side)
        rows = right.declared(after, names, but=on if side == "left" else ())
    else:
        rows = join_private(scope.rows, renamed(right.rows, names), on, side)
    keys = tuple(name for name, physical in theirs.items() if physical in mine) if side == "left" else ()
    columns = {name: names[physical] for name, physical in theirs.items() if name not in keys}
    return replace(scope, rows=rows, tables=(*scope.tables, Named(called, columns, keys)))


def _refuse_strangers(scope: Scope, right: Scope, pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse a join of private tables that is not on the person."""
    if scope.rows.unit is None or right.rows.unit is None or (right.rows.unit, scope.rows.unit) not in pairs:
        person = scope.rows.unit or "person_id"
        raise UnsupportedSqlError(
            "A join of private tables on other columns than the person",
            why="one person's rows would meet those of others",
            fix=f"join on the person, USING ({person}), and show that column in sub-queries; row-level tables cannot"
            " be joined."[:400],
        )


def _side(join: exp.Join) -> str:
    only(join, "A join", "this", "on", "using", "side", "kind", "method")
    side, kind, method = (str(join.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    words = " ".join(word for word in (method, side, kind) if word)
    if (
        kind == "CROSS"
        or method
        or (join.args.get("on") is None and not join.args.get("using"))
        or (side, kind) not in {("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")}
    ):
        name = f"{words} JOIN" if words and words != "INNER" else "A comma or a join without ON"
        raise UnsupportedSqlError(
            name,
            why="every row must stay one row of its person, matched by keys",
            fix="write [LEFT] JOIN table USING (column), or ON a.x = b.x.",
        )
    return "left" if side == "LEFT" else "inner"


def _pairs(scope: Scope, right: Named, join: exp.Join) -> list[tuple[str, str]]:
    """The columns that are compared: of the right side, and of the rows so far."""
    using = join.args.get("using")
    if using:
        return [
            (_of(right, identifier), scope.column(exp.Column(this=_identifier(identifier).copy())).name)
            for identifier in using
        ]
    condition = join.args["on"]
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    return [_equal(scope, right, part) for part in parts]


def _equal(scope: Scope, right: Named, part: Any) -> tuple[str, str]:
    while isinstance(part, exp.Paren):
        part = part.this
    if isinstance(part, exp.EQ) and all(isinstance(side, exp.Column) for side in (part.this, part.expression)):
        for mine, other in ((part.this, part.expression), (part.expression, part.this)):
            theirs = _theirs(scope, right, other)
            if theirs is not None and not _only_theirs(right, mine):
                return theirs, scope.column(mine).name
    raise UnsupportedSqlError(
        "A join condition other than a.x = b.x",
        why="rows are matched by equal keys only",
        fix="compare one column of each side; put other conditions into WHERE or a sub-query.",
    )


def _theirs(scope: Scope, right: Named, node: exp.Column) -> str | None:
    """The column of the right side that is meant, if it is one of the right side."""
    table = node.args.get("table")
    if table is None and scope.find(node) is not None:
        return None
    if table is not None and not _only_theirs(right, node):
        return None
    matches = matching(node.this, list(right.columns))
    return right.columns[matches[0]] if matches else None


def _only_theirs(right: Named, node: exp.Column) -> bool:
    table = node.args.get("table")
    return table is not None and bool(matching(table, [right.name]))


def _of(right: Named, identifier: exp.Expression) -> str:
    matches = matching(_identifier(identifier), list(right.columns))
    if not matches:
        raise UnknownColumnError(identifier.name, list(right.columns))
    return right.columns[matches[0]]


def _identifier(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Column) else node


@final
@dataclass(frozen=True, slots=True)
class Catalogue:
    """What FROM can name: the table that is asked, private tables of the same people, public tables, and WITH."""

    name: str
    rows: Rows
    private: Mapping[str, Rows]
    public: Mapping[str, Any]
    made: tuple[tuple[str, Scope], ...] = ()
    """What WITH clauses made, the latest last."""

    def find(self, identifier: exp.Expression) -> Scope | Public:
        """The table of that name."""
        for called, scope in reversed(self.made):
            if matching(identifier, [called]):
                return scope
        if matching(identifier, [self.name]):
            return _whole(self.rows, own=True)
        for called in matching(identifier, list(self.private)):
            return _whole(self.private[called], own=False)
        for called in matching(identifier, list(self.public)):
            return public_table(called, self.public[called])
        names = [self.name, *self.private, *self.public, *(called for called, _ in self.made)]
        names = [called if called.isidentifier() else f'"{called}"' for called in names]
        near = difflib.get_close_matches(identifier.name[:200], names, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InvalidParameterError(
            f"There is no table {identifier.name!r:.60} here.", fix=f"{hint}FROM can name {', '.join(names)}."[:600]
        )


def from_clause(select: exp.Select, catalogue: Catalogue) -> tuple[Scope, Catalogue]:
    """The rows that a SELECT is about, after its joins and its WHERE, and the catalogue with its WITH clause."""
    tables = _with(select, catalogue)
    source = select.args.get("from_")
    if source is None:
        raise UnsupportedSqlError(
            "SELECT without FROM", why="there are no rows to ask about", fix=f"write FROM {tables.name}."[:200]
        )
    first = _table(source.this, tables)
    if isinstance(first, Public):
        raise UnsupportedSqlError(
            f"FROM {first.name} first",
            why="a public table has no people to protect",
            fix=f"write the private table first: FROM {tables.name} JOIN {first.name} …"[:300],
        )
    scope = first
    for join in select.args.get("joins") or []:
        scope = joined(scope, _table(join.this, tables), join)
    condition = select.args.get("where")
    if condition is not None:
        if condition.find(exp.Window) is not None:
            raise UnsupportedSqlError(
                "A window function in WHERE",
                why="WHERE comes before windows",
                fix="name it in a sub-query, and filter outside: SELECT … FROM (SELECT …, LAG(x) OVER (…) AS y …) WHERE"
                " y > 0.",
            )
        if any(is_aggregate(node) for node in condition.walk()):
            raise UnsupportedSqlError(
                "An aggregate in WHERE", why="WHERE is about single rows", fix="write the condition in HAVING."
            )
        scope = scope.where(condition.this)
    return scope, tables


def _whole(rows: Rows, *, own: bool) -> Scope:
    names = {column.name: column.name for column in rows.schema}
    return Scope(rows, (Named("", names),), own)


def _with(select: exp.Select, catalogue: Catalogue) -> Catalogue:
    clause = select.args.get("with_")
    tables = catalogue
    for part in [] if clause is None else clause.expressions:
        only(part, "WITH", "this", "alias", "materialized")
        alias = part.args["alias"]
        only(alias, "A name in WITH", "this")
        scope = _sub_query(part.this, tables, alias.name)
        if any(matching(alias.this, [called]) for called, _ in tables.made[len(catalogue.made) :]):
            raise InvalidParameterError(f"WITH names {alias.name!r:.60} twice.", fix="give each part its own name.")
        tables = replace(tables, made=(*tables.made, (alias.name, scope)))
    return tables


def _table(node: exp.Expression, tables: Catalogue) -> Scope | Public:
    """One table of a FROM clause under its alias."""
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "An alias", "this")
    if isinstance(node, exp.Subquery):
        only(node, "A sub-query in FROM", "this", "alias")
        return _sub_query(node.this, tables, "" if alias is None else alias.name)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise UnsupportedSqlError(
            f"{_called(node)} in FROM",
            why="only tables that were opened by name are read, never files or functions",
            fix=f'write FROM {tables.name}; open others with dp.open(…, public={{"name": …}}).'[:300],
        )
    if node.args.get("db") is not None or node.args.get("catalog") is not None:
        raise UnsupportedSqlError(
            f"A name with a dot in FROM, {node.sql('duckdb')[:60]},",
            why="tables have plain names here",
            fix=f"write FROM {tables.name}."[:200],
        )
    only(node, "A table in FROM", "this", "alias")
    matched = tables.find(node.this)
    called = node.name if alias is None else alias.name
    if isinstance(matched, Public):
        return replace(matched, name=called)
    return replace(matched, tables=tuple(replace(table, name=called) for table in matched.tables))


def _called(node: exp.Expression) -> str:
    inner = node.this if isinstance(node, exp.Table) else node
    if isinstance(inner, exp.Anonymous):
        return f"The table function {inner.name[:40]}"
    return f"The table function {inner.sql_name()}" if isinstance(inner, exp.Func) else f"{inner.key.upper()[:40]}"


def _sub_query(node: exp.Expression, tables: Catalogue, name: str) -> Scope:
    """A SELECT of single rows, some columns, derived ones, and a condition; or of rows of each person."""
    while isinstance(node, exp.Subquery):
        only(node, "A sub-query", "this")
        node = node.this
    if not isinstance(node, exp.Select):
        raise UnsupportedSqlError(
            f"{node.key.upper()[:40]} as a table", why="only SELECT makes rows", fix="write a SELECT."
        )
    refuse_inside(node)
    bare, _ = from_clause(node, tables)
    if node.args.get("group") is not None:
        return of_each_person(bare, node, name)
    scope, items = with_windows(bare, node.expressions)
    shown: dict[str, str] = {}
    for item in items:
        scope, added = _items(scope, item, bare)
        for called, physical in added:
            if matching(exp.to_identifier(called), list(shown)):
                raise InvalidParameterError(
                    f"The sub-query has two columns called {called!r:.60}.", fix="rename one with AS."
                )
            shown[called] = physical
    return replace(scope, tables=(Named(name, shown),))


def _items(scope: Scope, item: exp.Expression, bare: Scope) -> tuple[Scope, list[tuple[str, str]]]:
    """The columns that one item of a sub-query shows; a star stands for those that are there without the items."""
    if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        star = item if isinstance(item, exp.Star) else item.this
        only(star, "A star")
        return scope, _starred(bare, item.args.get("table"))
    inner, alias = (item.this, item.args["alias"].name) if isinstance(item, exp.Alias) else (item, "")
    if any(is_aggregate(node) for node in inner.walk()):
        raise UnsupportedSqlError(
            "An aggregate in a sub-query",
            why="its value would depend on many people, without noise",
            fix=f"aggregate in the outer SELECT, or for each person: GROUP BY {scope.rows.unit or 'person'}."[:300],
        )
    if isinstance(inner, exp.Column):
        column = scope.column(inner)
        return scope, [(alias or inner.name, column.name)]
    if not alias:
        raise InvalidParameterError(
            f"The expression {inner.sql('duckdb')[:60]} in a sub-query has no name.", fix="name it with AS."
        )
    extended, column = scope.derived(alias, inner)
    return extended, [(alias, column.name)]


def _starred(scope: Scope, table: exp.Expression | None) -> list[tuple[str, str]]:
    if table is None:
        return scope.shown()
    names = matching(table, [one.name for one in scope.tables])
    return [pair for one in scope.tables if one.name in names for pair in one.columns.items()]
