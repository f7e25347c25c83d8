"""Triangles and common neighbours, beside plain matrix products."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs
from defocus.graphs.kernels import rows
from defocus.graphs.kernels.rows import leading_pairs, most_common_neighbours, ranked, triangle_count


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
        monkeypatch.setattr(rows, "cores", lambda threads=threads: threads)
        assert both(graph) == expected


def every_pair(graph: Graph) -> set[tuple[int, int]]:
    degrees = graph.degrees
    joined = {frozenset(map(int, pair)) for pair in zip(*graph.pairs(), strict=True)}
    pairs = set()
    for i in range(graph.nodes):
        for j in range(i):
            edge = frozenset({i, j}) in joined
            x, y = int(degrees[i]) - edge, int(degrees[j]) - edge
            pairs.add((max(x, y), min(x, y)))
    return pairs


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_every_pair_is_within_a_leading_one_and_every_leading_one_matters(nodes: int) -> None:
    for graph in all_graphs(nodes):
        pairs, leading = every_pair(graph), leading_pairs(graph)
        assert 1 <= len(leading) <= 3
        assert all(any(x <= a and y <= b for a, b in leading) for x, y in pairs)
        assert all(any(a <= x and b <= y for x, y in pairs) for a, b in leading)


@given(st.integers(2, 15), st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=90))
def test_the_same_on_random_graphs(nodes: int, edges: list[tuple[int, int]]) -> None:
    graph = build(nodes, [u for u, _ in edges], [v for _, v in edges])
    pairs, leading = every_pair(graph), leading_pairs(graph)
    for k in (2, 3, 4):
        assert max(comb(x, k - 1) + comb(y, k - 1) for x, y in pairs) == max(
            comb(x, k - 1) + comb(y, k - 1) for x, y in leading
        )


def test_large_regular_graphs_take_no_time() -> None:
    around = np.arange(200_000)
    assert leading_pairs(build(200_000, around, np.roll(around, 1))) == [(2, 2)]


@pytest.mark.parametrize("nodes", [0, 1])
def test_without_two_nodes_there_is_no_pair(nodes: int) -> None:
    assert leading_pairs(build(nodes, [], [])) == []
