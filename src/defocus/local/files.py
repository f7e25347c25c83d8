"""Reports as Arrow tables and Parquet files."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from defocus.errors import UnreadableDescriptionError
from defocus.local.designs import Design, from_json, to_json
from defocus.local.layouts import BitRows, Cells
from defocus.local.reports import Reports

__all__ = ["WORD", "check_columns", "description", "from_arrow", "to_arrow", "words_of", "write_parquet"]

_KEY = b"defocus.local"
"""Where the metadata of a table has the description."""
WORD = 32
"""Bits of a word, which a column holds one of."""


def to_arrow(reports: Reports) -> Any:
    """An Arrow table with the description in its metadata. All columns are signed 64-bit integers, which engines share.

    They are ``cell``; or ``row`` (if there are several) and words of 32 bits ``w0``, ``w1``, …; or ``value``.
    """
    pa = import_module("pyarrow")
    layout, payload = reports.design.layout, reports.payload
    if isinstance(layout, Cells):
        columns = {"cell": payload}
    elif isinstance(layout, BitRows):
        padded = np.zeros((len(payload), 4 * words_of(layout)), np.uint8)
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
    design = description(table.schema)
    check_columns(table.schema, design)
    layout = design.layout
    if any(column.null_count for column in table.columns):
        raise _unread("one is missing")
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    if isinstance(layout, Cells):
        _within(columns["cell"], 1 << 8 * layout.length)
        return Reports(design, columns["cell"].astype(layout.dtype))
    if not isinstance(layout, BitRows):
        return Reports(design, columns["value"].astype("<i8"))
    rows = columns.pop("row", np.zeros(len(table), np.int64))
    _within(rows, 1 << 8 * layout.prefix)
    for word in columns.values():
        _within(word, 1 << WORD)
    words = np.stack([columns[f"w{i}"] for i in range(words_of(layout))], axis=1).astype("<u4")
    packed = words.view(np.uint8)
    if packed[:, layout.length - layout.prefix :].any():
        raise _unread("one has more bits than the oracle")
    return Reports(design, layout.with_rows(rows, packed[:, : layout.length - layout.prefix]))


def write_parquet(reports: Reports, path: str | Path) -> None:
    """Write a Parquet file."""
    import_module("pyarrow.parquet").write_table(to_arrow(reports), str(path), compression="zstd")


def description(schema: Any) -> Design:
    """The description in a schema's metadata."""
    if not schema.metadata or _KEY not in schema.metadata:
        raise _unread("there is no description of an oracle in the metadata")
    return from_json(schema.metadata[_KEY])


def check_columns(schema: Any, design: Design) -> None:
    """Refuse columns that are not those of the design's reports. Their number is compared before any is named."""
    layout, names = design.layout, schema.names
    if isinstance(layout, BitRows):
        right = len(names) == words_of(layout) + (layout.rows > 1)
        right = right and names == ["row"] * (layout.rows > 1) + [f"w{i}" for i in range(words_of(layout))]
    else:
        right = names == ["cell" if isinstance(layout, Cells) else "value"]
    if not right or any(str(kind) != "int64" for kind in schema.types):
        raise _unread("the columns are not those of the oracle in their metadata")


def _within(numbers: np.ndarray[Any, np.dtype[np.int64]], limit: int) -> None:
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit:
        raise _unread("one is out of the range of its column")


def words_of(layout: BitRows) -> int:
    """How many words hold the bits of a row."""
    return -(-layout.width // WORD)


def _unread(why: str) -> UnreadableDescriptionError:
    return UnreadableDescriptionError(why, what="The reports", writer="to_arrow or write_parquet")
