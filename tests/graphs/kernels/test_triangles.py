"""Triangles and common neighbours, beside plain matrix products."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs
from defocus.graphs.kernels import triangles
from defocus.graphs.kernels.ranking import ranked
from defocus.graphs.kernels.triangles import most_common_neighbours, triangle_count


def by_matrices(graph: Graph) -> tuple[int, int]:
    joined = np.zeros((graph.nodes, graph.nodes), np.int64)
    left, right = graph.pairs()
    joined[left, right] = joined[right, left] = 1
    paths = joined @ joined
    closed = int((paths * joined).sum()) // 6
    np.fill_diagonal(paths, 0)
    return closed, int(paths.max(initial=0))


def both(graph: Graph) -> tuple[int, int]:
    by_rank = ranked(graph)
    return triangle_count(by_rank), most_common_neighbours(by_rank)


@pytest.mark.parametrize("nodes", [0, 1, 2, 3, 4, 5])
def test_on_all_small_graphs(nodes: int) -> None:
    for graph in all_graphs(nodes):
        assert both(graph) == by_matrices(graph)


@given(st.integers(2, 40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=400))
def test_on_random_graphs(nodes: int, edges: list[tuple[int, int]]) -> None:
    graph = build(nodes, [u for u, _ in edges], [v for _, v in edges])
    assert both(graph) == by_matrices(graph)


@pytest.mark.parametrize(("hubs", "leaves", "shared"), [(2, 300, 300), (3, 70_000, 70_000)])
def test_hubs_that_share_more_than_small_counters_hold(hubs: int, leaves: int, shared: int) -> None:
    left = np.repeat(np.arange(hubs), leaves)
    right = np.tile(np.arange(hubs, hubs + leaves), hubs)
    assert both(build(hubs + leaves, left, right)) == (0, shared)


def test_pairs_that_are_not_joined_count_too() -> None:
    square = build(4, [0, 1, 2, 3], [1, 2, 3, 0])
    assert both(square) == (0, 2)


def test_threads_agree_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    graph = build(600, draw.integers(0, 600, 60_000), draw.integers(0, 600, 60_000))
    expected = by_matrices(graph)
    for threads in (1, 2, 3):
        monkeypatch.setattr(triangles, "cores", lambda threads=threads: threads)
        assert both(graph) == expected
