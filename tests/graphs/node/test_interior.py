"""The interior point method: weights and prices that prove each other."""

import numpy as np
import pytest

from defocus.graphs.node.interior import solved


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
