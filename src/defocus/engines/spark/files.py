"""Parquet and CSV files as Spark's own readers see them. Nothing about a column is inferred from rows or paths."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from sqlglot import exp

from defocus.engines.files import Files
from defocus.engines.schema import check_names, unique
from defocus.engines.spark import SparkEngine
from defocus.engines.syntax import column, fill_spark, named, native
from defocus.errors import SourceError

__all__ = ["local", "remote"]

_MAGIC = "\\[]{}*?"
_CSV: Mapping[str, Any] = {
    "header": True,
    "enforceSchema": True,
    "quote": '"',
    "escape": '"',
    "multiLine": True,
    "mode": "PERMISSIVE",
    "encoding": "ISO-8859-1",
    "maxColumns": 1 << 21,
}
"""Bytes are read as they are, and as UTF-8 afterwards, so that what is not UTF-8 is seen and not replaced."""
_MICROSECONDS = (
    "CASE WHEN a IN (9223372036854775807, -9223372036854775807) THEN NULL ELSE CAST(TIMESTAMP_MICROS(a DIV 1000"
    " + CASE WHEN a % 1000 >= 500 THEN 1 WHEN a % 1000 <= -500 THEN -1 ELSE 0 END) AS TIMESTAMP_NTZ) END"
)
"""The nearest microsecond, halves away from zero, and nothing for the two that stand for infinity, as DuckDB reads."""
_USELESS = "CAST(NULL AS BINARY)"
_BYTES = "TRY_VALIDATE_UTF8(CAST(ENCODE(a, 'ISO-8859-1') AS STRING))"


def local(engine: SparkEngine, files: Files) -> exp.Expression:
    """Files of this machine, which every executor must be able to reach under the same path."""
    _check_folders(map(str, files.paths))
    paths = [f"file://{_plain(str(path))}" for path in files.paths]
    options = {"basePath": f"file://{_root(files)}"} if files.partitions else {}
    if files.format == "parquet":
        types = files.columns()
        nanoseconds = any(_is_moment(type_, "ns") for type_ in types.values())
        table = engine.read(lambda reader: reader.options(**options).parquet(*paths), nanoseconds=nanoseconds)
        return _sound(engine, table, [*types, *files.partitions], types)
    separator, names = files.header()
    schema = _texts(names)
    table = engine.read(lambda reader: reader.options(**_CSV, sep=separator, **options).schema(schema).csv(paths))
    return _whole(table, dict(zip(names, names, strict=True)), files.partitions)


def remote(engine: SparkEngine, paths: Sequence[str]) -> exp.Expression:
    """Paths of file systems that Spark knows: files, folders and globs, of Parquet unless their names say CSV."""
    bases = {_base(path) for path in paths} - set(paths)
    options = {"basePath": bases.pop()} if len(bases) == 1 else {}
    ending = paths[0].rstrip("/").lower().removesuffix(".gz")
    if not ending.endswith((".csv", ".tsv")):
        return _far(engine, paths, options)
    given: dict[str, Any] = {**_CSV, "sep": "\t" if ending.endswith(".tsv") else ","}
    headers: set[tuple[str, ...]] = set()
    listed: list[str] = []

    def flat(reader: Any) -> Any:
        frame = reader.options(**given, recursiveFileLookup=True).csv(list(paths))
        listed.extend(map(unquote, frame.inputFiles()))
        headers.update(tuple(reader.csv(_plain(file)).columns) for file in listed)
        return frame

    engine.withdraw(engine.read(flat))
    _check_folders(listed)
    if len(headers) != 1:
        raise _unlike("the files begin with different names of columns")
    names = [_decoded(name) for name in headers.pop()]
    read = dict(zip(names, map(unique, map(str, range(len(names)))), strict=True))
    schema = _texts(list(read.values()))
    table = engine.read(lambda reader: reader.options(**given, **options).schema(schema).csv(list(paths)))
    partitions = [name for name in engine.schema(table).names if name not in read.values()]
    check_names([*names, *partitions], "the files")
    return _whole(table, read, partitions)


def _far(engine: SparkEngine, paths: Sequence[str], options: Mapping[str, str]) -> exp.Expression:
    """Parquet files, of which Spark does not tell in which unit they hold moments; without those of no known one."""
    read: list[tuple[list[str], set[str]]] = []

    def make(reader: Any) -> Any:
        frame = reader.options(**options).parquet(*paths)
        _check_folders(map(unquote, frame.inputFiles()))
        moments = [field.name for field in frame.schema.fields if field.dataType.typeName().startswith("timestamp")]
        sure = _known(reader, frame, moments)
        read.append((frame.columns, {name for name in moments if name not in sure}))
        return frame

    table = engine.read(make)
    ((names, doubtful),) = read
    columns = {name: native(fill_spark(_USELESS)) if name in doubtful else column(name) for name in names}
    return exp.select(*(named(sql, name) for name, sql in columns.items())).from_(table) if doubtful else table


def _known(reader: Any, frame: Any, moments: Sequence[str]) -> set[str]:
    """The moments that every file holds in a unit of which no value is beyond Spark's reach, if the files are alike.

    Footers are read where Spark's Java can be reached, which it cannot through Spark Connect.
    """
    session = reader._spark  # noqa: SLF001  # the one that reads
    jvm = getattr(session, "_jvm", None)
    if jvm is None:
        return set()
    settings = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  # with those of its file systems
    files = jvm.java.util.ArrayList()
    for text in frame.inputFiles():
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(text))
        files.add(path.getFileSystem(settings).getFileStatus(path))
    sure, schemas = set(moments), set[frozenset[str]]()
    for footer in jvm.org.apache.parquet.hadoop.ParquetFileReader.readAllFootersInParallel(settings, files, True):
        schema = footer.getParquetMetadata().getFileMetaData().getSchema()
        schemas.add(frozenset(str(schema.toString()).splitlines()[1:]))  # but for what the writer calls it
        sure = {name for name in sure if schema.containsField(name) and _is_near(schema.getType(name))}
    if len(schemas) > 1:
        raise _unlike("their columns or types differ")
    return sure


def _unlike(what: str) -> SourceError:
    return SourceError(
        f"These files are not one table: {what}.", fix="write the files with the same columns of the same types."
    )


def _check_folders(paths: Iterable[str]) -> None:
    """Refuse folders that Spark reads as other letters than everybody else: one row would be in two parts."""
    for path in paths:
        for folder in path.split("/")[:-1]:
            if "=" in folder and "%" in folder and not unquote(folder).isascii():
                raise SourceError(
                    f"Spark reads other letters in the folder {folder!r:.120} than it stands for.",
                    fix="write letters beyond ASCII in names of folders as they are, without percent signs.",
                )


def _plain(path: str) -> str:
    """A path in which no sign is a pattern: Spark takes every path for one."""
    return "".join(f"\\{sign}" if sign in _MAGIC else sign for sign in path)


def _is_near(type_: Any) -> bool:
    """Whether a type of Parquet holds moments in microseconds, or in Spark's old way."""
    if not type_.isPrimitive():
        return False
    unit = type_.getLogicalTypeAnnotation()
    old = type_.asPrimitiveType().getPrimitiveTypeName().toString() == "INT96"
    return old if unit is None else str(unit.toString()).startswith("TIMESTAMP(MICROS,")


def _decoded(name: str) -> str:
    """A name of a header, whose bytes were read as they are."""
    with contextlib.suppress(UnicodeError):
        return name.encode("iso-8859-1").decode("utf-8-sig")
    raise SourceError("The first line does not name the columns.", fix="write the names of the columns in UTF-8.")


def _base(path: str) -> str:
    """The folder below which folders may be called key=value: what comes before the first key or pattern."""
    scheme, _, rest = path.partition("://")
    parts = rest.split("/")
    last = next((i for i, part in enumerate(parts) if i and set(part) & set(f"{_MAGIC}=")), None)
    return path if last is None else f"{scheme}://{'/'.join(parts[:last])}"


def _sound(engine: SparkEngine, table: exp.Table, names: Sequence[str], types: Mapping[str, Any]) -> exp.Expression:
    """The table with moments in nanoseconds as such, and without those in milliseconds, which may be beyond reach."""
    schema = engine.schema(table)
    columns: dict[str, exp.Expression] = {name: column(name) for name in names if name in schema}
    if len(columns) != len(names):
        raise SourceError("Spark sees other columns in these files.", fix="name folders key=value consistently.")
    for name, type_ in types.items():
        if _is_moment(type_, "ms"):
            columns[name] = native(fill_spark(_USELESS))
        elif _is_moment(type_, "ns") and schema[name].kind.numeric:
            columns[name] = native(fill_spark(_MICROSECONDS, a=column(name)))
    return exp.select(*(named(sql, name) for name, sql in columns.items())).from_(table)


def _texts(names: Sequence[str]) -> str:
    """A schema in which every column is text."""
    return ", ".join(f"{exp.to_identifier(name, quoted=True).sql('spark')} STRING" for name in names)


def _whole(table: exp.Table, names: Mapping[str, str], partitions: Sequence[str]) -> exp.Expression:
    """The rows that are UTF-8 in every field and filled in some, whichever columns a question uses.

    ``names`` says what each column is called in the table.
    """
    read = {name: native(fill_spark(_BYTES, a=column(own))) for name, own in names.items()}
    broken = [
        exp.And(this=column(own).is_(exp.null()).not_(), expression=read[name].copy().is_(exp.null()))
        for name, own in names.items()
    ]
    empty = exp.Literal.string("")
    filled = exp.or_(*(exp.NEQ(this=column(own), expression=empty.copy()) for own in names.values()))
    values = [named(exp.Nullif(this=sql, expression=empty.copy()), name) for name, sql in read.items()]
    shown = [*values, *(named(column(name), name) for name in partitions)]
    return exp.select(*shown).from_(table).where(filled).where(exp.not_(exp.paren(exp.or_(*broken))))


def _root(files: Files) -> Path:
    """The folder below which folders are called key=value."""
    path = files.paths[0]
    outermost = f"{files.partitions[0]}="
    return next(folder.parent for folder in path.parents if folder.name.startswith(outermost))


def _is_moment(type_: Any, unit: str) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.unit == unit)
