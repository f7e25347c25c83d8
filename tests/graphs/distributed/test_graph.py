"""Graphs in an engine give the integers of graphs in memory, to the last digit, whatever the rows hold."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
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
from tests.mechanisms import test_instance_based as laws_of
from tests.mechanisms.small_graphs import moves, neighbours, value

import defocus as dp
from defocus.graphs import build
from defocus.graphs.certificates import all_graphs
from defocus.graphs.distributed.graph import HUBS, EngineGraph, level, nth_degree
from defocus.graphs.kernels.rows import leading_pairs
from defocus.graphs.statistics import Degrees, Histogram, Stars, Triangles
from defocus.mechanisms import Ladder, NoisyLocalSensitivity, Ramp

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


@pytest.mark.slow
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
                sensitivity = statistic.sensitivity(one.public)
                assert abs(moved).sum() <= sensitivity.l1
                assert (moved * moved).sum() <= sensitivity.l2_squared
            levels = [Triangles().local(each.data.graph)[1] for each in (one, other)]
            assert abs(levels[0] - levels[1]) <= 1


@pytest.mark.slow
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


SIZES = [3, 4, 5, pytest.param(6, marks=pytest.mark.slow)]
COMPARED = [1, 2, 3, HUBS]
"""How many nodes are compared: the fewer, the more the K-th largest degree matters."""


@cache
def joined(nodes: int) -> np.ndarray:
    """The adjacency matrices of all labelled graphs."""
    pairs = [(i, j) for i in range(nodes) for j in range(i)]
    number = np.arange(1 << len(pairs))
    made = np.zeros((len(number), nodes, nodes), np.int64)
    for bit, (i, j) in enumerate(reversed(pairs)):
        made[:, i, j] = made[:, j, i] = number >> bit & 1
    return made


def of_graph(rows: np.ndarray, hubs: int, first: int = 64) -> tuple[int, int, int]:
    """The level, by comparing all pairs by the definition; the K-th largest degree; and how far triangles can move."""
    nodes, sizes = len(rows), rows.sum(0)
    common = rows @ rows
    np.fill_diagonal(common, 0)

    def shared(above: int) -> int:
        large = sizes > above
        return int(common[large][:, large].max(initial=0))

    degrees, times = np.unique(sizes, return_counts=True)
    kth = sorted(sizes.tolist(), reverse=True)[hubs - 1] if hubs <= nodes else 0
    return level(degrees, times, nodes, shared, hubs=hubs, first=first), kth, int(common.max())


@cache
def levels(nodes: int, hubs: int) -> np.ndarray:
    return np.array([of_graph(rows, hubs) for rows in joined(nodes)])


def followed(nodes: int, hubs: int) -> tuple[np.ndarray, np.ndarray]:
    """Triangles and levels of all graphs, in one numbering of them."""
    rows = joined(nodes)
    return np.einsum("gij,gjk,gki->g", rows, rows, rows) // 6, levels(nodes, hubs)[:, 0]


@pytest.mark.parametrize("hubs", COMPARED)
@pytest.mark.parametrize("nodes", SIZES)
def test_it_is_the_larger_of_what_two_nodes_share_and_a_degree(nodes: int, hubs: int) -> None:
    found, kth, exact = levels(nodes, hubs).T
    assert np.array_equal(found, np.maximum(exact, np.minimum(kth, nodes - 2)))
    assert (found >= exact).all()
    assert (found <= nodes - 2).all()
    assert np.array_equal(np.sort(exact), np.sort(moves(nodes, "triangles")))
    if hubs > nodes:
        assert np.array_equal(found, exact)


@pytest.mark.parametrize("hubs", COMPARED)
@pytest.mark.parametrize("nodes", SIZES)
def test_one_edge_moves_it_by_at_most_one_and_triangles_by_no_more_than_it(nodes: int, hubs: int) -> None:
    counts, found = followed(nodes, hubs)
    pairs = neighbours(nodes, counts, found)
    assert max(abs(one - other) for _, one, _, other in pairs) == 1
    assert all(abs(a - b) <= min(one, other) for a, one, b, other in pairs)


@pytest.mark.parametrize("hubs", [1, 2, 3])
@pytest.mark.parametrize("nodes", SIZES)
def test_the_ramp_keeps_its_promise(nodes: int, hubs: int) -> None:
    for epsilon in (Fraction(1, 10), Fraction(2)):
        pairs = neighbours(nodes, *followed(nodes, hubs))
        assert laws_of.worst_ratio(Ramp(epsilon=epsilon, typical=1), pairs, 10**4) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("hubs", [1, 2, 3])
@pytest.mark.parametrize("nodes", SIZES)
def test_the_ladder_keeps_its_promise(nodes: int, hubs: int) -> None:
    m = Ladder(epsilon=1, cap=nodes - 2, typical=1)
    counts, found = followed(nodes, hubs)
    laws = {each: laws_of.ladder_law(m, each, 80) for each in set(found.tolist())}
    log = laws_of.CTX.log
    worst = max(
        max(abs(log(laws[one][x - a] / laws[other][x - b])) for x in range(-40, 40))
        for a, one, b, other in neighbours(nodes, counts, found)
    )
    assert 0.5 < worst <= 1 + 1e-12


@pytest.mark.parametrize("hubs", [1, 2, 3])
@pytest.mark.parametrize("nodes", [4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_noise_for_a_noisy_bound_keeps_its_promise(nodes: int, hubs: int) -> None:
    epsilon, delta = 2.0, 0.05
    m = NoisyLocalSensitivity(epsilon=epsilon, delta=delta, cap=nodes - 2, typical=1)
    counts, found = followed(nodes, hubs)
    bounds = {each: laws_of.bound_law(m, each) for each in set(found.tolist())}
    second = epsilon * (1 - float(m.share or 0))
    noise = {b: laws_of.laplace(b / second) for b in range(1, m.cap + 1)}
    tables = {b: np.array([float(noise[b](x)) for x in range(-150, 151)]) for b in noise}

    def lost(shift: int, one: int, other: int) -> float:
        parts = (
            float(bounds[one][b]) * table - math.exp(epsilon) * float(bounds[other][b]) * np.roll(table, shift)
            for b, table in tables.items()
        )
        return float(sum(np.maximum(part, 0)[10:-10].sum() for part in parts))

    assert max(lost(b - a, one, two) for a, one, b, two in neighbours(nodes, counts, found)) <= delta


@pytest.mark.parametrize("hubs", [2, 4, HUBS])
def test_it_does_not_depend_on_which_nodes_are_compared_first(hubs: int) -> None:
    for first in (1, 2, 3):
        again = np.array([of_graph(rows, hubs, first) for rows in joined(5)])
        assert np.array_equal(again, levels(5, hubs))


def test_a_level_that_ignores_small_nodes_would_be_caught() -> None:
    """Without the K-th largest degree, what is found among two nodes is no bound, and jumps."""
    wrong = np.where(levels(5, 3)[:, 1] < 3, levels(5, 3)[:, 2], 0)
    counts, _ = followed(5, 3)
    pairs = neighbours(5, counts, wrong)
    assert max(abs(one - other) for _, one, _, other in pairs) > 1
    assert any(abs(a - b) > min(one, other) for a, one, b, other in pairs)


def test_few_nodes_are_compared_where_hubs_share_much() -> None:
    """Two hubs that share 500 neighbours leave nothing to compare among nodes of degree 100."""
    asked: list[int] = []

    def shared(above: int) -> int:
        asked.append(above)
        return 500

    degrees, times = np.array([2, 100, 600, 900]), np.array([10_000, 5000, 70, 2])
    assert level(degrees, times, 15_072, shared) == 500
    assert asked == [600, 500], "the second time only nodes of a degree above what the first two share"
    asked.clear()
    assert level(degrees, np.array([20_000, 10, 1, 1]), 20_012, shared) == 500
    assert asked == [2]


@pytest.mark.parametrize(("n", "kth"), [(1, 9), (2, 4), (3, 4), (4, 1), (5, 0)])
def test_degrees_are_counted_from_the_largest(n: int, kth: int) -> None:
    assert nth_degree(np.array([1, 4, 9]), np.array([1, 2, 1]), n) == kth


def test_the_numbering_of_graphs_is_that_of_the_other_certificates() -> None:
    counts, _ = followed(5, HUBS)
    assert sorted(counts.tolist()) == sorted(value(5, "triangles").tolist())
