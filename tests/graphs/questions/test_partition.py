"""Partitions: what is reported, what a preview says, what an answer says, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
from tests.graphs.asking.small import answer, planted, public, random_graph, ways

from defocus import Budget, edge, node
from defocus.errors import DefocusError
from defocus.graphs.certificates import all_graphs
from defocus.graphs.question import depends, foretold
from defocus.graphs.questions import AskPartition
from defocus.graphs.statistics import Adjacent
from defocus.noise.testing import seeded


def test_planted_communities_are_found_and_the_answer_says_how_well() -> None:
    (method,) = ways(AskPartition(3), 240, Budget(3)).values()
    result = answer(method, planted(240, 3, inside=0.4, across=0.02))
    labels = result.columns[0].values.astype(int)
    truth = np.arange(240) % 3
    right = sum(np.bincount(labels[truth == part]).max() for part in range(3)) / 240
    assert right > 0.97
    assert "all 3 communities stand out" in result.notes[0]
    assert "100% of nodes" in result.notes[0] or "99% of nodes" in result.notes[0]
    assert np.bincount(labels).tolist() == sorted(np.bincount(labels).tolist(), reverse=True)


def test_a_graph_without_communities_is_told_so() -> None:
    (method,) = ways(AskPartition(2), 200, Budget(1)).values()
    result = answer(method, random_graph(200, 2000))
    assert result.notes == ("no community stands out of the noise: this partition is as good as chance",)


def test_fewer_communities_than_asked_for_are_told() -> None:
    (method,) = ways(AskPartition(4), 240, Budget(3)).values()
    result = answer(method, planted(240, 2, inside=0.4, across=0.02))
    assert "only 1 of 3 directions" in result.notes[0]


def test_a_preview_says_which_communities_can_be_found() -> None:
    (method,) = ways(AskPartition(2), 200, Budget(2)).values()
    assert "at least 6.5 more neighbours" in foretold(method)[0]
    assert "14 more: 96%" in foretold(method)[0]
    assert "by chance 50%" in foretold(method)[0]
    assert "misplaced" in depends(method)
    assert math.isnan(method.error)
    (guessed,) = ways(AskPartition(2, typical=14), 200, Budget(2)).values()
    assert guessed.error == pytest.approx(0.04, abs=0.01)


@pytest.mark.statistical
def test_reports_are_flipped_as_often_as_said() -> None:
    for unit, changes in ((edge(), 1), (edge(replace=True), 2), (edge(per_person=4), 4)):
        (method,) = ways(AskPartition(2), 400, Budget(4), unit).values()
        reports = method.mechanism.sample(np.zeros(200_000, np.int64), seeded(1))  # type: ignore[attr-defined]
        assert reports.mean() == pytest.approx(1 / (1 + math.exp(4 / changes)), rel=0.05)


def test_every_pair_has_its_place() -> None:
    for graph in all_graphs(5)[::37]:
        joined = np.zeros((5, 5), int)
        for i, j in zip(*graph.pairs(), strict=True):
            joined[i, j] = 1
        assert Adjacent().exact(graph).tolist() == joined[np.triu_indices(5, 1)].tolist()


@pytest.mark.parametrize(
    ("facts", "k", "epsilon", "match"),
    [
        (public(5001), 2, 1, "too many"),
        (public(9), 5, 1, "cannot be divided"),
        (public(50, node()), 2, 1, "protect edges"),
        (public(50, directed=True), 2, 1, "undirected"),
        (public(200), 4, 0.05, "not even such in which everyone is joined"),
    ],
)
def test_what_cannot_be_found_is_refused(facts: Any, k: int, epsilon: float, match: str) -> None:
    with pytest.raises(DefocusError, match=match) as caught:
        AskPartition(k).methods(facts, Budget(epsilon))
    assert caught.value.fix


@pytest.mark.parametrize("k", [1, 0, True, "2", 2.5])
def test_a_number_that_is_no_count_is_refused(k: Any) -> None:
    with pytest.raises(DefocusError, match="k"):
        AskPartition(k)


def test_the_price_that_is_named_is_enough() -> None:
    with pytest.raises(DefocusError) as caught:
        AskPartition(4).methods(public(200), Budget(0.05))
    enough = float(caught.value.fix.split("epsilon=")[1].split(";")[0])
    assert AskPartition(4).methods(public(200), Budget(enough))
