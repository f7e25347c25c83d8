"""Edges from files and other sources."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from defocus.errors import InvalidParameterError, SourceError, UnknownColumnError
from defocus.graphs.edge_texts import PLACES, SEPARATED, Read, is_number, quoted, text_columns
from defocus.graphs.node_names import Column, as_column

__all__ = ["UNTYPED", "EdgeColumns", "EdgeSource", "file_source", "frame_columns"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeColumns:
    """The two ends of every edge as they are called in the data, with weights and times where they were named."""

    left: Column
    right: Column
    weights: Column | None = None
    times: Column | None = None


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeSource:
    """A list of edges that can be read.

    Everything here but what ``read`` and ``listed`` give is public: it comes from types, names and schemas.

    Args:
        kind: what it is, in words.
        name: what the data is called where nobody says; None for data in memory.
        head: the columns without rows, which have the same types.
        read: reads all edges.
        listed: the nodes that the source lists beside its edges, if it does.
        directed: whether its edges have a direction; None where it does not say.
    """

    kind: str
    name: str | None
    head: EdgeColumns
    read: Callable[[], EdgeColumns]
    listed: Callable[[], Sequence[Any]] | None = None
    directed: bool | None = None
    written: bool = False
    """Whether ends are text that may stand for whole numbers, as in CSV."""
    ends: tuple[str, str] | None = None
    """The columns that hold the ends, where the data has more than those two."""


UNTYPED = EdgeColumns(np.zeros(0, object), np.zeros(0, object), np.zeros(0, object), np.zeros(0, object))
"""The head of lists of Python objects, which may hold anything."""


_USUAL = (("source", "target"), ("src", "dst"), ("from", "to"), ("left", "right"), ("u", "v"))
"""What the two ends of an edge are usually called."""
_UNTOLD = (
    'pass header=True if the first line has the names of columns, and ends=("from_id", "to_id") to say which; or'
    " header=False if it is an edge"
)
"""What to do where the names of columns may be an edge, so that they are not shown."""
_TYPED = (".parquet", ".pq", ".duckdb", ".db")


def frame_columns(
    names: Sequence[str],
    *,
    ends: Sequence[str] | None,
    weights: str | None,
    time: str | None,
    shown: bool = True,
) -> tuple[str, str, str | None, str | None]:
    """Which columns hold the ends, the weights and the times: those named, else ends by their usual names.

    What columns are called is ``shown`` in an error only if it cannot be an edge: names that are numbers never are.

    >>> frame_columns(["id", "src", "dst"], ends=None, weights=None, time=None)
    ('src', 'dst', None, None)
    """
    told = shown and not any(is_number(name) and name not in PLACES for name in names)
    for name in {name for name in names if names.count(name) > 1}:
        what = f"Two columns are called {name!r:.60}." if told else "Two columns have the same name."
        raise SourceError(what, fix="rename one.")
    if ends is None:
        lowered = {name.casefold(): name for name in names}
        usual = next((pair for pair in _USUAL if set(pair) <= lowered.keys()), None)
        if usual is None:
            among = (", ".join(names)[:200] or "none") if told else f"{len(names)} columns"
            raise InvalidParameterError(
                f"Which columns hold the two ends of an edge is not clear among {among}.",
                fix='say it: ends=("from_id", "to_id").' if told else _UNTOLD,
            )
        left, right = (lowered[name] for name in usual)
    else:
        left, right = _two(ends)
    for wanted in (left, right, weights, time):
        if wanted is not None and wanted not in names:
            if told:
                raise UnknownColumnError(wanted, names)
            raise InvalidParameterError(f"There is no column {wanted!r:.60}.", fix=_UNTOLD)
    if left == right:
        raise InvalidParameterError(
            f"Both ends of every edge would be read from {left!r:.60}.", fix="name two different columns."
        )
    return left, right, weights, time


def _two(ends: Any) -> tuple[str, str]:
    if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(isinstance(name, str) for name in ends):
        raise InvalidParameterError(
            "ends does not name two columns.", fix='write for example ends=("from_id", "to_id").'
        )
    return ends[0], ends[1]


def file_source(
    path: str | Path,
    *,
    ends: Sequence[str] | None,
    weights: str | None,
    time: str | None,
    table: str | None,
    header: bool | None = None,
) -> EdgeSource:
    """A Parquet or CSV file, a list of edges between blanks, or a table of a DuckDB file.

    Guarantee:
        No type is guessed from rows, and no row decides how another is read. Ends in files of text that are written as
        whole numbers are numbers, and all others text. Parquet files are read as they are, broken characters too.
    """
    place = Path(path)
    name = place.name.lower()
    ending = max(
        (known_ending for known_ending in (*SEPARATED, *_TYPED) if name.endswith(known_ending)), key=len, default=""
    )
    if not ending:
        raise SourceError(
            f"A file of edges ends in .parquet, .csv, .tsv, .txt or .duckdb (.csv, .tsv and .txt also with .gz), but"
            f" {place.name!r:.80} ends in {place.suffix.lower() or 'nothing'}.",
            fix="rename it, or read it yourself and pass a frame.",
        )
    if not place.is_file():
        raise SourceError(f"There is no file {str(path)!r:.200}.", fix="check the path.")
    if (table is not None) != (ending in {".duckdb", ".db"}):
        raise SourceError(
            "A database is opened with the name of a table, and other files without one.",
            fix='pass table="edges" for a DuckDB file, and nothing for others.',
        )
    written = ending in SEPARATED
    if header is not None and not written:
        raise SourceError("Only files of text have a header.", fix="leave header= out.")
    if written:
        names, read = text_columns(place, ending, header)
    else:
        names, read = _parquet(place) if table is None else _database(place, table=table)
    unnamed = written and tuple(names) == PLACES
    chosen = frame_columns(
        names,
        ends=PLACES[:2] if ends is None and unnamed else ends,
        weights=weights,
        time=time,
        shown=unnamed or not written or header is True,
    )

    def columns(*, rows: bool = True) -> EdgeColumns:
        arrays = iter(read(chosen, rows=rows).columns)
        return EdgeColumns(*(None if name is None else as_column(next(arrays)) for name in chosen))

    called = place.name[: -len(".txt.gz")] if ending == ".txt.gz" else place.stem
    return EdgeSource("file", called, columns(rows=False), columns, written=written, ends=chosen[:2])


def _parquet(place: Path) -> tuple[list[str], Read]:
    """The columns in the footer, and how rows are read."""

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        wanted = [name for name in chosen if name is not None]
        table: Any = None
        try:
            with pq.ParquetFile(place) as file:
                table = file.read(columns=list(dict.fromkeys(wanted))) if rows else file.schema_arrow.empty_table()
        except (pa.ArrowException, OSError):
            pass
        if table is None:
            # Raised out here, so that what was said about the file is not attached to it as its context.
            raise _unread(place)
        return pa.table([table.column(name) for name in wanted], names=[f"c{i}" for i in range(len(wanted))])

    names: list[str] | None = None
    with contextlib.suppress(pa.ArrowException, OSError):
        names = pq.read_schema(place).names
    if names is None:
        raise _unread(place)
    return names, read


def _database(place: Path, *, table: str) -> tuple[list[str], Read]:
    """The columns of a table of DuckDB's, and how rows are read."""

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        columns = ", ".join(f"{quoted(name)} AS c{i}" for i, name in enumerate(chosen) if name is not None)
        limit = "" if rows else " LIMIT 0"
        return _asked(place, f"SELECT {columns} FROM {quoted(table)}{limit}")  # noqa: S608  # quoted

    return _asked(place, f"SELECT * FROM {quoted(table)} LIMIT 0").column_names, read  # noqa: S608  # quoted


def _asked(place: Path, statement: str) -> pa.Table:
    """What DuckDB answers. What it says when it fails may quote rows, so it is not repeated."""
    import duckdb  # noqa: PLC0415  # slow to load

    answer: Any = None
    try:
        with duckdb.connect(str(place), read_only=True) as connection:
            answer = connection.sql(statement).to_arrow_table()
    except (duckdb.Error, OSError):
        pass
    if answer is None:
        raise _unread(place)
    return answer


def _unread(place: Path) -> SourceError:
    return SourceError(
        f"{place.name!r:.80} could not be read as a table of edges.",
        fix="check that it is what its ending says, and that the table is there.",
    )
