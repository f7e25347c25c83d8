import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.mechanisms import Exponential, PermuteAndFlip
from defocus.noise.testing import seeded

gaps_of_others = st.lists(st.floats(0, 40), min_size=1, max_size=5)


def law(rate: float, gaps: list[float]) -> list[float]:
    """The chance of each candidate, the best one first, over all orders."""
    heads = [1.0, *(math.exp(-rate * g) for g in gaps)]
    orders = list(itertools.permutations(range(len(heads))))
    chosen = [0.0] * len(heads)
    for order in orders:
        reached = 1 / len(orders)
        for i in order:
            chosen[i] += reached * heads[i]
            reached *= 1 - heads[i]
    return chosen


def loss(rate: float, gaps: list[float]) -> float:
    return sum(g * p for g, p in zip([0.0, *gaps], law(rate, gaps), strict=True))


@settings(deadline=None, max_examples=60)
@given(gaps_of_others)
def test_no_utilities_lose_more_than_the_error(gaps: list[float]) -> None:
    """McKenna, Sheldon (2020): the worst case is a tie of all others."""
    m = PermuteAndFlip(epsilon=0.5, candidates=len(gaps) + 1)
    assert loss(0.25, gaps) <= m.error * (1 + 1e-6)


@settings(deadline=None, max_examples=60)
@given(gaps_of_others, st.sampled_from([0.2, 0.5, 0.8, 0.95]))
def test_no_utilities_exceed_the_interval_more_often_than_allowed(gaps: list[float], confidence: float) -> None:
    m = PermuteAndFlip(epsilon=0.5, candidates=len(gaps) + 1)
    chances = law(0.25, gaps)[1:]
    assert sum(p for p, g in zip(chances, gaps, strict=True) if g > m.interval(confidence)) <= 1 - confidence + 1e-9


@pytest.mark.parametrize("n", [2, 3, 10, 1000, 10**6])
def test_it_loses_less_than_the_exponential_mechanism_but_at_least_half_as_much(n: int) -> None:
    """McKenna, Sheldon (2020), Section 4: never worse, and better by a factor of at most two."""
    flip, exponential = PermuteAndFlip(epsilon=1, candidates=n), Exponential(epsilon=1, candidates=n)
    assert exponential.error / 2 <= flip.error <= exponential.error
    assert flip.interval(0.95) <= exponential.interval(0.95)


def test_two_candidates_lose_one_over_two_e_steps_of_the_rate() -> None:
    """With n = 2 the loss is g·e^(−cg)/2, largest at g = 1/c."""
    assert PermuteAndFlip(epsilon=2, candidates=2).error == pytest.approx(1 / (2 * math.e), rel=1e-6)


def test_one_candidate_is_chosen_without_loss() -> None:
    m = PermuteAndFlip(epsilon=1, candidates=1)
    assert (m.error, m.interval(0.999), m.sample([5])) == (0, 0, 0)


def test_ties_are_broken_evenly() -> None:
    m, bits = PermuteAndFlip(epsilon=1, candidates=4), seeded(8)
    counts = np.bincount([m.sample([7, 7, 7, 7], bits) for _ in range(4000)], minlength=4)
    assert np.abs(counts - 1000).max() < 5 * math.sqrt(750)


def test_a_hopeless_candidate_is_never_chosen() -> None:
    m, bits = PermuteAndFlip(epsilon=1, candidates=2), seeded(8)
    assert {m.sample([0, -(10**9)], bits) for _ in range(200)} == {0}
