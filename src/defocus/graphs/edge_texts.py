"""Edges in files of text: CSV, with a header or without, and lists of numbers or names between blanks.

Whether the first line is a header is declared or follows from the ending, never from what is in other lines. Text that
may be somebody's edge is not shown in an error.
"""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp, parse_one

from defocus.engines.sources import source as rows_of
from defocus.errors import InvalidParameterError, SourceError

__all__ = ["PLACES", "SEPARATED", "Read", "is_number", "quoted", "text_columns"]

SEPARATED = {".csv": ",", ".tsv": "\t", ".txt": None, ".csv.gz": ",", ".tsv.gz": "\t", ".txt.gz": None}
"""What separates fields, by the ending of the file; None for any number of blanks and tabs."""
PLACES = tuple(str(place) for place in range(1, 17))
"""What columns without a header are called: by their place, from 1."""

_NUMBER = "TRY_CAST({0} AS DOUBLE)"
_TIME = "COALESCE(epoch_us(TRY_CAST({0} AS TIMESTAMP)), TRY_CAST({0} AS BIGINT))"
"""How weights and times are read from text: what is neither is missing."""
_HOW = ("{0}", "{0}", _NUMBER, _TIME)
_KINDS = (pa.string(), pa.string(), pa.float64(), pa.int64())
_FILE = "the_file"
"""Where the path goes in a statement."""
_OPTIONS = (
    "auto_detect = false, header = false, nullstr = '', null_padding = true, ignore_errors = true,"
    " strict_mode = false, parallel = false, hive_partitioning = false"
)
_LINES = f"read_csv({_FILE}, columns = {{'line': 'VARCHAR'}}, delim = '\x1f', quote = '', escape = '', {_OPTIONS})"
"""Every line as one text, whatever is in it."""
_QUOTED = '"(?:[^"]|"")*"'
"""A field between quotes, in which a quote is written twice."""


class Read(Protocol):
    """Read the ends, weights and times, as far as they are named; or no rows of them, for their types."""

    def __call__(self, chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        """The columns that are named, in this order."""


def text_columns(place: Path, ending: str, header: bool | None) -> tuple[list[str], Read]:
    """The names of the columns, and how lines are read.

    Args:
        place: the file.
        ending: how its name ends, one of :data:`SEPARATED`.
        header: whether the first line has the names of the columns. Unless told, it has in CSV, and has not in .txt.
    """
    if SEPARATED[ending] is None:
        return _blanks(place, header=bool(header))
    if header is False:
        return list(PLACES), _headless(place, SEPARATED[ending] or ",")
    return _headed(place, declared=header is True)


def is_number(text: str) -> bool:
    """Whether a name reads as a number, as edges often do and columns hardly ever.

    >>> [is_number(text) for text in ("12", "-1e3", "nan", "source", "c1", "")]
    [True, True, True, False, False, False]
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def quoted(name: str) -> str:
    """A name as DuckDB takes it."""
    return '"' + name.replace('"', '""') + '"'


def _headed(place: Path, *, declared: bool) -> tuple[list[str], Read]:
    """A file whose first line has the names; a line that may be an edge is believed only if it was said to be one."""
    names: list[str] | None = None
    problem: SourceError | None = None
    try:
        opened = rows_of(place)
        names = opened.schema.names
        opened.engine.close()
    except SourceError as error:
        problem = error
    if problem is not None and declared:
        raise problem
    if names is None or (not declared and any(map(is_number, names))):
        raise InvalidParameterError(
            f"The first line of {place.name!r:.80} does not look like the names of columns.",
            fix="pass header=False if it is an edge; or header=True if it has the names.",
        )
    return names, _as_tables(place)


def _as_tables(place: Path) -> Read:
    """Lines are read as those of tables are: see :class:`~defocus.engines.files.Files`."""

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        if not rows:
            return _typed(chosen)
        columns = [
            exp.alias_(parse_one(how.format(quoted(name)), read="duckdb"), f"c{i}")
            for i, (name, how) in enumerate(zip(chosen, _HOW, strict=True))
            if name is not None
        ]
        again = rows_of(place)
        try:
            return again.engine.run(exp.select(*columns).from_(again.relation.subquery("lines")))
        finally:
            again.engine.close()

    return read


def _headless(place: Path, separator: str) -> Read:
    """Every line is an edge: filled up if it is too short, cut if it is too long, left out if it is not UTF-8."""

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        if not rows:
            return _typed(chosen)
        # Each line is cut by itself: a quote that nobody closes would take all lines below with it.
        split_line = (
            f"regexp_extract_all('{separator}' || rtrim(line, '\r'), '{separator}(?:{_QUOTED}|[^{separator}]*)')"
        )
        fields = f"SELECT {split_line} AS fields FROM {_LINES}"  # noqa: S608
        wanted = _selected(chosen, lambda name: f"nullif({_field(PLACES.index(name) + 1)}, '')")
        return _asked(place, f"SELECT {wanted} FROM ({fields})")  # noqa: S608  # places only

    return read


def _field(place: int) -> str:
    """A field without the separator in front, and without quotes where it is between two."""
    raw = f"substr(fields[{place}], 2)"
    inside = f"replace(substr({raw}, 2, length({raw}) - 2), '\"\"', '\"')"
    return f"CASE WHEN regexp_full_match({raw}, '{_QUOTED}') THEN {inside} ELSE {raw} END"


def _blanks(place: Path, *, header: bool) -> tuple[list[str], Read]:
    """Fields between blanks and tabs; a line that begins with # is a comment, as in the SNAP collection."""
    first = _first_line(place) if header else None
    names = list(PLACES) if first is None else first.split()[: len(PLACES)]

    def read(chosen: Sequence[str | None], *, rows: bool) -> pa.Table:
        if not rows:
            return _typed(chosen)
        fields = f"SELECT regexp_split_to_array(trim(line, ' \t\r'), '[ \t]+') AS fields FROM {_LINES}"  # noqa: S608
        fields += " WHERE NOT starts_with(ltrim(line, ' \t'), '#')"
        fields += "" if first is None else f" AND trim(line, ' \t\r') <> {_text(first)}"
        wanted = _selected(chosen, lambda name: f"nullif(fields[{names.index(name) + 1}], '')")
        return _asked(place, f"SELECT {wanted} FROM ({fields})")  # noqa: S608  # places only

    return names, read


def _first_line(place: Path) -> str:
    """The first line that is no comment, which was said to have the names."""
    opened = gzip.open if place.name.lower().endswith(".gz") else open
    line = ""
    try:
        with opened(place, "rt", encoding="utf-8", errors="strict") as file:
            line = next((text.strip(" \t\r\n") for text in file if not text.lstrip(" \t").startswith("#")), "")
    except (OSError, EOFError, UnicodeDecodeError):
        line = ""
    if not line.split():
        raise SourceError(
            f"The first line of {place.name!r:.80} does not name the columns.",
            fix="leave header=True out, and name columns by their place.",
        )
    return line


def _selected(chosen: Sequence[str | None], column: Callable[[str], str]) -> str:
    pairs = zip(chosen, _HOW, strict=True)
    return ", ".join(f"{how.format(column(name))} AS c{i}" for i, (name, how) in enumerate(pairs) if name is not None)


def _typed(chosen: Sequence[str | None]) -> pa.Table:
    wanted = [(f"c{i}", kind) for i, (name, kind) in enumerate(zip(chosen, _KINDS, strict=True)) if name]
    return pa.schema(wanted).empty_table()


def _asked(place: Path, statement: str) -> pa.Table:
    """What DuckDB reads. What it says when it fails may quote lines, so it is not repeated."""
    import duckdb  # noqa: PLC0415  # slow to load

    pattern = "".join(f"[{c}]" if c in "[*?" else c for c in str(place.absolute()))
    answer: Any = None
    try:
        with duckdb.connect() as connection:
            answer = connection.sql(statement.replace(_FILE, _text(pattern), 1)).to_arrow_table()
    except (duckdb.Error, OSError):
        pass
    if answer is None:
        raise SourceError(f"{place.name!r:.80} could not be read as a list of edges.", fix="check the file.")
    return answer


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
