"""Where private rows come from: files, databases and frames, all as one relation of an engine."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, final

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
from sqlglot import exp

from defocus.errors import EngineError, InvalidParameterError, SourceError, UnknownColumnError
from defocus.tables.columns import Column, Schema
from defocus.tables.engines.duckdb import DuckDbEngine
from defocus.tables.engines.engine import Engine
from defocus.tables.engines.postgresql import PostgreSqlEngine, is_address
from defocus.tables.files import Files, find
from defocus.tables.frames import check_dataset, from_arrow, from_pandas, from_polars, library
from defocus.tables.kinds import Kind, Value
from defocus.tables.names import check_names

__all__ = ["Origin", "Source", "fits", "literal", "source", "together", "without"]

_DATABASES = (".duckdb", ".ddb", ".db")
_ALIAS = "file"
"""How the names begin by which an own connection calls database files."""
_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What was passed, in the one form it has: a connection or database file with a table, files, or a frame."""

    name: str
    description: str
    connection: Any = None
    database: Path | None = None
    address: str | None = field(default=None, repr=False)
    """Where a server is; it may hold a password."""
    table: str | None = None
    files: Files | None = None
    frame: Any = None
    types: Mapping[str, Kind | str]
    missing: Mapping[str, Sequence[Value]]

    def stored(self) -> dict[str, Any]:
        """The Arrow types of columns where a frame or a Parquet file says them."""
        if self.frame is not None:
            return {field.name: field.type for field in self.frame.schema}
        return {} if self.files is None else self.files.stored()


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
    origin: Origin
    raw: exp.Expression
    """What the engine reads before any column is converted."""
    own: Schema
    """The kinds that columns have by themselves, whatever was declared."""


def source(
    data: Any,
    *,
    table: str | None = None,
    types: Mapping[str, Kind | str] | None = None,
    missing: Mapping[str, Sequence[Value]] | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Source:
    """Open private rows without reading one.

    ``data`` is a path, a folder, a glob or a list of paths of Parquet or CSV files; a DuckDB file or connection, or the
    address of a PostgreSQL database, with ``table``; a DuckDB relation; or a pandas, polars or Arrow table. ``types``
    says which kind a column has where the source does not: all columns of a CSV file, and pandas columns of Python
    objects, are text until then. ``missing`` lists values of a column that stand for a missing one, such as -1.

    >>> source(pa.table({"age": [30, 40]})).schema.names
    ['age']
    """
    origin = _origin(data, table, types or {}, missing or {})
    engine = _engine([origin], memory, threads)
    with _closed_on_failure(engine):
        return _opened(engine, origin)


def together(*sources: Source, memory: str | None = None, threads: int | None = None) -> list[Source]:
    """The same sources on one engine, so that they can be joined; what was declared about them stays."""
    if len(sources) == 1 and memory is None and threads is None:
        return list(sources)
    engine = _engine([one.origin for one in sources], memory, threads)
    with _closed_on_failure(engine):
        return [replace(_opened(engine, one.origin), schema=one.schema) for one in sources]


@contextlib.contextmanager
def _closed_on_failure(engine: Engine) -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.close()
        raise


def _origin(
    data: Any, table: str | None, types: Mapping[str, Kind | str], missing: Mapping[str, Sequence[Value]]
) -> Origin:
    make = partial(Origin, types=types, missing=missing)
    if table is not None and not isinstance(table, str):
        raise SourceError(f"table= is {type(table).__name__}, not a name.", fix="pass the name of the table as text.")
    if isinstance(data, duckdb.DuckDBPyConnection):
        return make(name=table or "", description="a DuckDB connection", connection=data, table=table)
    if is_address(data):
        return make(name=table or "", description="a PostgreSQL database", address=data, table=table)
    if _is_database(data, table):
        path = _existing(data)
        return make(name=table or "", description=f"the DuckDB file {path.name}", database=path, table=table)
    if table is not None:
        raise SourceError(
            f"table= belongs to a database, but what was passed is {type(data).__name__}.",
            fix="leave table= out, or pass a DuckDB file or connection, or a PostgreSQL address.",
        )
    if isinstance(data, str | Path) or _is_paths(data):
        files = find(data)
        return make(name=files.name, description=files.description, files=files)
    frame, description = _frame(data)
    return make(name="data", description=description, frame=frame)


def _engine(origins: Sequence[Origin], memory: str | None, threads: int | None) -> Engine:
    """One engine that reaches everything, and nothing else unless the user's own connection does."""
    if any(one.address is not None for one in origins):
        return _server(origins, memory, threads)
    given = {id(one.connection): one.connection for one in origins if one.connection is not None}
    databases = list(dict.fromkeys(one.database for one in origins if one.database is not None))
    if len(given) > 1 or (given and databases):
        raise SourceError(
            "These tables live in different databases.",
            fix="attach one database to the connection of the other, and open both tables from there.",
        )
    for connection in given.values():
        return DuckDbEngine(connection)
    files = [path for one in origins if one.files is not None for path in one.files.allowed]
    attached = {f"{_ALIAS} {path}": path for path in databases}
    return DuckDbEngine(files=files, attached=attached, memory=memory, threads=threads)


def _server(origins: Sequence[Origin], memory: str | None, threads: int | None) -> PostgreSqlEngine:
    addresses = {one.address for one in origins}
    (address, *others) = addresses
    if address is None or others:
        raise SourceError(
            "These tables live in different places, and rows do not travel between them.",
            fix="bring both tables into one PostgreSQL database, or export both to Parquet.",
        )
    if memory is not None or threads is not None:
        raise SourceError(
            "memory= and threads= are for an engine in this process, but PostgreSQL is a server.",
            fix="leave them out; a server is set with work_mem and max_parallel_workers_per_gather.",
        )
    return PostgreSqlEngine(address)


def _opened(engine: Engine, origin: Origin) -> Source:
    description, name = origin.description, origin.name
    relation: exp.Expression
    if origin.files is not None:
        relation = origin.files.relation()
    elif origin.frame is not None:
        relation = engine.publish("rows", origin.frame)
    else:
        relation = _table_of(engine, origin)
        name, description = relation.name, f"the table {relation.name} of {description}"
    try:
        known = engine.schema(relation)
    except EngineError:
        known = None
    if known is None:
        raise SourceError(
            f"The columns of {description} could not be read.",
            fix=f"check that {engine.name} can read it without reaching for other files or extensions.",
        )
    check_names(known.names, description)
    select = engine.canonical(relation, _kinds(origin.types, known))
    schema = engine.schema(select)
    rows = without(select, origin.missing, schema)
    return Source(engine, rows, schema, name, description, origin, raw=relation, own=known)


def _kinds(types: Mapping[str, Kind | str], known: Schema) -> dict[str, Kind]:
    usable = [str(one) for one in Kind if one is not Kind.OTHER]
    for name, kind in types.items():
        if name not in known:
            raise UnknownColumnError(name, known.names)
        known.usable(name)
        if str(kind) not in usable:
            raise InvalidParameterError(
                f"The type of {name!r:.60} was declared as {kind!r:.40}.", fix=f"declare one of {', '.join(usable)}."
            )
    return {name: Kind(kind) for name, kind in types.items()}


def without(select: exp.Select, missing: Mapping[str, Sequence[Value]], schema: Schema) -> exp.Select:
    """The same rows with NULL in the place of values that stand for a missing one."""
    if not missing:
        return select
    codes = {name: [literal(value, schema.usable(name)) for value in values] for name, values in missing.items()}
    made: list[exp.Expression] = []
    for name in schema.names:
        column = exp.Column(this=exp.to_identifier(name, quoted=True))
        kept: exp.Expression = column
        if codes.get(name):
            kept = exp.Case(
                ifs=[exp.If(this=exp.In(this=column, expressions=codes[name]), true=exp.null())], default=column
            )
        made.append(exp.Alias(this=kept, alias=exp.to_identifier(name, quoted=True)))
    return exp.select(*made).from_(select.subquery(exp.to_identifier("t", quoted=True)))


def literal(value: Value, column: Column) -> exp.Expression:
    """A public constant in the type of a column's kind."""
    if not fits(value, column.kind):
        raise InvalidParameterError(
            f"{value!r:.40} is no value of the {column.kind} column {column.name!r:.60}.",
            fix=f"give values of kind {column.kind}.",
        )
    text = value if isinstance(value, str) else value.isoformat() if isinstance(value, date) else repr(value)
    if column.kind is Kind.TEXT:
        return exp.Literal.string(text)
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(_TYPES[column.kind]))


def fits(value: object, kind: Kind) -> bool:
    """Whether a public constant is a value of a kind."""
    if kind is Kind.NUMBER:
        return type(value) in {int, float} and math.isfinite(value)  # type: ignore[arg-type]  # a number by now
    if kind is Kind.INTEGER:
        return type(value) is int and -(2**63) <= value < 2**63
    if kind is Kind.TEXT:
        return type(value) is str and "\0" not in value
    if kind is Kind.TIMESTAMP:
        return type(value) is datetime and value.tzinfo is None
    return type(value) is {Kind.BOOLEAN: bool, Kind.DATE: date}.get(kind)


def _table_of(engine: Engine, origin: Origin) -> exp.Table:
    """The one table with the name that was given, exactly as it is written."""
    table = origin.table
    catalog = None if origin.database is None else f"{_ALIAS} {origin.database}"
    found = [names for names in _tables(engine) if catalog in {None, names[0]}]
    matching = [names for names in found if table in {names[2], ".".join(names[1:]), ".".join(names)}]
    if len(matching) != 1:
        known = ", ".join(sorted(".".join(names[1:]) for names in found)) or "none"
        what = f"{len(matching)} tables are called {table!r:.80}" if matching else f"There is no table {table!r:.80}"
        if table is None:
            what = "A database holds many tables, and none was named"
        raise SourceError(f"{what}.", fix=f"pass table= with one of these names: {known:.500}.")
    parts = [exp.to_identifier(part, quoted=True) for part in matching[0]]
    return exp.Table(this=parts[2], db=parts[1], catalog=parts[0])


def _tables(engine: Engine) -> list[tuple[str, str, str]]:
    """Catalog, schema and name of every table and view."""
    columns = [exp.column(name, quoted=True) for name in ("table_catalog", "table_schema", "table_name")]
    listed = engine.run(exp.select(*columns).from_(exp.table_("tables", db="information_schema", quoted=True)))
    found = [(row["table_catalog"], row["table_schema"], row["table_name"]) for row in listed.to_pylist()]
    return [names for names in found if names[1] not in {"information_schema", "pg_catalog"}]


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
