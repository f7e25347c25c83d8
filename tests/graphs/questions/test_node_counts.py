"""Questions under node privacy: refusals, what is charged, and how far off answers are."""

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from defocus import Budget, edge, node
from defocus.errors import DefocusError, NotDeclaredError
from defocus.graphs import Graph, Public, build
from defocus.graphs.certificates import all_graphs, without_node
from defocus.graphs.data import Data
from defocus.graphs.questions import AskEdges, AskHistogram, AskTriangles
from defocus.graphs.questions.node_counts import FoundCap, FoundMost, FoundTriangles, _quarters, _scores
from defocus.graphs.statistics import CappedTriangles, Triangles
from defocus.mechanisms import Exponential, Laplace, PermuteAndFlip
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


HUBS = build(1003, np.repeat([0, 1, 2], 1000), np.tile(np.arange(3, 1003), 3))
"""Three nodes that are joined to a thousand others: what any cap below takes away is most of what there is."""


@pytest.mark.parametrize("unit", [node(), node(replace=True)])
@pytest.mark.parametrize("question", [AskEdges(cap=20), AskEdges()])
def test_lower_ends_of_capped_counts_hold_on_graphs_with_hubs_and_no_upper_end_is_shown(
    question: Any, unit: Unit
) -> None:
    (method,) = question.methods(public(unit), Budget(1))
    data, bits = Data.of(HUBS), seeded(2)
    columns = [method.run(data, bits).columns[0] for _ in range(100)]
    assert all(column.high[0] == math.inf for column in columns)
    assert all(column.low[0] <= HUBS.edges for column in columns)
    assert all(column.interval(0.99)[0][0] < column.low[0] for column in columns)


@pytest.mark.statistical
def test_a_lower_end_is_above_what_is_counted_once_in_twenty_times() -> None:
    """Where the cap takes nothing away, a narrower interval would be seen."""
    graph = random_graph(200, 800)
    (method,) = AskEdges(cap=50).methods(public(), Budget(1))
    data, bits = Data.of(graph), seeded(4)
    columns = [method.run(data, bits).columns[0] for _ in range(2000)]
    for confidence, ends in ((0.95, [c.low[0] for c in columns]), (0.99, [c.interval(0.99)[0][0] for c in columns])):
        missed = float(np.mean(np.array(ends) > graph.edges))
        assert missed == pytest.approx(1 - confidence, abs=4 * math.sqrt((1 - confidence) / 2000))


def test_a_declared_degree_gives_both_ends_and_a_cap_below_it_one() -> None:
    graph = random_graph(200, 800)
    for question in (AskEdges(), AskEdges(cap=30), AskTriangles()):
        (method,) = question.methods(public(node(max_degree=30)), Budget(1))
        assert np.isfinite(method.run(Data.of(graph), seeded(1)).columns[0].high).all()
    for question in (AskEdges(cap=29), AskTriangles(cap=434)):
        (method,) = question.methods(public(node(max_degree=30)), Budget(1))
        assert np.isposinf(method.run(Data.of(graph), seeded(1)).columns[0].high).all()


def test_a_degree_histogram_has_intervals_where_the_largest_degree_is_declared_only() -> None:
    graph = random_graph(2000, 8000)
    truth = np.bincount(graph.degrees, minlength=31)[:31]
    for method in AskHistogram().methods(public(node(max_degree=30)), Budget(1)):
        column = method.run(Data.of(graph), seeded(1)).columns[0]
        assert ((column.low <= truth) & (truth <= column.high)).mean() >= 0.9
    for unit, question in (
        (node(max_degree=30), AskHistogram(29)),
        (node(), AskHistogram(30)),
        (node(), AskHistogram()),
    ):
        for method in question.methods(public(unit), Budget(1)):
            column = method.run(Data.of(graph), seeded(1)).columns[0]
            assert np.isnan(column.half).all()
            assert math.isnan(method.interval)


def test_a_histogram_needs_the_list_of_nodes() -> None:
    with pytest.raises(NotDeclaredError, match="not known here"):
        AskHistogram().methods(public(listed=False), Budget(1))
    assert AskEdges().methods(public(listed=False), Budget(1))


def test_the_histogram_of_a_found_degree_resembles_the_truth() -> None:
    graph = random_graph(20_000, 40_000)
    found = value(AskHistogram(), node(), graph)
    truth = np.bincount(graph.degrees, minlength=len(found))[: len(found)]
    assert np.abs(found - truth).sum() < 0.1 * graph.nodes


def test_triangles_are_counted_with_a_given_a_declared_and_a_found_cap() -> None:
    graph = random_graph(60, 400)
    for question, unit in (
        (AskTriangles(cap=30), node()),
        (AskTriangles(), node(max_degree=9)),
        (AskTriangles(), node()),
        (AskTriangles(), node(replace=True)),
    ):
        assert np.isfinite(value(question, unit, graph)[0])


def school() -> Graph:
    """2 000 pupils with friends in the same class and elsewhere."""
    draw = np.random.default_rng(7)
    left, right = draw.integers(0, 2000, 20_000), draw.integers(0, 2000, 20_000)
    return build(2000, left, np.where(draw.random(20_000) < 0.8, 20 * (left // 20) + right % 20, right))


def test_a_found_cap_on_triangles_is_near_what_nodes_have() -> None:
    graph, truth = school(), int(Triangles().exact(school())[0])
    (method,) = AskTriangles().methods(public(), Budget(8))
    results = [method.run(Data.of(graph), seeded(seed)) for seed in range(4)]
    assert np.median([abs(result.columns[0].values[0] - truth) / truth for result in results]) < 0.1
    assert all("the cap that was found" in result.notes[0] for result in results)
    assert "triangles count up to a cap at each node" in method.rules[0]


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("kind", [FoundCap, FoundMost, FoundTriangles])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(30)])
def test_all_noises_of_a_search_add_up_to_what_is_charged(
    kind: Any, changes: int, epsilon: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[Fraction] = []
    calibrated, choose, flip = Laplace.calibrated, Exponential.sample, PermuteAndFlip.sample

    def recorded(**given: Any) -> Laplace:
        assert given["sensitivity"] % changes == 0
        spent.append(Fraction(given["epsilon"]))
        return calibrated(**given)

    def chosen(mechanism: Exponential, utilities: Any, bits: Any) -> int:
        spent.append(Fraction(mechanism.epsilon))
        assert mechanism.sensitivity == 1
        return choose(mechanism, utilities, bits)

    def flipped(mechanism: PermuteAndFlip, utilities: Any, bits: Any) -> int:
        spent.append(Fraction(mechanism.epsilon))
        assert mechanism.sensitivity == changes
        return flip(mechanism, utilities, bits)

    monkeypatch.setattr(PermuteAndFlip, "sample", flipped)
    monkeypatch.setattr(Laplace, "calibrated", recorded)
    monkeypatch.setattr(Exponential, "sample", chosen)
    method = kind(epsilon, changes)
    method.run(Data.of(random_graph(60, 300)), seeded(3))
    assert sum(spent) == epsilon
    assert method.event == events.Pure(epsilon)
    assert len(spent) == {FoundCap: 2, FoundMost: 4, FoundTriangles: 3}[kind]


@pytest.mark.parametrize("nodes", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_no_node_moves_the_scores_of_caps_by_more_than_one(nodes: int) -> None:
    """What the exponential mechanism assumes, on all graphs: so its choice keeps its epsilon."""
    caps = (3, 2, 1)
    sensitivities = [CappedTriangles(cap).sensitivity(public()).l1 for cap in caps]

    @cache
    def scores(key: bytes, size: int) -> list[Fraction]:
        graph = Graph(
            size, np.frombuffer(key[: 8 * (size + 1)], np.int64), np.frombuffer(key[8 * (size + 1) :], np.int32)
        )
        return _scores(
            [int(CappedTriangles(c).exact(graph)[0]) for c in caps], sensitivities, Fraction(1, 2), Fraction(1, 5)
        )

    def of(graph: Graph) -> list[Fraction]:
        return scores(graph.offsets.tobytes() + graph.targets.tobytes(), graph.nodes)

    moves = [
        abs(one - other)
        for graph in all_graphs(nodes)
        for node_left in range(nodes)
        for one, other in zip(of(graph), of(without_node(graph, node_left)), strict=True)
    ]
    assert 0 < max(moves) <= 1


def test_caps_that_compete_go_from_all_triangles_of_a_degree_down_to_the_degree() -> None:
    assert _quarters(40) == [780, 195, 48]
    assert _quarters(1) == [6, 1]
    assert _quarters(10**6)[0] == 2**22
    for degree in (4, 17, 300):
        assert len(_quarters(degree)) >= 2
        assert _quarters(degree)[-1] >= min(degree, 3) // 4


def test_directed_graphs_and_caps_that_are_no_counts_are_refused() -> None:
    with pytest.raises(DefocusError, match="directed"):
        AskEdges().methods(Public(node(), None, directed=True), Budget(1))
    for bad in (0, -1, True, 1.5, "3"):
        with pytest.raises(DefocusError, match="cap"):
            AskEdges(cap=bad)  # type: ignore[arg-type]  # on purpose


def test_a_capped_statistic_is_not_offered_under_edge_privacy() -> None:
    from defocus.graphs.statistics import CappedEdges  # noqa: PLC0415  # beside its one use

    with pytest.raises(DefocusError, match="protect nodes"):
        CappedEdges(3).sensitivity(Public(edge(), 10))


def test_caps_that_are_too_large_to_count_with_are_refused_before_a_charge() -> None:
    facts = Public(node(), None)
    with pytest.raises(DefocusError, match="cap"):
        AskTriangles(cap=5_000_000).methods(facts, Budget(1))
    assert AskTriangles(cap=4_000_000).methods(facts, Budget(1))
    with pytest.raises(DefocusError, match="cap"):
        AskTriangles().methods(Public(node(max_degree=10_000), None), Budget(1))
