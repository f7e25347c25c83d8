"""Questions under node privacy: refusals, what is charged, and how far off answers are."""

import math
from typing import Any

import numpy as np
import pytest

from defocus import Budget, edge, node
from defocus.errors import DefocusError, NotDeclaredError
from defocus.graphs import Graph, Public, build
from defocus.graphs.asking import AskEdges, AskHistogram, AskTriangles
from defocus.graphs.data import Data
from defocus.noise.testing import seeded
from defocus.privacy import account, events
from defocus.privacy.units import Unit


def random_graph(nodes: int, edges: int) -> Graph:
    generator = np.random.default_rng(8)
    return build(nodes, generator.integers(0, nodes, edges), generator.integers(0, nodes, edges))


def public(unit: Unit | None = None, *, listed: bool = True) -> Public:
    return Public(unit or node(), None, listed=listed)


def value(question: Any, unit: Unit, graph: Graph, seed: int = 1) -> np.ndarray:
    (method,) = [m for m in question.methods(public(unit), Budget(1)) if "histogram" not in m.name]
    found: np.ndarray = method.run(Data.of(graph), seeded(seed)).columns[0].values
    return found


@pytest.mark.parametrize(
    "question", [AskEdges(), AskEdges(cap=30), AskHistogram(), AskHistogram(20), AskTriangles(cap=9)]
)
@pytest.mark.parametrize("unit", [node(), node(replace=True)])
def test_every_method_costs_what_the_budget_allows(question: Any, unit: Unit) -> None:
    for method in question.methods(public(unit), Budget(1, 1e-6)):
        assert Budget(1, 1e-6).covers(account(method.event)), method.name


def test_edges_are_counted_with_a_given_a_declared_and_a_found_cap() -> None:
    graph = random_graph(500, 4000)
    exact = graph.edges
    assert abs(value(AskEdges(cap=40), node(), graph)[0] - exact) < 400
    assert abs(value(AskEdges(), node(max_degree=40), graph)[0] - exact) < 400
    assert abs(value(AskEdges(), node(), graph)[0] - exact) < 1500


def test_a_degree_above_the_declared_one_is_held_and_no_error() -> None:
    star = build(101, [0] * 100, list(range(1, 101)))
    assert abs(value(AskEdges(), node(max_degree=5), star)[0] - 5) < 60


@pytest.mark.statistical
def test_the_noise_has_the_scale_of_the_cap_and_no_other() -> None:
    graph = random_graph(200, 800)
    (method,) = AskEdges(cap=50).methods(public(), Budget(1))
    data, bits = Data.of(graph), seeded(5)
    sizes = np.abs([method.run(data, bits).columns[0].values[0] - graph.edges for _ in range(3000)])
    assert abs(sizes.mean() / 50 - 1) < 5 / math.sqrt(3000)
    assert abs(sizes.mean() / 55 - 1) > 0.06
    assert method.event == events.DiscreteLaplace(100, 100)


def test_a_histogram_needs_the_list_of_nodes() -> None:
    with pytest.raises(NotDeclaredError, match="not known here"):
        AskHistogram().methods(public(listed=False), Budget(1))
    assert AskEdges().methods(public(listed=False), Budget(1))


def test_the_histogram_of_a_found_degree_resembles_the_truth() -> None:
    graph = random_graph(20_000, 40_000)
    found = value(AskHistogram(), node(), graph)
    truth = np.bincount(graph.degrees, minlength=len(found))[: len(found)]
    assert np.abs(found - truth).sum() < 0.1 * graph.nodes


def test_triangles_without_a_cap_are_refused_and_with_one_counted() -> None:
    with pytest.raises(NotDeclaredError, match="any number of triangles"):
        AskTriangles().methods(public(), Budget(1))
    graph = random_graph(60, 400)
    assert np.isfinite(value(AskTriangles(cap=30), node(), graph)[0])
    assert np.isfinite(value(AskTriangles(), node(max_degree=9), graph)[0])


def test_directed_graphs_and_caps_that_are_no_counts_are_refused() -> None:
    with pytest.raises(DefocusError, match="directed"):
        AskEdges().methods(Public(node(), None, directed=True), Budget(1))
    for bad in (0, -1, True, 1.5, "3"):
        with pytest.raises(DefocusError, match="cap"):
            AskEdges(cap=bad)  # type: ignore[arg-type]  # on purpose


def test_a_capped_statistic_is_not_offered_under_edge_privacy() -> None:
    from defocus.graphs.statistics import CappedEdges  # noqa: PLC0415  # beside its one use

    with pytest.raises(DefocusError, match="protect nodes"):
        CappedEdges(3).reach(Public(edge(), 10))


def test_caps_that_are_too_large_to_count_with_are_refused_before_a_charge() -> None:
    facts = Public(node(), None)
    with pytest.raises(DefocusError, match="cap"):
        AskTriangles(cap=5_000_000).methods(facts, Budget(1))
    assert AskTriangles(cap=4_000_000).methods(facts, Budget(1))
    with pytest.raises(DefocusError, match="cap"):
        AskTriangles().methods(Public(node(max_degree=10_000), None), Budget(1))
