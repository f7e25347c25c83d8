"""Small graphs and their public facts, for tests of questions."""

from typing import Any

import numpy as np

from defocus import Budget, edge
from defocus.graphs import Graph, Public, build
from defocus.graphs.data import Data
from defocus.graphs.question import Method, Result
from defocus.noise.testing import seeded
from defocus.privacy.accounting import tightest
from defocus.privacy.units import Adjacency, Unit


def random_graph(nodes: int, edges: int, seed: int = 8) -> Graph:
    generator = np.random.default_rng(seed)
    return build(nodes, generator.integers(0, nodes, edges), generator.integers(0, nodes, edges))


def planted(nodes: int, groups: int, *, inside: float = 0.15, across: float = 0.01) -> Graph:
    generator = np.random.default_rng(3)
    group = np.arange(nodes) % groups
    chance = np.where(group[:, None] == group[None, :], inside, across)
    return build(nodes, *np.nonzero(np.triu(generator.random((nodes, nodes)) < chance, 1)))


def public(nodes: int, unit: Unit | None = None, **facts: Any) -> Public:
    return Public(unit or edge(), nodes, **facts)


def ways(question: Any, nodes: int, budget: Budget, unit: Unit | None = None) -> dict[str, Method]:
    """Every method by its name; each has been seen to fit its budget."""
    found = {method.name: method for method in question.methods(public(nodes, unit), budget)}
    for method in found.values():
        assert budget.covers(tightest(method.event, Adjacency.ADD_REMOVE)), method.name
        assert method.how
        assert all(rule for rule in method.rules)
    return found


def answer(method: Method, graph: Graph, seed: int = 1) -> Result:
    return method.run(Data.of(graph), seeded(seed))
