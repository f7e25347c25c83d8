"""A small table, and what an expression over it says on one row."""

# ruff: noqa: S608 the SQL is what is tested

import functools
from typing import Any

import duckdb

from defocus.engines.schema import within
from defocus.engines.syntax import column, named
from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions import expression

__all__ = ["SCHEMA", "answer", "sql"]

TYPES = {
    "age": (Kind.INTEGER, "BIGINT"),
    "small": (Kind.INTEGER, "TINYINT"),
    "pay": (Kind.NUMBER, "DOUBLE"),
    "price": (Kind.NUMBER, "DECIMAL(9, 2)"),
    "ward": (Kind.TEXT, "VARCHAR"),
    "well": (Kind.BOOLEAN, "BOOLEAN"),
    "born": (Kind.DATE, "DATE"),
    "seen": (Kind.TIMESTAMP, "TIMESTAMP"),
}
SCHEMA = Schema([*(Column(name, kind) for name, (kind, _) in TYPES.items()), Column("tags", Kind.OTHER)])


@functools.cache
def engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def sql(text: str, dialect: str = "duckdb") -> str:
    """The SQL of an expression."""
    return expression(text, SCHEMA).sql.sql(dialect)


def answer(text: str, **row: Any) -> Any:
    """The value of an expression on a row as engines show it; columns that are not given are NULL."""
    cells = ", ".join(f"CAST(? AS {its}) AS {name}" for name, (_, its) in TYPES.items())
    shown = ", ".join(named(within(column(name), kind), name).sql("duckdb") for name, (kind, _) in TYPES.items())
    query = f"SELECT {sql(text)} FROM (SELECT {shown} FROM (SELECT {cells}) AS r) AS t"
    (value,) = engine().execute(query, [row.get(name) for name in TYPES]).fetchall()[0]
    return value
