"""Edges in files: Parquet, CSV and DuckDB, read through DuckDB. Schemas are read when a graph is opened, rows later."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from defocus.errors import InvalidParameterError, SourceError, UnknownColumnError
from defocus.graphs.naming import as_column
from defocus.graphs.sources import EdgeColumns, EdgeSource

__all__ = ["file_source", "frame_columns"]

_USUAL = (("source", "target"), ("src", "dst"), ("from", "to"), ("left", "right"), ("u", "v"))
"""What the two ends of an edge are usually called."""
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
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

    CSV files have a header; their ends are read as whole numbers where all nodes are numbered and as text where they
    are named: see :func:`~defocus.graphs.opening.open_graph`. No type is guessed from the rows.
    """
    place = Path(path)
    ending = place.suffix.lower()
    if ending not in {".parquet", ".pq", ".duckdb", ".db", *_SEPARATORS}:
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
    relation = _relation(place, ending, table)
    schema = _schema(place, ending, relation)
    chosen = frame_columns(schema.column_names, ends=ends, weights=weights, time=time)
    written = ending in _SEPARATORS
    readings = ("{0}", "{0}", _NUMBER, _TIME) if written else ("{0}",) * 4
    columns = ", ".join(
        f"{how.format(_quoted(name))} AS c{i}"
        for i, (name, how) in enumerate(zip(chosen, readings, strict=True))
        if name is not None
    )

    def read(*, rows: bool = True) -> EdgeColumns:
        limit = "" if rows else " LIMIT 0"
        found = iter(_asked(place, ending, f"SELECT {columns} FROM {relation}{limit}").columns)  # noqa: S608  # quoted
        return EdgeColumns(*(None if name is None else as_column(next(found)) for name in chosen))

    return EdgeSource("file", place.stem, read(rows=False), read, written=written)


def _relation(place: Path, ending: str, table: str | None) -> str:
    if table is not None:
        return _quoted(table)
    literal = "'" + str(place).replace("'", "''") + "'"
    if ending in _SEPARATORS:
        lenient = "header = true, all_varchar = true, strict_mode = false, null_padding = true"
        return f"read_csv({literal}, delim = '{_SEPARATORS[ending]}', {lenient})"
    return f"read_parquet({literal})"


def _schema(place: Path, ending: str, relation: str) -> pa.Table:
    try:
        return _asked(place, ending, f"SELECT * FROM {relation} LIMIT 0")  # noqa: S608  # quoted
    except SourceError:
        raise SourceError(
            f"{place.name!r:.80} could not be read as a table of edges.",
            fix="check that it is what its ending says, and that the table is there.",
        ) from None


def _asked(place: Path, ending: str, statement: str) -> pa.Table:
    """What DuckDB answers. What it says when it fails may quote rows, so it is not repeated."""
    import duckdb  # noqa: PLC0415  # slow to load

    database = str(place) if ending in {".duckdb", ".db"} else ":memory:"
    answer: Any = None
    try:
        with duckdb.connect(database, read_only=database != ":memory:") as connection:
            answer = connection.sql(statement).to_arrow_table()
    except (duckdb.Error, OSError):
        pass
    if answer is None:
        # Raised out here, so that what the database said is not attached to it as its context.
        raise SourceError("The file could not be read.", fix="check that it is complete.")
    return answer


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
