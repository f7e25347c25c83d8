"""Edges, their weights and times, from files, frames, arrays, sparse matrices and the graphs of other libraries."""

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, SourceError, UnfitDataError, UnknownColumnError
from defocus.graphs.data import MISSING_TIME
from defocus.graphs.edge_files import UNTYPED, EdgeColumns, EdgeSource, file_source, frame_columns
from defocus.graphs.node_names import Column, as_column, key, whole_numbers
from defocus.graphs.timestamps import microseconds
from defocus.privacy.numbers import nearest

__all__ = ["source", "times_of", "weights_of"]


def source(
    data: Any,
    *,
    ends: Sequence[str] | None = None,
    weights: str | None = None,
    time: str | None = None,
    table: str | None = None,
    header: bool | None = None,
) -> EdgeSource:
    """The source that ``data`` is. Types, names and schemas are looked at; no edge is.

    Args:
        data: a path, a frame, two columns, a list of pairs, a sparse matrix, or a graph of networkx or igraph.
        ends: the names of the two columns that hold the ends of edges.
        weights: the name of the column, or edge attribute, of weights.
        time: likewise of times.
        table: which table of a database.
        header: whether the first line of a file of text has the names of its columns.
    """
    _check_header(header, file=isinstance(data, str | Path))
    if isinstance(data, str | Path):
        return file_source(data, ends=ends, weights=weights, time=time, table=table, header=header)
    library = type(data).__module__.partition(".")[0]
    if library in {"pandas", "polars", "pyarrow"}:
        return _frame(data, library, ends=ends, weights=weights, time=time)
    if library == "networkx":
        return _networkx(data, weights=weights, time=time)
    if library == "igraph":
        return _igraph(data, weights=weights, time=time)
    for name, given in (("ends", ends), ("time", time)):
        if given is not None:
            raise SourceError(f"{name}= names columns, and this data has none.", fix="pass a frame or a file.")
    if library == "scipy" and hasattr(data, "tocoo"):
        return _sparse(data, weighted=weights is not None)
    if weights is not None:
        raise SourceError("weights= names a column, and this data has none.", fix="pass a frame or a file.")
    return _pairs(data)


def _check_header(header: object, *, file: bool) -> None:
    if header is not None and not isinstance(header, bool):
        raise InvalidParameterError("header must be True or False.", fix="pass header=False, or leave it out.")
    if header is not None and not file:
        raise SourceError("Only files of text have a header.", fix="leave header= out.")


def _frame(data: Any, library: str, *, ends: Sequence[str] | None, weights: str | None, time: str | None) -> EdgeSource:
    kind = type(data).__name__
    if library == "polars" and kind != "DataFrame":
        raise SourceError(
            f"A polars {kind} is computed only when it is read, and could change between questions.",
            fix="pass .collect() of it, or the path of the file it reads.",
        )
    if library == "pyarrow" and isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if library == "pyarrow" and not isinstance(data, pa.Table):
        raise SourceError(f"An Arrow {kind} is not a table.", fix="pass a table: dataset.to_table().")
    if library == "pandas" and kind != "DataFrame":
        raise SourceError(f"A pandas {kind} is not a table.", fix="pass a DataFrame.")
    names = [str(name) for name in (data.column_names if library == "pyarrow" else data.columns)]
    chosen = frame_columns(names, ends=ends, weights=weights, time=time)

    def column(name: str, *, rows: bool) -> Any:
        if library == "pandas":
            whole = data.iloc[:, names.index(name)]
            return as_column(whole if rows else whole.iloc[:0])
        whole = data.column(name) if library == "pyarrow" else data.get_column(name)
        return as_column(whole if rows else whole[:0])

    def read() -> EdgeColumns:
        return EdgeColumns(*(None if name is None else column(name, rows=True) for name in chosen))

    head = EdgeColumns(*(None if name is None else column(name, rows=False) for name in chosen))
    return EdgeSource(f"{library} table", None, head, read, ends=chosen[:2])


def _networkx(data: Any, *, weights: str | None, time: str | None) -> EdgeSource:
    if not hasattr(data, "edges") or not hasattr(data, "is_directed"):
        raise SourceError(f"A networkx {type(data).__name__} is not a graph.", fix="pass a networkx Graph or DiGraph.")

    def read() -> EdgeColumns:
        listed = [(u, v, d) for u, v, d in data.edges(data=True)]
        left, right = (as_column([edge[side] for edge in listed]) for side in (0, 1))
        more = (None if name is None else as_column([d.get(name) for _, _, d in listed]) for name in (weights, time))
        return EdgeColumns(left, right, *more)

    return EdgeSource("networkx graph", None, UNTYPED, read, lambda: list(data.nodes), bool(data.is_directed()))


def _igraph(data: Any, *, weights: str | None, time: str | None) -> EdgeSource:
    if not hasattr(data, "get_edgelist"):
        raise SourceError(f"An igraph {type(data).__name__} is not a graph.", fix="pass an igraph Graph.")
    named = "name" in data.vs.attributes()
    for name in (weights, time):
        if name is not None and name not in data.es.attributes():
            raise UnknownColumnError(name, data.es.attributes())

    def labels() -> Sequence[Any]:
        return list(data.vs["name"]) if named else range(data.vcount())

    def read() -> EdgeColumns:
        pairs = np.asarray(data.get_edgelist(), dtype=np.int64).reshape(-1, 2)
        left, right = pairs[:, 0], pairs[:, 1]
        more = [None if name is None else as_column(data.es[name]) for name in (weights, time)]
        if not named:
            return EdgeColumns(left, right, *more)
        names = as_column(labels())
        return EdgeColumns(names[left], names[right], *more)

    head = UNTYPED if named else _numbered(UNTYPED)
    return EdgeSource("igraph graph", None, head, read, labels, bool(data.is_directed()))


def _sparse(data: Any, *, weighted: bool) -> EdgeSource:
    """Entries that are not zero are edges, from row to column; with weights, every entry that is stored."""
    if len(data.shape) != 2 or data.shape[0] != data.shape[1]:
        raise SourceError(
            "The matrix of a graph has as many rows as columns, and this one does not.",
            fix="pass a square matrix, or a list of edges.",
        )
    if weighted and data.format in {"dia", "dok", "lil"}:  # these drop an edge whose weight is zero
        raise SourceError(
            f"A matrix in the format {data.format} does not tell an edge of weight zero from no edge.",
            fix="pass a matrix in the format coo or csr, with an entry for every edge.",
        )

    def read() -> EdgeColumns:
        entries = data.tocoo()
        there = np.ones(len(entries.data), np.bool_) if weighted else entries.data != 0
        left, right = (np.asarray(side, dtype=np.int64)[there] for side in (entries.row, entries.col))
        return EdgeColumns(left, right, np.asarray(entries.data)[there] if weighted else None)

    head = _numbered(EdgeColumns(None, None, np.zeros(0, data.dtype)))
    return EdgeSource("sparse matrix", None, head, read, lambda: range(data.shape[0]))


def _pairs(data: Any) -> EdgeSource:
    """Two columns, which a tuple always is; an array with two columns; or a list or set of pairs."""
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != 2:
            raise SourceError(
                f"An array of edges has two columns, but this has the shape {data.shape[1:] or 'of a list'} in a row.",
                fix="pass an array of shape (edges, 2).",
            )
        head = EdgeColumns(data[:0, 0], data[:0, 1])
        return EdgeSource("array", None, head, lambda: EdgeColumns(data[:, 0].copy(), data[:, 1].copy()))
    if isinstance(data, tuple):
        if len(data) != 2:
            raise SourceError(
                "A tuple of edges is two columns, left and right ends, and this one does not have two entries.",
                fix="pass a list of pairs: list(edges); or two columns of the same length: (left, right).",
            )
        sides = [as_column(side) for side in data]
        if len(sides[0]) != len(sides[1]):
            raise SourceError(
                "The two columns of ends differ in length.", fix="give one left and one right end for each edge."
            )
        head = EdgeColumns(*(side[:0] for side in sides))
        return EdgeSource("two columns", None, head, lambda: EdgeColumns(*sides))
    if not isinstance(data, list | set | frozenset):
        raise SourceError(
            f"Edges cannot be read from {type(data).__name__}.",
            fix="pass a path, a frame, an array, a list of pairs, a sparse matrix, or a graph of networkx or igraph.",
        )
    return EdgeSource("list of pairs", None, UNTYPED, lambda: _columns(list(data)))


def _numbered(more: EdgeColumns) -> EdgeColumns:
    """The head of a source whose ends are numbers."""
    return EdgeColumns(np.zeros(0, np.int64), np.zeros(0, np.int64), more.weights, more.times)


def _columns(listed: list[Any]) -> EdgeColumns:
    """The ends of pairs. What is no pair has no ends, and is left out as an edge between missing nodes is."""
    pairs = [_pair(one) for one in listed]
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    return EdgeColumns(as_column(left), as_column(right))


def _pair(one: Any) -> tuple[Any, ...]:
    try:
        ends = tuple(one) if isinstance(one, tuple | list) else ()
    except Exception:  # noqa: BLE001  # an object may refuse in any way, also to say what it is
        ends = ()
    return ends if len(ends) >= 2 else (None, None)


def weights_of(column: Column | None) -> NDArray[np.float64] | None:
    """Weights as floats; what is missing or no number is NaN, and what is too large for a float is infinite."""
    if column is None:
        return None
    kind = column.type if isinstance(column, pa.Array) else column.dtype
    if isinstance(column, pa.Array) and (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    ):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            return np.asarray(column, dtype=np.float64)
    if not isinstance(column, np.ndarray) or column.dtype.kind != "O":
        raise UnfitDataError(f"Weights of the type {str(kind)[:60]} are not numbers.", fix="convert the column first.")
    return np.fromiter((_weight(value) for value in column.tolist()), np.float64, len(column))


def times_of(column: Column | None) -> NDArray[np.int64] | None:
    """Times as whole microseconds, or the whole numbers they are; what is neither, or beyond 64 bits, is missing.

    Whole numbers may be floats, as pandas writes them where one is missing: that must not decide what can be read.
    """
    if column is None:
        return None
    if not isinstance(column, pa.Array) and column.dtype.kind == "O":
        return np.fromiter((_time(value) for value in column.tolist()), np.int64, len(column))
    if not isinstance(column, pa.Array) and column.dtype.kind in "iuf":
        numbers, whole = whole_numbers(column)
        return np.where(whole, numbers, MISSING_TIME)
    if (counted := microseconds(column)) is not None:
        return np.where(counted[1], counted[0], MISSING_TIME)
    if not isinstance(column, pa.Array):
        raise _no_times()
    if pa.types.is_null(column.type):
        return np.full(len(column), MISSING_TIME, np.int64)
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        raise _no_times()
    numbers, whole = whole_numbers(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
    return np.where(whole & column.is_valid().to_numpy(zero_copy_only=False), numbers, MISSING_TIME)


def _no_times() -> UnfitDataError:
    return UnfitDataError("Times are neither dates nor whole numbers.", fix="convert the column of times first.")


def _weight(value: Any) -> float:
    try:
        return _nearest(value)
    except Exception:  # noqa: BLE001  # a value may refuse in any way, also to say what it is
        return math.nan


def _nearest(value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating | Decimal | Fraction)
    return math.nan if isinstance(value, bool) or not number else nearest(value)


def _time(value: Any) -> int:
    """A whole number of 64 bits, or the microseconds of a date or a moment, by the same rule as names have."""
    try:
        moment = key(value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value)
    except Exception:  # noqa: BLE001  # a value may refuse in any way, also to say what it is
        return MISSING_TIME
    if isinstance(moment, tuple) and moment[0] == "date":
        moment = (int(moment[1]) - dt.date(1970, 1, 1).toordinal()) * 86_400_000_000
    elif isinstance(moment, tuple) and moment[0] == "moment":
        moment = int(moment[1])
    return moment if isinstance(moment, int) and -(2**63) <= moment < 2**63 else MISSING_TIME
