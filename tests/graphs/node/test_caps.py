import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from defocus.errors import DefocusError
from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs, without_node
from defocus.graphs.node import CapRule, capped_edges_twice, hirsch
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded


def heavy(nodes: int, edges: int) -> Graph:
    generator = np.random.default_rng(6)
    weights = (np.arange(nodes) + 10.0) ** -0.6
    ends = generator.choice(nodes, size=(2, edges), p=weights / weights.sum())
    return build(nodes, ends[0], ends[1])


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_no_node_moves_the_number_of_hubs_by_more_than_one(nodes: int) -> None:
    moves = {hirsch(graph) - hirsch(without_node(graph, node)) for graph in all_graphs(nodes) for node in range(nodes)}
    assert moves <= {0, 1}
    assert 1 in moves


def test_the_cap_follows_the_scale_and_the_shape_of_the_graph() -> None:
    graph, bits = heavy(3000, 40_000), seeded(1)
    caps = [CapRule().find(graph, 100, bits).cap for _ in range(5)]
    cut_off = math.sqrt(2 * graph.edges)
    wanted = min(max(0.118 * (2 * graph.edges / hirsch(graph) ** 2) ** 1.6, 1), 2.5) * cut_off
    assert all(0.7 * wanted < cap < 1.2 * wanted for cap in caps)


def test_the_cap_stays_in_bounds_whatever_the_noise() -> None:
    graph = heavy(3000, 40_000)
    for seed in range(10):
        found = CapRule().find(graph, 0.01, seeded(seed))
        assert found.cap >= 4
        assert found.cap <= max(2.5 * math.sqrt(2 * found.edges) + 5, 10_000)


def test_an_empty_graph_gets_a_small_cap_and_no_error() -> None:
    empty = build(10, [], [])
    for seed in range(20):
        found = CapRule().find(empty, 1, seeded(seed))
        assert found.cap >= 1
        assert found.edges >= 0


def test_every_count_is_paid_by_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epsilons of the two counts add up to the share, and each noise fits the cap it was made for."""
    spent: list[Any] = []
    real = Laplace.calibrated

    def recorded(**given: Any) -> Any:
        spent.append(given)
        return real(**given)

    monkeypatch.setattr(Laplace, "calibrated", recorded)
    for changes in (1, 2):
        for graph, epsilon in ((heavy(200, 500), 2), (heavy(3000, 40_000), 100)):
            spent.clear()
            found = CapRule(changes).find(graph, epsilon, seeded(3))
            assert sum(given["epsilon"] for given in spent) == epsilon * found.spent
            assert found.spent <= CapRule().share
            assert {given["sensitivity"] for given in spent[:-2]} == {changes}
            assert spent[-2]["sensitivity"] % (2 * changes) == 0
            assert spent[-1]["sensitivity"] == 2 * changes


def school() -> Graph:
    """2 000 pupils with friends in the same class and elsewhere: 33 at most, 21 on average."""
    draw = np.random.default_rng(7)
    left, right = draw.integers(0, 2000, 30_000), draw.integers(0, 2000, 30_000)
    same = draw.random(30_000) < 0.8
    return build(2000, left, np.where(same, 25 * (left // 25) + right % 25, right))


@pytest.mark.parametrize(("epsilon", "most"), [(1, 75), (4, 45)])
def test_where_nobody_stands_out_the_cap_is_near_the_largest_degree(epsilon: float, most: int) -> None:
    """The structural cut-off of this graph is 204, and far above every degree."""
    graph, bits = school(), seeded(2)
    caps = [CapRule().find(graph, epsilon, bits).cap for _ in range(25)]
    assert 29 <= np.median(caps) <= most
    assert np.quantile(caps, 0.1) >= 26


def test_a_node_that_leaves_takes_two_at_most_out_of_those_that_are_paired_off() -> None:
    """A star has one pair, however many nodes have an edge; so a hub that leaves cannot be told by it."""
    star = build(101, np.zeros(100, int), np.arange(1, 101))
    assert capped_edges_twice(star, 1) == 2
    moves = {
        capped_edges_twice(graph, 1) - capped_edges_twice(without_node(graph, node), 1)
        for graph in all_graphs(5)[::5]
        for node in range(5)
    }
    assert moves <= {0, 1, 2}


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
