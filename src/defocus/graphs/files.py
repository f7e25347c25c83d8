"""Edges in files: Parquet, CSV and DuckDB. Footers and headers are read when a graph is opened, rows later."""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp, parse_one

from defocus.engines.sources import source as rows_of
from defocus.errors import InvalidParameterError, SourceError, UnknownColumnError
from defocus.graphs.naming import as_column
from defocus.graphs.sources import EdgeColumns, EdgeSource

__all__ = ["file_source", "frame_columns"]

_USUAL = (("source", "target"), ("src", "dst"), ("from", "to"), ("left", "right"), ("u", "v"))
"""What the two ends of an edge are usually called."""
_SEPARATED = (".csv", ".tsv")
_NUMBER = "TRY_CAST({0} AS DOUBLE)"
_TIME = "COALESCE(epoch_us(TRY_CAST({0} AS TIMESTAMP)), TRY_CAST({0} AS BIGINT))"
"""How weights and times are read from text: what is neither is missing."""


def frame_columns(
    names: Sequence[str], *, ends: Sequence[str] | None, weights: str | None, time: str | None
) -> tuple[str, str, str | None, str | None]:
    """Which columns hold the ends, the weights and the times: those named, else ends by their usual names.

    >>> frame_columns(["id", "src", "dst"], ends=None, weights=None, time=None)
    ('src', 'dst', None, None)
    """
    for name in {name for name in names if names.count(name) > 1}:
        raise SourceError(f"Two columns are called {name!r:.60}.", fix="rename one.")
    if ends is None:
        lowered = {name.casefold(): name for name in names}
        found = next((pair for pair in _USUAL if set(pair) <= lowered.keys()), None)
        if found is None:
            raise InvalidParameterError(
                f"Which columns hold the two ends of an edge is not clear among {', '.join(names)[:200] or 'none'}.",
                fix='name them: ends=("from_id", "to_id").',
            )
        left, right = (lowered[name] for name in found)
    else:
        left, right = _two(ends)
    for wanted in (left, right, weights, time):
        if wanted is not None and wanted not in names:
            raise UnknownColumnError(wanted, names)
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
    path: str | Path, *, ends: Sequence[str] | None, weights: str | None, time: str | None, table: str | None
) -> EdgeSource:
    """A Parquet or CSV file, or a table of a DuckDB file.

    Guarantee:
        No type is guessed from rows, and no row decides how another is read. CSV files have a header, and their lines
        are read as those of tables are, see :class:`~defocus.engines.files.Files`; ends that are written as whole
        numbers are numbers, and all others text. Parquet files are read as they are, broken characters too.
    """
    place = Path(path)
    ending = place.suffix.lower()
    if ending not in {".parquet", ".pq", ".duckdb", ".db", *_SEPARATED}:
        raise SourceError(
            f"A file of edges ends in .parquet, .csv, .tsv or .duckdb, but {place.name!r:.80} ends in"
            f" {ending or 'nothing'}.",
            fix="rename it, or read it yourself and pass a frame.",
        )
    if not place.is_file():
        raise SourceError(f"There is no file {str(path)!r:.200}.", fix="check the path.")
    if (table is not None) != (ending in {".duckdb", ".db"}):
        raise SourceError(
            "A database is opened with the name of a table, and other files without one.",
            fix='pass table="edges" for a DuckDB file, and nothing for others.',
        )
    opened = _csv if ending in _SEPARATED else _parquet if table is None else partial(_database, table=table)
    names, read = opened(place)
    chosen = frame_columns(names, ends=ends, weights=weights, time=time)

    def columns(*, rows: bool = True) -> EdgeColumns:
        found = iter(read(chosen, rows=rows).columns)
        return EdgeColumns(*(None if name is None else as_column(next(found)) for name in chosen))

    return EdgeSource("file", place.stem, columns(rows=False), columns, written=ending in _SEPARATED)


class _Read(Protocol):
    """Read the ends, weights and times, as far as they are named; or no rows of them, for their types."""

    def __call__(self, chosen: Sequence[str | None], *, rows: bool) -> pa.Table: ...


def _csv(place: Path) -> tuple[list[str], _Read]:
    """The columns in the header, and how lines are read."""
    opened = rows_of(place)
    names = opened.schema.names
    opened.engine.close()

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        if not rows:
            kinds = (pa.string(), pa.string(), pa.float64(), pa.int64())
            wanted = [(f"c{i}", kind) for i, (name, kind) in enumerate(zip(chosen, kinds, strict=True)) if name]
            return pa.schema(wanted).empty_table()
        made = [
            exp.alias_(parse_one(how.format(_quoted(name)), read="duckdb"), f"c{i}")
            for i, (name, how) in enumerate(zip(chosen, ("{0}", "{0}", _NUMBER, _TIME), strict=True))
            if name is not None
        ]
        again = rows_of(place)
        try:
            return again.engine.run(exp.select(*made).from_(again.relation.subquery("lines")))
        finally:
            again.engine.close()

    return names, read


def _parquet(place: Path) -> tuple[list[str], _Read]:
    """The columns in the footer, and how rows are read."""

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        wanted = [name for name in chosen if name is not None]
        found: Any = None
        try:
            with pq.ParquetFile(place) as file:
                found = file.read(columns=list(dict.fromkeys(wanted))) if rows else file.schema_arrow.empty_table()
        except (pa.ArrowException, OSError):
            pass
        if found is None:
            # Raised out here, so that what was said about the file is not attached to it as its context.
            raise _unread(place)
        return pa.table([found.column(name) for name in wanted], names=[f"c{i}" for i in range(len(wanted))])

    names: list[str] | None = None
    with contextlib.suppress(pa.ArrowException, OSError):
        names = pq.read_schema(place).names
    if names is None:
        raise _unread(place)
    return names, read


def _database(place: Path, *, table: str) -> tuple[list[str], _Read]:
    """The columns of a table of DuckDB's, and how rows are read."""

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        columns = ", ".join(f"{_quoted(name)} AS c{i}" for i, name in enumerate(chosen) if name is not None)
        limit = "" if rows else " LIMIT 0"
        return _asked(place, f"SELECT {columns} FROM {_quoted(table)}{limit}")  # noqa: S608  # quoted

    return _asked(place, f"SELECT * FROM {_quoted(table)} LIMIT 0").column_names, read  # noqa: S608  # quoted


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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
