"""What a table can be opened from, told apart: files, databases, servers, frames, and what Spark reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads

from defocus.engines import mariadb, postgresql
from defocus.engines.files import Files, find
from defocus.engines.frames import from_arrow, from_dataset, from_pandas, from_polars, library
from defocus.engines.schema import Kind, Value
from defocus.engines.spark.sessions import is_frame, is_master, is_session
from defocus.engines.untested import ALL as UNTESTED
from defocus.engines.untested import PREFIX
from defocus.errors import SourceError

__all__ = ["Origin", "is_address", "origin_of"]

_DATABASES = (".duckdb", ".ddb", ".db")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What was passed, in the one form it has: a connection, server or database with a table, files, or a frame."""

    name: str
    description: str
    connection: Any = None
    database: Path | None = None
    address: str | None = field(default=None, repr=False)
    """Where a server is; it may hold a password."""
    table: str | None = None
    files: Files | None = None
    remote: tuple[str, ...] = ()
    """Paths that only Spark can reach."""
    frame: Any = None
    spark: Any = None
    """A Spark data frame."""
    engine: Any = None
    """The Spark session that shall compute, or what it is called."""
    untested: str | None = None
    """The database that the connection reaches, if nothing was tested on it."""
    types: Mapping[str, Kind | str]
    missing: Mapping[str, Sequence[Value]]

    @property
    def on_spark(self) -> bool:
        """Whether only Spark can compute on it."""
        return self.spark is not None or self.engine is not None

    @property
    def in_database(self) -> bool:
        """Whether it is a table that DuckDB, PostgreSQL or MariaDB knows by a name."""
        return self.connection is not None or self.database is not None or self.address is not None

    def stored(self) -> dict[str, Any]:
        """The Arrow types of columns where a frame or a Parquet file says them."""
        if self.frame is not None:
            return {field.name: field.type for field in self.frame.schema}
        return {} if self.files is None else self.files.stored()


def is_address(data: object) -> bool:
    """Whether this names a database of a server.

    >>> is_address("postgresql://reader@host/hospital"), is_address("mysql://reader@host/hospital"), is_address("a.csv")
    (True, True, False)
    """
    return postgresql.is_address(data) or mariadb.is_address(data)


def origin_of(  # noqa: C901, PLR0911  # one line for each thing that a table can be opened from
    data: Any,
    *,
    table: str | None = None,
    types: Mapping[str, Kind | str] | None = None,
    missing: Mapping[str, Sequence[Value]] | None = None,
    engine: Any = None,
) -> Origin:
    """What was passed, recognised by its type and by how a text is written, and not opened yet."""
    if isinstance(engine, str) and engine.removeprefix(PREFIX) in UNTESTED:
        return _untested(data, table, engine, types or {}, missing or {})
    _check_engine(engine)
    make = partial(Origin, types=types or {}, missing=missing or {}, engine=engine)
    if table is not None and not isinstance(table, str):
        raise SourceError(f"table= is {type(table).__name__}, not a name.", fix="pass the name of the table as text.")
    if isinstance(data, duckdb.DuckDBPyConnection):
        return make(name=table or "", description="a DuckDB connection", connection=data, table=table)
    if postgresql.is_address(data):
        return make(name=table or "", description="a PostgreSQL database", address=data, table=table)
    if mariadb.is_address(data):
        return make(name=table or "", description="a MariaDB database", address=data, table=table)
    if _is_database(data, table):
        path = _existing(data)
        return make(name=table or "", description=f"the DuckDB file {path.name}", database=path, table=table)
    if is_session(data) or (table is not None and is_master(data)):
        return replace(make(**_table_of_spark(table)), engine=data)
    if table is not None:
        raise SourceError(
            f"table= belongs to a database, but what was passed is {type(data).__name__}.",
            fix="leave table= out, or pass a DuckDB file or connection, the address of a server, or a Spark session.",
        )
    if is_frame(data):
        return make(name="data", description="a Spark data frame", spark=data)
    if engine is not None and _is_remote(data):
        paths = (data,) if isinstance(data, str) else tuple(data)
        return make(name=_last(paths[0]), description=_last(paths[0]), remote=paths)
    if isinstance(data, str | Path) or _is_paths(data):
        files = find(data)
        return make(name=files.name, description=files.description, files=files)
    frame, description = _frame(data)
    return make(name="data", description=description, frame=frame)


def _untested(
    data: Any, table: str | None, engine: str, types: Mapping[str, Kind | str], missing: Mapping[str, Sequence[Value]]
) -> Origin:
    """A connection to a database on which nothing was tested, if that is what was asked for."""
    database = engine.removeprefix(PREFIX)
    if database == engine:
        raise SourceError(
            f"Defocus was never run on {UNTESTED[database].name}, so nothing shows that its integers are exact there.",
            fix=f'pass engine="{PREFIX}{database}" for trials all the same; or export the table to Parquet.',
        )
    if not hasattr(data, "cursor"):
        raise SourceError(
            f"{UNTESTED[database].name} is reached by a connection of yours, but what was passed is"
            f" {type(data).__name__}.",
            fix="pass a connection as PEP 249 describes it, which has cursor(), with table=.",
        )
    called = f"{UNTESTED[database].name}, untested"
    return Origin(
        name=table or "",
        description=called,
        connection=data,
        untested=database,
        table=table,
        types=types,
        missing=missing,
    )


def _is_database(data: object, table: str | None) -> bool:
    if not isinstance(data, str | Path):
        return False
    return Path(data).suffix.lower() in _DATABASES or (table is not None and Path(data).is_file())


def _existing(data: str | Path) -> Path:
    path = Path(data).expanduser().absolute()
    if not path.is_file():
        raise SourceError(f"There is no file {str(data)!r:.200}.", fix=f"check the path, seen from {Path.cwd()}.")
    return path


def _check_engine(engine: object) -> None:
    if engine is not None and not is_session(engine) and not is_master(engine):
        raise SourceError(
            f"engine= is {engine!r:.60}, which is no Spark session and no place where Spark runs.",
            fix='pass a Spark session, or "spark://host:7077", "local[4]" or "spark"; without it, the data decides.',
        )


def _table_of_spark(table: str | None) -> dict[str, Any]:
    """A table of a catalog, by the name that Spark has for it."""
    if table is None:
        raise SourceError("A Spark session knows many tables, and none was named.", fix='pass table="db.visits".')
    name = table.rpartition(".")[2].strip("`") or table
    return {"name": name, "description": f"the table {name} of Spark", "table": table}


def _is_remote(data: object) -> bool:
    """Whether these are paths that a file system of Spark's understands."""
    texts = [data] if isinstance(data, str) else data
    return isinstance(texts, list | tuple) and len(texts) > 0 and all(isinstance(x, str) and "://" in x for x in texts)


def _last(path: str) -> str:
    """What a path is called, without what it may hold of keys and passwords."""
    parts = [part for part in path.partition("://")[2].split("/")[1:] if part and not set(part) & set("*?[{=")]
    return parts[-1].split(".")[0] if parts else "data"


def _is_paths(data: object) -> bool:
    return isinstance(data, Sequence) and len(data) > 0 and all(isinstance(one, str | Path) for one in data)


def _frame(data: Any) -> tuple[Any, str]:
    """Something that DuckDB can read as often as it likes, in Arrow's terms, and what it is."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return from_arrow(data), "an Arrow table"
    if isinstance(data, pads.Dataset):
        return from_dataset(data), "an Arrow dataset"
    if isinstance(data, pa.RecordBatchReader | pads.Scanner):
        raise SourceError("A reader can be read only once, but each question reads.", fix="pass .read_all() of it.")
    if isinstance(data, duckdb.DuckDBPyRelation):
        raise SourceError(
            "A DuckDB relation is computed only when it is read, with types that may be read off rows.",
            fix="pass .to_arrow_table() of it, if its types are declared; or the connection with table=,"
            " or the path of the file it reads, with types=.",
        )
    if library(data) == "pandas":
        return from_pandas(data), "a pandas frame"
    if library(data) == "polars":
        return from_polars(data), "a polars frame"
    raise SourceError(
        f"{type(data).__name__} is not a table that can be opened.",
        fix="pass a path, a list of paths, a DuckDB connection, or a pandas, polars, Arrow or Spark table.",
    )
