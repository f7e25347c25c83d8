import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from defocus.mechanisms.quantile_tree import NoisyTree, Tree, best_tree
from defocus.noise.testing import seeded
from defocus.privacy import events

HALF = Fraction(1, 2)
shapes = st.sampled_from([(7,), (2, 3), (3, 3), (2, 2, 2), (3, 2, 2), (2, 4, 3)])


def measured(tree: Tree) -> np.ndarray:
    """The matrix that takes a histogram over all places, also those beyond the buckets, to the sums of all nodes."""
    places = math.prod(tree.fans)
    rows = [np.repeat(np.eye(places // width), width, axis=1) for width in tree.widths]
    return np.concatenate(rows)


def split(tree: Tree, values: np.ndarray) -> list[np.ndarray]:
    places = math.prod(tree.fans)
    ends = np.cumsum([places // width for width in tree.widths])[:-1]
    return np.split(values, ends, axis=1)


@given(fans=shapes, spare=st.integers(0, 1), seed=st.integers(0, 1000))
def test_the_estimate_is_the_least_squares_one(fans: tuple[int, ...], spare: int, seed: int) -> None:
    tree = Tree(math.prod(fans) - spare, fans)
    noisy = np.random.default_rng(seed).integers(-50, 50, (3, len(measured(tree))))
    before, everything = tree.cumulative(split(tree, noisy))
    leaves = np.linalg.lstsq(measured(tree), noisy.T, rcond=None)[0].T
    assert before[:, 1:] == pytest.approx(np.cumsum(leaves, axis=1)[:, : tree.buckets])
    assert before[:, 0] == pytest.approx(0)
    assert everything == pytest.approx(leaves.sum(axis=1))


@given(fans=shapes, spare=st.integers(0, 1), level=st.floats(0.01, 0.99))
def test_the_spread_follows_from_the_covariance(fans: tuple[int, ...], spare: int, level: float) -> None:
    tree = Tree(math.prod(fans) - spare, fans)
    matrix = measured(tree)
    covariance = np.linalg.inv(matrix.T @ matrix)
    places = math.prod(fans)
    for t, spread in enumerate(tree.spread(level)):
        weights = (np.arange(places) < t) - level
        assert spread == pytest.approx(math.sqrt(weights @ covariance @ weights))


@given(counts=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=5, max_size=5))
def test_sums_never_overflow_and_are_those_of_the_cut_weights(counts: list[int]) -> None:
    tree = Tree(5, (2, 3))
    cut = [min(max(x, 0), 2**62 // 5) for x in counts]
    top, leaves = tree.sums(np.array([counts]))
    assert top.tolist() == [[sum(cut[:3]), sum(cut[3:])]]
    assert leaves.tolist() == [[*cut, 0]]


def test_a_user_moves_all_sums_by_their_weight_at_each_depth() -> None:
    tree, most = Tree(4, (2, 2)), 3
    worst = 0
    for h, d in itertools.product(itertools.product(range(3), repeat=4), itertools.product(range(most + 1), repeat=4)):
        if sum(d) <= most:
            exact = [tree.sums(np.array([x])) for x in (h, np.add(h, d))]
            worst = max(worst, sum(int(np.abs(a - b).sum()) for a, b in zip(*exact, strict=True)))
    noisy = NoisyTree((HALF,), 1, 4, most)
    assert len(noisy.tree.fans) * most == noisy.event.sensitivity
    assert worst == 2 * most


@pytest.mark.parametrize(("buckets", "fans"), [(1, (1,)), (2, (2,)), (64, (8, 8)), (4096, (16, 16, 16))])
def test_the_best_tree_is_balanced(buckets: int, fans: tuple[int, ...]) -> None:
    assert best_tree(buckets).fans == fans


@settings(max_examples=60)
@given(st.integers(1, 5000))
def test_every_number_of_buckets_has_a_tree_that_holds_it(buckets: int) -> None:
    tree = best_tree(buckets)
    assert buckets <= math.prod(tree.fans) < 2 * buckets + 2


def test_the_event_describes_the_noise_that_is_drawn() -> None:
    noisy = NoisyTree((HALF,), Fraction(1, 2), 64, 3)
    assert noisy.event == events.DiscreteLaplace(12, 6)


HISTOGRAMS = {
    "spread": np.full(256, 5),
    "one bucket": np.where(np.arange(256) == 77, 3000, 0),
    "two far apart": np.where(np.isin(np.arange(256), [3, 250]), 200, 0),
    "few": np.where(np.arange(256) % 60 == 9, 4, 0),
    "empty": np.zeros(256, np.int64),
}
LEVELS = (Fraction(1, 10), Fraction(1, 4), HALF, Fraction(9, 10))


@pytest.mark.statistical
@pytest.mark.parametrize("name", HISTOGRAMS)
def test_intervals_hold_their_quantile_as_often_as_they_say(name: str) -> None:
    counts = HISTOGRAMS[name].astype(np.int64)
    noisy = NoisyTree(LEVELS, 1, 256, 1)
    buckets, low, high = noisy.locate(np.tile(counts, (1000, 1)), seeded(4), 0.05)
    before = np.concatenate([[0], np.cumsum(counts)])
    for i, level in enumerate(LEVELS):
        target = float(level) * before[-1]
        holds = (before[low[:, i]] <= target) & (target <= before[high[:, i] + 1])
        assert holds.mean() >= 0.95
        errors = np.maximum(0, np.maximum(before[buckets[:, i]] - target, target - before[buckets[:, i] + 1]))
        assert (errors > noisy.rank_error(0.05)).mean() <= 0.05
    assert np.all(low <= buckets)
    assert np.all(buckets <= high)


@pytest.mark.statistical
def test_intervals_at_one_place_are_not_wider_than_they_need_to_be() -> None:
    """All weight in two buckets: the level between them is decided at a single place, with one error."""
    counts = np.where(np.isin(np.arange(16), [0, 15]), 500, 0)
    noisy = NoisyTree((HALF,), Fraction(1, 20), 16, 1)
    _, low, _ = noisy.locate(np.tile(counts, (4000, 1)), seeded(4), 0.2)
    assert 0.5 < (low[:, 0] == 0).mean() < 0.999


@pytest.mark.statistical
def test_choices_have_the_declared_scale_and_no_other() -> None:
    """Of two buckets with 1000 and 1012, the second holds the noisy median unless the noises differ by 12 or more."""
    noisy = NoisyTree((HALF,), Fraction(1, 4), 2, 1)
    assert noisy.tree.fans == (2,)
    found, _, _ = noisy.locate(np.tile([1000, 1012], (60_000, 1)), seeded(12), 0.05)
    second = int(found.sum())

    def fit(scale: float) -> float:
        law = np.exp(-np.abs(np.arange(-300, 301)) / scale)
        difference = np.convolve(law, law) / law.sum() ** 2
        p = float(difference[: 600 + 12].sum())
        return float(stats.binomtest(second, 60_000, p).pvalue)

    assert fit(4) > 1e-4
    assert fit(4.4) < 1e-6
    assert fit(4 / 1.1) < 1e-6
