"""IN (SELECT …) and EXISTS in WHERE: over a public table, or about the person.

Guarantee:
    Of a public table the values are constants, which everybody knows. Of a private table only whether the same person
    has a row there is asked: one row for each such person is joined on the person
    (:mod:`defocus.tables.person_features`), so that each row is kept or left out by rows of its own person alone.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.errors import UnsupportedSqlError
from defocus.tables.expressions.parser import at
from defocus.tables.person_features import aggregated
from defocus.tables.rows import join_private, renamed
from defocus.tables.sql.bounds import conjuncts
from defocus.tables.sql.parser import only
from defocus.tables.sql.public_tables import Public, public_values
from defocus.tables.sql.query import Named, Scope, matching, unused

__all__ = ["decided", "has_member"]

_Table: TypeAlias = Callable[[exp.Expression], Scope | Public]
"""The table that FROM names."""
_Rows: TypeAlias = Callable[[exp.Select], Scope]
"""The rows of a sub-query about a private table."""


def has_member(condition: exp.Expression) -> bool:
    """Whether a condition holds IN (SELECT …) or EXISTS."""
    return any(_is_member(node) for node in condition.walk())


def decided(scope: Scope, condition: exp.Expression, *, table: _Table, rows: _Rows) -> tuple[Scope, exp.Expression]:
    """The condition with constants or columns in the place of each sub-query, and a scope that has the columns."""
    tree = exp.paren(condition.copy(), copy=False)
    for node in [one for one in tree.walk() if _is_member(one) and _outside(one)]:
        with at(node):
            member = _as_member(scope, node, table) if isinstance(node, exp.Exists) else node
            scope, decision = _decision(scope, member, table, rows)
        exists = isinstance(node, exp.Exists)
        node.replace(exp.Coalesce(this=decision, expressions=[exp.false()]) if exists else decision)
    return scope, tree


def _is_member(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def _outside(node: exp.Expr) -> bool:
    """Whether a node is not part of another sub-query, which reads its own conditions."""
    return node.find_ancestor(exp.Select) is None


def _select(node: exp.Expression) -> exp.Select:
    while isinstance(node, exp.Subquery):
        node = node.this
    if not isinstance(node, exp.Select) or node.args.get("from_") is None:
        raise UnsupportedSqlError(
            "This sub-query", why="only SELECT … FROM makes rows", fix="write x IN (SELECT y FROM table)."
        )
    return node


def _decision(scope: Scope, node: Any, table: _Table, rows: _Rows) -> tuple[Scope, exp.Expression]:
    """Whether a value is among those of a sub-query."""
    only(node, "IN", "this", "query")
    select = _select(node.args["query"])
    source = table(select.args["from_"].this)
    if not isinstance(source, Public):
        return _of_person(scope, node, rows(select))
    only(select, "A sub-query about a public table", "expressions", "from_", "where", "distinct")
    if len(select.expressions) != 1:
        raise UnsupportedSqlError(
            "IN with several columns", why="one value is compared", fix="select one column: IN (SELECT y FROM table)."
        )
    item, where = select.expressions[0], select.args.get("where")
    value = item.this if isinstance(item, exp.Alias) else item
    values = public_values(source, value, None if where is None else where.this)
    if not values:
        return scope, exp.false()
    return scope, exp.In(this=node.this.copy(), expressions=values)


def _of_person(scope: Scope, node: exp.In, inner: Scope) -> tuple[Scope, exp.Expression]:
    """Whether the person has a row in the sub-query: a column that is NULL where not."""
    person, theirs = scope.rows.unit, inner.rows.unit
    shown = list(inner.tables[0].columns.values())
    asked = isinstance(node.this, exp.Column) and scope.column(node.this).name == person
    if person is None or theirs is None or shown != [theirs] or not asked:
        raise UnsupportedSqlError(
            "A sub-query about other people's rows",
            why="whether a row is kept may depend on rows of the same person, and of nobody else",
            fix=f"compare the person, with {person or 'the person'} on both sides; list the values, x IN ('a', 'b'); or"
            " open the table as a public one."[:400],
        )
    found = unused("found", [*scope.rows.schema.names, theirs])
    one, _ = aggregated(inner.rows, [], {found: exp.Count(this=exp.Star())})
    joined = join_private(scope.rows, renamed(one, {theirs: person, found: found}), [person], "left")
    marked = replace(scope, rows=joined, tables=(*scope.tables, Named("", {found: found})))
    return marked, exp.Paren(this=exp.Not(this=exp.Is(this=exp.column(found, quoted=True), expression=exp.Null())))


def _as_member(scope: Scope, node: exp.Exists, table: _Table) -> exp.In:
    """EXISTS (SELECT … WHERE b.x = a.x AND …) as a.x IN (SELECT b.x … WHERE …)."""
    only(node, "EXISTS", "this")
    select = _select(node.this)
    source = table(select.args["from_"].this)
    names = [source.name] if isinstance(source, Public) else [one.name for one in source.tables]
    names += [join.this.alias_or_name for join in select.args.get("joins") or []]
    columns = dict(source.columns if isinstance(source, Public) else source.tables[0].columns)
    where = select.args.get("where")
    parts = conjuncts(None if where is None else where.this)
    found = [_pair(scope, names, columns, part) for part in parts]
    pairs = [pair for pair in found if pair is not None]
    others = [part for part, pair in zip(parts, found, strict=True) if pair is None]
    if len(pairs) != 1 or select.args.get("group") is not None:
        raise UnsupportedSqlError(
            "EXISTS without one comparison a.x = b.x",
            why="rows are matched by one key: the person, or a column of a public table",
            fix="write EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND …), with other conditions about b alone.",
        )
    for column in (one for part in others for one in part.find_all(exp.Column)):
        if column.args.get("table") is not None and not _is_inside(column, names, columns):
            with at(column):
                raise UnsupportedSqlError(
                    "A column from outside in a condition of EXISTS",
                    why="only the key is compared with the rows outside",
                    fix="join the tables on the person, and compare in WHERE; or compare it with a constant.",
                )
    ((theirs, mine),) = pairs
    member = select.copy()
    member.set("expressions", [theirs.copy()])
    member.set("distinct", None)
    member.set("where", exp.Where(this=exp.and_(*others)) if others else None)
    return exp.In(this=mine.copy(), query=member.subquery())


def _pair(
    scope: Scope, names: list[str], columns: dict[str, str], part: exp.Expression
) -> tuple[exp.Expression, exp.Expression] | None:
    """The column of the sub-query and the one outside that a condition compares, if that is what it does."""
    if not isinstance(part, exp.EQ) or not all(isinstance(side, exp.Column) for side in (part.this, part.expression)):
        return None
    for theirs, mine in ((part.this, part.expression), (part.expression, part.this)):
        if _is_inside(theirs, names, columns) and not _is_inside(mine, names, columns) and _is_found(scope, mine):
            return theirs, mine
    return None


def _is_inside(node: exp.Column, names: list[str], columns: dict[str, str]) -> bool:
    table = node.args.get("table")
    return bool(matching(node.this, list(columns)) if table is None else matching(table, names))


def _is_found(scope: Scope, node: exp.Column) -> bool:
    try:
        return scope.find(node) is not None
    except UnsupportedSqlError:
        return False
