import math

import pytest
from tests.graphs.asking.small import answer, planted, ways

from defocus import Budget, edge
from defocus.graphs.asking import AskClustering
from defocus.graphs.questions import chosen, foretold, silent
from defocus.graphs.statistics import Stars, Triangles


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
