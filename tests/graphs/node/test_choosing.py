import math
from typing import Any

import numpy as np
import pytest

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
