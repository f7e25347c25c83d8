import math

import pytest
from tests.graphs.asking.small import answer, planted, ways

from defocus import Budget, edge
from defocus.graphs.asking import AskClustering
from defocus.graphs.statistics import Stars, Triangles


def test_the_quotient_is_near_the_truth_and_its_interval_holds_it() -> None:
    graph = planted(600, 4, inside=0.3)
    truth = 3 * Triangles().exact(graph)[0] / Stars(2).exact(graph)[0]
    (method,) = ways(AskClustering(), 600, Budget(2)).values()
    held = 0
    for seed in range(20):
        column = answer(method, graph, seed).columns[0]
        assert column.values[0] == pytest.approx(truth, rel=0.2)
        held += column.low[0] <= truth <= column.high[0]
    assert held >= 18


def test_it_stays_between_zero_and_one_whatever_the_noise() -> None:
    graph = planted(20, 2)
    (method,) = ways(AskClustering(), 20, Budget(0.01), edge()).values()
    assert math.isnan(method.error)
    for seed in range(20):
        column = answer(method, graph, seed).columns[0]
        assert 0 <= column.low[0] <= column.values[0] <= column.high[0] <= 1
