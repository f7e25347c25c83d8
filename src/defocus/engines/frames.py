"""Frames in memory as Arrow tables, column by column, by rules that look at types and never choose one from values."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from defocus.engines.schema import check_names
from defocus.errors import SourceError

__all__ = ["from_arrow", "from_dataset", "from_pandas", "from_polars", "library"]


_TYPED = {"ArrowDtype", "BooleanDtype", "DatetimeTZDtype", "Float32Dtype", "Float64Dtype"} | {
    f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)
}
"""Types of pandas that say what a column holds, beside those of numpy."""


def library(data: object) -> str:
    """Which library a frame comes from, found without importing any."""
    return type(data).__module__.partition(".")[0]


def from_arrow(table: Any) -> Any:
    """An Arrow table in which every column has a type that engines know; others become columns of no use."""
    check_names(table.column_names, "the Arrow table")
    return pa.table({field.name: _plain(table.column(i)) for i, field in enumerate(table.schema)})


def from_dataset(dataset: Any) -> Any:
    """An Arrow dataset in memory as a table; one of Parquet files as it is, if all have the same known types."""
    _check_pieces(dataset)
    if isinstance(dataset, pads.InMemoryDataset):
        return from_arrow(dataset.to_table())
    check_names(dataset.schema.names, "the Arrow dataset")
    for field in dataset.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        coarse = pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit in {"s", "ms"}
        if not _known(kind) or coarse or pa.types.is_float16(kind) or pa.types.is_decimal256(kind):
            raise SourceError(
                f"The column {field.name!r:.60} of the Arrow dataset has the type {str(kind)[:60]}.",
                fix="leave it out, or pass a table: dataset.to_table().",
            )
    return dataset


def _check_pieces(dataset: Any) -> None:
    """Refuse what Arrow reads off rows or off names of folders, casts row by row, or computes."""
    what = next(_doubts(dataset), None)
    if what is not None:
        raise SourceError(
            f"The Arrow dataset {what}, so one row could decide about all.",
            fix="open the files themselves, with types= where they say none, and use .where; or write Parquet files of"
            " one schema, and name the types of partitions in the dataset; of Feather files pass .to_table().",
        )


def _doubts(dataset: Any) -> Iterator[str]:
    if getattr(dataset, "_scan_options", None):
        yield "has a filter, which is computed when it is read"
    if any(
        dictionary is not None for dictionary in getattr(getattr(dataset, "partitioning", None), "dictionaries", ())
    ):
        yield "takes types of columns from the names of folders"
    for part in getattr(dataset, "children", ()):
        yield from _doubts(part)
    if isinstance(dataset, pads.InMemoryDataset):
        return
    declared = {field.name: field.type for field in dataset.schema}
    paths: set[str] = set()
    for piece in dataset.get_fragments():
        if not isinstance(piece, pads.ParquetFileFragment):
            yield "is not of Parquet files alone: elsewhere types are read off rows, or text need not be UTF-8"
            return
        if piece.path in paths:
            yield "holds a file twice"
        paths.add(piece.path)
        if any(declared.get(field.name, field.type) != field.type for field in piece.physical_schema):
            yield "has columns whose type in a file is not that of the dataset"


def from_polars(frame: Any) -> Any:
    """A polars frame, mostly without a copy."""
    if type(frame).__name__ != "DataFrame":
        raise SourceError(
            f"A polars {type(frame).__name__} is computed only when it is read, and could change between questions.",
            fix="pass .collect() of it, or the path of the file it reads.",
        )
    check_names(frame.columns, "the polars frame")
    return pa.table({name: _polars(frame.get_column(name)) for name in frame.columns})


def from_pandas(frame: Any) -> Any:
    """A pandas frame without its index. Columns of Python objects are read as text, whatever objects they hold.

    Assumes:
        The types of the columns were declared where the frame was made. Left alone, pandas chooses them from rows:
        a column of integers becomes one of floats when one integer is missing. Declaring ``types`` undoes that.
    """
    if type(frame).__name__ != "DataFrame":
        raise SourceError(f"A pandas {type(frame).__name__} is not a table.", fix="pass a DataFrame.")
    names = check_names(list(frame.columns), "the pandas frame")
    return pa.table({name: _pandas(frame.iloc[:, i]) for i, name in enumerate(names)})


def _plain(column: Any) -> Any:
    """A column of a type that engines know, or NULLs of a type that no question can be about."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type)) if _known(kind.value_type) else _useless(len(column))
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal256(kind):
        return column.cast(pa.float64())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return column.cast(pa.int64()).cast(pa.timestamp(kind.unit))  # the same moment, in UTC; no value can fail
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _sound(column)
    return column if _known(kind) else _useless(len(column))


def _sound(column: Any) -> Any:
    """Text that is UTF-8, which Arrow does not promise; what is not is NULL."""
    with contextlib.suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return column
    return _one_by_one(column.cast(pa.large_binary()).to_pylist())


def _known(kind: Any) -> bool:
    if pa.types.is_decimal(kind) and kind.scale < 0:
        return False
    tests = (
        *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_date),
        pa.types.is_timestamp,
    )
    return any(test(kind) for test in tests)


def _useless(rows: int) -> Any:
    return pa.nulls(rows, pa.binary())


def _polars(series: Any) -> Any:
    kind = series.dtype.base_type().__name__
    if kind in {"Object", "Int128", "UInt128"}:
        return _one_by_one(series.to_list())
    return _plain(series.to_arrow())


def _pandas(series: Any) -> Any:
    kind = series.dtype
    family = type(kind).__name__
    if family == "CategoricalDtype":
        codes = series.cat.codes.to_numpy()
        return _pandas(kind.categories.to_series()).take(pa.array(codes, mask=codes < 0))
    plain = kind.kind if isinstance(kind, np.dtype) and kind.itemsize <= 8 else "?"
    if family == "StringDtype" or plain == "O":
        return _texts(series)
    if family in _TYPED or plain in "biufM":
        return _plain(pa.Array.from_pandas(series))
    return _useless(len(series))


def _texts(series: Any) -> Any:
    """The text of each value, by :func:`_text`: Arrow's quick ways take text, bytes and what is missing, as that does.

    No object is shown to Arrow's own check for what is missing, which one of a strange type can crash.
    """
    kept = series if type(series.dtype).__name__ == "StringDtype" else series.to_numpy()
    with contextlib.suppress(Exception):
        return pa.array(kept, pa.large_string(), from_pandas=kept is series)
    with contextlib.suppress(Exception):
        return pa.array(kept, pa.large_string(), mask=series.isna().to_numpy(), from_pandas=False)
    return _one_by_one(kept)


def _one_by_one(values: Iterable[Any]) -> Any:
    return pa.array([_text(value) for value in values], pa.large_string())


def _text(value: Any) -> str | None:
    """Text for any object, whatever others there are: NULL where it is missing or has none. None makes this fail.

    Text of any class is its characters, of which lone surrogates are replaced; bytes are read as UTF-8.
    """
    try:
        if issubclass(type(value), str):
            return _characters(value)
        if issubclass(type(value), bytes | bytearray | memoryview):
            return memoryview(value).tobytes().decode()
        # NaN and NaT differ from everything, also from themselves
        gone = value is None or type(value).__name__ == "NAType" or value != value  # noqa: PLR0124
        return None if gone else _characters(str(value))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a hostile object raises what it likes
        return None


def _characters(text: str) -> str:
    return str.encode(text, "utf-8", "replace").decode()
