"""Reports as Arrow tables and Parquet files, and counting them by SQL where they lie."""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from defocus.errors import MismatchedOracleError, UnreadableDescriptionError
from defocus.local.designs import Design, from_json, to_json
from defocus.local.layouts import BitRows, Cells
from defocus.local.reports import Reports
from defocus.local.servers.states import State
from defocus.local.servers.tallies import tally_shape

__all__ = ["count_files", "count_sql", "from_arrow", "to_arrow", "write_parquet"]

_KEY = b"defocus.local"
_LOW = (1 << 32) - 1


def to_arrow(reports: Reports) -> Any:
    """An Arrow table with the description in its metadata.

    Its columns: ``cell``; or ``row`` (if there are several) and words of 64 bits ``w0``, ``w1``, …; or ``value``.
    """
    pa = import_module("pyarrow")
    layout, payload = reports.design.layout, reports.payload
    if isinstance(layout, Cells):
        columns = {"cell": payload}
    elif isinstance(layout, BitRows):
        padded = np.zeros((len(payload), 8 * -(-layout.width // 64)), np.uint8)
        padded[:, : layout.length - layout.prefix] = payload[:, layout.prefix :]
        words = padded.view("<u8")
        columns = {"row": layout.row(payload)} if layout.rows > 1 else {}
        columns |= {f"w{i}": words[:, i] for i in range(words.shape[1])}
    else:
        columns = {"value": payload}
    return pa.table(columns).replace_schema_metadata({_KEY: to_json(reports.design).encode()})


def from_arrow(table: Any) -> Reports:
    """Read a table back. Its columns must be those that the description in its metadata asks for."""
    design = _design(table.schema.metadata)
    layout = design.layout
    try:
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        if isinstance(layout, Cells):
            payload = columns["cell"].astype(layout.dtype, casting="safe")
        elif isinstance(layout, BitRows):
            words = np.stack([columns[f"w{i}"] for i in range(-(-layout.width // 64))], axis=1).astype("<u8")
            rows = columns["row"] if layout.rows > 1 else np.zeros(len(words), np.int64)
            packed = np.ascontiguousarray(words).view(np.uint8)[:, : layout.length - layout.prefix]
            payload = layout.with_rows(rows, packed)
        else:
            payload = columns["value"].astype("<i8", casting="safe")
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableDescriptionError(
            f"the columns are not those of its reports ({type(error).__name__})"
        ) from error
    return Reports(design, payload)


def write_parquet(reports: Reports, path: str | Path) -> None:
    """Write a Parquet file."""
    import_module("pyarrow.parquet").write_table(to_arrow(reports), str(path), compression="zstd")


def count_files(
    design: Design, paths: Sequence[str | Path], *, run: Callable[[str], Iterable[Any]] | None = None
) -> State:
    """Count the reports of Parquet files in the engine, without reading them into Python.

    The engine is DuckDB, on all cores and out of core. ``run`` takes another: it gets one SELECT statement over a
    relation named ``reports`` and returns its rows, for example ``lambda sql: spark.sql(sql).collect()`` after
    ``spark.read.parquet(...).createOrReplaceTempView("reports")``. Reports that no client makes are left out and
    counted.
    """
    parquet = import_module("pyarrow.parquet")
    for path in paths:
        found = _design(parquet.read_schema(str(path)).metadata)
        if found.digest != design.digest:
            raise MismatchedOracleError("Reports", found.digest.hex(), design.digest.hex())
    total = sum(parquet.read_metadata(str(path)).num_rows for path in paths)
    rows = list((run or _duckdb(paths))(count_sql(design)))
    state = State(design, _tally(design, rows))
    left = total - state.reports
    return State(design, state.tally, {"invalid": left} if left else {})


def count_sql(design: Design) -> str:
    """The statement that counts valid reports of a relation named ``reports``.

    >>> from defocus.local.designs import design
    >>> count_sql(design("k-rr", 5, 1))
    'SELECT cell, COUNT(*) FROM reports WHERE cell < 5 GROUP BY cell'
    """
    layout = design.layout
    if isinstance(layout, Cells):
        return f"SELECT cell, COUNT(*) FROM reports WHERE cell < {layout.cells} GROUP BY cell"  # noqa: S608 - integers only
    if isinstance(layout, BitRows):
        words = -(-layout.width // 64)
        ones = ", ".join(f"SUM((w{i // 64} >> {i % 64}) & 1)" for i in range(layout.width))
        tests = [f"(w{words - 1} >> {layout.width % 64}) = 0"] if layout.width % 64 else []
        if layout.rows > 1:
            tests.append(f"row < {layout.rows}")
        if layout.ones is not None:
            tests.append(" + ".join(f"BIT_COUNT(w{i})" for i in range(words)) + f" = {layout.ones}")
        row = "row" if layout.rows > 1 else "0"
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"SELECT {row}, {ones}, COUNT(*) FROM reports{where} GROUP BY 1"  # noqa: S608 - integers only
    square = "CAST(value AS DECIMAL(38, 0)) * value"
    return (
        f"SELECT COUNT(*), SUM(value), SUM({square}) FROM reports "  # noqa: S608 - integers only
        f"WHERE value BETWEEN {-layout.limit} AND {layout.limit}"
    )


def _tally(design: Design, rows: list[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    layout = design.layout
    tally = np.zeros(tally_shape(layout), np.int64)
    for row in rows:
        if isinstance(layout, Cells):
            tally[int(row[0])] = int(row[1])
        elif isinstance(layout, BitRows):
            tally[int(row[0])] = [int(each) for each in row[1:]]
        elif row[0]:
            squares = int(row[2])
            tally[:] = int(row[0]), int(row[1]), squares & _LOW, squares >> 32
    return tally


def _duckdb(paths: Sequence[str | Path]) -> Callable[[str], Iterable[Any]]:
    def run(sql: str) -> Iterable[Any]:
        with import_module("duckdb").connect() as connection:
            connection.read_parquet([str(path) for path in paths]).create_view("reports")
            rows: list[Any] = connection.execute(sql).fetchall()
        return rows

    return run


def _design(metadata: Any) -> Design:
    if not metadata or _KEY not in metadata:
        raise UnreadableDescriptionError("there is none in the metadata")
    return from_json(metadata[_KEY])
