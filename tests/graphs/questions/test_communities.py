import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.graphs.asking.small import answer, planted, public, ways

from defocus import Budget, edge, node
from defocus.errors import DefocusError, InvalidParameterError
from defocus.graphs import Network
from defocus.graphs.certificates import all_graphs, neighbours
from defocus.graphs.question import chosen, foretold, silent
from defocus.graphs.questions import AskClustering, AskCommunities, AskLabellings
from defocus.graphs.questions.communities import ByLikelihood, BySpectrum
from defocus.graphs.statistics import Stars, Triangles
from defocus.graphs.statistics.spectrum import gaps, singular_values
from defocus.privacy.events import compose


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_planted_communities_are_counted(groups: int) -> None:
    graph = planted(300, groups, inside=0.5)
    (method,) = ways(AskCommunities(8), 300, Budget(3)).values()
    found = [answer(method, graph, seed).columns[0].values[0] for seed in range(4)]
    assert found.count(groups) >= 3


def test_the_better_labelling_wins() -> None:
    graph = planted(300, 2)
    right, wrong = [i % 2 for i in range(300)], [i % 3 for i in range(300)]
    (method,) = ways(AskLabellings((wrong, right)), 300, Budget(1)).values()
    result = answer(method, graph)
    assert [column.values[0] for column in result.columns] == [1, 2]


@pytest.mark.parametrize("question", [AskCommunities(3), AskLabellings(([0] * 50, [1] * 50))])
def test_a_replaced_edge_costs_the_same_and_needs_more_noise(question: Any) -> None:
    one, two = (next(iter(ways(question, 50, Budget(1), edge(replace=r)).values())) for r in (False, True))
    assert two.mechanism.error == pytest.approx(2 * one.mechanism.error)  # type: ignore[attr-defined]  # a choice


def test_no_number_of_communities_is_foretold_that_could_not_be() -> None:
    """How far a choice among ten is off is not told by losses of fit."""
    for nodes in (50, 8000):
        (method,) = ways(AskCommunities(10), nodes, Budget(1)).values()
        assert math.isnan(method.error)
        assert math.isnan(method.interval)
        assert "depends on how clearly communities stand out" in foretold(method)[0]
        assert any("takes long" in told for told in foretold(method)) == (nodes == 8000)


def test_other_units_and_labellings_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(DefocusError, match="protect edges"):
        AskCommunities(3).methods(public(50, node()), Budget(1))
    with pytest.raises(DefocusError, match="undirected"):
        AskCommunities(3).methods(public(50, directed=True), Budget(1))
    for labellings in ((), ([0] * 49,), ([0] * 50, [1])):
        with pytest.raises(DefocusError):
            AskLabellings(labellings).methods(public(50), Budget(1))


def worst_ratio(utilities: np.ndarray, rate: float, nodes: int) -> float:
    """The largest log-ratio of chances to choose the same between neighbours, chances falling by the definition."""
    weights = np.exp(rate * (utilities - utilities.max(axis=1, keepdims=True)))
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    return max(float(np.abs(logs[more] - logs[less]).max()) for less, more in neighbours(nodes))


@pytest.mark.parametrize("nodes", [4, 5])
@pytest.mark.parametrize("changes", [1, 2])
def test_no_edge_changes_the_chance_of_a_labelling_by_more_than_epsilon(nodes: int, changes: int) -> None:
    labellings = [[0, 0, 1, 1, 1][:nodes], [0, 1, 0, 1, 0][:nodes], [0, 1, 2, 0, 1][:nodes]]
    unit = edge(replace=changes == 2)
    (method,) = AskLabellings(tuple(labellings), least=0.05).methods(public(nodes, unit), Budget(1))
    assert isinstance(method, ByLikelihood)
    scores = np.array([[float(b.log_likelihood(g)) for b in method.blocks] for g in all_graphs(nodes)])
    rate = float(method.mechanism.epsilon) / (2 * float(method.mechanism.sensitivity))
    assert 0.1 / changes < worst_ratio(scores, rate, nodes) <= 1 / changes
    assert method.event == method.mechanism.event


@pytest.mark.parametrize("nodes", [4, 5])
@pytest.mark.parametrize("threshold", [0.5, 1.7, 3.0])
def test_no_edge_changes_the_chance_of_a_number_of_communities_by_more_than_epsilon(
    nodes: int, threshold: float
) -> None:
    """Given any threshold, which is released with noise of its own; both parts are charged."""
    (method,) = AskCommunities(3).methods(public(nodes), Budget(2))
    assert isinstance(method, BySpectrum)
    most = method.mechanism.candidates + 1
    scores = np.array([[float(u) for u in gaps(singular_values(g, most), threshold)] for g in all_graphs(nodes)])
    rate = float(method.mechanism.epsilon) / (2 * float(method.mechanism.sensitivity))
    assert worst_ratio(scores, rate, nodes) <= float(method.mechanism.epsilon)
    assert method.event == compose([method.average.event, method.mechanism.event])
    assert method.mechanism.epsilon + method.average.epsilon == 2
    assert method.average.sensitivity == 1


def test_the_quotient_is_near_the_truth_and_its_interval_holds_it() -> None:
    graph = planted(600, 4, inside=0.3)
    truth = 3 * Triangles().exact(graph)[0] / Stars(2).exact(graph)[0]
    method = ways(AskClustering(), 600, Budget(2))["ramp, measured"]
    held = 0
    for seed in range(20):
        column = answer(method, graph, seed).columns[0]
        assert column.values[0] == pytest.approx(truth, rel=0.2)
        held += column.low[0] <= truth <= column.high[0]
    assert held >= 18


def test_it_stays_between_zero_and_one_whatever_the_noise() -> None:
    graph = planted(20, 2)
    for method in ways(AskClustering(), 20, Budget(0.01), edge()).values():
        assert math.isnan(method.error)
        for seed in range(20):
            column = answer(method, graph, seed).columns[0]
            assert 0 <= column.values[0] <= 1
            assert silent(method) or 0 <= column.low[0] <= column.values[0] <= column.high[0] <= 1


def test_what_the_error_depends_on_is_said_beforehand() -> None:
    method = ways(AskClustering(), 600, Budget(2))["ramp, measured"]
    assert "depends on how many 2-stars there are" in foretold(method)[0]


@pytest.mark.parametrize("name", ["ramp, measured", "ramp"])
def test_both_ways_to_follow_the_graph_are_offered_and_the_measured_one_is_taken(name: str) -> None:
    methods = ways(AskClustering(), 600, Budget(2))
    assert chosen(AskClustering(), [*methods.values()], None).name == "ramp, measured"
    column = answer(methods[name], planted(600, 4, inside=0.3), 1).columns[0]
    assert math.isnan(column.low[0]) == silent(methods[name]) == (name == "ramp")


def test_eta_decides_how_far_one_edge_moves_the_likelihood(opened: Callable[..., Network]) -> None:
    graph = opened(nodes=6)
    halves = [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]]
    for eta in (0.001, 0.01, 0.2):
        method: Any = graph.communities(labellings=halves, eta=eta).plan(epsilon=1)
        assert float(method.mechanism.sensitivity) == pytest.approx(math.log((1 - eta) / eta), abs=0.01)
    usual: Any = graph.communities(labellings=halves).plan(epsilon=1)
    assert float(usual.mechanism.sensitivity) == pytest.approx(math.log(999), abs=0.01)
    with pytest.raises(InvalidParameterError, match="which labellings have"):
        graph.communities(eta=0.1)
