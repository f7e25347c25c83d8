"""Statistics beside plain counting, the published sensitivities, and what they refuse."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from defocus import edge, item, node
from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.graphs import Graph, Public, build
from defocus.graphs.certificates import Certificate, all_graphs
from defocus.graphs.public import Statistic
from defocus.graphs.statistics import ENTRIES, Degrees, Edges, Histogram, Joint, Stars, Triangles

PUBLIC = Public(edge(), 10)
GRAPHS = [graph for nodes in (3, 4) for graph in all_graphs(nodes)]


def joined(graph: Graph, *nodes: int) -> bool:
    return all(j in graph.neighbours(i) for i, j in combinations(nodes, 2))


def test_edges_degrees_and_histograms_count_what_they_say() -> None:
    for graph in GRAPHS:
        degrees = [sum(joined(graph, i, j) for j in range(graph.nodes) if i != j) for i in range(graph.nodes)]
        assert Edges().exact(graph).tolist() == [sum(degrees) // 2]
        assert Degrees().exact(graph).tolist() == degrees
        assert Degrees(ranked=True).exact(graph).tolist() == sorted(degrees)
        assert Histogram().exact(graph).tolist() == [degrees.count(k) for k in range(graph.nodes)]
        assert Histogram(cumulative=True).exact(graph).tolist() == [
            sum(d <= k for d in degrees) for k in range(graph.nodes - 1)
        ]
        assert Histogram(1).exact(graph).tolist() == [degrees.count(0), sum(d >= 1 for d in degrees)]
        assert Histogram(10**6).exact(graph).tolist() == Histogram().exact(graph).tolist()


def test_stars_and_triangles_count_what_they_say() -> None:
    for graph in GRAPHS:
        nodes = range(graph.nodes)
        for k in (2, 3):
            found = sum(
                all(joined(graph, i, j) for j in leaves)
                for i in nodes
                for leaves in combinations([j for j in nodes if j != i], k)
            )
            assert Stars(k).exact(graph).tolist() == [found]
        found = sum(joined(graph, *three) for three in combinations(nodes, 3))
        assert Triangles().exact(graph).tolist() == [found]
        assert Joint((Edges(), Triangles())).exact(graph).tolist() == [graph.edges, found]


@pytest.mark.parametrize(
    ("statistic", "l1"),
    [
        (Edges(), 1),
        (Degrees(), 2),
        (Degrees(ranked=True), 2),
        (Histogram(), 4),
        (Histogram(cumulative=True), 2),
        (Triangles(), 10 - 2),
        (Stars(2), 2 * 10 - 4),
        (Stars(3), 2 * comb(8, 2)),
        (Joint((Edges(), Histogram())), 5),
        (Joint((Edges(), Stars(2), Triangles())), 3 * 10 - 5),
    ],
    ids=lambda value: value.name if isinstance(value, Statistic) else str(value),
)
def test_the_sensitivities_that_are_published(statistic: Any, l1: int) -> None:
    sensitivity = statistic.sensitivity(PUBLIC)
    assert sensitivity.l1 == l1
    assert statistic.length(PUBLIC) == len(statistic.exact(build(10, [0], [1])))


@pytest.mark.parametrize(("nodes", "l2"), [(3, 2.45), (4, 4.58), (5, 6.78), (6, 9.0)])
def test_the_joint_l2_sensitivity_of_a_random_graph_model(nodes: int, l2: float) -> None:
    sensitivity = Joint((Edges(), Stars(2), Triangles())).sensitivity(Public(edge(), nodes))
    assert float(sensitivity.l2) == pytest.approx(l2, abs=0.01)
    assert sensitivity.l2_squared == 1 + (2 * nodes - 4) ** 2 + (nodes - 2) ** 2


EDGES = [e for e in ENTRIES if not e.certificate.directed and e.certificate.units[0].kind == "edge"]


@pytest.mark.parametrize("entry", EDGES, ids=lambda entry: entry.name)
def test_replacing_an_edge_moves_nothing_further_than_said(entry: Any) -> None:
    swapped = Certificate(statistics=entry.certificate.statistics, units=(edge(replace=True),), smallest=4, slack="sum")
    assert all(finding.holds for finding in swapped.findings(largest=4))


@pytest.mark.parametrize("statistic", [Edges(), Histogram(cumulative=True), Triangles(), Stars(2)])
def test_replacing_an_edge_is_two_changes(statistic: Any) -> None:
    one, two = statistic.sensitivity(PUBLIC), statistic.sensitivity(Public(edge(replace=True), 10))
    assert two.l1 == 2 * one.l1
    assert two.l2_squared == 4 * one.l2_squared


@pytest.mark.parametrize("statistic", [Edges(), Stars(2), Triangles(), Histogram(), Degrees()])
@pytest.mark.parametrize("unit", [item(), node(max_degree=5)])
def test_other_units_are_refused_by_name(statistic: Any, unit: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"one (event|node)"):
        statistic.sensitivity(Public(unit, 10 if unit.kind == "event" else None))


def test_a_private_number_of_nodes_is_not_asked_for() -> None:
    with pytest.raises(NotDeclaredError, match="number of its nodes is private") as caught:
        Triangles().sensitivity(Public(node(), None))
    assert "edges or triangles" in caught.value.fix


@pytest.mark.parametrize(
    ("statistic", "nodes", "says"),
    [
        (Triangles(), 2, "no triangles"),
        (Triangles(), 0, "no triangles"),
        (Stars(2), 2, "no 2-stars"),
        (Stars(5), 5, "no 5-stars"),
        (Stars(12), 10**6, "more than 64 bits hold"),
        (Histogram(), 1, "degrees are public"),
        (Histogram(cumulative=True), 0, "degrees are public"),
        (Degrees(), 0, "no degrees"),
    ],
)
def test_what_a_graph_of_this_size_cannot_have_is_refused(statistic: Any, nodes: int, says: str) -> None:
    with pytest.raises(InvalidParameterError, match=says):
        statistic.sensitivity(Public(edge(), nodes))


@pytest.mark.parametrize("k", [1, 0, -2, True, 2.0, "2", 13, 10**30, None, float("nan")])
def test_stars_of_no_sensible_size_are_refused(k: Any) -> None:
    with pytest.raises(InvalidParameterError, match="k"):
        Stars(k)


@pytest.mark.parametrize("at_most", [0, -1, True, 2.5, "3", 2**63, float("inf")])
def test_a_histogram_of_no_sensible_length_is_refused(at_most: Any) -> None:
    with pytest.raises(InvalidParameterError, match="at_most"):
        Histogram(at_most)


@pytest.mark.parametrize("parts", [(), (Edges(),), (Edges(), Edges()), (Edges(), 3), (Edges(), "triangles")])
def test_a_joint_release_of_less_than_two_statistics_is_refused(parts: Any) -> None:
    with pytest.raises(InvalidParameterError, match="two or more different"):
        Joint(parts)


def test_counts_beyond_64_bits_are_cut() -> None:
    leaves = 2_000_000
    star = build(leaves + 1, np.zeros(leaves, np.int64), np.arange(1, leaves + 1))
    assert Stars(4).exact(star).tolist() == [2**63 - 1]
    assert Stars(2).exact(star).tolist() == [comb(leaves, 2)]
