"""Joins: with a public table on keys that it has once, with a private one on the person."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from defocus.errors import InvalidParameterError, UnknownColumnError, UnsupportedSqlError
from defocus.tables.expressions.parser import at
from defocus.tables.rows import join_private, join_public, renamed
from defocus.tables.sql.bounds import conjuncts
from defocus.tables.sql.parser import only
from defocus.tables.sql.public_tables import Public
from defocus.tables.sql.query import Named, Scope, matching, unused

__all__ = ["joined", "turned"]


def turned(join: exp.Join, first: exp.Expression) -> exp.Join:
    """The join of a private table to a public one as a join of the public one to it; RIGHT becomes LEFT."""
    other = join.copy()
    other.set("this", first.copy())
    side = str(join.args.get("side") or "").upper()
    if side in {"LEFT", "FULL"}:
        with at(join):
            raise UnsupportedSqlError(
                f"{side} JOIN of a public table with a private one",
                why="rows of the public table would be there without a person",
                fix="write the private table first, or leave out the word.",
            )
    other.set("side", "LEFT" if side == "RIGHT" else None)
    return other


def joined(scope: Scope, right: Scope | Public, join: exp.Join, where: exp.Expression | None = None) -> Scope:
    """The rows so far with the columns of one more table; a comma is a join on what WHERE compares."""
    with at(join):
        return _joined(scope, right, join, where)


def _joined(scope: Scope, right: Scope | Public, join: exp.Join, where: exp.Expression | None) -> Scope:
    called = right.name if isinstance(right, Public) else right.tables[0].name
    listed = Named(called, right.columns if isinstance(right, Public) else right.tables[0].columns)
    join = _with_condition(scope, listed, join, where)
    side = _side(join)
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


def _with_condition(scope: Scope, right: Named, join: exp.Join, where: exp.Expression | None) -> exp.Join:
    """A comma or CROSS JOIN with the comparisons that WHERE makes; NATURAL JOIN with the columns that both have."""
    kind, method = (str(join.args.get(part) or "").upper() for part in ("kind", "method"))
    if join.args.get("on") is not None or join.args.get("using"):
        return join
    plain = exp.Join(this=join.this.copy(), side=join.args.get("side"))
    if method == "NATURAL" and kind in {"", "INNER", "OUTER"}:
        mine = [one for table in scope.tables for one in table.columns]
        shared = [one for one in mine if matching(exp.to_identifier(one), list(right.columns))]
        plain.set("using", [exp.to_identifier(one, quoted=True) for one in dict.fromkeys(shared)])
        return plain if shared else join
    if method or kind not in {"", "CROSS"} or join.args.get("side"):
        return join
    compared = [part for part in conjuncts(where) if _compares(scope, right, part)]
    if compared:
        plain.set("on", exp.and_(*compared))
    return plain if compared else join


def _compares(scope: Scope, right: Named, part: exp.Expression) -> bool:
    try:
        _equal(scope, right, part)
    except (UnsupportedSqlError, InvalidParameterError):
        return False
    return True


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
