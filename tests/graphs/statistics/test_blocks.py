"""Block-model likelihoods on all small graphs: no edge moves them by more than ln((1−η)/η)."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from defocus import Budget, edge
from defocus.errors import DefocusError
from defocus.graphs import Public
from defocus.graphs.certificates import all_graphs, neighbours
from defocus.graphs.questions import AskLabellings
from defocus.graphs.statistics.blocks import Blocks


@pytest.mark.parametrize("eta", [0.01, 0.2])
@pytest.mark.parametrize("labels", [[0, 0, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 2, 0, 1]])
def test_no_edge_moves_the_likelihood_further_than_said(labels: list[int], eta: float) -> None:
    blocks = Blocks(labels, eta)
    values = np.array([float(blocks.log_likelihood(graph)) for graph in all_graphs(5)])
    worst = max(np.abs(values[more] - values[less]).max() for less, more in neighbours(5))
    bound = math.log((1 - eta) / eta)
    assert worst <= blocks.sensitivity
    assert bound < blocks.sensitivity < bound + 0.01
    assert worst > 0.4 * bound


def test_the_value_is_the_largest_over_all_probabilities() -> None:
    grid = np.linspace(0.05, 0.95, 181)
    labels = [0, 0, 1, 1]
    for graph in all_graphs(4)[::3]:
        left, right = graph.pairs()
        inside = [sum(1 for i, j in zip(left, right, strict=True) if {i, j} == pair) for pair in ({0, 1}, {2, 3})]
        across = graph.edges - sum(inside)
        best = sum(
            max(e * math.log(p) + (n - e) * math.log(1 - p) for p in grid)
            for e, n in ((inside[0], 1), (inside[1], 1), (across, 4))
        )
        assert float(Blocks(labels, 0.05).log_likelihood(graph)) == pytest.approx(best, abs=0.01)


def test_labels_may_be_anything_and_their_names_do_not_matter() -> None:
    graph = all_graphs(4)[37]
    values = {Blocks(list(names), 0.1).log_likelihood(graph) for names in itertools.permutations(["x", "x", "y", "y"])}
    assert Blocks(["x", "x", "y", "y"], 0.1).log_likelihood(graph) in values
    assert Blocks([5, 5, 1, 1], 0.1).log_likelihood(graph) == Blocks(["x", "x", "y", "y"], 0.1).log_likelihood(graph)
    assert Blocks([5, 5, 1, 1]).blocks == 2


@pytest.mark.parametrize("eta", [0, 0.5, 1, -1, math.nan, "a", None, 1e-12])
def test_a_least_probability_out_of_range_is_refused(eta: Any) -> None:
    with pytest.raises(DefocusError):
        Blocks([0, 1], eta)


def test_labels_that_are_no_list_are_refused() -> None:
    for bad in ("ab", [0], None, 5):
        with pytest.raises(DefocusError, match="one label for each node"):
            Blocks(bad)  # type: ignore[arg-type]  # on purpose


def test_as_many_labels_as_nodes_are_refused_before_a_charge() -> None:
    """A hundred thousand of them would need 80 GB, which would be found out after it."""
    with pytest.raises(DefocusError, match="at most 1000 different labels, and this one has 100000") as caught:
        AskLabellings((range(100_000),)).methods(Public(edge(), 100_000), Budget(1))
    assert "merge labels" in caught.value.fix
    assert Blocks(range(1000)).blocks == 1000
