"""JOIN: with a public table by a unique key, with a private one by the person. Every row stays one of its person."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from defocus.errors import InvalidParameterError, UnknownColumnError, UnsupportedSqlError
from defocus.tables.joining import join_private, join_public
from defocus.tables.sql.publics import Public
from defocus.tables.sql.refusals import only
from defocus.tables.sql.renaming import renamed
from defocus.tables.sql.scopes import Named, Scope, matching, unused

__all__ = ["joined"]


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
        return [(_of(right, each), scope.column(exp.Column(this=_identifier(each).copy())).name) for each in using]
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
    found = matching(node.this, list(right.columns))
    return right.columns[found[0]] if found else None


def _only_theirs(right: Named, node: exp.Column) -> bool:
    table = node.args.get("table")
    return table is not None and bool(matching(table, [right.name]))


def _of(right: Named, identifier: exp.Expression) -> str:
    found = matching(_identifier(identifier), list(right.columns))
    if not found:
        raise UnknownColumnError(identifier.name, list(right.columns))
    return right.columns[found[0]]


def _identifier(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Column) else node
