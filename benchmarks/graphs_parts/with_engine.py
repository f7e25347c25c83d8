"""One graph from a Parquet file, counted in memory, by DuckDB with two gigabytes, or by Spark: times and integers.

Every number is asked for by itself, as a question would: an engine begins at the file each time, while memory reads the
file once (``read``). Processor times are those of all threads and of Spark's Java, and hardly depend on what else the
machine does.
"""

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "tables_parts"))

import numpy as np
from data import parquet
from protocol import busy_seconds

import defocus as dp
from defocus.graphs.kernels.rows import leading_pairs
from defocus.graphs.statistics import Triangles

ENGINES: dict[str, dict[str, Any]] = {
    "memory": {},
    "duckdb": {"engine": "duckdb", "memory": "2GB", "threads": 2},
}


def spark() -> Any:
    """A session on two cores, with as many partitions as a graph of this size needs."""
    from defocus.engines.spark.sessions import find_java, pyspark

    find_java()
    builder = pyspark().SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
    for name, value in {
        "sql.shuffle.partitions": "4",
        "ui.enabled": "false",
        "ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(f"spark.{name}", value)
    return builder.getOrCreate()


def digest(*vectors: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(each, dtype="<i8").tobytes() for each in vectors)).hexdigest()


def asked(graph: Any, *, here: bool) -> dict[str, Callable[[], Any]]:
    """What is asked, by name."""
    triangles, level = (
        ((lambda: int(Triangles().exact(graph)[0])), (lambda: Triangles().local(graph)[1]))
        if here
        else (graph.triangles, graph.local)
    )
    return {
        "edges": lambda: graph.edges,
        "degree histogram": lambda: digest(*graph.degree_counts()),
        "degrees": lambda: digest(graph.degrees),
        "largest pairs": lambda: leading_pairs(graph) if here else graph.leading_pairs(),
        "triangles": triangles,
        "level": level,
    }


def main() -> None:
    nodes, place = parquet(Path(sys.argv[1]))
    chosen, rounds = sys.argv[2], int(sys.argv[3])
    options = {"engine": spark()} if chosen == "spark" else ENGINES[chosen]
    seconds: dict[str, list[float]] = {}
    spent: dict[str, list[float]] = {}
    found: dict[str, Any] = {}

    def timed(name: str, ask: Callable[[], Any]) -> Any:
        start, before = time.perf_counter(), busy_seconds()
        answer = ask()
        seconds.setdefault(name, []).append(time.perf_counter() - start)
        spent.setdefault(name, []).append(busy_seconds() - before)
        return answer

    with tempfile.TemporaryDirectory() as home:
        said: dict[str, Any] = {"unit": dp.edge(), "budget": dp.Budget(2), "nodes": nodes, "name": "graph"}
        for number in range(rounds):
            with dp.open_graph(place, ledger=f"{home}/{number}.ledger", **said, **options) as network:
                if chosen == "memory" and not number:
                    warm(home)
                graph = timed("read", lambda: network.data.graph)
                for name, ask in asked(graph, here=chosen == "memory").items():
                    found[name] = timed(name, ask)
    least = {
        kind: {name: min(each) for name, each in times.items()}
        for kind, times in (("seconds", seconds), ("processor", spent))
    }
    print(json.dumps({**least, "found": found}))


def warm(home: str) -> None:
    """Let everything be compiled that is compiled."""
    ring = np.arange(5)
    with dp.open_graph(
        (ring, np.roll(ring, 1)), unit=dp.edge(), budget=dp.Budget(1), nodes=5, ledger=f"{home}/ring.ledger"
    ) as network:
        for ask in asked(network.data.graph, here=True).values():
            ask()


main()
