import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from defocus.errors import DefocusError
from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs, without_node
from defocus.graphs.node import capped_edges_twice


def by_program(graph: Graph, cap: int) -> float:
    """The linear program itself, solved as such."""
    left, right = graph.pairs()
    if not len(left):
        return 0.0
    rows = np.zeros((graph.nodes, len(left)))
    rows[left, np.arange(len(left))] = rows[right, np.arange(len(left))] = 1
    return -float(linprog(-np.ones(len(left)), A_ub=rows, b_ub=np.full(graph.nodes, cap), bounds=(0, 1)).fun)


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_the_flow_is_twice_the_value_of_the_program(cap: int) -> None:
    for graph in all_graphs(4)[::3] + all_graphs(5)[::37]:
        assert capped_edges_twice(graph, cap) == pytest.approx(2 * by_program(graph, cap))


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_node_adds_between_nothing_and_its_cap(cap: int) -> None:
    for graph in all_graphs(5)[::5]:
        value = capped_edges_twice(graph, cap)
        steps = [value - capped_edges_twice(without_node(graph, node), cap) for node in range(5)]
        assert min(steps) >= 0
        assert max(steps) <= 2 * cap


def test_dropping_large_nodes_or_cutting_degrees_is_not_safe() -> None:
    """The traps: with a hub more or less, both move by far more than the cap."""
    n, cap = 40, 2
    ring = [(i, (i + 1) % n) for i in range(n)]
    spokes = [(n, i) for i in range(n)]
    before = build(n + 1, *zip(*ring, strict=True))
    after = build(n + 1, *zip(*(ring + spokes), strict=True))

    def dropped(graph: Graph) -> int:
        left, right = graph.pairs()
        return int(((graph.degrees[left] <= cap) & (graph.degrees[right] <= cap)).sum())

    assert abs(dropped(after) - dropped(before)) == n
    assert capped_edges_twice(after, cap) - capped_edges_twice(before, cap) <= 2 * cap


def test_a_cap_above_all_degrees_counts_every_edge() -> None:
    for graph in all_graphs(4):
        assert capped_edges_twice(graph, 3) == 2 * graph.edges
        assert capped_edges_twice(graph, 10**6) == 2 * graph.edges


def test_more_room_never_counts_less() -> None:
    generator = np.random.default_rng(2)
    graph = build(300, generator.integers(0, 300, 3000) ** 2 // 300, generator.integers(0, 300, 3000))
    values = [capped_edges_twice(graph, cap) for cap in (1, 2, 5, 10, 40, 100)]
    assert values == sorted(values)
    gains = [b - a for a, b in itertools.pairwise([capped_edges_twice(graph, cap) for cap in range(1, 12)])]
    assert gains == sorted(gains, reverse=True), "concave in the cap"


@pytest.mark.parametrize("cap", [0, -1, 1.5, True, None])
def test_a_cap_that_is_no_count_is_refused(cap: int) -> None:
    with pytest.raises(DefocusError, match="cap"):
        capped_edges_twice(all_graphs(3)[-1], cap)
