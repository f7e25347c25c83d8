"""Sources of rows, and the engine that computes on each.

Which engine computes on a table: decided by what it was opened from, in one place.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, final

import pyarrow.dataset as pads
from sqlglot import exp

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.engine import Engine
from defocus.engines.mariadb import MariaDbEngine
from defocus.engines.mariadb import is_address as is_mariadb
from defocus.engines.origins import Origin, origin_of
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.schema import CANONICAL, Column, Kind, Schema, Value, check_names
from defocus.engines.spark import SparkEngine
from defocus.engines.spark.files import local, remote
from defocus.engines.spark.sessions import is_session, server_of, started
from defocus.engines.untested import UntestedEngine
from defocus.engines.views import Names
from defocus.errors import EngineError, InvalidParameterError, SourceError, UnknownColumnError

__all__ = ["ALIAS", "Origin", "Source", "alongside", "engine_for", "fits", "literal", "source", "together", "without"]


ALIAS = "file"
"""How the names begin by which an own connection calls database files."""


def engine_for(
    origins: Sequence[Origin],
    *,
    memory: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Engine:
    """One engine that reaches everything, and nothing else unless the user's own connection does."""
    if any(one.on_spark for one in origins):
        return _spark(origins, memory, threads, progress)
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
        untested = {one.untested for one in origins}
        if untested != {None}:
            return UntestedEngine(connection, str(*untested))
        return DuckDbEngine(connection)
    files = [path for one in origins if one.files is not None for path in one.files.allowed]
    attached = {f"{ALIAS} {path}": path for path in databases}
    return DuckDbEngine(files=files, attached=attached, memory=memory, threads=threads)


def _apart(fix: str) -> SourceError:
    return SourceError("These tables live in different places, and rows do not travel between them.", fix=fix)


def _not_here(where: str, instead: str) -> SourceError:
    message = f"memory= and threads= are for an engine in this process, but {where}."
    return SourceError(message, fix=f"leave them out; {instead}.")


def _server(origins: Sequence[Origin], memory: str | None, threads: int | None) -> PostgreSqlEngine | MariaDbEngine:
    addresses = {one.address for one in origins}
    (address, *others) = addresses
    if address is None or others:
        raise _apart("bring both tables into one database of one server, or export both to Parquet.")
    if memory is not None or threads is not None:
        raise _not_here("this table is in a server", "a server has its own settings, such as work_mem")
    return MariaDbEngine(address) if is_mariadb(address) else PostgreSqlEngine(address)


def _spark(
    origins: Sequence[Origin], memory: str | None, threads: int | None, progress: Callable[[float], None] | None
) -> SparkEngine:
    if any(one.connection is not None or one.database is not None or one.address is not None for one in origins):
        raise _apart("export the table of the database to Parquet, and let Spark read that.")
    if memory is not None or threads is not None:
        raise _not_here("Spark is set where it is started", "set spark.executor.memory and spark.executor.cores there")
    frames = [one.spark.sparkSession for one in origins if one.spark is not None]
    given = [*frames, *(one.engine for one in origins if is_session(one.engine))]
    named = {one.engine for one in origins if isinstance(one.engine, str)}
    if len({server_of(one) for one in given}) > 1 or len(named) > 1:
        raise SourceError("These tables are on different Sparks.", fix="open both with the same session.")
    session, own = (given[0], False) if given else started(named.pop(), progress)
    return SparkEngine(session, own=own)


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
    engine: Any = None,
    memory: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Source:
    """Open private rows without reading one; ``progress`` is called with percentages where that takes a while.

    ``data`` is a path, a folder, a glob or a list of paths of Parquet or CSV files; a DuckDB file or connection, or the
    address of a PostgreSQL or MariaDB database, with ``table``; or a pandas, polars or Arrow table. ``types``
    says which kind a column has where the source does not: all columns of a CSV file, and pandas columns of Python
    objects, are text until then. ``missing`` lists values of a column that stand for a missing one, such as -1.
    A Spark data frame, or a Spark session with ``table``, is read by Spark, and so is anything with ``engine``: a
    session, or where Spark runs, such as ``"spark://host:7077"`` or ``"local[4]"``.

    >>> import pyarrow as pa
    >>> source(pa.table({"age": [30, 40]})).schema.names
    ['age']
    """
    origin = origin_of(data, table=table, types=types, missing=missing, engine=engine)
    chosen = engine_for([origin], memory=memory, threads=threads, progress=progress)
    with _closed_on_failure(chosen):
        opened = _opened(chosen, origin)
    if progress is not None:
        progress(100.0)
    return opened


def together(*sources: Source, memory: str | None = None, threads: int | None = None) -> list[Source]:
    """The same sources on one engine, so that they can be joined; what was declared about them stays."""
    if len(sources) == 1 and memory is None and threads is None:
        return list(sources)
    engine = engine_for([one.origin for one in sources], memory=memory, threads=threads)
    with _closed_on_failure(engine):
        return [replace(_opened(engine, one.origin), schema=one.schema) for one in sources]


def alongside(engine: Engine, data: Any, name: str) -> tuple[exp.Select, Schema, str]:
    """Public rows on an engine that is open: how it reads them, their columns, and what people call them.

    Spark reads files and frames itself; DuckDB reads Parquet files through Arrow, block by block, since it opens no
    file that was not named when it started. ``name`` begins the name of what is published, and is to tell it apart.
    """
    on_spark = isinstance(engine, SparkEngine)
    origin = origin_of(data, engine="spark" if on_spark else None)
    if origin.in_database or (origin.spark is not None and not on_spark):
        raise SourceError(
            f"{origin.description} and the table live in different places.".capitalize(),
            fix="pass a Parquet file, a folder or a frame, and on Spark a data frame of the same Spark.",
        )
    if on_spark and origin.frame is None:
        relation = _relation(engine, origin, None)
    elif isinstance(engine, DuckDbEngine) and _is_flat(origin):
        assert origin.files is not None  # noqa: S101  # or it would not be flat
        relation = engine.publish(name, pads.dataset([str(path) for path in origin.files.paths]))
    elif origin.files is not None:
        opened = source(data)
        try:
            relation = engine.publish(name, opened.engine.run(opened.relation))
        finally:
            opened.engine.close()
    else:
        relation = engine.publish(name, origin.frame)
    select = engine.canonical(relation, {})
    return select, engine.schema(select), origin.description


def _is_flat(origin: Origin) -> bool:
    """Whether these are Parquet files whose folders say nothing."""
    return origin.files is not None and origin.files.format == "parquet" and not origin.files.partitions


@contextlib.contextmanager
def _closed_on_failure(engine: Engine) -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.close()
        raise


def _opened(engine: Engine, origin: Origin) -> Source:
    description, name = origin.description, origin.name
    names = _names(engine, origin) if origin.in_database else None
    relation, own = _seen(engine, origin, names)
    if names is not None:
        name, description = names[2], f"the table {names[2]} of {description}"
    check_names(own.names, description)
    select = engine.canonical(relation, _kinds(origin.types, own))
    schema = engine.schema(select)
    rows = without(select, origin.missing, schema)
    return Source(engine, rows, schema, name, description, origin, raw=relation, own=own)


def _seen(engine: Engine, origin: Origin, names: Names | None) -> tuple[exp.Expression, Schema]:
    """The rows as the engine reads them, and their columns."""
    with contextlib.suppress(EngineError):
        relation = _relation(engine, origin, names)
        return relation, engine.schema(relation)
    of = "" if names is None else f"the table {origin.table} of "
    raise SourceError(
        f"The columns of {of}{origin.description} could not be read.",
        fix=f"check that {engine.name} can read it without reaching for other files or extensions.",
    )


def _relation(engine: Engine, origin: Origin, names: Names | None) -> exp.Expression:
    """The rows as the engine reads them."""
    if names is not None:
        assert isinstance(engine, DuckDbEngine | PostgreSqlEngine | MariaDbEngine | UntestedEngine)  # noqa: S101  # where databases are
        return engine.named(names)
    if isinstance(engine, SparkEngine) and origin.frame is None:
        if origin.spark is not None:
            return engine.attached(origin.spark)
        if origin.table is not None:
            return engine.table(origin.table)
        return local(engine, origin.files) if origin.files is not None else remote(engine, origin.remote)
    if origin.files is not None:
        return origin.files.relation()
    return engine.publish("rows", origin.frame)


def _kinds(types: Mapping[str, Kind | str], own: Schema) -> dict[str, Kind]:
    usable = [str(one) for one in Kind if one is not Kind.OTHER]
    for name, kind in types.items():
        if name not in own:
            raise UnknownColumnError(name, own.names)
        own.usable(name)
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
    columns: list[exp.Expression] = []
    for name in schema.names:
        column = exp.Column(this=exp.to_identifier(name, quoted=True))
        kept: exp.Expression = column
        if codes.get(name):
            kept = exp.Case(
                ifs=[exp.If(this=exp.In(this=column, expressions=codes[name]), true=exp.null())], default=column
            )
        columns.append(exp.Alias(this=kept, alias=exp.to_identifier(name, quoted=True)))
    return exp.select(*columns).from_(select.subquery(exp.to_identifier("t", quoted=True)))


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
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(CANONICAL[column.kind]))


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


def _names(engine: Engine, origin: Origin) -> Names:
    """Catalog, schema and name of the one table with the name that was given, exactly as it is written."""
    table = origin.table
    catalog = None if origin.database is None else f"{ALIAS} {origin.database}"
    tables = [names for names in _tables(engine) if catalog in {None, names[0]}]
    matching = [names for names in tables if table in {names[2], ".".join(names[1:]), ".".join(names)}]
    if len(matching) != 1:
        choices = ", ".join(sorted(".".join(names[1:]) for names in tables)) or "none"
        what = f"{len(matching)} tables are called {table!r:.80}" if matching else f"There is no table {table!r:.80}"
        if table is None:
            what = "A database holds many tables, and none was named"
        raise SourceError(f"{what}.", fix=f"pass table= with one of these names: {choices:.500}.")
    return matching[0]


def _tables(engine: Engine) -> list[Names]:
    """Catalog, schema and name of every table and view."""
    columns = [exp.column(name, quoted=True) for name in ("table_catalog", "table_schema", "table_name")]
    listed = engine.run(exp.select(*columns).from_(exp.table_("tables", db="information_schema", quoted=True)))
    tables = [(row["table_catalog"], row["table_schema"], row["table_name"]) for row in listed.to_pylist()]
    within = engine.database if isinstance(engine, MariaDbEngine) else None
    return [names for names in tables if names[1] not in _SYSTEM and within in {None, names[1]}]


_SYSTEM = {"information_schema", "pg_catalog", "mysql", "performance_schema", "sys"}
