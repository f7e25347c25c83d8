"""How far statistics move around one graph, at every distance, beside all graphs."""

from math import factorial

import numpy as np
import pytest
from numpy.typing import NDArray

from defocus.graphs.certificates import all_graphs, neighbours
from defocus.graphs.statistics import ClosedEdges, Stars, Triangles

SIZES = [3, 4, 5, pytest.param(6, marks=pytest.mark.slow)]


def around(values: NDArray[np.int64], nodes: int, steps: int) -> list[NDArray[np.int64]]:
    """The local sensitivity of every graph within 0, 1, … ``steps`` edges of it, by brute force."""
    pairs = list(neighbours(nodes))
    local = np.zeros_like(values)
    for without, with_it in pairs:
        moved = np.abs(values[with_it] - values[without])
        local[with_it] = np.maximum(local[with_it], moved)
        local[without] = np.maximum(local[without], moved)
    found = [local]
    for _ in range(steps):
        further = found[-1].copy()
        for without, with_it in pairs:
            further[with_it] = np.maximum(further[with_it], found[-1][without])
            further[without] = np.maximum(further[without], found[-1][with_it])
        found.append(further)
    return found


@pytest.mark.parametrize("nodes", SIZES)
def test_common_neighbours_are_the_local_sensitivity_of_triangles(nodes: int) -> None:
    found = [Triangles().local(graph) for graph in all_graphs(nodes)]
    counts, local = (np.array([pair[i] for pair in found]) for i in (0, 1))
    exact = around(counts, nodes, 6)
    assert np.array_equal(local, exact[0])
    for steps, within in enumerate(exact):
        assert (within <= np.minimum(local + steps, nodes - 2)).all()


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_widths_are_the_local_sensitivities_of_stars(nodes: int, k: int) -> None:
    counts = np.array([int(Stars(k).exact(graph)[0]) for graph in all_graphs(nodes)])
    widths = np.array([Stars(k).widths(graph, 8) for graph in all_graphs(nodes)])
    assert np.array_equal(widths.T, np.stack(around(counts, nodes, 7)))


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_level_of_stars_moves_by_one_and_bounds_their_move(nodes: int, k: int) -> None:
    levels = np.array([Stars(k).level(graph) for graph in all_graphs(nodes)])
    counts = np.array([int(Stars(k).exact(graph)[0]) for graph in all_graphs(nodes)])
    for without, with_it in neighbours(nodes):
        assert (np.abs(levels[with_it] - levels[without]) <= 1).all()
        moved = np.abs(counts[with_it] - counts[without])
        lower = np.minimum(levels[with_it], levels[without])
        assert (moved * factorial(k - 1) <= lower ** (k - 1)).all()


def test_the_level_of_two_stars_is_their_local_sensitivity() -> None:
    for graph in all_graphs(5):
        assert Stars(2).level(graph) == Stars(2).widths(graph, 1)[0]


@pytest.mark.parametrize("nodes", SIZES)
def test_the_level_of_closed_edges_moves_by_one_and_bounds_their_move(nodes: int) -> None:
    found = np.array([ClosedEdges().level(graph) for graph in all_graphs(nodes)])
    counts, levels = found.T
    for without, with_it in neighbours(nodes):
        assert (np.abs(levels[with_it] - levels[without]) <= 1).all()
        lower = np.minimum(levels[with_it], levels[without])
        assert (np.abs(counts[with_it] - counts[without]) <= 2 * lower).all()


def test_closed_edges_are_those_in_a_triangle() -> None:
    for graph in all_graphs(5)[::7]:
        joined = np.zeros((5, 5), int)
        for i, j in zip(*graph.pairs(), strict=True):
            joined[i, j] = joined[j, i] = 1
        closed = ((joined @ joined > 0) & (joined > 0)).sum() // 2
        assert ClosedEdges().exact(graph).tolist() == [closed]
