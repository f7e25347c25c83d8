"""Which engine computes on a table: decided by what it was opened from, in one place."""

from collections.abc import Sequence

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.engine import Engine
from defocus.engines.origins import Origin
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.spark import SparkEngine
from defocus.engines.spark_sessions import is_session, server_of, started
from defocus.errors import SourceError

__all__ = ["ALIAS", "engine_for"]

ALIAS = "file"
"""How the names begin by which an own connection calls database files."""


def engine_for(origins: Sequence[Origin], *, memory: str | None = None, threads: int | None = None) -> Engine:
    """One engine that reaches everything, and nothing else unless the user's own connection does."""
    if any(one.on_spark for one in origins):
        return _spark(origins, memory, threads)
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
    attached = {f"{ALIAS} {path}": path for path in databases}
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


def _spark(origins: Sequence[Origin], memory: str | None, threads: int | None) -> SparkEngine:
    if any(one.connection is not None or one.database is not None or one.address is not None for one in origins):
        raise SourceError(
            "These tables live in different places, and rows do not travel between them.",
            fix="export the table of the database to Parquet, and let Spark read that.",
        )
    if memory is not None or threads is not None:
        raise SourceError(
            "memory= and threads= are for an engine in this process, but Spark is set where it is started.",
            fix="leave them out; set spark.executor.memory, spark.executor.cores and spark.sql.shuffle.partitions.",
        )
    frames = [one.spark.sparkSession for one in origins if one.spark is not None]
    given = [*frames, *(one.engine for one in origins if is_session(one.engine))]
    named = {one.engine for one in origins if isinstance(one.engine, str)}
    if len({server_of(one) for one in given}) > 1 or len(named) > 1:
        raise SourceError("These tables are on different Sparks.", fix="open both with the same session.")
    session, own = (given[0], False) if given else started(*named)
    return SparkEngine(session, own=own)
