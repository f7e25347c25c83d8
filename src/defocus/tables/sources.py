"""Where private rows come from: files, databases and frames, all as one relation of an engine."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
from sqlglot import exp

from defocus.errors import EngineError, InvalidParameterError, SourceError, UnknownColumnError
from defocus.tables.columns import Schema
from defocus.tables.engines.duckdb import DuckDbEngine
from defocus.tables.engines.engine import Engine
from defocus.tables.files import find
from defocus.tables.frames import check_dataset, from_arrow, from_pandas, from_polars, library
from defocus.tables.kinds import Kind
from defocus.tables.names import check_names

__all__ = ["Source", "source"]

_DATABASES = (".duckdb", ".ddb", ".db")
_ALIAS = "source"
"""What an own connection calls the database file it reads."""


@final
@dataclass(frozen=True, slots=True)
class Source:
    """Private rows: the engine that holds them, how it reads them, and what people call them.

    Guarantee:
        The schema depends on declared types, footers, headers and the types of columns, never on a row. Every row of
        the source is one row of the relation, and reading it cannot fail: a value that a declared type cannot hold
        is NULL.
    """

    engine: Engine
    relation: exp.Select
    schema: Schema
    name: str
    description: str


def source(
    data: Any,
    *,
    table: str | None = None,
    types: Mapping[str, Kind | str] | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Source:
    """Open private rows without reading one.

    ``data`` is a path, a folder, a glob or a list of paths of Parquet or CSV files; a DuckDB file or connection with
    ``table``; a DuckDB relation; or a pandas, polars or Arrow table. ``types`` says which kind a column has where
    the source does not: all columns of a CSV file, and pandas columns of Python objects, are text until then.

    >>> source(pa.table({"age": [30, 40]})).schema.names
    ['age']
    """
    if isinstance(data, duckdb.DuckDBPyConnection):
        return _of_database(DuckDbEngine(data), None, table, "of a DuckDB connection", types)
    if _is_database(data, table):
        path = _existing(data)
        engine = DuckDbEngine(attached={_ALIAS: path}, memory=memory, threads=threads)
        return _of_database(engine, _ALIAS, table, f"of the DuckDB file {path.name}", types)
    if table is not None:
        raise SourceError(
            f"table= belongs to a database, but what was passed is {type(data).__name__}.",
            fix="leave table= out, or pass a DuckDB file or connection.",
        )
    if isinstance(data, str | Path) or _is_paths(data):
        files = find(data)
        relation = files.relation()
        engine = DuckDbEngine(files=files.allowed, memory=memory, threads=threads)
        return _canonical(engine, relation, files.name, files.description, types)
    frame, description = _frame(data)
    engine = DuckDbEngine(memory=memory, threads=threads)
    return _canonical(engine, engine.publish("rows", frame), "data", description, types)


def _canonical(
    engine: Engine, relation: exp.Expression, name: str, description: str, types: Mapping[str, Kind | str] | None
) -> Source:
    try:
        known = engine.schema(relation)
    except EngineError:
        known = None
    if known is None:
        raise SourceError(
            f"The columns of {description} could not be read.",
            fix="check that DuckDB can read it without reaching for other files or extensions.",
        )
    check_names(known.names, description)
    kinds = _kinds(types or {}, known)
    select = engine.canonical(relation, kinds)
    return Source(engine, select, engine.schema(select), name, description)


def _kinds(types: Mapping[str, Kind | str], known: Schema) -> dict[str, Kind]:
    kinds = {}
    for name, kind in types.items():
        if name not in known:
            raise UnknownColumnError(name, known.names)
        usable = [str(one) for one in Kind if one is not Kind.OTHER]
        if str(kind) not in usable:
            raise InvalidParameterError(
                f"The type of {name!r:.60} was declared as {kind!r:.40}.", fix=f"declare one of {', '.join(usable)}."
            )
        kinds[known.usable(name).name] = Kind(kind)
    return kinds


def _of_database(
    engine: Engine, catalog: str | None, table: str | None, where: str, types: Mapping[str, Kind | str] | None
) -> Source:
    if table is not None and not isinstance(table, str):
        raise SourceError(f"table= is {type(table).__name__}, not a name.", fix="pass the name of the table as text.")
    found = [names for names in _tables(engine) if catalog in {None, names[0]}]
    matching = [names for names in found if table in {names[2], ".".join(names[1:]), ".".join(names)}]
    if len(matching) != 1:
        known = ", ".join(sorted(".".join(names[1:]) for names in found)) or "none"
        what = f"{len(matching)} tables are called {table!r:.80}" if matching else f"There is no table {table!r:.80}"
        if table is None:
            what = "A database holds many tables, and none was named"
        raise SourceError(f"{what}.", fix=f"pass table= with one of these names: {known:.500}.")
    parts = [exp.to_identifier(part, quoted=True) for part in matching[0]]
    relation = exp.Table(this=parts[2], db=parts[1], catalog=parts[0])
    return _canonical(engine, relation, matching[0][2], f"the table {matching[0][2]} {where}", types)


def _tables(engine: Engine) -> list[tuple[str, str, str]]:
    """Catalog, schema and name of every table and view."""
    columns = [exp.column(name, quoted=True) for name in ("table_catalog", "table_schema", "table_name")]
    listed = engine.run(exp.select(*columns).from_(exp.table_("tables", db="information_schema", quoted=True)))
    return [(row["table_catalog"], row["table_schema"], row["table_name"]) for row in listed.to_pylist()]


def _is_database(data: object, table: str | None) -> bool:
    if not isinstance(data, str | Path):
        return False
    return Path(data).suffix.lower() in _DATABASES or (table is not None and Path(data).is_file())


def _existing(data: str | Path) -> Path:
    path = Path(data).expanduser().absolute()
    if not path.is_file():
        raise SourceError(f"There is no file {str(data)!r:.200}.", fix=f"check the path, seen from {Path.cwd()}.")
    return path


def _is_paths(data: object) -> bool:
    return isinstance(data, Sequence) and len(data) > 0 and all(isinstance(one, str | Path) for one in data)


def _frame(data: Any) -> tuple[Any, str]:
    """Something that DuckDB can read as often as it likes, in Arrow's terms, and what it is."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return from_arrow(data), "an Arrow table"
    if isinstance(data, pads.Dataset):
        return check_dataset(data), "an Arrow dataset"
    if isinstance(data, pa.RecordBatchReader | pads.Scanner):
        raise SourceError("A reader can be read only once, but each question reads.", fix="pass .read_all() of it.")
    if isinstance(data, duckdb.DuckDBPyRelation):
        check_names(data.columns, "the DuckDB relation")
        return from_arrow(_read(data)), "a DuckDB relation, as it was when it was opened"
    if library(data) == "pandas":
        return from_pandas(data), "a pandas frame"
    if library(data) == "polars":
        return from_polars(data), "a polars frame"
    raise SourceError(
        f"{type(data).__name__} is not a table that can be opened.",
        fix="pass a path, a list of paths, a DuckDB connection, or a pandas, polars or Arrow table.",
    )


def _read(relation: Any) -> Any:
    """The rows of a relation, whose connection only it knows."""
    with contextlib.suppress(Exception):
        return relation.to_arrow_table()
    raise SourceError(
        "The DuckDB relation could not be read.",
        fix='write relation.create_view("people") and pass the connection with table="people".',
    )
