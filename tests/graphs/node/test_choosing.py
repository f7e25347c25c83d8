import math
from typing import Any

import numpy as np
import pytest

from defocus.graphs import Graph, build
from defocus.graphs.node import CapRule
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded


def heavy(nodes: int, edges: int) -> Graph:
    generator = np.random.default_rng(6)
    weights = (np.arange(nodes) + 10.0) ** -0.6
    ends = generator.choice(nodes, size=(2, edges), p=weights / weights.sum())
    return build(nodes, ends[0], ends[1])


def test_the_cap_is_near_the_structural_cut_off() -> None:
    graph, bits = heavy(3000, 40_000), seeded(1)
    caps = [CapRule().find(graph, 1, bits)[0] for _ in range(5)]
    cut_off = math.sqrt(2 * graph.edges)
    assert all(0.9 * cut_off < cap < 1.5 * cut_off for cap in caps)


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
        assert spent[0]["sensitivity"] == 2 * 16 * changes
