"""Parquet and CSV files as Spark's own readers see them. Nothing about a column is inferred from rows or paths."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from defocus.engines.files import Files
from defocus.engines.spark import SparkEngine
from defocus.engines.syntax import column, named
from defocus.engines.templates import fill_spark, native
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
_BYTES = "TRY_VALIDATE_UTF8(CAST(ENCODE(a, 'ISO-8859-1') AS STRING))"


def local(engine: SparkEngine, files: Files) -> exp.Expression:
    """Files of this machine, which every executor must be able to reach under the same path."""
    paths = [_escaped(path) for path in files.paths]
    options = {"basePath": f"file://{_root(files)}"} if files.partitions else {}
    if files.format == "parquet":
        types = files.columns()
        nanoseconds = any(_is_moment(type_, "ns") for type_ in types.values())
        table = engine.read(lambda reader: reader.options(**options).parquet(*paths), nanoseconds=nanoseconds)
        return _sound(engine, table, [*types, *files.partitions], types)
    separator, names = files.header()
    schema = ", ".join(f"{exp.to_identifier(name, quoted=True).sql('spark')} STRING" for name in names)
    table = engine.read(lambda reader: reader.options(**_CSV, sep=separator, **options).schema(schema).csv(paths))
    return _whole(table, names, files.partitions)


def remote(engine: SparkEngine, paths: Sequence[str]) -> exp.Expression:
    """Paths of file systems that Spark knows: files, folders and globs, of Parquet unless their names say CSV."""
    bases = {_base(path) for path in paths} - set(paths)
    options = {"basePath": bases.pop()} if len(bases) == 1 else {}
    ending = paths[0].rstrip("/").lower().removesuffix(".gz")
    if not ending.endswith((".csv", ".tsv")):
        return engine.read(lambda reader: reader.options(**options).parquet(*paths))
    separator = "\t" if ending.endswith(".tsv") else ","
    table = engine.read(lambda reader: reader.options(**_CSV, sep=separator, **options).csv(list(paths)))
    keys = set(re.findall(r"/([^/=]+)=", paths[0]))
    names = engine.schema(table).names
    return _whole(table, [name for name in names if name not in keys], [name for name in names if name in keys])


def _base(path: str) -> str:
    """The folder below which folders may be called key=value: what comes before the first key or pattern."""
    scheme, _, rest = path.partition("://")
    parts = rest.split("/")
    last = next((i for i, part in enumerate(parts) if i and set(part) & set(f"{_MAGIC}=")), None)
    return path if last is None else f"{scheme}://{'/'.join(parts[:last])}"


def _sound(engine: SparkEngine, table: exp.Table, names: Sequence[str], types: Mapping[str, Any]) -> exp.Expression:
    """The table with moments in nanoseconds as such, and without those in milliseconds, which may be beyond reach."""
    known = engine.schema(table)
    made: dict[str, exp.Expression] = {name: column(name) for name in names if name in known}
    if len(made) != len(names):
        raise SourceError("Spark sees other columns in these files.", fix="name folders key=value consistently.")
    for name, type_ in types.items():
        if _is_moment(type_, "ms"):
            made[name] = native(fill_spark("CAST(NULL AS BINARY)"))
        elif _is_moment(type_, "ns") and known[name].kind.numeric:
            made[name] = native(fill_spark(_MICROSECONDS, a=column(name)))
    return exp.select(*(named(sql, name) for name, sql in made.items())).from_(table)


def _whole(table: exp.Table, names: Sequence[str], partitions: Sequence[str]) -> exp.Expression:
    """The rows that are UTF-8 in every field and filled in some, whichever columns a question uses."""
    read = {name: native(fill_spark(_BYTES, a=column(name))) for name in names}
    broken = [
        exp.And(this=column(name).is_(exp.null()).not_(), expression=sql.copy().is_(exp.null()))
        for name, sql in read.items()
    ]
    empty = exp.Literal.string("")
    filled = exp.or_(*(exp.NEQ(this=column(name), expression=empty.copy()) for name in names))
    made = [named(exp.Nullif(this=sql, expression=empty.copy()), name) for name, sql in read.items()]
    shown = [*made, *(named(column(name), name) for name in partitions)]
    return exp.select(*shown).from_(table).where(filled).where(exp.not_(exp.paren(exp.or_(*broken))))


def _root(files: Files) -> Path:
    """The folder below which folders are called key=value."""
    path = files.paths[0]
    outermost = f"{files.partitions[0]}="
    return next(folder.parent for folder in path.parents if folder.name.startswith(outermost))


def _escaped(path: Path) -> str:
    """The pattern that only this path matches: Spark takes every path for a pattern."""
    return "file://" + "".join(f"\\{c}" if c in _MAGIC else c for c in str(path))


def _is_moment(type_: Any, unit: str) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.unit == unit)
