"""SQL over a private table: one SELECT is one release, charged as one event.

A statement is parsed with sqlglot, checked construct by construct, and becomes the same question that the methods of
a table make: filters, derived columns, joins, groups and aggregates. What SQL does afterwards, HAVING, ORDER BY, LIMIT
and arithmetic over aggregates, is done to the released numbers. Whatever is not understood is refused by name, and
what is refused depends on the text and the schema, never on a row.
"""

from defocus.tables.sql.query import SqlQuery
from defocus.tables.sql.relations import Catalogue
from defocus.tables.sql.select import read

__all__ = ["Catalogue", "SqlQuery", "read"]
