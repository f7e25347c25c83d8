"""One run with canaries: the bound holds for what is private, and catches what is not."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from defocus.audit import one_run
from defocus.errors import InvalidParameterError, UnsupportedEventError
from defocus.privacy import (
    AllocatedGaussian,
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Shuffled,
    ShuffledGaussian,
    tightest,
)
from defocus.privacy.guesses import approximate
from defocus.privacy.one_run import scaled


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_is_called_no_more_often_than_the_error_allows(epsilon: float) -> None:
    """Exact, over all outcomes: each canary's coin is told truly with the probability that epsilon allows."""
    truth = 1 / (1 + math.exp(-epsilon))
    for error in (0.3, 0.05):
        wrong = sum(
            math.prod(truth if told else 1 - truth for told in outcome)
            for outcome in product((False, True), repeat=10)
            if approximate(10, 10, sum(outcome), epsilon, 0.0) <= error
        )
        assert wrong <= error


@pytest.mark.slow
def test_the_whole_bound_of_a_private_run_is_above_the_truth_in_few_runs_only() -> None:
    """Scores with Laplace noise, where the search over numbers of guesses is paid for."""
    draw = np.random.default_rng(1)
    called = 0
    for _ in range(200):
        coins = draw.integers(0, 2, 400)
        called += one_run(coins + draw.laplace(0, 1, 400), coins, claimed=1, confidence=0.9).violation
    assert called <= 32  # Bin(200, .1) is above with probability .4 %


def test_a_leak_of_probability_delta_is_no_violation() -> None:
    """Bare coins with probability delta, else nothing: (0, delta)-DP for each canary, all of them at once."""
    draw = np.random.default_rng(2)
    found = [
        one_run(coins if draw.random() < 0.01 else np.zeros(100), coins, delta=0.01, claimed=0.01)
        for coins in (draw.integers(0, 2, 100) for _ in range(200))
    ]
    assert sum(each.violation for each in found) <= 10


@pytest.mark.parametrize(("claimed", "least"), [(1, 0.1), (4, 1.4), (8, 2.2)])
def test_gaussian_scores_of_a_thousand_canaries_show_a_part_of_the_claim(claimed: int, least: float) -> None:
    """The ratio of noise is the one that gives the claim at delta 1e-5."""
    ratio = {1: 3.7304, 4: 1.0812, 8: 0.6002}[claimed]
    draw = np.random.default_rng(3)
    coins = draw.integers(0, 2, 1000)
    found = one_run(coins + draw.normal(0, ratio, 1000), coins, delta=1e-5, claimed=claimed)
    assert least < found.epsilon_lower < claimed


def test_half_the_noise_and_no_noise_are_violations() -> None:
    """Of a claim of one."""
    draw = np.random.default_rng(4)
    coins = draw.integers(0, 2, 1000)
    assert one_run(coins + draw.laplace(0, 0.4, 1000), coins, claimed=1).violation
    bare = one_run(coins, coins, claimed=4)
    assert bare.violation
    assert "1000 of 1000 guesses right" in str(bare) or bare.guesses < 1000


@pytest.mark.parametrize(
    ("scores", "planted"), [([1.0], [1]), ([1.0, 2.0], [1]), ([1.0, math.nan], [0, 1]), ([1.0, 2.0], [0, 2])]
)
def test_canaries_without_score_or_coin_are_refused(scores: list[float], planted: list[int]) -> None:
    """With a remedy."""
    with pytest.raises(InvalidParameterError, match="To fix"):
        one_run(scores, planted)


def test_all_guesses_right_is_at_least_as_likely_as_a_leak_of_probability_delta() -> None:
    """All coins shown with probability delta is (0, delta)-DP, so no smaller level may reject it."""
    assert 0.01 <= approximate(100, 100, 100, 0.0, 0.01) <= 0.05


@pytest.mark.parametrize(
    ("claimed", "general", "alone"), [(1, 0.1, 0.3), (4, 1.7, 2.7), (8, 3.8, 5.8)], ids=["1", "4", "8"]
)
def test_the_curve_of_the_event_shows_more_and_independent_canaries_most(
    claimed: int, general: float, alone: float
) -> None:
    ratio = {1: 3.7304, 4: 1.0812, 8: 0.6002}[claimed]
    draw = np.random.default_rng(3)
    coins = draw.integers(0, 2, 1000)
    scores = coins + draw.normal(0, ratio, 1000)
    for least, independent in ((general, False), (alone, True)):
        found = one_run(scores, coins, event=Gaussian(ratio), delta=1e-5, independent=independent)
        assert not found.violation
        assert least < found.epsilon_lower < float(found.claimed or 0) < claimed * 1.001
        assert found.noise_at_most is not None
        assert found.noise_at_most > 1


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("independent", "most"), [(True, 19), (False, 4)])
def test_gaussian_noise_as_charged_is_called_no_more_often_than_the_error_allows(independent: bool, most: int) -> None:
    draw = np.random.default_rng(6)
    called = 0
    for _ in range(100):
        coins = draw.integers(0, 2, 300)
        scores = coins + draw.normal(0, 1, 300)
        called += one_run(
            scores, coins, event=Gaussian(1), delta=1e-5, confidence=0.9, independent=independent
        ).violation
    assert called <= most  # Bin(100, .1) is above 19 with probability .2 %; the general test is far from its level


def test_a_part_of_a_release_without_noise_is_a_violation_of_its_group() -> None:
    """Thirty of a thousand canaries: among all of them they are not noticed."""
    draw = np.random.default_rng(7)
    coins = draw.integers(0, 2, 1000)
    scores = coins + draw.normal(0, 1, 1000) * (np.arange(1000) >= 40)
    claim: dict[str, Any] = {"event": Gaussian(1), "delta": 1e-5, "independent": True}
    assert not one_run(scores, coins, **claim).violation
    assert one_run(scores, coins, groups=np.arange(1000) >= 40, **claim).violation


def test_half_the_noise_of_an_event_is_a_violation() -> None:
    draw = np.random.default_rng(8)
    coins = draw.integers(0, 2, 1000)
    scores = coins + draw.normal(0, 0.5, 1000)
    found = one_run(scores, coins, event=Gaussian(1), delta=1e-5, confidence=0.99, independent=True)
    assert found.violation
    assert "violation" in str(found)
    assert found.epsilon_lower > float(found.claimed or 0)
    assert found.noise_at_most is not None
    assert 0.4 < found.noise_at_most < 1


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(1.0), Laplace(1.0), Pure(2.0), Approximate(1.0, 1e-6), Concentrated(0.5), DiscreteGaussian(2.0),
        DiscreteLaplace(2.0), 3 * Sampled(Gaussian(1.0), 0.1), SampledBatch(Gaussian(1.0), 2, 20),
        AllocatedGaussian(1.0, Fraction(1, 10), 10), ShuffledGaussian(1.0, 2, 30, 10), RandomizedResponse(1.0),
    ],
    ids=str,
)  # fmt: skip
def test_more_noise_costs_less_whatever_the_event(event: Event) -> None:
    now, more = (tightest(scaled(event, factor)).epsilon(1e-5) for factor in (1, 1.5))
    assert more < now
    assert tightest(event).epsilon(1e-5) == pytest.approx(now)


def test_an_event_without_a_noisier_one_is_refused_with_a_way_out() -> None:
    with pytest.raises(UnsupportedEventError, match="claimed="):
        scaled(Shuffled(RandomizedResponse(1.0), 100), 2)


def test_groups_and_independence_need_an_event() -> None:
    with pytest.raises(InvalidParameterError, match="event="):
        one_run([0.0, 1.0], [0, 1], independent=True)


def test_canaries_that_are_two_changes_apart_show_more_and_no_more_than_was_charged() -> None:
    ratio = 3.7304  # epsilon one
    draw = np.random.default_rng(9)
    claim: dict[str, Any] = {"event": Gaussian(ratio), "delta": 1e-5, "independent": True}
    bounds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(10):
        coins, noise = draw.integers(0, 2, 1000), draw.normal(0, ratio, 1000)
        for changes, found in bounds.items():
            scores = coins * changes + noise
            found.append(one_run(scores, coins, changes=changes, **claim).epsilon_lower)
    assert np.median(bounds[1]) + 0.05 < np.median(bounds[2]) < max(bounds[2]) <= 1


def test_scores_of_two_changes_are_more_than_the_curve_of_one_allows() -> None:
    draw = np.random.default_rng(10)
    coins = draw.integers(0, 2, 1000)
    scores = 2 * coins + draw.normal(0, 1, 1000)
    claim: dict[str, Any] = {"event": Gaussian(1), "delta": 1e-5, "independent": True}
    assert one_run(scores, coins, **claim).violation
    assert not one_run(scores, coins, changes=2, **claim).violation


def test_one_who_is_exchanged_in_a_batch_of_fixed_size_is_seen_no_more_often_than_the_error_allows() -> None:
    draw, rate, ratio, canaries = np.random.default_rng(11), 0.8, 0.5, 1600
    claim: dict[str, Any] = {"event": SampledBatch(Gaussian(ratio / 2), 4, 5), "delta": 1e-6}
    called = {True: 0, False: 0}
    for _ in range(200):
        coins = draw.integers(0, 2, canaries)
        scores = (draw.random(canaries) < rate) * (2 * coins - 1) + draw.normal(0, ratio, canaries)
        for exchanged in called:
            called[exchanged] += one_run(scores, coins, exchanged=exchanged, independent=True, **claim).violation
    assert called[True] <= binom.ppf(1 - 1e-6, 200, 0.05)
    assert called[False] > binom.ppf(1 - 1e-6, 200, 0.05)  # the average of both directions is of one who comes or goes


@pytest.mark.parametrize(
    "more",
    [
        {"changes": 2, "exchanged": True, "event": Gaussian(1)},
        {"exchanged": True},
        {"changes": 3, "event": Gaussian(1)},
        {"changes": 0, "event": Gaussian(1)},
        {"changes": 2},
    ],
)
def test_changes_are_one_or_two_and_need_an_event(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match="To fix"):
        one_run([1.0, 2.0], [0, 1], **more)
