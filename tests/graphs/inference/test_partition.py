"""Communities out of noisy reports, and how many nodes they hold rightly, beside what is foretold."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from defocus.graphs.inference import least_strength, partition, recovery
from defocus.noise import Bits
from defocus.noise.testing import seeded


def reports_of(
    nodes: int, k: int, neighbours: tuple[float, float], epsilon: float, seed: int
) -> tuple[NDArray[np.bool_], int, int, float, Bits]:
    """Reports about a planted partition in which a node has so many neighbours in its own and in another one."""
    draw = np.random.default_rng(seed)
    left, right = np.triu_indices(nodes, 1)
    chance = np.where(left % k == right % k, *neighbours) * k / nodes
    flipped = 1 / (1 + math.exp(epsilon))
    joined = (draw.random(len(left)) < chance) ^ (draw.random(len(left)) < flipped)
    return joined, nodes, k, flipped, seeded(seed)


def placed(labels: NDArray[np.int64], k: int) -> float:
    """The share of nodes in the community that most of their own are in."""
    truth = np.arange(len(labels)) % k
    return sum(int(np.bincount(labels[truth == part]).max()) for part in range(k)) / len(labels)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("nodes", "k", "inside", "across", "epsilon"),
    [
        (200, 2, 18, 2, 2),
        (200, 2, 18, 2, 3),
        (300, 3, 30, 4, 2),
        (200, 4, 12, 1, 3),
        (200, 2, 18, 2, 1),
        (400, 2, 24, 4, 1.5),
    ],
)
def test_as_many_nodes_are_placed_rightly_as_foretold(
    nodes: int, k: int, inside: float, across: float, epsilon: float
) -> None:
    shares, strengths = [], []
    for seed in range(4):
        found = partition(*reports_of(nodes, k, (inside, across), epsilon, seed))
        shares.append(placed(found.labels, k))
        strengths.append(float(found.strengths.min()))
    variance = 1 / (2 * math.sinh(epsilon / 2)) ** 2
    assert np.mean(shares) == pytest.approx(recovery(nodes, k, variance, inside - across), abs=0.08)
    if np.mean(shares) > 0.9:
        assert np.mean(strengths) == pytest.approx(inside - across, rel=0.25)


def test_below_the_least_strength_nothing_stands_out() -> None:
    variance = 1 / (2 * math.sinh(0.5)) ** 2
    assert least_strength(400, variance) > 12
    found = partition(*reports_of(400, 2, (6, 2), 1, 1))
    assert np.isnan(found.strengths).all()
    assert placed(found.labels, 2) < 0.65
    assert recovery(400, 2, variance, 4) == 0.5


def test_every_list_of_reports_has_a_partition() -> None:
    for nodes, k in ((4, 2), (5, 2), (9, 3)):
        pairs = math.comb(nodes, 2)
        for reports in (np.zeros(pairs, bool), np.ones(pairs, bool), np.arange(pairs) % 2 == 0):
            labels = partition(reports, nodes, k, 0.2, seeded(1)).labels
            assert labels.shape == (nodes,)
            assert set(labels.tolist()) <= set(range(k))
