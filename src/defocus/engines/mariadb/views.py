"""Tables and views of a MariaDB database that are read as they are: stored rows, and plain selections of them."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from defocus.engines.views import Selection, query_of, refused, selected

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
        below = selected(name, query_of(name, text, "mysql"), _selection(name))
        return [columns, found, text, *definition(ask, below.db, below.name, depth + 1)]
    if sort != "BASE TABLE":
        raise refused(name, "it is no table")
    if engine != "InnoDB":
        raise refused(name, f"it is kept by {engine!r:.40} and not by InnoDB, so it has no snapshot")
    if any("VIRTUAL" in extra.upper() for *_, extra in columns):
        raise refused(name, "it has columns that are computed when they are read; make them STORED")
    return [columns, found]


def _selection(view: str) -> Selection:
    def cast(node: exp.Cast) -> exp.Expression:
        """Every value has a text; other casts read values that are not there."""
        if not node.to.is_type("text", "char", "varchar"):
            raise refused(view, "it holds a cast that can fail")
        return node

    return Selection(view, lambda node: node.copy(), cast, lambda comparison: comparison)
