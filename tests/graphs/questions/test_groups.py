"""Edges between public groups: counts, sums by a strategy, and refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.graphs.asking.small import answer, planted, public, random_graph, ways

from defocus import Budget, edge, node
from defocus.errors import DefocusError
from defocus.graphs import Network
from defocus.graphs.question import foretold
from defocus.graphs.questions import AskGroups
from defocus.graphs.statistics import GroupEdges

LABELS = tuple("abc"[i % 3] for i in range(300))
CUTS = {
    "all": [("a", "a"), ("b", "b"), ("c", "c"), ("a", "b"), ("b", "c"), ("a", "c")],
    "cut of a": [("a", "b"), ("c", "a")],
    "inside": [("a", "a"), ("b", "b"), ("c", "c")],
}


def counted(graph: Any) -> dict[tuple[str, str], int]:
    found = dict.fromkeys(GroupEdges(LABELS).pairs, 0)
    for i, j in zip(*graph.pairs(), strict=True):
        pair = tuple(sorted((LABELS[i], LABELS[j])))
        found[pair[0], pair[1]] += 1
    return found


def test_counts_are_those_of_every_pair_of_groups() -> None:
    graph = planted(300, 3)
    assert GroupEdges(LABELS).exact(graph).tolist() == list(counted(graph).values())
    result = answer(ways(AskGroups(LABELS), 300, Budget(50))["laplace"], graph)
    assert list(zip(result.keys["group"], result.keys["other"], strict=True)) == list(counted(graph))
    assert result.columns[0].values == pytest.approx(list(counted(graph).values()), abs=2)


def test_one_edge_moves_one_count_however_many_groups_there_are() -> None:
    many = ways(AskGroups(tuple(range(300))), 300, Budget(1, 1e-6))
    assert many["laplace"].error == pytest.approx(ways(AskGroups(LABELS), 300, Budget(1))["laplace"].error)


@pytest.mark.statistical
def test_sums_are_unbiased_and_within_their_intervals() -> None:
    graph = planted(300, 3)
    truth = [sum(counted(graph)[min(p), max(p)] for p in pairs) for pairs in CUTS.values()]
    for budget in (Budget(1), Budget(1, 1e-6)):
        (method,) = ways(AskGroups(LABELS, CUTS), 300, budget).values()
        drawn = np.array([answer(method, graph, seed).columns[0].values for seed in range(60)])
        assert drawn.mean(axis=0) == pytest.approx(truth, abs=1.5 * method.error)
        column = answer(method, graph).columns[0]
        inside = np.abs(drawn - truth) <= column.high - column.values
        assert inside.mean() > 0.9
        assert np.abs(drawn - truth).mean() == pytest.approx(method.error, rel=0.35)


def test_many_nodes_and_many_sums_are_planned_together() -> None:
    """As cells of pairs of nodes these would be half a million; groups that no question tells apart are one."""
    labels = tuple(i % 12 for i in range(1000))
    prefix = {f"up to {k}": [(i, j) for i in range(k + 1) for j in range(i, k + 1)] for k in range(12)}
    (method,) = ways(AskGroups(labels, prefix), 1000, Budget(1, 1e-6)).values()
    assert "times as much" in foretold(method)[0]
    assert method.plan.direct_error > 1.5 * method.plan.error.total  # type: ignore[attr-defined]
    result = answer(method, random_graph(1000, 8000))
    assert list(result.keys["query"]) == list(prefix)


@pytest.mark.parametrize(("unit", "times"), [(edge(per_person=5), 5), (edge(replace=True), 2)])
def test_persons_and_replaced_edges_get_their_noise(unit: Any, times: int) -> None:
    plain, more = (
        next(iter(AskGroups(LABELS, (("all", (("a", "a"), ("a", "b"))),)).methods(public(300, u), Budget(1)))).error
        for u in (edge(), unit)
    )
    assert 0.9 <= more / plain <= 1.1 * times


def test_what_makes_no_sense_is_refused(opened: Callable[..., Network]) -> None:
    graph = opened(nodes=6)
    for asked, match in (
        ({"groups": ["a"] * 5}, "5 labels for 6 nodes"),
        ({"groups": []}, "a label for each node"),
        ({"groups": "aabbcc"}, "a label for each node"),
        ({"groups": [["a"]] * 6}, "a label for each node"),
        ({"groups": list("aabbcc"), "queries": {"cut": [("a", "d")]}}, "no pair of groups"),
        ({"groups": list("aabbcc"), "queries": {"cut": ["a"]}}, "does not list pairs"),
        ({"groups": list("aabbcc"), "queries": {"cut": []}}, "does not list pairs"),
    ):
        with pytest.raises(DefocusError, match=match):
            graph.group_edges(**asked).preview(epsilon=1)
    with pytest.raises(DefocusError, match="protect edges"):
        AskGroups(LABELS).methods(public(300, node()), Budget(1))
    with pytest.raises(DefocusError, match="at most 90 groups"):
        AskGroups(tuple(range(100)), (("one", ((0, 1),)),)).methods(public(100), Budget(1))


def test_sums_are_asked_of_a_graph(opened: Callable[..., Network]) -> None:
    graph = opened(nodes=6)
    released = graph.group_edges(groups=list("aabbcc"), queries={"cut": [("a", "b"), ("a", "c")]}).release(epsilon=100)
    assert list(released.keys["query"]) == ["cut"]
    assert len(graph.group_edges(groups=list("aabbcc")).release(epsilon=100)) == 6
    assert len(graph.group_edges(groups=np.array([0, 0, 1, 1, 2, 2])).release(epsilon=100)) == 6
