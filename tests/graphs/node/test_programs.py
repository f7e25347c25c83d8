"""The interior point method: weights and prices that prove each other."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from defocus import Budget, node
from defocus.errors import DefocusError
from defocus.graphs import Public, build
from defocus.graphs.certificates import all_graphs
from defocus.graphs.data import Data
from defocus.graphs.node import GRAIN, capped_triangles, programs
from defocus.graphs.node.programs import optimum, solved, triangle_list
from defocus.graphs.node.programs import solved as solved_by_steps
from defocus.graphs.questions import AskTriangles
from defocus.graphs.statistics import Triangles
from defocus.noise.testing import seeded


def test_every_triangle_is_listed_once() -> None:
    for graph in all_graphs(5)[::7]:
        corners = [tuple(row) for row in triangle_list(graph).tolist()]
        assert len(set(corners)) == len(corners) == int(Triangles().exact(graph)[0])
        for i, j, k in corners:
            assert i < j < k
            assert {j, k} <= set(graph.neighbours(i).tolist())
            assert k in graph.neighbours(j)


def test_a_cap_above_all_counts_every_triangle() -> None:
    for graph in all_graphs(5)[::11]:
        assert capped_triangles(graph, 6) == GRAIN * int(Triangles().exact(graph)[0])


def test_values_of_the_complete_graph_are_those_of_equal_weights() -> None:
    """K5 has 10 triangles, 6 at each node: equal weights D/6 are best, 10 D/6 in all."""
    complete = all_graphs(5)[-1]
    for cap in (1, 2, 3, 4, 5):
        assert capped_triangles(complete, cap) / GRAIN == pytest.approx(10 * cap / 6, abs=2 / GRAIN)


def test_a_larger_graph_is_solved_and_proven() -> None:
    generator = np.random.default_rng(4)
    graph = build(60, generator.integers(0, 60, 600), generator.integers(0, 60, 600))
    values = [capped_triangles(graph, cap) for cap in (1, 5, 20)]
    assert values == sorted(values)
    assert values[0] <= GRAIN * 20


def raising(*_: Any) -> Any:
    raise FloatingPointError


def empty(*_: Any) -> Any:
    return np.asarray(None), np.asarray(None)


def without_numbers(rows: Any, _many: Any, nodes: int, _cap: int) -> Any:
    return np.full(len(rows), np.nan), np.full(nodes, -np.inf)


def far_off(_rows: Any, many: Any, nodes: int, _cap: int) -> Any:
    return 0.01 * many, np.zeros(nodes)


@pytest.mark.parametrize("broken", [raising, empty, without_numbers, far_off])
def test_where_no_solver_can_be_believed_the_answer_is_found_exactly(
    broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(3)
    graphs = [*all_graphs(5)[::41], all_graphs(5)[-1]]
    graphs.append(build(14, generator.integers(0, 14, 60), generator.integers(0, 14, 60)))
    right = [capped_triangles(graph, cap) for graph in graphs for cap in (1, 2, 4)]
    monkeypatch.setattr(programs, "solved", broken)
    monkeypatch.setattr(programs, "_sparse", broken)
    assert [capped_triangles(graph, cap) for graph in graphs for cap in (1, 2, 4)] == pytest.approx(right, abs=1)


def test_one_solver_that_errs_is_replaced_by_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = all_graphs(5)[-1]
    right = capped_triangles(graph, 2)
    monkeypatch.setattr(programs, "solved", far_off)
    monkeypatch.setattr(programs, "optimum", raising)
    assert capped_triangles(graph, 2) == pytest.approx(right, abs=1)


def test_a_release_of_a_graph_that_no_solver_solves_is_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "solved", raising)
    monkeypatch.setattr(programs, "_sparse", empty)
    (method,) = AskTriangles(cap=2).methods(Public(node(), None), Budget(50))
    (column,) = method.run(Data.of(all_graphs(5)[-1]), seeded(1)).columns
    assert column.values[0] == pytest.approx(10 * 2 / 6, abs=1)


def test_infeasible_weights_are_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = all_graphs(5)[-1]

    def too_large(rows: Any, many: Any, nodes: int, cap: int) -> Any:
        weights, prices = solved_by_steps(rows, many, nodes, cap)
        return weights * (1 + 1e-6), prices

    right = capped_triangles(graph, 2)
    monkeypatch.setattr(programs, "solved", too_large)
    assert abs(capped_triangles(graph, 2) - right) <= 1


def test_a_cap_that_is_no_count_is_refused() -> None:
    with pytest.raises(DefocusError, match="cap"):
        capped_triangles(all_graphs(3)[-1], 0)


def test_a_core_with_a_quarter_of_a_million_triangles_is_solved_in_a_moment() -> None:
    """A core of 70 nodes that all know each other and 300 others: one row for each node of the core, not for all."""
    core, others = 70, 300
    inside = np.triu_indices(core, 1)
    outside = np.repeat(np.arange(core), others), np.tile(np.arange(core, core + others), core)
    graph = build(core + others, *(np.concatenate(sides) for sides in zip(inside, outside, strict=True)))
    cap = 4000
    assert len(triangle_list(graph)) == 70 * 69 * 68 // 6 + others * 70 * 69 // 2
    # Each node of the core has C(69, 2) + 300 * 69 triangles and is full; with two of them in every triangle with an
    # outsider and none spent on triangles inside, 70 * 4000 / 2 fit.
    assert capped_triangles(graph, cap) / GRAIN == pytest.approx(core * cap / 2, abs=2 / GRAIN)


def test_both_solvers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(8)
    graph = build(80, generator.integers(0, 80, 900), generator.integers(0, 80, 900))
    dense = [capped_triangles(graph, cap) for cap in (1, 7, 30)]
    monkeypatch.setattr(programs, "_DENSE", 0)
    assert [capped_triangles(graph, cap) for cap in (1, 7, 30)] == pytest.approx(dense, abs=1)


def bounds(corners: object, many: object, nodes: int, cap: int) -> tuple[float, float]:
    rows, room = np.array(corners), np.array(many)
    weights, prices = solved(rows, room, nodes, cap)
    known = np.append(prices, 0.0)
    assert (weights > -1e-9).all()
    assert (weights < room + 1e-6).all()
    high = cap * prices.sum() + (np.maximum(1 - known[rows].sum(axis=1), 0) * room).sum()
    return float(weights.sum()), float(high)


def test_one_node_takes_as_much_as_its_cap() -> None:
    low, high = bounds([[0, 1, 1]], [10], 1, 3)
    assert low == pytest.approx(3, abs=1e-3)
    assert high == pytest.approx(3, abs=1e-3)


def test_two_nodes_share_what_is_better_spent_alone() -> None:
    """Things at one node cost half of what things at two nodes cost."""
    low, high = bounds([[0, 2, 2], [1, 2, 2], [0, 1, 2]], [2, 2, 9], 2, 5)
    assert low == pytest.approx(2 + 2 + 3, abs=1e-3)
    assert high == pytest.approx(low, abs=1e-3)


def test_random_systems_are_solved_to_a_small_gap() -> None:
    draw = np.random.default_rng(3)
    for nodes in (3, 20, 60):
        rows = np.sort(draw.integers(0, nodes + 1, (400, 3)), axis=1)
        rows = rows[(rows[:, 0] < rows[:, 1]) & (rows[:, 1] < rows[:, 2])]
        low, high = bounds(rows, draw.integers(1, 50, len(rows)), nodes, 40)
        assert high - low < 1e-2


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_another_solver(seed: int) -> None:
    draw = np.random.default_rng(seed)
    nodes, cap = int(draw.integers(1, 9)), int(draw.integers(1, 8))
    things = [sorted({int(v) for v in draw.integers(0, nodes + 1, 3)}) for _ in range(int(draw.integers(1, 30)))]
    many = draw.integers(1, 5, len(things)).tolist()
    incidence = np.zeros((nodes + 1, len(things)))
    for column, corners in enumerate(things):
        incidence[corners, column] = 1
    bounds = [(0, m) for m in many]
    best = linprog(-np.ones(len(things)), A_ub=incidence[:nodes], b_ub=np.full(nodes, cap), bounds=bounds)
    assert float(optimum(things, many, nodes, cap)) == pytest.approx(-best.fun)


def test_it_is_a_rational_number() -> None:
    """Three pairs of three nodes, one at each: a half of every pair."""
    assert optimum([(0, 1), (0, 2), (1, 2)], [1, 1, 1], 3, 1) == Fraction(3, 2)


def test_many_equal_things_do_not_make_it_go_round_in_circles() -> None:
    """All rooms are used up at once again and again: steps that raise nothing."""
    things = [(i, j, k) for i in range(6) for j in range(i) for k in range(j)]
    assert optimum(things, [1] * len(things), 6, 1) == 2
    assert optimum(things * 3, [1] * (3 * len(things)), 6, 10) == 20


def test_what_takes_no_room_counts_whole() -> None:
    assert optimum([(3, 3, 3), (0, 3, 3)], [7, 7], 3, 2) == 9
    assert optimum([], [], 2, 5) == 0
