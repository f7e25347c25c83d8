"""Singular values and their gaps on all small graphs: no edge moves them by more than one."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus import edge, node
from defocus.errors import DefocusError, InvalidParameterError
from defocus.graphs import Graph, Network, Public, build
from defocus.graphs.certificates import all_graphs, neighbours
from defocus.graphs.statistics import Edges, Likelihood, PageRank
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


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.85])
def test_the_bound_on_one_entry_holds_and_is_far_from_what_the_vector_needs(alpha: float) -> None:
    """One entry moves by at most damping/(1 - damping); the proven L1 bound is smaller for four nodes and more."""
    for n in (3, 4):
        ranks = np.array([PageRank(alpha).shares(graph) for graph in all_graphs(n)])
        moved = max(float(np.abs(ranks[b] - ranks[a]).max()) for a, b in neighbours(n))
        assert moved <= alpha / (1 - alpha)
    public, rank = Public(edge(), 50), PageRank(alpha)
    assert float(rank.sensitivity(public).l1 * rank.grain(50)) < alpha / (1 - alpha)


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
