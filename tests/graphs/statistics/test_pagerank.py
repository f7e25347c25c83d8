"""PageRank beside its definition, the proven bound on all small graphs, refusals."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus import edge, node
from defocus.errors import DefocusError
from defocus.graphs import Graph, Public, build
from defocus.graphs.certificates import all_graphs, neighbours
from defocus.graphs.statistics import PageRank


def solved(graph: Graph, alpha: float) -> np.ndarray:
    """The linear equation itself."""
    n = graph.nodes
    steps = np.zeros((n, n))
    for w in range(n):
        near = graph.neighbours(w)
        if len(near):
            steps[w, near] = 1 / len(near)
        else:
            steps[w, w] = 1
    found: np.ndarray = np.linalg.solve(np.eye(n) - alpha * steps.T, np.full(n, (1 - alpha) / n))
    return found


@pytest.mark.parametrize("alpha", [0.15, 0.5, 0.85])
def test_ranks_solve_their_equation(alpha: float) -> None:
    rank = PageRank(alpha)
    for graph in all_graphs(4)[::5]:
        assert np.allclose(rank.shares(graph), solved(graph, alpha), atol=1e-14)
        assert np.abs(rank.exact(graph) * float(rank.grain(4)) - solved(graph, alpha)).max() <= float(rank.grain(4))


def bound(alpha: float, n: int) -> float:
    return 2 * alpha * max(1 / (1 - alpha), 2) / n


@pytest.mark.parametrize("alpha", [0.15, 0.5, 0.85])
@pytest.mark.parametrize("n", [3, 4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_no_edge_moves_ranks_further_than_the_bound(n: int, alpha: float) -> None:
    ranks = np.stack([solved(graph, alpha) for graph in all_graphs(n)])
    degrees = np.stack([graph.degrees for graph in all_graphs(n)])
    assert (ranks <= np.maximum(degrees, 1) / n + 1e-12).all(), "a node ranks at most as its degree"
    worst = max(np.abs(ranks[more] - ranks[less]).sum(axis=1).max() for less, more in neighbours(n))
    assert worst <= bound(alpha, n)
    assert worst > bound(alpha, n) / 15, "the bound is not idle"


@pytest.mark.parametrize("alpha", [0.15, 0.5, 0.85, 0.99])
def test_no_edge_of_larger_graphs_moves_ranks_further_than_the_bound(alpha: float) -> None:
    """Two graphs that one edge joins, of every kind: here mass can flow from one to the other."""
    shapes: dict[str, list[tuple[int, int]]] = {
        "edge": [(0, 1)],
        "star": [(0, i) for i in range(1, 30)],
        "ring": [(i, (i + 1) % 20) for i in range(20)],
        "complete": [(i, j) for i in range(15) for j in range(i)],
        "path": [(i, i + 1) for i in range(25)],
        "tadpole": [(i, j) for i in range(10) for j in range(i)] + [(i, i + 1) for i in range(9, 15)],
    }
    for first in shapes.values():
        for second in shapes.values():
            shift = 1 + max(max(pair) for pair in first)
            both = first + [(i + shift, j + shift) for i, j in second]
            n = 1 + max(max(pair) for pair in both)
            before = solved(build(n, *zip(*both, strict=True)), alpha)
            for u, v in ((0, shift), (1, shift), (0, shift + 1), (1, shift + 1), (shift - 1, n - 1)):
                after = solved(build(n, *zip(*both, (u, v), strict=True)), alpha)
                assert np.abs(after - before).sum() <= bound(alpha, n)


@pytest.mark.parametrize("n", [2, 100, 50_000, 10**6])
@pytest.mark.parametrize("alpha", [0.5, 0.85])
def test_rounding_is_counted_and_small(n: int, alpha: float) -> None:
    rank = PageRank(alpha)
    said = float(rank.sensitivity(Public(edge(), n)).l1 * rank.grain(n))
    assert bound(alpha, n) * 1.0005 < said < bound(alpha, n) * 1.01
    assert rank._steps > 60 / -math.log2(alpha) - 1
    assert 1 / float(rank.grain(n)) < 2**62


def test_a_replaced_edge_counts_twice() -> None:
    one, two = (PageRank(0.5).sensitivity(Public(edge(replace=r), 50)).l1 for r in (False, True))
    assert two == 2 * one


@pytest.mark.parametrize("bad", [0, 1, -0.5, 1.5, math.nan, math.inf, True, "0.5", None])
def test_a_damping_out_of_range_is_refused(bad: Any) -> None:
    with pytest.raises(DefocusError, match="damping"):
        PageRank(bad)


def test_other_graphs_are_refused() -> None:
    rank = PageRank(Fraction(1, 2))
    for public in (Public(edge(), 1), Public(edge(), 10**7), Public(edge(), 50, directed=True)):
        with pytest.raises(DefocusError, match="offered for undirected graphs"):
            rank.sensitivity(public)
    with pytest.raises(DefocusError):
        rank.sensitivity(Public(node(), None))


def test_a_graph_without_edges_ranks_all_alike() -> None:
    assert set(PageRank(0.5).exact(build(7, [], [])).tolist()) == {round(1 / 7 / float(PageRank(0.5).grain(7)))}
