"""Reports as Arrow tables and Parquet files, and counting them by SQL where they lie."""

import glob
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
from defocus.local.servers.tallies import Tally, no_reports

__all__ = ["count_files", "count_sql", "from_arrow", "to_arrow", "write_parquet"]

_KEY = b"defocus.local"
_WORD = 32
_LOW = (1 << 32) - 1


def to_arrow(reports: Reports) -> Any:
    """An Arrow table with the description in its metadata. All columns are signed 64-bit integers, which engines share.

    They are ``cell``; or ``row`` (if there are several) and words of 32 bits ``w0``, ``w1``, …; or ``value``.
    """
    pa = import_module("pyarrow")
    layout, payload = reports.design.layout, reports.payload
    if isinstance(layout, Cells):
        columns = {"cell": payload}
    elif isinstance(layout, BitRows):
        padded = np.zeros((len(payload), 4 * _words(layout)), np.uint8)
        padded[:, : layout.length - layout.prefix] = payload[:, layout.prefix :]
        words = padded.view("<u4")
        columns = {"row": layout.row(payload)} if layout.rows > 1 else {}
        columns |= {f"w{i}": words[:, i] for i in range(words.shape[1])}
    else:
        columns = {"value": payload}
    table = pa.table({name: pa.array(column.astype(np.int64)) for name, column in columns.items()})
    return table.replace_schema_metadata({_KEY: to_json(reports.design).encode()})


def from_arrow(table: Any) -> Reports:
    """Read a table back. Its columns must be those that the description in its metadata asks for."""
    design = _description(table.schema)
    _fits(table.schema, design)
    layout = design.layout
    if any(column.null_count for column in table.columns):
        raise UnreadableDescriptionError("a report is missing")
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    if isinstance(layout, Cells):
        _within(columns["cell"], 1 << 8 * layout.length)
        return Reports(design, columns["cell"].astype(layout.dtype))
    if not isinstance(layout, BitRows):
        return Reports(design, columns["value"].astype("<i8"))
    rows = columns.pop("row", np.zeros(len(table), np.int64))
    _within(rows, 1 << 8 * layout.prefix)
    for word in columns.values():
        _within(word, 1 << _WORD)
    words = np.stack([columns[f"w{i}"] for i in range(_words(layout))], axis=1).astype("<u4")
    packed = words.view(np.uint8)
    if packed[:, layout.length - layout.prefix :].any():
        raise UnreadableDescriptionError("a report has more bits than the oracle")
    return Reports(design, layout.with_rows(rows, packed[:, : layout.length - layout.prefix]))


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
    counted; a file with other columns than those of :func:`to_arrow`, or of another oracle, is refused.
    """
    parquet = import_module("pyarrow.parquet")
    for path in paths:
        schema = parquet.read_schema(str(path))
        found = _description(schema)
        if found.digest != design.digest:
            raise MismatchedOracleError("Reports", found.digest.hex(), design.digest.hex())
        _fits(schema, design)
    total = sum(parquet.read_metadata(str(path)).num_rows for path in paths)
    rows = list((run or _duckdb(paths))(count_sql(design))) if total else []
    state = State(design, _tally(design, rows))
    left = total - state.reports
    if left < 0:
        raise UnreadableDescriptionError("the engine counted more reports than the files hold")
    return State(design, state.tally, {"invalid": left} if left else {})


def count_sql(design: Design) -> str:
    """The statement that counts valid reports of a relation named ``reports``; DuckDB and Spark read it alike.

    >>> from defocus.local.designs import design
    >>> count_sql(design("k-rr", 5, 1))
    'SELECT cell, COUNT(*) FROM reports WHERE cell BETWEEN 0 AND 4 GROUP BY cell'
    """
    layout = design.layout
    if isinstance(layout, Cells):
        return f"SELECT cell, COUNT(*) FROM reports WHERE cell BETWEEN 0 AND {layout.cells - 1} GROUP BY cell"  # noqa: S608 - integers only
    if isinstance(layout, BitRows):
        return _bits_sql(layout)
    square = "CAST(value AS DECIMAL(19, 0)) * CAST(value AS DECIMAL(19, 0))"
    return (
        f"SELECT COUNT(*), SUM(value), SUM({square}) FROM reports "  # noqa: S608 - integers only
        f"WHERE value BETWEEN {-layout.limit} AND {layout.limit}"
    )


def _bits_sql(layout: BitRows) -> str:
    words = [f"w{i}" for i in range(_words(layout))]
    row = "row" if layout.rows > 1 else "0"
    ones = [f"SUM(CASE WHEN (w{i // _WORD} & {1 << i % _WORD}) <> 0 THEN 1 ELSE 0 END)" for i in range(layout.width)]
    last = (1 << (layout.width - 1) % _WORD + 1) - 1
    tests = [f"{word} BETWEEN 0 AND {_LOW}" for word in words[:-1]] + [f"{words[-1]} BETWEEN 0 AND {last}"]
    if layout.rows > 1:
        tests.append(f"row BETWEEN 0 AND {layout.rows - 1}")
    if layout.ones is not None:
        tests.append(" + ".join(f"BIT_COUNT({word})" for word in words) + f" = {layout.ones}")
    columns = ", ".join([f"{row} AS report_row", *ones, "COUNT(*)"])
    grouped = " GROUP BY row" if layout.rows > 1 else ""
    return f"SELECT {columns} FROM reports WHERE {' AND '.join(tests)}{grouped}"  # noqa: S608 - integers only


def _tally(design: Design, rows: list[Any]) -> Tally:
    layout = design.layout
    tally = no_reports(layout)
    for row in rows:
        if isinstance(layout, Cells):
            tally[int(row[0])] = int(row[1])
        elif isinstance(layout, BitRows):
            tally[int(row[0])] = [int(each or 0) for each in row[1:]]  # sums over nobody are NULL
        elif row[0]:
            squares = int(row[2])
            tally[:] = int(row[0]), int(row[1]), squares & _LOW, squares >> 32
    return tally


def _duckdb(paths: Sequence[str | Path]) -> Callable[[str], Iterable[Any]]:
    def run(sql: str) -> Iterable[Any]:
        with import_module("duckdb").connect() as connection:
            connection.read_parquet([glob.escape(str(path)) for path in paths]).create_view("reports")
            rows: list[Any] = connection.execute(sql).fetchall()
        return rows

    return run


def _description(schema: Any) -> Design:
    """The description in a schema's metadata."""
    if not schema.metadata or _KEY not in schema.metadata:
        raise UnreadableDescriptionError("there is none in the metadata")
    return from_json(schema.metadata[_KEY])


def _fits(schema: Any, design: Design) -> None:
    """Refuse columns that are not those of the design's reports. Their number is compared before any is named."""
    layout, names = design.layout, schema.names
    if isinstance(layout, BitRows):
        right = len(names) == _words(layout) + (layout.rows > 1)
        right = right and names == ["row"] * (layout.rows > 1) + [f"w{i}" for i in range(_words(layout))]
    else:
        right = names == ["cell" if isinstance(layout, Cells) else "value"]
    if not right or any(str(kind) != "int64" for kind in schema.types):
        raise UnreadableDescriptionError("the columns are not those of its reports")


def _within(numbers: np.ndarray[Any, np.dtype[np.int64]], limit: int) -> None:
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit:
        raise UnreadableDescriptionError("a report is out of the range of its column")


def _words(layout: BitRows) -> int:
    return -(-layout.width // _WORD)
