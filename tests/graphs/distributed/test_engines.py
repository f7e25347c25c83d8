"""PostgreSQL and Spark give the integers of graphs in memory, from the same statements."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pymysql
import pytest
from tests.graphs.distributed.worlds import (
    ODD_FLOATS,
    ODD_NUMBERS,
    ODD_TEXTS,
    both,
    csv,
    differences,
    lines,
    parquet,
    same,
    table,
)

from defocus import Budget, edge
from defocus.engines.engine import integers
from defocus.graphs import Triangles, open_graph
from defocus.graphs.distributed import edges

pytestmark = pytest.mark.slow

WHOLE = list(range(8))
TEXTS = ["ada", "1", "01", "É", "bob"]


@pytest.fixture
def stored(server: str) -> Iterator[Any]:
    """Store pairs as a table of a server, with columns of this type; gives the name of the table."""
    with psycopg.connect(server, autocommit=True) as connection:
        made: list[str] = []

        def store(pairs: list[tuple[Any, Any]], kind: str) -> str:
            name = f"edges_{random.getrandbits(64)}"
            connection.execute(f"CREATE TABLE {name} (u {kind}, v {kind})")
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s)", pairs)  # noqa: S608  # a name made here
            made.append(name)
            return name

        yield store
        for name in made:
            connection.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    "world",
    [
        (WHOLE, ODD_NUMBERS, "bigint", pa.int64(), 8),
        ([float(n) for n in WHOLE], ODD_FLOATS, "double precision", pa.float64(), [3, 0, 1, 7, 100]),
        (TEXTS, ODD_TEXTS, "text", pa.string(), [*TEXTS[:4], "x", 5]),
    ],
    ids=["numbers", "floats", "texts"],
)
def test_postgresql_counts_as_memory_does(
    world: tuple[list[Any], list[Any], str, Any, Any], server: str, stored: Any, tmp_path: Path
) -> None:
    names, odd, kind, arrow, nodes = world
    pairs = lines(random.Random(kind), names, odd)
    at = {"elsewhere": server, "engine": "postgresql", "table": stored(pairs, kind)}
    for directed in (None, True):
        with both(table(pairs, arrow), tmp_path, nodes=nodes, directed=directed, **at) as (here, there):
            assert differences(here, there) == []
            assert abs(there.edges().release(epsilon=100).value - there.edges().release(epsilon=100).value) < 5


def test_mariadb_counts_as_memory_does(mariadb: str, tmp_path: Path) -> None:
    pairs = lines(random.Random("mariadb"), TEXTS, ODD_TEXTS)
    socket = mariadb.partition("unix_socket=")[2]
    with (
        pymysql.connect(unix_socket=socket, user="root", database="hospital", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE OR REPLACE TABLE edges (u LONGTEXT, v LONGTEXT) CHARACTER SET utf8mb4")
        cursor.executemany("INSERT INTO edges VALUES (%s, %s)", pairs)
    at = {"elsewhere": mariadb, "engine": "mariadb", "table": "edges"}
    for directed in (None, True):
        with both(table(pairs, pa.string()), tmp_path, nodes=[*TEXTS[:4], "x", 5], directed=directed, **at) as (
            here,
            there,
        ):
            assert differences(here, there) == []


def test_postgresql_lists_nodes_that_are_public(server: str, stored: Any, tmp_path: Path) -> None:
    pairs = lines(random.Random(1), TEXTS, ODD_TEXTS)
    at = {"elsewhere": server, "engine": "postgresql", "table": stored(pairs, "text")}
    with both(table(pairs, pa.string()), tmp_path, nodes="as listed", **at) as (here, there):
        assert differences(here, there) == []


def test_spark_counts_as_memory_does(spark: Any, tmp_path: Path) -> None:
    """The statements that join edges with edges; all of them together take Spark long, and benchmarks compare them."""
    data = parquet(table(lines(random.Random(1), WHOLE, ODD_NUMBERS), pa.int64()), tmp_path)
    with both(data, tmp_path, engine=spark, nodes=8) as (here, there):
        assert there.public.engine == "Spark"
        triangles, level = Triangles().local(here.data.graph)
        assert rows(there.data.graph, edges.triangles) == [(triangles,)]
        assert rows(there.data.graph, lambda ends: edges.shared(ends, 0)) == [(level,)]


def rows(graph: Any, ask: Callable[[Any], Any]) -> list[tuple[int, ...]]:
    """What the engine of a graph answers."""
    answer = graph.engine.run(ask(graph.ends))
    return sorted(zip(*(integers(column).tolist() for column in answer.columns), strict=True))


def test_spark_reads_names_as_memory_does(spark: Any, tmp_path: Path) -> None:
    data = csv(lines(random.Random(2), [*TEXTS, 12], ODD_TEXTS), tmp_path)
    with both(data, tmp_path, engine=spark, nodes=["ada", 1, "01", "É", 12, "9" * 30]) as (here, there):
        assert same(here.data.graph.degrees, there.data.graph.degrees)
        assert here.data.graph.edges > 2


def test_a_data_frame_of_spark_needs_no_engine(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(0, 1), (1, 2), (2, 0), (2, 3)], "source long, target long")
    said: dict[str, Any] = {
        "unit": edge(),
        "budget": Budget(500),
        "nodes": 4,
        "name": "g",
        "ledger": tmp_path / "g.ledger",
    }
    with open_graph(frame, **said) as graph:
        assert graph.triangles().release(epsilon=100, method="laplace").value == pytest.approx(1, abs=1)
