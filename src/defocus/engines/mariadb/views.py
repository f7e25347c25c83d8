"""Tables and views of a MariaDB database that are read as they are: stored rows, and plain selections of them."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from defocus.engines.views import Selection, plain, query_of, refused, single, stars

__all__ = ["definition"]

_TABLE = (
    "SELECT table_type, engine, create_options, table_collation FROM information_schema.tables"
    " WHERE table_schema = %s AND table_name = %s"
)
_COLUMNS = (
    "SELECT column_name, column_type, numeric_scale, extra FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
)
_VIEW = "SELECT view_definition FROM information_schema.views WHERE table_schema = %s AND table_name = %s"
_DEEPEST = 50


def definition(ask: Callable[[str, Sequence[Any]], list[Any]], schema: str, name: str, depth: int = 0) -> list[Any]:
    """What the catalogue says of a relation and of those it reads, if all are stored tables or plain selections.

    Guarantee:
        Reading a row cannot fail and gives the same each time: no function is called, no column is computed or cast
        but to text, and rows are InnoDB's, which shows one state of them to all statements of a transaction. As long
        as what is returned stays the same, so does the relation. Its columns come first.
    """
    found, columns = ask(_TABLE, [schema, name]), ask(_COLUMNS, [schema, name])
    if not found or depth > _DEEPEST:
        raise refused(name, "it is gone, or views lie too deep")
    sort, engine, *_ = found[0]
    if sort == "VIEW":
        text = ask(_VIEW, [schema, name])[0][0]
        if not text:
            raise refused(name, "this user may not see its definition; GRANT SHOW VIEW on it")
        below = _checked(name, query_of(name, text, "mysql"))
        return [columns, found, text, *definition(ask, below.db, below.name, depth + 1)]
    if sort != "BASE TABLE":
        raise refused(name, "it is no table")
    if engine != "InnoDB":
        raise refused(name, f"it is kept by {engine!r:.40} and not by InnoDB, so it has no snapshot")
    if any("VIRTUAL" in extra.upper() for *_, extra in columns):
        raise refused(name, "it has columns that are computed when they are read; make them STORED")
    return [columns, found]


def _checked(name: str, tree: exp.Expression) -> exp.Table:
    """The table that a plain selection reads."""
    query = plain(name, tree)
    table = single(name, query)
    if isinstance(table, exp.Subquery):
        table = _checked(name, table.this)
    if not isinstance(table.this, exp.Identifier) or not table.db:
        raise refused(name, "it calls a function for its rows")
    for column in query.find_all(exp.Column):
        column.set("db", None)  # it is written before every column, and only one table is read
    selection = Selection(name, _column, lambda node: _cast(name, node), lambda comparison: comparison)
    for one in query.expressions:
        value = one.this if isinstance(one, exp.Alias) else one
        if not stars(name, value):
            selection.item(value)
    where = query.args.get("where")
    if where is not None:
        selection.condition(where.this)
    return table


def _column(node: exp.Column) -> exp.Expression:
    return node.copy()


def _cast(name: str, node: exp.Cast) -> exp.Expression:
    """Every value has a text; other casts read values that are not there."""
    if not node.to.is_type("text", "char", "varchar"):
        raise refused(name, "it holds a cast that can fail")
    return node
