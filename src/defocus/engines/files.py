"""Parquet and CSV files as relations. What their columns are is read from footers and headers, never from rows."""

import contextlib
import csv
import glob
import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from defocus.engines.schema import check_names
from defocus.errors import SourceError

__all__ = ["Files", "find"]

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv", ".tsv": "tsv", ".tsv.gz": "tsv"}
_ENDINGS = ", ".join(_FORMATS)
_NULL = "__HIVE_DEFAULT_PARTITION__"
_HEADER = 1 << 20
"""A header is at most this many bytes long."""


@final
@dataclass(frozen=True, slots=True)
class Files:
    """Files of one format with the same columns.

    *CSV.* Every column is text; an empty field is NULL. The separator is the one of ``, ; | tab`` that is most
    frequent in the header. A row with too few fields is filled with NULL, one with too many is cut, and one that is
    empty, longer than 2 MB or not UTF-8 is left out: what becomes of a row does not depend on the others or on the
    question, and none can make the reading fail.

    *Parquet.* All files must have the same columns of the same types. Columns of moments in milliseconds are there but
    of no use, since DuckDB cannot read all of them and one value must not decide whether a question has an answer;
    write microseconds.

    *Folders* called ``key=value`` below the one that was opened add a text column ``key``, as Hive writes them: percent
    signs stand for bytes of UTF-8, and ``__HIVE_DEFAULT_PARTITION__`` for NULL. A filter on such a column leaves
    files unread.

    The list of files is made when they are found and does not grow: one that arrives later is in the next opening.

    Assumes:
        A CSV file was written by a program that quotes what must be quoted: the rows that differ between
        neighbouring tables are rows as this reader sees them. A carriage return that is not quoted ends a row, also
        where lines end with LF, and DuckDB cannot be told otherwise; ``pandas.to_csv`` leaves it unquoted, so that a
        record with one is two rows, unless it is called with ``quoting=csv.QUOTE_NONNUMERIC`` or ``QUOTE_ALL``.
    """

    paths: tuple[Path, ...]
    format: str
    partitions: tuple[str, ...] = ()
    """The keys of the folders, outermost first."""
    values: tuple[tuple[str | None, ...], ...] = ()
    """The values of those keys, for each file."""
    name: str = ""
    """What a question may call the table."""

    @property
    def description(self) -> str:
        """What this is, for people."""
        more = f" and {len(self.paths) - 1} more files" if len(self.paths) > 1 else ""
        return f"{_shown(self.paths[0])}{more}"

    @property
    def allowed(self) -> list[Path]:
        """What the engine must be able to reach: the files, and the patterns under which it looks for them."""
        return [*self.paths, *(Path(_pattern(path)) for path in self.paths if _pattern(path) != str(path))]

    def stored(self) -> dict[str, Any]:
        """The Arrow types of columns, where the files say them."""
        return _types(self.paths[0]) if self.format == "parquet" else {}

    def relation(self) -> exp.Expression:
        """A table function over the files; refuses files whose columns differ or cannot be told apart."""
        files = exp.Array(expressions=[exp.Literal.string(_pattern(path)) for path in self.paths])
        values = self._parquet() if self.format == "parquet" else self._csv()
        options = [exp.Kwarg(this=exp.var(name), expression=value) for name, value in values.items()]
        function = "read_parquet" if self.format == "parquet" else "read_csv"
        table = exp.Table(this=exp.Anonymous(this=function, expressions=[files, *options]))
        return self._sound(table) if self.format == "parquet" else self._whole(table)

    def columns(self) -> dict[str, Any]:
        """The Arrow types of the columns of Parquet files; refuses files whose columns differ."""
        first = _types(self.paths[0])
        check_names([*first, *self.partitions], _shown(self.paths[0]))
        for path in self.paths[1:]:
            types = _types(path)
            for name in first.keys() | types.keys():
                if first.get(name) != types.get(name):
                    raise SourceError(
                        f"The column {name!r:.60} is not the same in {_shown(self.paths[0])} and {_shown(path)}.",
                        fix="write the files with the same columns of the same types.",
                    )
        return first

    def header(self) -> tuple[str, list[str]]:
        """The separator and the names of the columns of CSV files; refuses files whose headers differ."""
        separator, names = _header(self.paths[0], self.format)
        check_names([*names, *self.partitions], _shown(self.paths[0]))
        for path in self.paths[1:]:
            if _header(path, self.format) != (separator, names):
                raise SourceError(
                    f"{_shown(self.paths[0])} and {_shown(path)} have different headers.",
                    fix="give files with the same columns in the same order.",
                )
        return separator, names

    def among(self, relation: exp.Expression, kept: Sequence[bool]) -> exp.Expression:
        """The relation over those of the files that are ``kept``, or over one if none is, so that it has its columns.

        As it was where it does not read these files in one place.
        """
        names = [_pattern(path) for path in self.paths]
        narrowed = relation.copy()
        lists = [
            node.expressions[0]
            for node in narrowed.find_all(exp.Anonymous)
            if node.expressions and [argument.name for argument in node.expressions[0].iter_expressions()] == names
        ]
        if len(lists) != 1:
            return relation
        chosen = [name for name, keep in zip(names, kept, strict=True) if keep] or names[:1]
        lists[0].set("expressions", [exp.Literal.string(name) for name in chosen])
        return narrowed

    def _parquet(self) -> dict[str, exp.Expression]:
        self.columns()
        flags = {"hive_partitioning": bool(self.partitions), "hive_types_autocast": False, "union_by_name": False}
        return {name: exp.Boolean(this=value) for name, value in flags.items()}

    def _sound(self, table: exp.Table) -> exp.Expression:
        """The table without moments in milliseconds: DuckDB fails to read one that microseconds cannot hold.

        Columns of partitioned tables are named, since DuckDB takes folders above the one that was opened for keys too.
        """
        types = _types(self.paths[0])
        coarse = {name for name, type_ in types.items() if pa.types.is_timestamp(type_) and type_.unit == "ms"}
        useless = exp.Cast(this=exp.null(), to=exp.DataType.build("BLOB", dialect="duckdb"))
        columns = {name: useless.copy() if name in coarse else _column(name) for name in (*types, *self.partitions)}
        return _select(columns, table) if coarse or self.partitions else table

    def _whole(self, table: exp.Table) -> exp.Expression:
        """The rows in which some field is filled, whichever columns a question uses.

        DuckDB leaves out a row with a broken character only if that column is asked for, so all of them are looked
        at. And it casts while it reads, dropping rows whose cast fails, unless a function stands in between.
        """
        _, names = _header(self.paths[0], self.format)
        empty = exp.Literal.string("")
        columns = {name: exp.Nullif(this=_column(name), expression=empty.copy()) for name in names}
        kept = exp.or_(*(_column(name).is_(exp.null()).not_() for name in names))
        return _select({**columns, **{name: _column(name) for name in self.partitions}}, table).where(kept)

    def _csv(self) -> dict[str, exp.Expression]:
        separator, names = self.header()
        text = exp.Literal.string
        columns = [exp.PropertyEQ(this=text(name), expression=text("VARCHAR")) for name in names]
        return {
            "columns": exp.Struct(expressions=columns),
            "auto_detect": exp.false(),
            "header": exp.true(),
            "delim": text(separator),
            "quote": text('"'),
            "escape": text('"'),
            "nullstr": text(""),
            "null_padding": exp.true(),
            "ignore_errors": exp.true(),
            "strict_mode": exp.false(),
            "parallel": exp.false(),
            "hive_partitioning": exp.Boolean(this=bool(self.partitions)),
            "hive_types_autocast": exp.false(),
        }


def find(data: str | Path | Sequence[str | Path]) -> Files:
    """The files that a path, a folder, a glob or a list of these means, as they are now."""
    given = [data] if isinstance(data, str | Path) else list(data)
    files = [file for one in given for file in _expand(os.fspath(one))]
    if not files:
        raise SourceError("No file was named.", fix="give at least one path.")
    if len({path for path, _ in files}) != len(files):  # links are not followed: a link is a file of its own
        raise SourceError("A file was named twice, so its rows would count twice.", fix="name each file once.")
    formats = {_format(path) for path, _ in files}
    layouts = {tuple(keys) for _, keys in files}
    if len(formats) > 1 or len(layouts) > 1:
        differ = f"formats: {', '.join(sorted(formats))}" if len(formats) > 1 else "folders called key=value"
        raise SourceError(f"The files have different {differ}.", fix="open files of one format and one layout.")
    named = Path(given[0]) if len(given) == 1 and Path(given[0]).is_dir() else files[0][0]
    return Files(
        tuple(path for path, _ in files),
        formats.pop(),
        layouts.pop(),
        tuple(tuple(keys.values()) for _, keys in files),
        named.name.split(".")[0] or "data",
    )


def _expand(text: str) -> Iterator[tuple[Path, dict[str, str | None]]]:
    """The files with the partitions in their paths. A name that exists is itself, whatever characters it has."""
    if not text or "\0" in text or "://" in text:
        raise SourceError(
            f"{text!r:.80} is not a path on this machine.",
            fix="copy the file here, or store its rows as a table of a DuckDB connection that can reach it, and open"
            " that; Spark reads it where it is, with engine=.",
        )
    path = Path(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100 - absolute, but not through links
    if path.is_file():
        yield path, {}
    elif path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.is_file() and _ending(file))
        if not inside:
            raise SourceError(f"No file in {_shown(path)} ends with {_ENDINGS}.", fix="check the folder.")
        for file in inside:
            yield file, _keys(file, path)
    elif glob.has_magic(text):
        paths = map(Path, glob.iglob(str(path), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        matches = sorted(file for file in paths if file.is_file())
        if not matches:
            raise SourceError(f"No file matches {text!r:.200}.", fix="check the pattern.")
        fixed = next(part for part in path.parents if not glob.has_magic(str(part)))
        for match in matches:
            yield match, _keys(match, fixed)
    else:
        raise SourceError(f"There is no file {text!r:.200}.", fix=f"check the path, seen from {Path.cwd()}.")


def _keys(file: Path, root: Path) -> dict[str, str | None]:
    """The keys and values of the folders called key=value between a file and the root that was named.

    DuckDB reads them from the whole path, takes the outermost of two equal keys, and ends a value at some signs, which
    Hive writes as percent signs: what could be read in two ways is refused.
    """
    partitions: dict[str, str | None] = {}
    for part in file.relative_to(root).parts[:-1]:
        key, equals, value = part.partition("=")
        if not equals or not key:
            continue
        same = key.casefold()
        others = (*partitions, *(above.partition("=")[0] for above in root.parts if "=" in above))
        twice = any(other.casefold() == same for other in others)
        if twice or "%" in key or any(sign in value or sign in key for sign in "=?\\\n\r"):
            raise SourceError(
                f"The folder {part!r:.120} does not say what {key!r:.60} is: there is a sign in it that Hive writes"
                " otherwise, or another folder on the way to it has the same key.",
                fix="name each folder key=value with a key of its own, and write = as %3D, ? as %3F and \\ as %5C.",
            )
        partitions[key] = _partition(value, part)
    return partitions


def _partition(value: str, folder: str) -> str | None:
    """The value that the name of a folder stands for."""
    if value == _NULL:
        return None
    with contextlib.suppress(UnicodeDecodeError):
        text = unquote_to_bytes(value).decode()
        if "\0" not in text:
            return text
    raise SourceError(f"The folder {folder!r:.120} is not called by a text in UTF-8.", fix="rename the folder.")


def _ending(path: Path) -> str | None:
    name = path.name.lower()
    return max((ending for ending in _FORMATS if name.endswith(ending)), key=len, default=None)


def _format(path: Path) -> str:
    ending = _ending(path)
    if ending is None:
        raise SourceError(
            f"It cannot be told from its name what {_shown(path)} holds.",
            fix=f"open a file that ends with {_ENDINGS}, or a DuckDB file with table=.",
        )
    return _FORMATS[ending]


def _types(path: Path) -> dict[str, Any]:
    """Names and types in a Parquet footer. Statistics of the values are there too, and are not looked at."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        schema = None
    if schema is None:
        raise SourceError(f"{_shown(path)} is not a Parquet file that can be read.", fix="write the file again.")
    check_names(schema.names, _shown(path))
    return {field.name: field.type for field in schema}


def _header(path: Path, format_: str) -> tuple[str, list[str]]:
    """The separator and the names in the first line; not a byte of the second line decides anything."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    line: str | None = None
    try:
        with opened(path, "rb") as file:
            line = file.readline(_HEADER).decode("utf-8-sig").rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError):
        line = None
    if not line or len(line) >= _HEADER:
        raise SourceError(
            f"The first line of {_shown(path)} does not name the columns.",
            fix="write the names of the columns, in UTF-8, as the first line.",
        )
    separator = "\t" if format_ == "tsv" else max(",;|\t", key=line.count)
    try:
        return separator, next(csv.reader([line], delimiter=separator))
    except csv.Error:
        line = None
    raise SourceError(f"The first line of {_shown(path)} is no list of names.", fix="separate the names with commas.")


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def _select(columns: Mapping[str, exp.Expression], table: exp.Table) -> exp.Select:
    named = [exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True)) for name, value in columns.items()]
    return exp.select(*named).from_(table)


def _pattern(path: Path) -> str:
    """The pattern that only this path matches: DuckDB takes every path for a pattern."""
    return "".join(f"[{c}]" if c in "[*?" else c for c in str(path))


def _shown(path: Path) -> str:
    return repr(path.name)[1:-1][:120]
