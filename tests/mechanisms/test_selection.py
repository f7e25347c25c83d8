import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from defocus.mechanisms import Exponential, PermuteAndFlip, ReportNoisyMax
from defocus.mechanisms.mechanism import LARGEST, SMALLEST
from defocus.noise.testing import seeded


def expected_loss(rate: float, gaps: list[float]) -> float:
    weights = [1.0, *(math.exp(-rate * g) for g in gaps)]
    return sum(g * w for g, w in zip([0.0, *gaps], weights, strict=True)) / sum(weights)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=6), st.booleans())
def test_no_utilities_lose_more_than_the_error(gaps: list[float], monotone: bool) -> None:
    m = Exponential(epsilon=0.5, candidates=len(gaps) + 1, monotone=monotone)
    assert expected_loss(0.5 if monotone else 0.25, gaps) <= m.error * (1 + 1e-12)


@pytest.mark.parametrize("n", [2, 5, 100])
def test_the_error_is_reached_by_ties_at_the_gap_of_the_docstring(n: int) -> None:
    m = Exponential(epsilon=2, candidates=n)
    assert expected_loss(1.0, [1.0 + m.error] * (n - 1)) == pytest.approx(m.error)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=6), st.sampled_from([0.3, 0.6, 0.9, 0.99]))
def test_no_utilities_exceed_the_interval_more_often_than_allowed(gaps: list[float], confidence: float) -> None:
    m = Exponential(epsilon=0.5, candidates=len(gaps) + 1)
    weights = [math.exp(-0.25 * g) for g in gaps]
    beyond = sum(w for w, g in zip(weights, gaps, strict=True) if g > m.interval(confidence))
    assert beyond / (1 + sum(weights)) <= 1 - confidence + 1e-12


def test_monotone_utilities_get_the_factor_two_back() -> None:
    """Specification 2.3."""
    plain = Exponential(epsilon=1, candidates=9)
    monotone = Exponential(epsilon=1, candidates=9, monotone=True)
    assert plain.error == pytest.approx(2 * monotone.error)
    assert plain.event == monotone.event


def test_the_published_bound_on_the_loss_holds() -> None:
    """McSherry, Talwar (2007), Theorem 6: losing more than 2Δ(ln n + t)/ε has probability at most e^−t."""
    for n, t in itertools.product((2, 30, 10_000), (0.5, 3.0, 9.0)):
        assert Exponential(epsilon=0.7, candidates=n).interval(1 - math.exp(-t)) <= 2 * (math.log(n) + t) / 0.7


def test_one_candidate_is_chosen_without_loss() -> None:
    m = Exponential(epsilon=1, candidates=1)
    assert (m.error, m.interval(0.999), m.sample([5])) == (0, 0, 0)


def test_utilities_of_any_size_and_exactness_are_taken() -> None:
    m = Exponential(epsilon=Fraction(1, 3), candidates=3, sensitivity=Fraction(1, 7))
    assert m.sample([Fraction(10**50, 3), 0, -(10**60)], seeded(1)) == 0
    assert m.sample(np.array([-5000, 5000, 0]), seeded(1)) == 1


gaps_of_others = st.lists(st.floats(0, 40), min_size=1, max_size=5)


def flip_law(rate: float, gaps: list[float]) -> list[float]:
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


def flip_loss(rate: float, gaps: list[float]) -> float:
    return sum(g * p for g, p in zip([0.0, *gaps], flip_law(rate, gaps), strict=True))


@settings(deadline=None, max_examples=60)
@given(gaps_of_others)
def test_no_utilities_lose_more_than_the_error_of_permute_and_flip(gaps: list[float]) -> None:
    """McKenna, Sheldon (2020): the worst case is a tie of all others."""
    m = PermuteAndFlip(epsilon=0.5, candidates=len(gaps) + 1)
    assert flip_loss(0.25, gaps) <= m.error * (1 + 1e-6)


@settings(deadline=None, max_examples=60)
@given(gaps_of_others, st.sampled_from([0.2, 0.5, 0.8, 0.95]))
def test_no_utilities_exceed_the_interval_of_permute_and_flip(gaps: list[float], confidence: float) -> None:
    m = PermuteAndFlip(epsilon=0.5, candidates=len(gaps) + 1)
    chances = flip_law(0.25, gaps)[1:]
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


def test_permute_and_flip_chooses_one_candidate_without_loss() -> None:
    m = PermuteAndFlip(epsilon=1, candidates=1)
    assert (m.error, m.interval(0.999), m.sample([5])) == (0, 0, 0)


def test_permute_and_flip_breaks_ties_evenly() -> None:
    m, bits = PermuteAndFlip(epsilon=1, candidates=4), seeded(8)
    counts = np.bincount([m.sample([7, 7, 7, 7], bits) for _ in range(4000)], minlength=4)
    assert np.abs(counts - 1000).max() < 5 * math.sqrt(750)


def test_permute_and_flip_never_chooses_a_hopeless_candidate() -> None:
    m, bits = PermuteAndFlip(epsilon=1, candidates=2), seeded(8)
    assert {m.sample([0, -(10**9)], bits) for _ in range(200)} == {0}


def test_the_noise_has_twice_the_sensitivity_over_epsilon_or_once_if_monotone() -> None:
    assert ReportNoisyMax(epsilon=0.5, candidates=3, sensitivity=2).scale == 8
    assert ReportNoisyMax(epsilon=0.5, candidates=3, sensitivity=2, monotone=True).scale == 4


def test_report_noisy_max_breaks_ties_evenly() -> None:
    m, bits = ReportNoisyMax(epsilon=8, candidates=4), seeded(8)
    counts = np.bincount([m.sample([7, 7, 7, 7], bits) for _ in range(4000)], minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_utilities_at_the_ends_of_64_bits_are_compared_without_wrapping() -> None:
    m, bits = ReportNoisyMax(epsilon=1, candidates=3), seeded(8)
    assert {m.sample([LARGEST, SMALLEST, 0], bits) for _ in range(50)} == {0}
    assert {m.sample([SMALLEST, 0, LARGEST - 1000], bits) for _ in range(50)} == {2}
    # Cut to 64 bits, the two largest would tie half of the time; they are a hundred scales apart.
    assert {m.sample([LARGEST - 200, LARGEST, 0], bits) for _ in range(100)} == {1}


@pytest.mark.statistical
def test_loss_stays_within_error_and_interval_in_simulation() -> None:
    m, bits = ReportNoisyMax(epsilon=1, candidates=6), seeded(3)
    utilities = np.array([10, 9, 7, 4, 2, 0])
    losses = np.array([10 - utilities[m.sample(utilities, bits)] for _ in range(3000)])
    assert losses.mean() <= m.error
    assert (losses <= m.interval(0.9)).mean() >= 0.9 - 4 * math.sqrt(0.09 / 3000)


def test_report_noisy_max_chooses_one_candidate_without_loss() -> None:
    m = ReportNoisyMax(epsilon=1, candidates=1)
    assert m.error == pytest.approx(0, abs=1e-9)
    assert (m.interval(0.999), m.sample([5])) == (0, 0)
