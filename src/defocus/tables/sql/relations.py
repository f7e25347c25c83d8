"""Relations in a query: private tables, public tables and names; what FROM and WHERE leave of the rows."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from sqlglot import exp

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.rows import Rows
from defocus.tables.sql.aggregates import is_aggregate
from defocus.tables.sql.joins import joined, turned
from defocus.tables.sql.memberships import decided, has_member
from defocus.tables.sql.parser import only, refuse_inside
from defocus.tables.sql.person_features import first_of_each_person, of_each_person, with_windows
from defocus.tables.sql.public_tables import Public, public_table
from defocus.tables.sql.query import Named, Scope, matching

__all__ = ["Catalogue", "from_clause"]


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
    condition = select.args.get("where")
    where = None if condition is None else condition.this
    first, joins = _table(source.this, tables), list(select.args.get("joins") or [])
    if isinstance(first, Public) and joins:
        other = _table(joins[0].this, tables)
        if not isinstance(other, Public):
            joins[0] = turned(joins[0], source.this)
            first = other
    if isinstance(first, Public):
        raise UnsupportedSqlError(
            f"FROM {first.name} first",
            why="a public table has no people to protect",
            fix=f"write the private table first: FROM {tables.name} JOIN {first.name} …"[:300],
        )
    scope = first
    for join in joins:
        scope = joined(scope, _table(join.this, tables), join, where)
    if condition is not None:
        nodes = list(condition.walk(prune=lambda node: isinstance(node, exp.Query)))
        if any(isinstance(node, exp.Window) for node in nodes):
            raise UnsupportedSqlError(
                "A window function in WHERE",
                why="WHERE comes before windows",
                fix="name it in a sub-query, and filter outside: SELECT … FROM (SELECT …, LAG(x) OVER (…) AS y …) WHERE"
                " y > 0.",
            )
        if any(is_aggregate(node) for node in nodes):
            raise UnsupportedSqlError(
                "An aggregate in WHERE", why="WHERE is about single rows", fix="write the condition in HAVING."
            )
        scope = _kept(scope, condition.this, tables)
    return scope, tables


def _kept(scope: Scope, condition: exp.Expression, tables: Catalogue) -> Scope:
    """The rows that WHERE keeps, also by IN (SELECT …) and EXISTS."""
    if not has_member(condition):
        return scope.where(condition)
    extended, plain = decided(
        scope, condition, table=lambda node: _table(node, tables), rows=lambda node: _sub_query(node, tables, "")
    )
    return replace(extended.where(plain), tables=scope.tables)


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
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        return first_of_each_person(node, lambda rest: _sub_query(rest, tables, name), from_clause(node, tables)[0])
    node = node if distinct is None else _by_all_columns(node, from_clause(node, tables)[0])
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


def _by_all_columns(node: exp.Select, scope: Scope) -> exp.Select:
    """SELECT DISTINCT of columns of which one is the person, as GROUP BY all of them; others are left as they are."""
    items = [item.this if isinstance(item, exp.Alias) else item for item in node.expressions]
    stars = any(item.find(exp.Star) for item in items)
    persons = (scope.find(item) for item in items if isinstance(item, exp.Column) and not stars)
    mine = any(own is not None and own.name == scope.rows.unit for own in persons)
    if stars or not mine or node.args.get("group") is not None or scope.rows.unit is None:
        return node
    grouped = node.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=[item.copy() for item in items]))
    return grouped


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
