"""Tables and views of a PostgreSQL database that are read as they are: stored rows, and plain selections of them."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from defocus.engines.views import Selection, query_of, refused, selected

__all__ = ["definition"]

_ASKED = """
WITH RECURSIVE tree (oid) AS (
  SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relname = $2
  UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN tree ON i.inhparent = tree.oid
)
SELECT c.relkind::text,
  (SELECT pg_catalog.array_agg(pg_catalog.concat_ws(' ', a.attname, a.atttypid, a.atttypmod, a.attgenerated)
    ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0),
  EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attgenerated = 'v'),
  CASE WHEN c.relkind = 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END,
  CASE WHEN c.relrowsecurity AND ($3 OR pg_catalog.row_security_active(c.oid)) THEN
    (SELECT pg_catalog.array_agg(pg_catalog.pg_get_expr(p.polqual, p.polrelid) ORDER BY p.polname)
      FROM pg_catalog.pg_policy AS p WHERE p.polrelid = c.oid AND p.polcmd IN ('r', '*') AND p.polqual IS NOT NULL) END
FROM tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid ORDER BY c.oid
"""
_STORED = {"r", "p", "m"}
"""Tables, partitioned tables and materialized views; foreign tables are not PostgreSQL's own."""
_SYSTEM = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}
"""Where a row is, and which transaction wrote it: that is not in the row, and depends on others."""
_DEEPEST = 50


def definition(ask: Callable[[str, Sequence[Any]], list[Any]], schema: str, name: str, depth: int = 0) -> list[Any]:
    """What the catalogue says of a relation and of those it reads, if all are stored tables or plain selections.

    Guarantee:
        Reading a row cannot fail and gives the same each time: no function is called, no column is computed or cast
        but to text, no row is sampled. Policies on rows that apply are plain conditions as well. As long as what is
        returned stays the same, so does the relation.
    """
    definitions = [list(row) for row in ask(_ASKED, [schema, name, depth > 0])]
    if not definitions or depth > _DEEPEST:
        raise refused(name, "it is gone, or views lie too deep")
    for kind, _, computed, text, policies in list(definitions):
        if computed:
            raise refused(name, "it has columns that are computed when they are read; make them STORED")
        for policy in policies or []:
            _selection(name).condition(query_of(name, policy, "postgres"))
        if kind == "v":
            below = selected(name, query_of(name, text, "postgres"), _selection(name))
            definitions += definition(ask, below.db, below.name, depth + 1)
        elif kind not in _STORED:
            raise refused(name, "it, or a part of it, is a foreign table" if kind == "f" else "it is no table")
    return definitions


def _selection(view: str) -> Selection:
    def column(node: exp.Column) -> exp.Expression:
        if node.name in _SYSTEM:
            raise refused(view, f"it holds {node.name!r}, which is not in the row")
        return node.copy()

    def cast(node: exp.Cast) -> exp.Expression:
        """Every value has a text; casts to other types fail for some values, or may."""
        if not node.to.is_type("text"):
            raise refused(view, "it holds a cast that can fail")
        return node

    return Selection(view, column, cast, lambda comparison: comparison)
