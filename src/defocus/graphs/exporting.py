"""Answers as files and frames. Names that a spreadsheet would run as a formula are disarmed in CSV."""

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from defocus.errors import InvalidParameterError, MissingExtraError
from defocus.graphs.columns import Column

__all__ = ["arrow", "csv_text", "disarmed", "frame", "json_text", "parquet_bytes", "write"]

_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")


def arrow(keys: Mapping[str, Sequence[Any]], columns: Sequence[Column]) -> pa.Table:
    """The keys, then for each column x: x, x_error, x_low and x_high."""
    made: dict[str, Any] = {name: _keys(values) for name, values in keys.items()}
    for column in columns:
        for suffix, part in (
            ("", column.values),
            ("_error", column.errors),
            ("_low", column.low),
            ("_high", column.high),
        ):
            made[f"{column.name}{suffix}"] = pa.array(part, pa.float64())
    return pa.table(made)


def _keys(values: Sequence[Any]) -> pa.Array:
    """Names as they are where Arrow has a type for all of them, else as text."""
    if isinstance(values, range):
        return pa.array(values, pa.int64())
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(list(values))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([str(value) for value in values], pa.string())


def disarmed(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe in front where it would be.

    Reference:
        OWASP, CSV Injection.

    >>> disarmed("=HYPERLINK(1)"), disarmed("node 3"), disarmed("'=1")
    ("'=HYPERLINK(1)", 'node 3', "''=1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def csv_text(table: pa.Table) -> str:
    """CSV with one header line: text quoted and disarmed, missing numbers empty."""
    arrays = []
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            arrays.append(pa.array([None if v is None else disarmed(v) for v in column.to_pylist()], pa.string()))
        elif pa.types.is_floating(column.type):
            arrays.append(
                pa.array([None if v is None or math.isnan(v) else v for v in column.to_pylist()], pa.float64())
            )
        else:
            arrays.append(column)
    sink = io.BytesIO()
    pyarrow.csv.write_csv(pa.Table.from_arrays(arrays, names=[disarmed(name) for name in table.column_names]), sink)
    return sink.getvalue().decode()


def parquet_bytes(table: pa.Table) -> bytes:
    """A Parquet file."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def json_text(content: Any) -> str:
    """Indented, in the order of the answer."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def frame(table: pa.Table, library: str) -> Any:
    """A frame of pandas or polars."""
    try:
        found = import_module(library)
    except ImportError as error:
        raise MissingExtraError(f"A {library} frame", package=library, extra="frames") from error
    return table.to_pandas() if library == "pandas" else found.from_arrow(table)


def write(path: str | Path, content: bytes) -> None:
    """Write a whole file, or say why it cannot be written."""
    try:
        Path(path).write_bytes(content)
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a path"
        raise InvalidParameterError(
            f"The answer could not be written to {str(path)!r:.120}: {why}.", fix="choose another path."
        ) from error
