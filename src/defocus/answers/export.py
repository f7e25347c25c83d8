"""Answers as files and frames. Text that a spreadsheet would run as a formula is disarmed in CSV, and text in Excel."""

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from defocus.answers.tables import line, spelt, visible
from defocus.errors import InvalidParameterError, MissingExtraError

__all__ = [
    "csv_text",
    "described",
    "disarmed",
    "frame",
    "json_rows",
    "json_text",
    "json_value",
    "write_bytes",
    "write_excel",
    "write_parquet",
]

_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")


def described(table: pa.Table, **about: str) -> pa.Table:
    """The table with what it is about in the metadata of its schema, so that files explain themselves."""
    said = {f"defocus.{name}".encode(): spelt(text).encode() for name, text in about.items()}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **said})


def disarmed(text: str) -> str:
    """Text that no spreadsheet takes for a formula, by the rule below.

    Text that begins with ``=``, ``+``, ``-`` or ``@`` (also full-width, or after blanks), or with a tab or a
    line break, gets one apostrophe in front; so does such text that has apostrophes in front already. To undo it,
    remove one apostrophe wherever an apostrophe starts such text. Numbers are left alone: -3 is a number.

    Reference:
        OWASP, CSV Injection.

    >>> disarmed("=HYPERLINK(1)"), disarmed("ward 3"), disarmed("'t Hooft"), disarmed("'=1")
    ("'=HYPERLINK(1)", 'ward 3', "'t Hooft", "''=1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def csv_text(table: pa.Table, path: str | Path | None = None) -> str:
    """CSV with one header line: text quoted and disarmed, NULL and NaN empty. Written to ``path`` if given."""
    arrays = []
    for column in table.columns:
        values = column.to_pylist()
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            arrays.append(pa.array([None if v is None else disarmed(v) for v in values], pa.string()))
        elif pa.types.is_floating(column.type):
            arrays.append(pa.array([None if v is None or math.isnan(v) else v for v in values], column.type))
        elif pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
            arrays.append(pa.array([None if v is None else disarmed(spelt(v)) for v in values], pa.string()))
        else:
            arrays.append(column)
    safe = pa.Table.from_arrays(arrays, names=[disarmed(name) for name in table.column_names])
    sink = io.BytesIO()
    pyarrow.csv.write_csv(safe, sink)
    text = sink.getvalue().decode()
    if path is not None:
        write_bytes(path, text.encode())
    return text


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """One dictionary for each row, with JSON types only: dates as ISO text, numbers that are not finite as null."""
    return [{name: json_value(value) for name, value in row.items()} for row in table.to_pylist()]


def json_value(value: Any) -> Any:
    """A value of a table as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else spelt(value)


def json_text(content: Any, path: str | Path | None = None) -> str:
    """Canonical enough to read and to compare: indented, in the order of the answer. Written to ``path`` if given."""
    text = spelt(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))  # as JSON itself spells halves
    if path is not None:
        write_bytes(path, text.encode())
    return text


def frame(table: pa.Table, library: Literal["pandas", "polars"]) -> Any:
    """A DataFrame of pandas or polars."""
    try:
        found = import_module(library)
    except ImportError as error:
        raise MissingExtraError(f"A {library} frame", package=library, extra="frames") from error
    return table.to_pandas() if library == "pandas" else found.from_arrow(table)


def write_parquet(table: pa.Table, path: str | Path) -> None:
    """A Parquet file. The metadata says what each number means, so the file explains itself."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    write_bytes(path, sink.getvalue())


_MOST_ROWS, _LONGEST_CELL, _FIRST_YEAR, _EXACT = 1_048_575, 32_000, 1901, 2**53
"""What a sheet of Excel holds: rows below a head, letters of a cell, years of a date, whole numbers exactly."""


def write_excel(table: pa.Table, notes: Mapping[str, Sequence[str]], path: str | Path) -> None:
    """An Excel file of two sheets: the numbers, and ``notes`` that say what they are.

    No text is taken for a formula: cells hold text as text, also after somebody edits them.
    """
    try:
        workbook = import_module("openpyxl").Workbook(write_only=True)
    except ImportError as error:
        raise MissingExtraError("An Excel file", package="openpyxl", extra="excel") from error
    if table.num_rows > _MOST_ROWS:
        raise InvalidParameterError(
            f"The answer has {table.num_rows} rows, but a sheet of Excel holds {_MOST_ROWS}.",
            fix="write it as .parquet or .csv.",
        )
    sheet, about = workbook.create_sheet("answer"), workbook.create_sheet("notes")
    letter = import_module("openpyxl.utils").get_column_letter
    sheet.freeze_panes = "A2"
    for number, name in enumerate(table.column_names, start=1):
        sheet.column_dimensions[letter(number)].width = max(10, min(40, len(name) + 2))
    sheet.append([_cell(sheet, name, bold=True) for name in table.column_names])
    for row in table.to_pylist():
        sheet.append([_cell(sheet, value) for value in row.values()])
    about.column_dimensions["A"].width, about.column_dimensions["B"].width = 18, 100
    for name, sentences in notes.items():
        for number, sentence in enumerate(sentences):
            about.append([_cell(about, None if number else name, bold=True), _cell(about, line(sentence))])
    sink = io.BytesIO()
    workbook.save(sink)
    write_bytes(path, sink.getvalue())


def _cell(sheet: Any, value: Any, *, bold: bool = False) -> Any:
    """A cell in which text is text, whatever it begins with."""
    held = _cell_value(value)
    made = import_module("openpyxl.cell").WriteOnlyCell(sheet, value=None if isinstance(held, str) else held)
    if isinstance(held, str):
        made._value, made.data_type, made.quotePrefix = held, "s", True  # noqa: SLF001  # its setter reads formulas
    if bold:
        made.font = import_module("openpyxl.styles").Font(bold=True)
    return made


def _cell_value(value: Any) -> Any:
    """A value as Excel can hold it; what it cannot is text."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < _EXACT):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, date) and value.year >= _FIRST_YEAR and getattr(value, "tzinfo", None) is None:
        return value
    text = value.isoformat() if isinstance(value, date) else spelt(value)
    return visible(text)[:_LONGEST_CELL]


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a whole file, or say why it cannot be written."""
    try:
        Path(path).write_bytes(content)
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a path"
        raise InvalidParameterError(
            f"The answer could not be written to {str(path)!r:.120}: {why}.", fix="choose another path."
        ) from error
