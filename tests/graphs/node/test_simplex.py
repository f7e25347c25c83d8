from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from defocus.graphs.node.simplex import optimum


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
