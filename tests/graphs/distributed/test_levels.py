"""The level that triangles follow in an engine, on all graphs of up to six nodes.

It bounds how far they move, moves by at most one itself, and keeps the promise of every mechanism that follows it.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from tests.mechanisms import test_ladder, test_local_sensitivity, test_ramp
from tests.mechanisms.small_graphs import moves, neighbours, value

from defocus.graphs.distributed.levels import HUBS, level, nth_degree
from defocus.mechanisms import Ladder, NoisyLocalSensitivity, Ramp

SIZES = [3, 4, 5, pytest.param(6, marks=pytest.mark.slow)]
COMPARED = [1, 2, 3, HUBS]
"""How many nodes are compared: the fewer, the more the K-th largest degree matters."""


@cache
def joined(nodes: int) -> np.ndarray:
    """The adjacency matrices of all labelled graphs."""
    pairs = [(i, j) for i in range(nodes) for j in range(i)]
    number = np.arange(1 << len(pairs))
    made = np.zeros((len(number), nodes, nodes), np.int64)
    for bit, (i, j) in enumerate(reversed(pairs)):
        made[:, i, j] = made[:, j, i] = number >> bit & 1
    return made


def of_graph(rows: np.ndarray, hubs: int, first: int = 64) -> tuple[int, int, int]:
    """The level, by comparing all pairs by the definition; the K-th largest degree; and how far triangles can move."""
    nodes, sizes = len(rows), rows.sum(0)
    common = rows @ rows
    np.fill_diagonal(common, 0)

    def shared(above: int) -> int:
        large = sizes > above
        return int(common[large][:, large].max(initial=0))

    degrees, times = np.unique(sizes, return_counts=True)
    kth = sorted(sizes.tolist(), reverse=True)[hubs - 1] if hubs <= nodes else 0
    return level(degrees, times, nodes, shared, hubs=hubs, first=first), kth, int(common.max())


@cache
def levels(nodes: int, hubs: int) -> np.ndarray:
    return np.array([of_graph(rows, hubs) for rows in joined(nodes)])


def followed(nodes: int, hubs: int) -> tuple[np.ndarray, np.ndarray]:
    """Triangles and levels of all graphs, in one numbering of them."""
    rows = joined(nodes)
    return np.einsum("gij,gjk,gki->g", rows, rows, rows) // 6, levels(nodes, hubs)[:, 0]


@pytest.mark.parametrize("hubs", COMPARED)
@pytest.mark.parametrize("nodes", SIZES)
def test_it_is_the_larger_of_what_two_nodes_share_and_a_degree(nodes: int, hubs: int) -> None:
    found, kth, exact = levels(nodes, hubs).T
    assert np.array_equal(found, np.maximum(exact, np.minimum(kth, nodes - 2)))
    assert (found >= exact).all()
    assert (found <= nodes - 2).all()
    assert np.array_equal(np.sort(exact), np.sort(moves(nodes, "triangles")))
    if hubs > nodes:
        assert np.array_equal(found, exact)


@pytest.mark.parametrize("hubs", COMPARED)
@pytest.mark.parametrize("nodes", SIZES)
def test_one_edge_moves_it_by_at_most_one_and_triangles_by_no_more_than_it(nodes: int, hubs: int) -> None:
    counts, found = followed(nodes, hubs)
    pairs = neighbours(nodes, counts, found)
    assert max(abs(one - other) for _, one, _, other in pairs) == 1
    assert all(abs(a - b) <= min(one, other) for a, one, b, other in pairs)


@pytest.mark.parametrize("hubs", [1, 2, 3])
@pytest.mark.parametrize("nodes", SIZES)
def test_the_ramp_keeps_its_promise(nodes: int, hubs: int) -> None:
    for epsilon in (Fraction(1, 10), Fraction(2)):
        pairs = neighbours(nodes, *followed(nodes, hubs))
        assert test_ramp.worst_ratio(Ramp(epsilon=epsilon, typical=1), pairs, 10**4) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("hubs", [1, 2, 3])
@pytest.mark.parametrize("nodes", SIZES)
def test_the_ladder_keeps_its_promise(nodes: int, hubs: int) -> None:
    m = Ladder(epsilon=1, cap=nodes - 2, typical=1)
    counts, found = followed(nodes, hubs)
    laws = {each: test_ladder.law(m, each, 80) for each in set(found.tolist())}
    log = test_ladder.CTX.log
    worst = max(
        max(abs(log(laws[one][x - a] / laws[other][x - b])) for x in range(-40, 40))
        for a, one, b, other in neighbours(nodes, counts, found)
    )
    assert 0.5 < worst <= 1 + 1e-12


@pytest.mark.parametrize("hubs", [1, 2, 3])
@pytest.mark.parametrize("nodes", [4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_noise_for_a_noisy_bound_keeps_its_promise(nodes: int, hubs: int) -> None:
    epsilon, delta = 2.0, 0.05
    m = NoisyLocalSensitivity(epsilon=epsilon, delta=delta, cap=nodes - 2, typical=1)
    counts, found = followed(nodes, hubs)
    bounds = {each: test_local_sensitivity.bound_law(m, each) for each in set(found.tolist())}
    second = epsilon * (1 - float(m.share or 0))
    noise = {b: test_local_sensitivity.laplace(b / second) for b in range(1, m.cap + 1)}
    tables = {b: np.array([float(noise[b](x)) for x in range(-150, 151)]) for b in noise}

    def lost(shift: int, one: int, other: int) -> float:
        parts = (
            float(bounds[one][b]) * table - math.exp(epsilon) * float(bounds[other][b]) * np.roll(table, shift)
            for b, table in tables.items()
        )
        return float(sum(np.maximum(part, 0)[10:-10].sum() for part in parts))

    assert max(lost(b - a, one, two) for a, one, b, two in neighbours(nodes, counts, found)) <= delta


@pytest.mark.parametrize("hubs", [2, 4, HUBS])
def test_it_does_not_depend_on_which_nodes_are_compared_first(hubs: int) -> None:
    for first in (1, 2, 3):
        again = np.array([of_graph(rows, hubs, first) for rows in joined(5)])
        assert np.array_equal(again, levels(5, hubs))


def test_a_level_that_ignores_small_nodes_would_be_caught() -> None:
    """Without the K-th largest degree, what is found among two nodes is no bound, and jumps."""
    wrong = np.where(levels(5, 3)[:, 1] < 3, levels(5, 3)[:, 2], 0)
    counts, _ = followed(5, 3)
    pairs = neighbours(5, counts, wrong)
    assert max(abs(one - other) for _, one, _, other in pairs) > 1
    assert any(abs(a - b) > min(one, other) for a, one, b, other in pairs)


def test_few_nodes_are_compared_where_hubs_share_much() -> None:
    """Two hubs that share 500 neighbours leave nothing to compare among nodes of degree 100."""
    asked: list[int] = []

    def shared(above: int) -> int:
        asked.append(above)
        return 500

    degrees, times = np.array([2, 100, 600, 900]), np.array([10_000, 5000, 70, 2])
    assert level(degrees, times, 15_072, shared) == 500
    assert asked == [600, 500], "the second time only nodes of a degree above what the first two share"
    asked.clear()
    assert level(degrees, np.array([20_000, 10, 1, 1]), 20_012, shared) == 500
    assert asked == [2]


@pytest.mark.parametrize(("n", "kth"), [(1, 9), (2, 4), (3, 4), (4, 1), (5, 0)])
def test_degrees_are_counted_from_the_largest(n: int, kth: int) -> None:
    assert nth_degree(np.array([1, 4, 9]), np.array([1, 2, 1]), n) == kth


def test_the_numbering_of_graphs_is_that_of_the_other_certificates() -> None:
    counts, _ = followed(5, HUBS)
    assert sorted(counts.tolist()) == sorted(value(5, "triangles").tolist())
