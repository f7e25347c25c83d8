"""Every registered statistic is checked on all small graphs; and the checker notices a statistic that lies."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus import Budget, edge, item, node, rows, weight
from defocus.errors import InvalidParameterError
from defocus.graphs import Certificate, Entry, Graph, Public, Sensitivity
from defocus.graphs.certificates import MOMENTS, Finding, all_directed, all_graphs, neighbours, without_node
from defocus.graphs.noise import noises, numbers
from defocus.graphs.statistics import ENTRIES, Edges, Interactions, Joint, WeightSums
from defocus.graphs.statistics.weights import STEPS, steps_of

NODES = [entry for entry in ENTRIES if entry.certificate.units[0].kind == "node"]
_FAST = {"edge": 5, "node": 4, "weight": 2, "event": 2}


@dataclass(frozen=True)
class Said:
    """The number of edges, with whatever sensitivity it says."""

    l1: int
    l2_squared: int
    factor: int = 1
    name: str = "said"

    def exact(self, graph: Any) -> Any:
        return np.array([self.factor * graph.edges])

    def length(self, _public: Public) -> int:
        return 1

    def sensitivity(self, _public: Public) -> Sensitivity:
        return Sensitivity(self.l1, self.l2_squared)


@dataclass(frozen=True)
class Highest:
    """The largest degree, less the number of nodes without an edge: moved twice where one node replaces another."""

    name: str = "highest"

    def exact(self, graph: Any) -> Any:
        return np.array([int(graph.degrees.max(initial=0)) - int((graph.degrees == 0).sum())])

    def length(self, _public: Public) -> int:
        return 1

    def sensitivity(self, _public: Public) -> Sensitivity:
        return Sensitivity(9, 81)


def judged(certificate: Certificate, finding: Finding) -> None:
    assert finding.holds, str(finding)
    if certificate.expects_tight(finding):
        assert finding.tight, str(finding)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_sensitivity_of_every_statistic_holds_and_is_attained(entry: Entry) -> None:
    found = 0
    for finding in entry.certificate.findings(largest=min(_FAST[unit.kind] for unit in entry.certificate.units)):
        judged(entry.certificate, finding)
        found += 1
    assert found >= 2


@pytest.mark.long
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_also_on_all_graphs_of_six_nodes_and_of_five_under_node_privacy(entry: Entry) -> None:
    findings = list(entry.certificate.findings())
    assert findings
    for finding in findings:
        judged(entry.certificate, finding)


@pytest.mark.parametrize("said", [Said(1, 1, factor=2), Said(1, 4, factor=2), Said(2, 3, factor=2)])
def test_a_statistic_that_says_too_little_is_caught(said: Said) -> None:
    (finding,) = list(Certificate(statistics=(said,), units=(edge(),), smallest=3).findings(largest=3))
    assert not finding.holds


@pytest.mark.parametrize("said", [Said(2, 1), Said(1, 2)])
def test_a_statistic_that_says_too_much_is_not_tight(said: Said) -> None:
    (finding,) = list(Certificate(statistics=(said,), units=(edge(),), smallest=3).findings(largest=3))
    assert finding.holds
    assert not finding.tight


def test_a_slack_bound_must_hold_but_need_not_be_attained() -> None:
    slack = Certificate(statistics=(Said(9, 81),), units=(edge(),), smallest=3, slack="for the test")
    (finding,) = list(slack.findings(largest=3))
    assert finding.holds
    assert not slack.expects_tight(finding)
    assert Certificate(statistics=(Said(9, 81),), units=(edge(),)).expects_tight(finding)


def test_replacing_an_edge_is_another_neighbourhood() -> None:
    (finding,) = list(
        Certificate(statistics=(Said(2, 4),), units=(edge(replace=True),), smallest=4).findings(largest=4)
    )
    assert (finding.l1, finding.l2_squared) == (0, 0)


def test_node_privacy_removes_a_node_with_its_edges() -> None:
    (finding,) = list(Certificate(statistics=(Said(3, 9),), units=(node(),), smallest=4).findings(largest=4))
    assert (finding.l1, finding.l2_squared) == (3, 9)


def test_replacing_a_node_is_another_neighbourhood() -> None:
    """Of four nodes, one without edges may become one with three, and no more edges than these come or go."""
    replaced = Certificate(statistics=(Said(3, 9),), units=(node(replace=True),), smallest=4)
    (finding,) = list(replaced.findings(largest=4))
    assert (finding.l1, finding.l2_squared) == (3, 9)
    (pairs,) = list(Certificate(statistics=(Highest(),), units=(node(replace=True),), smallest=4).findings(largest=4))
    (alone,) = list(Certificate(statistics=(Highest(),), units=(node(),), smallest=4).findings(largest=4))
    assert pairs.l1 > alone.l1, "one node goes and another comes"


@pytest.mark.parametrize("entry", NODES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("largest", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_replacing_a_node_moves_nothing_further_than_said(entry: Entry, largest: int) -> None:
    units, smallest = (node(replace=True),), max(3, largest - 1)
    swapped = Certificate(statistics=entry.certificate.statistics, units=units, smallest=smallest, slack="two changes")
    assert all(finding.holds and finding.l1 for finding in swapped.findings(largest=largest))


def test_a_certificate_may_stop_at_less_nodes() -> None:
    short = Certificate(statistics=(Said(1, 1),), units=(edge(),), smallest=2, largest=3)
    assert [finding.nodes for finding in short.findings()] == [2, 3]


@pytest.mark.parametrize("ask", [lambda s: s, lambda s: Joint((Edges(), s))])
def test_a_statistic_that_is_not_registered_is_given_no_noise(ask: Any) -> None:
    with pytest.raises(InvalidParameterError, match="Said is not registered") as caught:
        noises(ask(Said(1, 1)), Public(edge(), 5), Budget(1), numbers("said"))
    assert "ENTRIES" in caught.value.fix


@pytest.mark.parametrize(("nodes", "graphs"), [(0, 1), (1, 1), (2, 2), (3, 8), (4, 64), (5, 1024)])
def test_all_labelled_graphs_are_there_once(nodes: int, graphs: int) -> None:
    every = all_graphs(nodes)
    assert len(every) == graphs
    assert len({tuple(map(tuple, np.stack(graph.pairs()).tolist())) for graph in every}) == graphs
    assert all(
        np.array_equal(graph.neighbours(i), np.sort(graph.neighbours(i))) for graph in every for i in range(nodes)
    )


def test_all_directed_graphs_are_there_once() -> None:
    every = all_directed(3)
    assert len({(tuple(graph.offsets), tuple(graph.targets)) for graph in every}) == 64
    assert sum(len(a) for a, _ in neighbours(3, directed=True)) == 64 * 6 // 2


def test_neighbours_differ_in_one_edge() -> None:
    graphs = all_graphs(4)
    for without, with_it in neighbours(4):
        assert all(graphs[b].edges == graphs[a].edges + 1 for a, b in zip(without, with_it, strict=True))


def test_removing_a_node_keeps_the_order_of_the_others() -> None:
    square = next(g for g in all_graphs(4) if np.array_equal(np.stack(g.pairs()).T, [[0, 1], [0, 3], [1, 2], [2, 3]]))
    left = without_node(square, 1)
    assert isinstance(left, Graph)
    assert np.stack(left.pairs()).T.tolist() == [[0, 2], [1, 2]]


def test_a_statistic_without_a_certificate_cannot_be_registered() -> None:
    with pytest.raises(InvalidParameterError, match="'sure' has no certificate") as caught:
        Entry("sure", Edges, None)  # type: ignore[arg-type]  # the refusal is the test
    assert "Certificate(" in caught.value.fix


def test_what_is_no_statistic_cannot_be_registered() -> None:
    with pytest.raises(InvalidParameterError, match="int is not a statistic"):
        Entry("three", int, Certificate(statistics=(3,), units=(edge(),)))


@pytest.mark.parametrize("units", [(), (rows(),)])
def test_a_certificate_without_a_unit_of_graphs_is_refused(units: Any) -> None:
    with pytest.raises(InvalidParameterError, match="a unit of edges, nodes, weights or events"):
        Certificate(statistics=(Edges(),), units=units)


@dataclass(frozen=True)
class Wrong:
    """A statistic with a fault, which says what the right one says."""

    right: Any
    fault: Any
    name: str = "wrong"

    def exact(self, data: Any) -> Any:
        return self.fault(data)

    def length(self, public: Public) -> int:
        return int(self.right.length(public))

    def sensitivity(self, public: Public) -> Sensitivity:
        found: Sensitivity = self.right.sensitivity(public)
        return found


def uncut(data: Any) -> Any:
    return np.array([np.rint(np.nan_to_num(data.pairs.weights) / 3 * STEPS).sum()], np.int64)


def both_ends(data: Any) -> Any:
    return np.array([2 * steps_of(data.pairs, Fraction(3)).sum()], np.int64)


@pytest.mark.parametrize("fault", [uncut, both_ends])
def test_weights_that_are_not_cut_or_count_twice_are_caught(fault: Any) -> None:
    wrong = Wrong(WeightSums("total", Fraction(3)), fault)
    findings = list(Certificate(statistics=(wrong,), units=(weight(bound=3),)).findings(largest=2))
    assert findings
    assert not any(finding.holds for finding in findings)


def test_interactions_that_are_in_two_steps_are_caught() -> None:
    wrong = Wrong(Interactions((0, 5, 10)), lambda data: np.cumsum(Interactions((0, 5, 10)).exact(data)))
    for unit in (item(), item(replace=True)):
        found = list(Certificate(statistics=(wrong,), units=(unit,)).findings(largest=2))
        assert [finding.holds for finding in found] == [unit == item(replace=True)]
        assert found[0].l1 == 2


def test_moments_lie_in_and_around_the_steps() -> None:
    known = [moment for moment in MOMENTS if 0 <= moment < 10]
    assert {moment < 5 for moment in known} == {True, False}
    assert len(MOMENTS) > len(known) + 1
