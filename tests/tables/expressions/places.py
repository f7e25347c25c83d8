"""A small table in an engine, and what an expression says on each of its rows."""

# ruff: noqa: S608 the SQL is what is tested

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import duckdb
import psycopg
import pyarrow as pa
from sqlglot import exp

from defocus.engines.mariadb import MariaDbEngine
from defocus.engines.postgresql.dialect import lowered
from defocus.tables import Kind
from defocus.tables.expressions import Expression

__all__ = ["DuckDbPlace", "MariaDbPlace", "Place", "PostgreSqlPlace"]

TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE PRECISION",
    Kind.TEXT: "TEXT",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


class Place(Protocol):
    """An engine with a table."""

    def ask(self, rows: Sequence[Sequence[Any]], read: Expression) -> tuple[list[Any], list[int]]:
        """The values on all rows, and the rows that the condition keeps."""
        ...


class DuckDbPlace:
    """As the engine hands tables on: dates beyond the calendar are NULL by then."""

    def __init__(self, columns: Mapping[str, Kind]) -> None:
        self.types = [TYPES[kind] for kind in columns.values()]
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute(f"CREATE TABLE t (place BIGINT, {_declared(columns, '')})")

    def ask(self, rows: Sequence[Sequence[Any]], read: Expression) -> tuple[list[Any], list[int]]:
        self.connection.execute("DELETE FROM t")
        casts = ", ".join(f"CAST(? AS {type_})" for type_ in self.types)
        lines = ", ".join(f"({i}, {casts})" for i in range(len(rows)))
        self.connection.execute(f"INSERT INTO t VALUES {lines}", [_held(cell) for row in rows for cell in row])
        values = self.connection.execute(f"SELECT {read.sql.sql('duckdb')} FROM t ORDER BY place").fetchall()
        if read.kind is not Kind.BOOLEAN:
            return [value for (value,) in values], []
        kept = self.connection.execute(f"SELECT place FROM t WHERE {read.condition.sql('duckdb')} ORDER BY 1")
        return [value for (value,) in values], [i for (i,) in kept.fetchall()]


class PostgreSqlPlace:
    """As the engine hands tables on: text compares bytes, time is UTC, dates beyond the calendar are NULL."""

    def __init__(self, columns: Mapping[str, Kind], server: str) -> None:
        self.types = [TYPES[kind] for kind in columns.values()]
        self.connection = psycopg.connect(server, autocommit=True, cursor_factory=psycopg.RawCursor)
        for setting in ("TimeZone = 'UTC'", "DateStyle = 'ISO, YMD'", "search_path = pg_temp, pg_catalog"):
            self.connection.execute(f"SET {setting}")
        declared = _declared(columns, ' COLLATE "C"')
        self.connection.execute(f"CREATE TEMPORARY TABLE t (place BIGINT, {declared})")

    def close(self) -> None:
        self.connection.close()

    def ask(self, rows: Sequence[Sequence[Any]], read: Expression) -> tuple[list[Any], list[int]]:
        self.connection.execute("DELETE FROM t")
        width = len(self.types)
        lines = ", ".join(
            f"({i}, " + ", ".join(f"CAST(${i * width + j + 1} AS {type_})" for j, type_ in enumerate(self.types)) + ")"
            for i in range(len(rows))
        )
        self.connection.execute(f"INSERT INTO t VALUES {lines}", [_held(cell) for row in rows for cell in row])
        values = self._all(exp.select(lowered(read.sql)))
        return values, self._all(
            exp.select("place").where(lowered(read.condition))
        ) if read.kind is Kind.BOOLEAN else []

    def _all(self, select: exp.Select) -> list[Any]:
        text = select.from_("t").order_by("place").sql("postgres")
        return [value for (value,) in self.connection.execute(text).fetchall()]


class MariaDbPlace:
    """As the engine reads a table that travels with the statement; dates beyond the calendar are NULL by then."""

    def __init__(self, columns: Mapping[str, Kind], server: str) -> None:
        self.columns = columns
        self.engine = MariaDbEngine(server)

    def close(self) -> None:
        self.engine.close()

    def ask(self, rows: Sequence[Sequence[Any]], read: Expression) -> tuple[list[Any], list[int]]:
        cells = {
            name: pa.array([_held(row[i]) for row in rows], ARROW[kind])
            for i, (name, kind) in enumerate(self.columns.items())
        }
        table = self.engine.publish("t", pa.table({**cells, "place": list(range(len(rows)))}))
        relation = self.engine.canonical(table, {})
        values = self._all(relation, read.sql, None)
        kept = (
            self._all(relation, exp.column("place", quoted=True), read.condition) if read.kind is Kind.BOOLEAN else []
        )
        self.engine.withdraw(table)
        return values, kept

    def _all(self, relation: exp.Select, sql: exp.Expression, condition: exp.Expression | None) -> list[Any]:
        select = exp.select(exp.alias_(sql.copy(), "v", quoted=True)).from_(relation.subquery("t"))
        if condition is not None:
            select = select.where(condition.copy())
        ordered = select.order_by(exp.Ordered(this=exp.column("place", quoted=True), nulls_first=True))
        return list(self.engine.run(ordered)["v"].to_pylist())


def _held(cell: Any) -> Any:
    """A cell as it is in every table: NULL for a date beyond the calendar."""
    return None if cell in {"infinity", "-infinity", "10000-01-01", "0044-03-15 (BC)"} else cell


def _declared(columns: Mapping[str, Kind], collation: str) -> str:
    names = [exp.to_identifier(name, quoted=True).sql() for name in columns]
    return ", ".join(
        f"{name} {TYPES[kind]}{collation if kind is Kind.TEXT else ''}"
        for name, kind in zip(names, columns.values(), strict=True)
    )
