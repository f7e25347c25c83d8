"""Singular values and their gaps on all small graphs: no edge moves them by more than one."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus.errors import DefocusError, InvalidParameterError
from defocus.graphs import Network, build
from defocus.graphs.certificates import all_graphs, neighbours
from defocus.graphs.statistics import Edges, Likelihood
from defocus.graphs.statistics.spectrum import MOST_NODES, SENSITIVITY, Gap, checked_size, gaps, singular_values


@pytest.mark.parametrize("n", [3, 4, 5])
def test_no_edge_moves_a_singular_value_or_a_utility_by_more_than_its_sensitivity(n: int) -> None:
    values = np.array([singular_values(graph, n) for graph in all_graphs(n)])
    tau = 1.37
    utilities = np.array([[float(u) for u in gaps(list(row), tau)] for row in values])
    worst = 0.0
    for less, more in neighbours(n):
        assert np.abs(values[more] - values[less]).max() <= 1 + 1e-9
        worst = max(worst, np.abs(utilities[more] - utilities[less]).max())
    assert 0.9 < worst <= SENSITIVITY


def test_singular_values_are_those_of_the_matrix() -> None:
    for graph in all_graphs(5)[::50]:
        matrix = np.zeros((5, 5))
        left, right = graph.pairs()
        matrix[left, right] = matrix[right, left] = 1
        assert np.allclose(singular_values(graph, 5), np.linalg.svd(matrix, compute_uv=False), atol=1e-9)


def test_gaps_are_rounded_down_to_thousandths() -> None:
    assert gaps([3.00049, 1.0], 2.0) == [Fraction(1)]
    assert gaps([2.9996, 1.0], 2.0) == [Fraction(999, 1000)]


def test_blocks_stand_out() -> None:
    generator = np.random.default_rng(3)
    n, k = 600, 3
    block = np.arange(n) % k
    joined = np.triu(generator.random((n, n)) < np.where(block[:, None] == block[None, :], 0.15, 0.01), 1)
    graph = build(n, *np.nonzero(joined))
    utilities = gaps(singular_values(graph, 8), 2.8 * np.sqrt(2 * graph.edges / n))
    assert int(np.argmax([float(u) for u in utilities])) == k - 1


def test_graphs_too_large_and_too_many_communities_are_refused() -> None:
    with pytest.raises(DefocusError, match="proven error"):
        checked_size(MOST_NODES + 1, 3)
    with pytest.raises(DefocusError, match="at most 4 communities"):
        checked_size(5, 5)
    for bad in (0, -1, True, 1.5):
        with pytest.raises(DefocusError, match="at_most"):
            checked_size(100, bad)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("k", "threshold"),
    [(0, 1.0), (True, 1.0), (1.5, 1.0), (1, math.nan), (1, math.inf), (1, -0.1), (1, 1e308), (1, "1")],
)
def test_gaps_of_no_meaning_are_refused(k: Any, threshold: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Gap(k, threshold)


def test_what_a_graph_of_this_size_has_not_is_refused_before_the_charge(opened: Callable[..., Network]) -> None:
    g = opened([(0, 1), (1, 2)], nodes=3)
    for part in (Gap(50, 1.0), Gap(3, 1.0), Likelihood((0, 1))):
        with pytest.raises(InvalidParameterError, match=r"communities|labels for 3 nodes"):
            g.joint(part, Edges())
    assert g.remaining().epsilon == pytest.approx(1000)
    assert np.isfinite(g.joint(Gap(2, 1.0), Likelihood((0, 1, 1)), Edges()).release(epsilon=1).columns[0].values).all()
