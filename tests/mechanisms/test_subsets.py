"""Subsets: a brute-force check of the promise over all small graphs, the law, the refusals."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.mechanisms.small_graphs import degrees_and_triangles

from defocus.errors import DefocusError, UnfitDataError
from defocus.mechanisms import Exponential, SubsetChoice
from defocus.noise.testing import seeded
from defocus.privacy import events


def law(utilities: Any, k: int, rate: float) -> dict[tuple[int, ...], float]:
    subsets = list(itertools.combinations(range(len(utilities)), k))
    weights = np.exp([rate * sum(utilities[i] for i in s) for s in subsets])
    return dict(zip(subsets, (weights / weights.sum()).tolist(), strict=True))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_no_two_neighbouring_graphs_have_ratios_that_span_more_than_epsilon(k: int) -> None:
    """Over all graphs of five nodes; the bound is attained, so that half the noise would break it."""
    degrees, _ = degrees_and_triangles(5)
    m = SubsetChoice(epsilon=1, candidates=5, size=k, touched=2, monotone=True)
    sets = np.array([[i in s for i in range(5)] for s in itertools.combinations(range(5), k)])
    logs = float(m.rate) * degrees @ sets.T
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    number = np.arange(len(degrees))
    spans = [np.ptp(logs[number ^ (1 << bit)] - logs, axis=1).max() for bit in range(10)]
    assert max(spans) == pytest.approx(1.0 if k in {1, 2, 3} else 0.5)
    assert max(spans) <= 1 + 1e-12


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("utilities", "k"), [((3, 1, 1, 0, 3), 2), ((0, 0, 0, 0), 3), ((5, 2, 7), 1), ((9, 1, 1), 3)])
def test_subsets_follow_the_law_and_no_other(utilities: tuple[int, ...], k: int) -> None:
    m = SubsetChoice(epsilon=1, candidates=len(utilities), size=k, touched=2, monotone=True)
    bits = seeded(41)
    counts = Counter(tuple(m.sample(utilities, bits).tolist()) for _ in range(4000))

    def p_value(rate: float) -> float:
        exact = law(utilities, k, rate)
        assert set(counts) <= set(exact)
        return float(stats.chisquare([counts[s] for s in exact], [4000 * p for p in exact.values()]).pvalue)

    rate = float(m.rate)
    assert len(law(utilities, k, rate)) == 1 or p_value(rate) > 1e-4
    if len(set(utilities)) > 1 and k < len(utilities):
        assert p_value(1.25 * rate) < 1e-5


def test_one_of_many_is_the_exponential_mechanism() -> None:
    one = SubsetChoice(epsilon=1, candidates=30, size=1, monotone=True)
    plain = Exponential(epsilon=1, candidates=30, monotone=True)
    assert one.error == pytest.approx(plain.error)
    assert one.interval(0.9) == pytest.approx(plain.interval(0.9))
    assert one.event == plain.event == events.Exponential(1)


def test_the_rate_is_the_one_of_the_specification() -> None:
    """Section 7.4: Δ = 2 and 1 for k = 1; monotone, so half the noise of exp(εu/4) suffices."""
    assert SubsetChoice(epsilon=1, candidates=9, size=3, touched=2).rate == Fraction(1, 4)
    assert SubsetChoice(epsilon=1, candidates=9, size=3, touched=2, monotone=True).rate == Fraction(1, 2)
    assert SubsetChoice(epsilon=1, candidates=9, size=1, touched=2, monotone=True).rate == 1


def test_utilities_of_any_size_are_taken_and_clear_winners_win() -> None:
    m = SubsetChoice(epsilon=1, candidates=2000, size=20, touched=2, monotone=True)
    utilities = np.arange(2000)
    utilities[::100] += 10**12
    assert m.sample(utilities, seeded(1)).tolist() == list(range(0, 2000, 100))


def test_low_utilities_together_outweigh_a_high_one() -> None:
    m, bits = SubsetChoice(epsilon=Fraction(1, 100), candidates=5000, size=5, touched=2, monotone=True), seeded(3)
    utilities = np.zeros(5000, np.int64)
    utilities[7] = 100
    assert sum(7 in m.sample(utilities, bits) for _ in range(50)) < 5


@pytest.mark.parametrize("hub", [10**6, 10**12, 2**62])
def test_one_giant_among_small_ones_takes_no_time(hub: int) -> None:
    m = SubsetChoice(epsilon=1, candidates=300, size=3, touched=2, monotone=True)
    chosen = m.sample([hub, *range(299)], seeded(2))
    assert chosen[0] == 0
    assert len(chosen) == 3


def test_losing_more_than_the_interval_is_rare() -> None:
    m, bits = SubsetChoice(epsilon=1, candidates=40, size=3, touched=2, monotone=True), seeded(9)
    utilities = [20] * 3 + [0] * 37
    losses = [60 - sum(utilities[i] for i in m.sample(utilities, bits)) for _ in range(400)]
    assert np.mean(np.array(losses) > m.interval(0.9)) <= 0.1
    assert np.mean(losses) <= m.error


@pytest.mark.parametrize("bad", [[1, 2], 5, [1.0] * 4, [True] * 4, "abcd", None], ids=repr)
def test_data_that_is_not_one_number_for_each_candidate_is_refused(bad: Any) -> None:
    m = SubsetChoice(epsilon=1, candidates=4, size=2)
    for act in (m.check, m.sample):
        with pytest.raises(UnfitDataError):
            act(bad)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        (name, bad)
        for name in ("epsilon", "size", "touched", "sensitivity")
        for bad in (0, -1, math.nan, True, "1", None)
    ]
    + [("size", 5), ("monotone", 1), ("monotone", "no")],
)
def test_parameters_out_of_range_are_refused(name: str, bad: Any) -> None:
    with pytest.raises(DefocusError):
        SubsetChoice(**{"epsilon": 1, "candidates": 4, "size": 2, name: bad})
