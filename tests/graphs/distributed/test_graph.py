"""Graphs in an engine give the integers of graphs in memory, to the last digit, whatever the rows hold."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.graphs.distributed.worlds import (
    ODD_FLOATS,
    ODD_NUMBERS,
    ODD_TEXTS,
    both,
    csv,
    days,
    differences,
    lines,
    parquet,
    table,
    unlike,
)

import defocus as dp
from defocus.graphs import build
from defocus.graphs.certificates import all_graphs
from defocus.graphs.distributed.graph import EngineGraph
from defocus.graphs.kernels.stars import leading_pairs
from defocus.graphs.statistics import Degrees, Histogram, Stars, Triangles

WHOLE = list(range(8))
TEXTS = ["ada", "1", "01", "É", "bob", "-1", "x", "' OR 1=1 --"]


Made = Callable[[random.Random, Path], tuple[Any, Any]]
WAYS: dict[str, Made] = {
    "numbers": lambda draw, _: (table(lines(draw, WHOLE, ODD_NUMBERS), pa.int64()), 8),
    "named numbers": lambda draw, _: (
        table(lines(draw, [-5, 3, 2**40, 7], ODD_NUMBERS), pa.int64()),
        [7, 2**40, -5, 3, "x"],
    ),
    "small numbers": lambda draw, home: (parquet(table(lines(draw, WHOLE, [None, 100]), pa.uint8()), home), 8),
    "floats": lambda draw, home: (
        parquet(table(lines(draw, [float(n) for n in WHOLE], ODD_FLOATS), pa.float64()), home),
        8,
    ),
    "named floats": lambda draw, _: (table(lines(draw, [0.0, 3.0, -7.0], ODD_FLOATS), pa.float64()), [3, 0, -7, 11]),
    "texts": lambda draw, home: (parquet(table(lines(draw, TEXTS, ODD_TEXTS), pa.string()), home), [*TEXTS[:6], 5]),
    "days": lambda draw, _: (
        table(lines(draw, days(WHOLE), days([None, -9, 20, 2_932_896])), pa.date32()),
        days(WHOLE[:6]),
    ),
    "csv of numbers": lambda draw, home: (csv(lines(draw, WHOLE, ODD_TEXTS), home), 8),
    "csv of names": lambda draw, home: (
        csv(lines(draw, [*TEXTS, 12], ODD_TEXTS), home),
        ["ada", 1, "01", "É", "-1", 12, "9" * 30, ""],
    ),
    "csv as listed": lambda draw, home: (csv(lines(draw, [*TEXTS, 12], ODD_TEXTS), home), "as listed"),
    "numbers as listed": lambda draw, _: (table(lines(draw, WHOLE, ODD_NUMBERS), pa.int64()), "as listed"),
}
"""Edges in every way in which engines read them, and the public nodes."""


@pytest.mark.parametrize("kind", WAYS)
def test_what_is_counted_is_the_same_as_in_memory(kind: str, tmp_path: Path) -> None:
    data, nodes = WAYS[kind](random.Random(kind), tmp_path)
    with both(data, tmp_path, nodes=nodes) as (here, there):
        assert here.data.graph.edges > 2, "or the test shows nothing"
        assert differences(here, there) == []


def test_all_statistics_and_levels_are_the_same_as_in_memory(tmp_path: Path) -> None:
    data, nodes = WAYS["numbers"](random.Random(7), tmp_path)
    with both(data, tmp_path, nodes=nodes) as (here, there):
        assert unlike(here, there) == []


@pytest.mark.parametrize("kind", ["numbers", "csv of names"])
def test_arcs_are_the_same_as_in_memory(kind: str, tmp_path: Path) -> None:
    data, nodes = WAYS[kind](random.Random(kind), tmp_path)
    with both(data, tmp_path, nodes=nodes, directed=True) as (here, there):
        assert differences(here, there) == []


@pytest.mark.parametrize(
    "ends",
    [
        [],
        [(0, 0)],
        [(0, 1)],
        [(0, n) for n in range(1, 9)],
        [(a, b) for a in range(9) for b in range(a)],
        [(a, b) for a in range(2) for b in range(2, 9)],
        [(a, (a + 1) % 9) for a in range(9)],
    ],
    ids=["empty", "loop", "edge", "star", "complete", "two hubs", "ring"],
)
def test_extreme_graphs_are_the_same_as_in_memory(ends: list[tuple[int, int]], tmp_path: Path) -> None:
    with both(table(ends, pa.int64()), tmp_path, nodes=9) as (here, there):
        assert differences(here, there) == []


def test_neighbouring_inputs_move_statistics_by_no_more_than_they_say(tmp_path: Path) -> None:
    draw = random.Random(3)
    for odd in (2**63 - 1, 5):
        pairs = lines(draw, WHOLE, ODD_NUMBERS)
        more = [*pairs, (odd, 2)]
        with (
            both(table(pairs, pa.int64()), tmp_path, nodes=8) as (_, one),
            both(table(more, pa.int64()), tmp_path, nodes=8) as (_, other),
        ):
            assert one.public == other.public
            for statistic in (Degrees(), Histogram(), Stars(2), Triangles()):
                moved = statistic.exact(other.data.graph) - statistic.exact(one.data.graph)
                reach = statistic.reach(one.public)
                assert abs(moved).sum() <= reach.l1
                assert (moved * moved).sum() <= reach.l2_squared
            levels = [Triangles().local(each.data.graph)[1] for each in (one, other)]
            assert abs(levels[0] - levels[1]) <= 1


def test_small_graphs_are_the_same_as_in_memory(tmp_path: Path) -> None:
    with both(table([(0, 1)], pa.int64()), tmp_path, nodes=4) as (_, there):
        asked: EngineGraph = there.data.graph
        for graph in all_graphs(4)[1::4]:
            left, right = graph.pairs()
            known = asked.engine.publish("edges", pa.table({"a": left.astype("int64"), "b": right.astype("int64")}))
            each = EngineGraph(4, asked.engine, exp.select("*").from_(known))
            assert each.triangles() == int(Triangles().exact(graph)[0])
            assert each.leading_pairs() == leading_pairs(graph)
            assert each.local() == Triangles().local(graph)[1]
            asked.engine.withdraw(known)


def test_a_larger_graph_with_hubs_is_the_same_as_in_memory(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    weights = 1 / np.arange(1, 401)
    left, right = (draw.choice(400, 5000, p=weights / weights.sum()) for _ in range(2))
    made = pa.table({"u": left, "v": right})
    with both(parquet(made, tmp_path), tmp_path, nodes=400) as (here, there):
        assert differences(here, there) == []
        assert Triangles().local(there.data.graph)[1] == Triangles().local(build(400, left, right))[1]


def test_nothing_is_printed_of_it(tmp_path: Path) -> None:
    with both(table([(0, 1)], pa.int64()), tmp_path, nodes=2) as (_, there):
        assert repr(there.data.graph) == "<a private undirected graph>"
    with both(table([(0, 1)], pa.int64()), tmp_path, nodes=2, directed=True) as (_, there):
        assert repr(there.data.directed) == "<a private directed graph>"


def test_what_noise_follows_is_counted_of_the_edges_that_were_counted(tmp_path: Path) -> None:
    """Rows that are taken away between two statements of one question would leave too little noise for the first."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE lines AS SELECT a AS source, b AS target FROM range(9) x(a), range(9) y(b)")
    unit, budget = dp.edge(), dp.Budget(1)
    with dp.open_graph(
        connection, table="lines", unit=unit, budget=budget, nodes=9, ledger=tmp_path / "l", name="lines"
    ) as network:
        with network.data.steady() as data:
            counted = data.graph.triangles()
            connection.execute("DELETE FROM lines")
            assert (counted, data.graph.local(), data.graph.edges) == (84, 7, 36)
            assert data.graph.leading_pairs() == [(8, 8)] or data.graph.degrees.tolist() == [8] * 9
        assert network.data.graph.edges == 0
        left = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'kept%'").fetchone()
        assert left == (0,)
