"""Errors and costs that are published, each computed here from what would be released.

Sensitivities are in statistics/test_statistics.py.
"""

import itertools
import math

import numpy as np
import pytest

from defocus import Budget, edge, item, node, weight
from defocus.graphs import Public
from defocus.graphs.certificates import all_graphs
from defocus.graphs.questions import AskEdges, AskInteractions, AskWeights
from defocus.graphs.statistics import Degrees, Triangles
from defocus.mechanisms import Laplace
from defocus.privacy import events
from defocus.workloads import explicit, plan

PUBLIC = Public(edge(), 50)


@pytest.mark.parametrize("target", [4.0, 50.0, 800.0])
def test_epsilon_for_a_target_of_the_squared_error(target: float) -> None:
    """√(2/M) for edges, D√(2/M) for nodes of degree at most D: of continuous noise; discrete noise is just below."""
    by_edge = math.sqrt(2 / target)
    assert target * 0.8 < Laplace.calibrated(epsilon=by_edge).variance <= target
    cap = 9
    (method,) = AskEdges(cap).methods(Public(node(), None), Budget(cap * by_edge))
    squared = method.mechanism.variance / 4  # type: ignore[attr-defined]  # a VectorNoise on twice the edges
    assert target * 0.8 < squared <= target


@pytest.mark.parametrize("n", [4, 5, 6, 9])
def test_releasing_degrees_directly_is_better_by_a_quarter_of_n_minus_one(n: int) -> None:
    """Section 7.6: the squared errors of noisy pairs added up, and of noisy degrees, are as (n − 1)/4 to 1."""
    pairs = list(itertools.combinations(range(n), 2))
    incidence = np.zeros((n, len(pairs)), np.int64)
    for column, pair in enumerate(pairs):
        incidence[list(pair), column] = 1
    made = plan(explicit(incidence), epsilon=1, noise="laplace")
    assert made.identity_error / made.direct_error == pytest.approx((n - 1) / 4)
    graph = all_graphs(4)[-1]
    assert Degrees().exact(graph).tolist() == [3, 3, 3, 3]


def test_one_weight_moves_sums_by_its_bound_and_one_event_a_series_by_one() -> None:
    (method,) = AskWeights().methods(Public(weight(bound=7), 5), Budget(1))
    assert method.error == pytest.approx(7, rel=1e-6), "the scale of noise for epsilon 1 is the sensitivity"
    (series,) = AskInteractions(1, 0, 365).methods(Public(item(), 5), Budget(1))
    assert series.event == events.DiscreteLaplace(1, 1)


def test_mean_absolute_error_of_triangles_is_the_sensitivity_over_epsilon() -> None:
    noise = Laplace.calibrated(epsilon=0.5, sensitivity=Triangles().sensitivity(PUBLIC).l1)
    assert noise.error == pytest.approx(48 / 0.5, rel=1e-3)
