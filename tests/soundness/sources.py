"""Ways to open the same small table about people, and which odd rows each of them can hold.

A way is a function that puts rows where ``dp.open`` finds them. What a way cannot hold it refuses with whatever its own
library raises (a typed column takes no text): that is not a row of this table but another table, which its owner
declares; so it is left out by this rule, and never by hand.
"""

import csv
import datetime as dt
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from tests.soundness.odd_rows import OddRow, odd_rows

import defocus as dp

__all__ = ["BASE", "COLUMNS", "UNTYPED", "WAYS", "Row", "Way", "both", "neighbours", "opened"]

Row = dict[str, Any]

COLUMNS = ("person", "k", "x", "n", "t")
TYPES = {
    "person": pa.int64(),
    "k": pa.string(),
    "x": pa.float64(),
    "n": pa.int64(),
    "t": pa.timestamp("us"),
}
KINDS = {"person": "integer", "k": "text", "x": "number", "n": "integer", "t": "timestamp"}
_WHEN = np.datetime64("2026-01-01T00:00:00", "us")


def ordinary(i: int) -> Row:
    when = (_WHEN + np.timedelta64(i, "D")).item()
    return {"person": i // 3, "k": "abc"[i % 3], "x": i % 7 / 8, "n": i % 5, "t": when}


BASE: list[Row] = [ordinary(i) for i in range(18)]
"""Six people with three rows each."""
USUAL: Row = {**ordinary(0), "person": 9}


class InexpressibleError(Exception):
    """A source cannot hold this row: then it is no row of it."""


@final
class Way:
    """A way to open rows: ``put`` puts them somewhere below a folder and says what ``dp.open`` is to be given."""

    def __init__(
        self,
        name: str,
        put: Callable[[Path, Sequence[Row], bytes | None], tuple[Any, dict[str, Any]]],
        fits: Callable[[str, Any], Any],
        *,
        lines: bool = False,
    ) -> None:
        self.name, self.put, self.fits, self.lines = name, put, fits, lines

    def rows(self, odd: OddRow) -> list[Row] | None:
        """The rows that an odd row adds here, or None where this source cannot hold it."""
        if odd.line is not None:
            return [] if self.lines else None
        added, expressed = [], False
        for given in odd.rows:
            row = dict(BASE[0] if given.get("duplicate") else USUAL)
            for name, value in given.items():
                if name == "duplicate":
                    continue
                try:
                    self.fits(name, value)
                except Exception:  # noqa: BLE001 -- whatever its library says: this column cannot hold it
                    if odd.wholly:
                        return None
                else:
                    row[name], expressed = value, True
            added.append(row)
        return added if expressed or odd.wholly else None


def _typed(name: str, value: Any) -> Any:
    """The value as a typed column holds it."""
    return pa.array([value], TYPES[name])[0]


def table_of(rows: Sequence[Row]) -> pa.Table:
    held = {name: [_typed(name, row[name]) for row in rows] for name in COLUMNS}
    return pa.table({name: pa.array(values, TYPES[name]) for name, values in held.items()})


def _arrow(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del home, line
    return table_of(rows), {}


def _dataset(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del home, line
    return pads.dataset(table_of(rows)), {}


def _parquet(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del line
    pq.write_table(table_of(rows), home / "v.parquet")
    return home / "v.parquet", {}


def _folder(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del line
    (home / "v").mkdir()
    pq.write_table(table_of(rows[:9]), home / "v" / "0.parquet")
    pq.write_table(table_of(rows[9:]), home / "v" / "1.parquet")
    return home / "v", {}


def _glob(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    _folder(home, rows, line)
    return str(home / "v" / "*.parquet"), {}


def _cell(name: str, value: Any) -> str:
    """A value as a field of a file; only what a program would write into one."""
    del name
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | float | np.number | np.datetime64 | np.bool_) or hasattr(value, "isoformat"):
        return str(value)
    raise InexpressibleError


def _encoded(name: str, value: Any) -> bytes:
    return _cell(name, value).encode()


def _written(rows: Sequence[Row], line: bytes | None, separator: str = ",") -> bytes:
    made = io.StringIO()
    writer = csv.writer(made, delimiter=separator, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(name, row[name]) for name in COLUMNS])
    more = b"" if line is None else line.replace(b",", separator.encode()) + b"\n"
    return made.getvalue().encode() + more


def _csv(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    (home / "v.csv").write_bytes(_written(rows, line))
    return home / "v.csv", {"types": KINDS}


def _gz(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    (home / "v.csv.gz").write_bytes(gzip.compress(_written(rows, line), mtime=0))
    return home / "v.csv.gz", {"types": KINDS}


def _tsv(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    (home / "v.tsv").write_bytes(_written(rows, line, "\t"))
    return home / "v.tsv", {"types": KINDS}


def _csv_folder(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    (home / "v").mkdir()
    (home / "v" / "0.csv").write_bytes(_written(rows[:9], None))
    (home / "v" / "1.csv").write_bytes(_written(rows[9:], line))
    return home / "v", {"types": KINDS}


def _csv_glob(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    _csv_folder(home, rows, line)
    return str(home / "v" / "*.csv"), {"types": KINDS}


def _csv_untyped(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    (home / "v.csv").write_bytes(_written(rows, line))
    return home / "v.csv", {}


def _duckdb_file(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del line
    with duckdb.connect(str(home / "v.duckdb")) as connection:
        _fill(connection, rows)
    return home / "v.duckdb", {"table": "v"}


def _duckdb_connection(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del home, line
    connection = duckdb.connect()
    _fill(connection, rows)
    return connection, {"table": "v"}


def _fill(connection: Any, rows: Sequence[Row]) -> None:
    connection.register("given", table_of(rows))
    connection.execute("CREATE TABLE v AS SELECT * FROM given")
    connection.unregister("given")


_PANDAS = {"person": "int64", "k": "string", "x": "float64", "n": "Int64", "t": "datetime64[us]"}


def _pandas_fits(name: str, value: Any) -> Any:
    """The value as a column of this type holds it."""
    if name == "t" and isinstance(value, str) and len(value) > 1000:
        raise InexpressibleError  # no moment: pandas would say so after reading all of it
    made = pd.array([value], dtype=_PANDAS[name])
    if made.shape != (1,):
        raise InexpressibleError
    return made[0]


def _pandas_typed(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del home, line
    held = {name: [_pandas_fits(name, row[name]) for row in rows] for name in COLUMNS}
    return pd.DataFrame({name: pd.array(values, dtype=_PANDAS[name]) for name, values in held.items()}), {}


def _objects(values: Sequence[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        made[i] = value
    return made


def _pandas_object(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del home, line
    made = {name: pd.Series(_objects([row[name] for row in rows]), dtype=object) for name in COLUMNS}
    return pd.DataFrame(made), {"types": KINDS}


def _pandas_texts(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    """Numbers in columns of numbers, and text as an object, which is what read_csv makes."""
    frame, _ = _pandas_typed(home, [{**row, "k": "a"} for row in rows], line)
    frame["k"] = pd.Series(_objects([row["k"] for row in rows]), dtype=object)
    return frame, {}


def _texts_fit(name: str, value: Any) -> Any:
    return None if name == "k" else _pandas_fits(name, value)


def _pandas_category(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    frame, more = _pandas_typed(home, [{**row, "k": "a"} for row in rows], line)
    frame["k"] = pd.Series(_objects([row["k"] for row in rows]), dtype=object).astype("category")
    return frame, more


def _category_fits(name: str, value: Any) -> Any:
    return pd.Series(_objects(["a", value])).astype("category") if name == "k" else _pandas_fits(name, value)


_POLARS: dict[str, Any] = {"person": pl.Int64, "k": pl.String, "x": pl.Float64, "n": pl.Int64, "t": pl.Datetime("us")}


def _polars_fits(name: str, value: Any) -> Any:
    if not isinstance(value, type(None) | bool | int | float | str | bytes | dt.date):
        raise InexpressibleError  # of other objects polars panics
    if name == "t" and not isinstance(value, type(None) | dt.date):
        raise InexpressibleError  # likewise of times that are too late
    return pl.Series(name, [value], dtype=_POLARS[name], strict=True)[0]


def _polars(home: Path, rows: Sequence[Row], line: bytes | None) -> tuple[Any, dict[str, Any]]:
    del home, line
    held = {name: [_polars_fits(name, row[name]) for row in rows] for name in COLUMNS}
    made = {name: pl.Series(name, values, dtype=_POLARS[name]) for name, values in held.items()}
    return pl.DataFrame(made), {}


def _anything(name: str, value: Any) -> Any:
    return name, value


WAYS: Mapping[str, Way] = {
    way.name: way
    for way in (
        Way("arrow", _arrow, _typed),
        Way("arrow dataset", _dataset, _typed),
        Way("parquet", _parquet, _typed),
        Way("parquet folder", _folder, _typed),
        Way("parquet glob", _glob, _typed),
        Way("csv", _csv, _encoded, lines=True),
        Way("csv.gz", _gz, _encoded, lines=True),
        Way("tsv", _tsv, _encoded, lines=True),
        Way("csv folder", _csv_folder, _encoded, lines=True),
        Way("csv glob", _csv_glob, _encoded, lines=True),
        Way("duckdb file", _duckdb_file, _typed),
        Way("duckdb connection", _duckdb_connection, _typed),
        Way("pandas typed", _pandas_typed, _pandas_fits),
        Way("pandas text as objects", _pandas_texts, _texts_fit),
        Way("pandas objects", _pandas_object, _anything),
        Way("pandas category", _pandas_category, _category_fits),
        Way("polars", _polars, _polars_fits),
    )
}

UNTYPED = Way("csv without types", _csv_untyped, _encoded, lines=True)

FACTS: dict[str, Any] = {"x": (0, 1), "n": (0, 4), "k": ["a", "b", "d"]}


def opened(home: Path, way: Way, rows: Sequence[Row], line: bytes | None, **more: Any) -> Any:
    """The table, opened in a way, with a ledger of its own."""
    data, given = way.put(home, rows, line)
    facts = {"unit": dp.user("person"), "budget": dp.Budget(100, 1e-2), "columns": FACTS, "name": "v"}
    return dp.open(data, ledger=home / "v.ledger", **{**facts, **given, **more})


Added = tuple[tuple[Row, ...], bytes | None]
"""Rows, or a line, that a neighbour has beside the base."""


def neighbours(way: Way) -> dict[str, dict[str, Added]]:
    """The odd rows that this way can hold: those of one more person, and those that are each of another."""
    one: dict[str, Added] = {}
    each: dict[str, Added] = {}
    for odd in odd_rows(COLUMNS, "person"):
        added = way.rows(odd)
        if added is not None:
            (each if odd.apart else one)[odd.name] = (tuple(added), odd.line)
    return {"one person": one, "each another person": each}


def both(added: Sequence[Added]) -> tuple[list[Row], bytes | None]:
    """The base with what was added to it."""
    lines = [line for _, line in added if line is not None]
    return [*BASE, *(row for rows, _ in added for row in rows)], b"\n".join(lines) if lines else None
