from fractions import Fraction
from typing import Any

import pytest
from tests.graphs.asking.small import answer, random_graph, ways

from defocus import Budget, edge
from defocus.errors import DefocusError, InvalidParameterError
from defocus.graphs.question import chosen, foretold, silent
from defocus.graphs.questions import AskJoint, AskSubgraphs
from defocus.graphs.statistics import Edges, Joint, Stars, Triangles


@pytest.mark.parametrize("unit", [edge(), edge(replace=True)])
@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6)])
def test_all_parts_together_cost_the_budget(unit: Any, budget: Budget) -> None:
    assert ways(AskSubgraphs(("edges", "triangles", "stars_2", "stars_3")), 100, budget, unit)  # each fits its budget


def test_every_shape_is_counted() -> None:
    graph = random_graph(300, 3000)
    method = ways(AskSubgraphs(), 300, Budget(30))["ramp, measured"]
    found = [column.values[0] for column in answer(method, graph).columns]
    exact = [Edges().exact(graph)[0], Stars(2).exact(graph)[0], Triangles().exact(graph)[0]]
    assert found == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("shapes", [(), ("triangles", "triangles"), ("squares",), ("stars_x",), (3,), ("stars_1",)])
def test_shapes_without_proven_noise_are_refused(shapes: Any) -> None:
    with pytest.raises(DefocusError):
        AskSubgraphs(shapes)


@pytest.mark.parametrize("ask", [AskSubgraphs(), AskJoint(Joint([Edges(), Stars(2), Triangles()]))])
def test_several_counts_are_measured_unless_told_and_each_hint_names_a_way(ask: Any) -> None:
    methods = ways(ask, 300, Budget(1))
    assert chosen(ask, [*methods.values()], None).name == "ramp, measured"
    assert not silent(methods["ramp, measured"])
    assert silent(methods["ramp"])
    assert "ramp, measured" not in ways(AskSubgraphs(("edges",)), 300, Budget(1))
    assert foretold(methods["ramp, measured"])


def test_no_statistic_of_a_joint_release_is_left_with_next_to_nothing() -> None:
    ask = AskJoint(Joint([Edges(), Stars(2), Triangles()]))
    separate = ways(ask, 4039, Budget(1))["ramp, measured"]
    assert min(separate.shares) >= Fraction(1, 10)  # type: ignore[attr-defined]  # several in one
    assert sum(separate.shares) == 1  # type: ignore[attr-defined]  # likewise
    assert "epsilon is divided among the statistics: edges 1" in separate.rules[0]
    assert ways(ask, 4039, Budget(1))["ramp, measured"].foretold[0].startswith("expected errors: edges ")  # type: ignore[attr-defined]


def test_shares_follow_weights_where_some_are_given() -> None:
    ask = AskJoint(Joint([Edges(), Triangles()]), (3, 1))
    separate = ways(ask, 100, Budget(1))["ramp, measured"]
    assert separate.shares == (Fraction(3, 4), Fraction(1, 4))  # type: ignore[attr-defined]  # several in one


@pytest.mark.parametrize("weights", [(1,), (1, 2, 3), (0, 1), (-1, 1), (float("nan"), 1), ("1", 1), "ab", (1e9, 1)])
def test_weights_that_divide_nothing_are_refused(weights: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"weights|share epsilon"):
        AskJoint(Joint([Edges(), Triangles()]), weights)
