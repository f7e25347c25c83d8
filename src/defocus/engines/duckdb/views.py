"""Tables and views of a DuckDB connection, as rows that are stored: a view is read as the selection that it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from sqlglot import exp

from defocus.engines.files import find
from defocus.engines.syntax import column, named, quoted, rows_of
from defocus.engines.views import Names, Selection, constant, plain, query_of, refused, single, stars

__all__ = ["TABLES", "VIEWS", "Selections"]

TABLES = (
    "SELECT t.database_name, t.schema_name, t.table_name, CASE WHEN d.type = 'duckdb'"
    " AND NOT contains(t.sql, ' GENERATED ALWAYS AS') THEN t.sql END"
    " FROM duckdb_tables() AS t LEFT JOIN duckdb_databases() AS d ON d.database_name = t.database_name"
)
"""All tables, and how those were made that DuckDB itself stores and that compute no column while they are read."""
VIEWS = "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal"
_DEEPEST = 50


@final
@dataclass(frozen=True, slots=True)
class Selections:
    """The tables and the views that a connection has now, and how columns of a relation are found."""

    tables: Mapping[Names, str | None]
    views: Mapping[Names, str | None]
    columns: Callable[[exp.Expression], list[tuple[str, Any]]]

    def relation(self, names: Names, depth: int = 0) -> exp.Expression:
        """A stored table by its full name, or what a view selects of stored tables, without the view.

        Guarantee:
            The types of columns are those of stored tables and of Parquet footers. What was looked at is what is
            read: later changes to a view change nothing, and no name in it can come to mean another table.
        """
        if self.tables.get(names) is not None:
            parts = [quoted(part) for part in names]
            return exp.Table(this=parts[2], db=parts[1], catalog=parts[0])
        text = self.views.get(names)
        if text is None:
            raise refused(names[2], "it is not stored by DuckDB, or has columns that are computed when they are read")
        tree = query_of(names[2], text, "duckdb")
        if not isinstance(tree, exp.Create) or depth > _DEEPEST:
            raise refused(names[2], "its definition is not understood")
        relation = self._query(names, tree.args.get("expression"), depth)
        head = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
        return _renamed(relation, [one.name for one in head], self.columns) if head else relation

    def _query(self, names: Names, query: exp.Expression | None, depth: int) -> exp.Expression:
        query = plain(names[2], query)
        table = single(names[2], query)
        if isinstance(table, exp.Subquery):
            inner = self._query(names, table.this, depth)
        else:
            inner = self._read(names, table, depth)
        alias = table.args.get("alias")
        called = [one.name for one in alias.columns] if alias is not None else []
        inner = _renamed(inner, called, self.columns) if called else inner
        own_names = {name.lower(): name for name, _ in self.columns(inner)}
        own = table.alias_or_name.lower()
        selection = Selection(names[2], partial(_column, names[2], own, own_names), _tried, _tried)
        outputs: list[exp.Expression] = []
        for one in query.expressions:
            value = one.this if isinstance(one, exp.Alias) else one
            if stars(names[2], value):
                outputs += [named(column(name, "t"), name) for name in own_names.values()]
                continue
            if not isinstance(one, exp.Alias | exp.Column):
                raise refused(names[2], "a column of it has no name")
            kept = selection.item(value)
            outputs.append(named(_try(kept) if constant(value) else kept, one.alias_or_name))
        select = exp.select(*outputs).from_(_aliased(inner), copy=False)
        where = query.args.get("where")
        return select if where is None else select.where(selection.condition(where.this), copy=False)

    def _read(self, names: Names, table: exp.Table, depth: int) -> exp.Expression:
        if isinstance(table.this, exp.Identifier):
            meant = self._meant(names, table)
            is_file = not meant and len(table.parts) == 1 and table.name.lower().endswith(".parquet")
            if is_file:
                return self._parquet(names, [table.name])
            if len(meant) != 1:
                many = "several tables are" if meant else "no table is"
                raise refused(names[2], f"{many} called {table.name!r:.60}")
            return self.relation(meant[0], depth + 1)
        function = table.this
        is_parquet = isinstance(function, exp.ReadParquet) or function.name.lower() == "parquet_scan"
        if not is_parquet or len(function.expressions) != 1:
            raise refused(names[2], "it calls a function for its rows, or a reader with options")
        (paths,) = function.expressions
        texts = paths.expressions if isinstance(paths, exp.Array) else [paths]
        if not all(isinstance(text, exp.Literal) and text.is_string for text in texts):
            raise refused(names[2], "it calls a function for its rows")
        return self._parquet(names, [text.name for text in texts])

    def _parquet(self, names: Names, paths: list[str]) -> exp.Expression:
        """Files as they would be opened by their paths: all with the same types, and none that arrives later."""
        files = find(paths)
        if files.format != "parquet":
            raise refused(names[2], "it reads files that do not say their types")
        return files.relation()

    def _meant(self, home: Names, table: exp.Table) -> list[Names]:
        """What a name in a view may stand for: what is called so in the view's own schema or catalog, or anywhere.

        DuckDB prefers temporary tables, wherever the view is, which nobody sees who reads it: they count as well.
        """
        parts = [part.name.lower() for part in table.parts]
        every = [one for one in (*self.tables, *self.views) if _ends(one, parts)]
        near = [one for one in every if one[: 3 - len(parts)] == home[: 3 - len(parts)]]
        return [one for one in every if one in near or one[0] == "temp"] if near else every


def _ends(names: Names, parts: list[str]) -> bool:
    """Whether these are names of a relation that may be called so: by its last parts, or by its catalog and itself."""
    lower = [one.lower() for one in names]
    return lower[3 - len(parts) :] == parts or (
        len(parts) == 2 and [lower[0], lower[2]] == parts and lower[1] == "main"
    )


def _column(view: str, own: str, own_names: dict[str, str], node: exp.Column) -> exp.Expression:
    real = own_names.get(node.name.lower())
    if real is None or node.table.lower() not in {"", own}:
        raise refused(view, f"it holds {node.name!r:.60}, which is no stored column")
    return column(real, "t")


def _tried(value: exp.Expression) -> exp.Expression:
    """A comparison or cast that is NULL where it fails, of columns whose statistics do not decide it."""
    for one in list(value.find_all(exp.Column)):
        one.replace(_try(one.copy()))
    if isinstance(value, exp.Cast):
        value = exp.TryCast(this=value.this, to=value.to)
    return _try(value)


def _try(value: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="TRY", expressions=[value])


def _aliased(relation: exp.Expression) -> exp.Expression:
    rows = rows_of(relation)
    if not isinstance(relation, exp.Query):
        rows.set("alias", exp.TableAlias(this=quoted("t")))
    return rows


def _renamed(
    relation: exp.Expression, names: list[str], columns: Callable[[exp.Expression], list[tuple[str, Any]]]
) -> exp.Expression:
    """The same rows with other names for the first columns."""
    old = [name for name, _ in columns(relation)]
    pairs = zip(old, [*names, *old[len(names) :]], strict=False)
    return exp.select(*(named(column(one, "t"), other) for one, other in pairs)).from_(_aliased(relation), copy=False)
