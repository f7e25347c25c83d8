"""Stable projection, beside a plain loop over edges, and what one node can change in it."""

import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs, without_node
from defocus.graphs.kernels.projecting import projected, projected_degrees


def plainly(graph: Graph, most: int) -> list[tuple[int, int]]:
    degrees = [0] * graph.nodes
    kept = []
    for u, v in zip(*(side.tolist() for side in graph.pairs()), strict=True):
        if degrees[u] < most and degrees[v] < most:
            degrees[u] += 1
            degrees[v] += 1
            kept.append((u, v))
    return kept


@pytest.mark.parametrize("most", [1, 2, 3])
def test_edges_are_kept_while_both_ends_have_room(most: int) -> None:
    for graph in all_graphs(5):
        after = projected(graph, most)
        assert list(zip(*(side.tolist() for side in after.pairs()), strict=True)) == plainly(graph, most)
        assert np.array_equal(after.degrees, projected_degrees(graph, most))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_node_that_leaves_moves_the_degrees_of_others_by_the_cap_in_all(most: int) -> None:
    furthest = 0
    for graph in all_graphs(5):
        before = projected_degrees(graph, most)
        for node in range(5):
            moved = np.abs(np.delete(before, node) - projected_degrees(without_node(graph, node), most))
            furthest = max(furthest, int(moved.sum()))
    assert furthest == most


def test_a_cap_above_every_degree_changes_nothing() -> None:
    graph = build(5, [0, 0, 0, 0], [1, 2, 3, 4])
    assert projected(graph, 10**12).edges == 4
    assert projected_degrees(graph, 4).tolist() == [4, 1, 1, 1, 1]


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "3", 2**63])
def test_a_cap_that_is_no_count_is_refused(most: object) -> None:
    with pytest.raises(InvalidParameterError, match="most"):
        projected_degrees(build(2, [0], [1]), most)  # type: ignore[arg-type]  # the refusal is the test
