"""Graphs from pairs of ends, by the declared rules."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.graphs import DirectedGraph, Graph, build, build_directed

EDGES = st.lists(st.tuples(st.integers(-2, 8), st.integers(-2, 8)), max_size=60)


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    return set(zip(*(side.tolist() for side in graph.pairs()), strict=True))


@given(st.integers(0, 7), EDGES)
def test_a_graph_holds_each_edge_between_its_nodes_once(nodes: int, edges: list[tuple[int, int]]) -> None:
    graph = build(nodes, [u for u, _ in edges], [v for _, v in edges])
    fine = {(min(e), max(e)) for e in edges if e[0] != e[1] and all(0 <= end < nodes for end in e)}
    assert edges_of(graph) == fine
    assert graph.edges == len(fine)
    assert graph.degrees.sum() == 2 * len(fine)
    assert len(graph.degrees) == graph.nodes == nodes


@given(st.integers(1, 7), EDGES, st.randoms(use_true_random=False))
def test_the_order_of_edges_and_ends_does_not_matter(nodes: int, edges: list[tuple[int, int]], mix: Any) -> None:
    turned = [edge if mix.random() < 0.5 else edge[::-1] for edge in edges]
    mix.shuffle(turned)
    one, other = (build(nodes, [u for u, _ in each], [v for _, v in each]) for each in (edges, turned))
    assert np.array_equal(one.targets, other.targets)
    assert np.array_equal(one.offsets, other.offsets)


def test_directed_graphs_keep_both_ways_apart() -> None:
    graph = build_directed(3, [0, 1, 1, 1, 2], [1, 0, 2, 2, 2])
    assert isinstance(graph, DirectedGraph)
    assert graph.edges == 3
    assert graph.out_degrees.tolist() == [1, 2, 0]
    assert graph.in_degrees.tolist() == [1, 1, 1]


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_graphs_of_few_nodes(nodes: int) -> None:
    graph = build(nodes, [0, 1], [1, 0])
    assert graph.edges == (nodes == 2)
    assert build_directed(nodes, [0, 1], [1, 0]).edges == 2 * (nodes == 2)


@pytest.mark.parametrize("nodes", [-1, True, 2.0, "3", None, 2**31, 2**100, float("nan")])
def test_a_number_of_nodes_that_is_none_is_refused(nodes: Any) -> None:
    with pytest.raises(InvalidParameterError, match="nodes"):
        build(nodes, [0], [1])


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(UnfitDataError, match="differ in length"):
        build(3, [0, 1], [1])


def test_the_arrays_of_a_graph_cannot_be_written_to() -> None:
    graph = build(3, [0], [1])
    with pytest.raises(ValueError, match="read-only"):
        graph.targets[0] = 2
    with pytest.raises(ValueError, match="read-only"):
        graph.offsets[0] = 2


def test_nothing_of_a_graph_is_printed() -> None:
    assert repr(build(3, [0], [1])) == "<a private undirected graph>"
    assert repr(build_directed(3, [0], [1])) == "<a private directed graph>"


@pytest.mark.parametrize(
    ("nodes", "offsets", "targets"),
    [
        (1, np.zeros(1, np.int64), np.zeros(0, np.int32)),
        (1, np.zeros(2, np.int32), np.zeros(0, np.int32)),
        (1, np.zeros(2, np.int64), np.zeros(0, np.int64)),
        (1, np.array([0, 1]), np.zeros(0, np.int32)),
        (1, [0, 0], np.zeros(0, np.int32)),
    ],
)
def test_arrays_that_are_no_rows_are_refused(nodes: int, offsets: Any, targets: Any) -> None:
    with pytest.raises(InvalidParameterError, match="not the rows of a graph"):
        Graph(nodes, offsets, targets)
