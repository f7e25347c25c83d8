"""Sources of all sorts that hold the same rows, and how tests read them."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.sources import Source

SORTS = ("parquet", "csv", "database", "connection", "view", "pandas", "polars", "arrow", "dataset")


def rows(source: Source) -> list[dict[str, Any]]:
    """What the engine reads; tests may look, questions may not."""
    read: list[dict[str, Any]] = source.engine.run(exp.select("*").from_(source.relation.subquery("t"))).to_pylist()
    return read


def column(source: Source, name: str = "x") -> list[Any]:
    """The values of one column, in an order that does not depend on the engine."""
    return sorted((row[name] for row in rows(source)), key=repr)


def write_csv(path: Path, header: Sequence[str], table: Iterable[Sequence[Any]], **options: Any) -> Path:
    """A file as a conforming program writes it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **options)
        writer.writerow(header)
        writer.writerows(table)
    return path


def unlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be opened from views of any sort, for tests of what happens when reading fails or does not end."""

    def named(_: Any, names: tuple[str, str, str]) -> exp.Expression:
        return exp.table_(names[2], db=names[1], catalog=names[0], quoted=True)

    monkeypatch.setattr(DuckDbEngine, "named", named)
    monkeypatch.setattr(PostgreSqlEngine, "named", named)


def made(sort: str, table: Any, folder: Path) -> tuple[Any, dict[str, str]]:
    """The table as data of one sort, and what else its opening needs."""
    if sort == "parquet":
        pq.write_table(table, folder / "t.parquet")
        return folder / "t.parquet", {}
    if sort == "csv":
        records = [list(record.values()) for record in table.to_pylist()]
        return write_csv(folder / "t.csv", table.column_names, records), {}
    if sort in {"database", "connection", "view"}:
        return _in_duckdb(sort, table, folder)
    frames = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "dataset": lambda: pads.dataset(table)}
    return frames.get(sort, lambda: table)(), {}


def _in_duckdb(sort: str, table: Any, folder: Path) -> tuple[Any, dict[str, str]]:
    path = folder / "t.duckdb"
    connection = duckdb.connect(str(path) if sort == "database" else ":memory:")
    connection.register("given", table)
    connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM given")
    connection.unregister("given")
    if sort == "database":
        connection.close()
        return path, {"table": "t"}
    connection.execute("CREATE OR REPLACE VIEW v AS SELECT * FROM t")
    return connection, {"table": "t" if sort == "connection" else "v"}
