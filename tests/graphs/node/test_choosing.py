import math
from typing import Any

import numpy as np
import pytest

from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs, without_node
from defocus.graphs.node import CapRule, hirsch
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded


def heavy(nodes: int, edges: int) -> Graph:
    generator = np.random.default_rng(6)
    weights = (np.arange(nodes) + 10.0) ** -0.6
    ends = generator.choice(nodes, size=(2, edges), p=weights / weights.sum())
    return build(nodes, ends[0], ends[1])


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_no_node_moves_the_number_of_hubs_by_more_than_one(nodes: int) -> None:
    moves = {
        hirsch(graph) - hirsch(without_node(graph, node))
        for graph in all_graphs(nodes)[:: max(1, nodes - 2)]
        for node in range(nodes)
    }
    assert moves <= {0, 1}
    assert 1 in moves


def test_the_cap_follows_the_scale_and_the_shape_of_the_graph() -> None:
    graph, bits = heavy(3000, 40_000), seeded(1)
    caps = [CapRule().find(graph, 100, bits)[0] for _ in range(5)]
    cut_off = math.sqrt(2 * graph.edges)
    wanted = min(max(0.32 * 2 * graph.edges / hirsch(graph) ** 2, 1), 2.5) * cut_off
    assert all(0.7 * wanted < cap < 1.2 * wanted for cap in caps)


def test_the_cap_stays_near_the_structural_cut_off_whatever_the_noise() -> None:
    graph = heavy(3000, 40_000)
    for seed in range(10):
        cap, edges = CapRule().find(graph, 0.01, seeded(seed))
        assert math.isqrt(2 * edges) <= cap <= 2.5 * math.sqrt(2 * edges) + 4


def test_an_empty_graph_gets_a_small_cap_and_no_error() -> None:
    empty = build(10, [], [])
    for seed in range(20):
        cap, edges = CapRule().find(empty, 1, seeded(seed))
        assert cap >= 1
        assert edges >= 0


def test_every_count_is_paid_by_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epsilons of the two counts add up to the share, and each noise fits the cap it was made for."""
    spent: list[Any] = []
    real = Laplace.calibrated

    def recorded(**given: Any) -> Any:
        spent.append(given)
        return real(**given)

    monkeypatch.setattr(Laplace, "calibrated", recorded)
    for changes in (1, 2):
        spent.clear()
        CapRule(changes).find(heavy(200, 500), 2, seeded(3))
        assert sum(given["epsilon"] for given in spent) == 2 * CapRule().share
        assert spent[0]["sensitivity"] == changes
        assert spent[1]["sensitivity"] % (2 * changes) == 0
