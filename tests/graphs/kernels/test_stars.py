"""The pairs that decide how far stars can move, beside all pairs and all graphs."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs
from defocus.graphs.kernels.stars import leading_pairs


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
