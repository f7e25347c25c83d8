"""Curves of attacks: intervals hold as often as they say, and no private release is above its curve on average."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from defocus.audit import Curve, Promise
from defocus.privacy import Gaussian, account

RUNS = 400


def curve(draw: np.random.Generator, shift: float, n: int = 60, confidence: float = 0.9) -> Curve:
    members = np.arange(2 * n) >= n
    return Curve(name="a", scores=draw.normal(size=2 * n) + shift * members, members=members, confidence=confidence)


@pytest.mark.parametrize("shift", [0.0, 1.0, 4.0])
def test_intervals_hold_the_truth_as_often_as_they_say(shift: float) -> None:
    """For Gaussian scores, whose true rates at a threshold and true area are known."""
    draw = np.random.default_rng(1)
    rates = areas = 0
    for _ in range(RUNS):
        made = curve(draw, shift)
        rate, (_, low, high) = made.at(0.1), made.auc
        threshold = np.sort(made.scores[~made.members])[::-1][6]
        tpr, fpr = norm.sf(threshold - shift), norm.sf(threshold)
        rates += rate.low <= tpr <= rate.high and fpr <= rate.fpr_high
        areas += low <= norm.cdf(shift / math.sqrt(2)) <= high
    assert rates >= 342  # Bin(400, .9) is below with probability .1 %
    assert areas >= 342


def test_an_area_that_varies_as_much_as_any_is_held_as_often_as_its_interval_says() -> None:
    """Of persons in, a half at random is above all others and a half below: the area is a mean of coins."""
    draw, held, n = np.random.default_rng(5), 0, 60
    for _ in range(RUNS):
        scores = np.concatenate([np.arange(n) / n, np.where(draw.random(n) < 0.5, 2.0, -2.0)])
        _, low, high = Curve(name="a", scores=scores, members=np.arange(2 * n) >= n, confidence=0.9).auc
        held += low <= 0.5 <= high
    assert held >= 342


def test_intervals_are_not_much_wider_than_they_need_to_be() -> None:
    draw = np.random.default_rng(2)
    wide = [curve(draw, 1.0, n=500).at(0.1) for _ in range(20)]
    assert max(rate.high - rate.low for rate in wide) < 0.15
    area, low, high = curve(draw, 1.0, n=500).auc
    assert high - low < 0.15
    assert low < area < high


def test_ties_count_half_and_outrank_nobody() -> None:
    made = Curve(name="a", scores=np.zeros(20), members=np.arange(20) > 9, confidence=0.9)
    assert made.auc[0] == 0.5
    assert (made.at(0.5).tpr, made.at(0.5).fpr) == (0, 0)
    out, into = made.points
    assert (out[0], into[0], out[-1], into[-1]) == (0, 0, 1, 1)


def test_the_promise_of_an_event_is_its_trade_off() -> None:
    mu = 1.0
    found = Promise.of(Gaussian(1), delta=1e-5)
    for rate in (0.001, 0.01, 0.3):
        assert found.most(rate) == pytest.approx(norm.cdf(norm.ppf(rate) + mu), rel=2e-2)
    assert found.epsilon == account(Gaussian(1)).epsilon(1e-5)
    assert Promise.of(2, delta=0).most(0.01) == pytest.approx(0.01 * math.exp(2))
    assert Promise.of(2, delta=0.1).most(0) == pytest.approx(0.1)
    assert Promise.of(2, delta=0).most(1) == 1


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_no_release_outranks_its_promise_on_average_however_its_scores_depend_on_each_other(shared: float) -> None:
    """Coins plus noise, a part of which all persons share: what is known of one coin, given the others, is Gaussian."""
    draw = np.random.default_rng(3)
    people, sigma = 12, 1.0
    noise = np.full((people, people), shared) + np.eye(people) * (1 - shared)
    mu = math.sqrt(np.linalg.inv(noise)[0, 0]) / sigma
    promise = Promise(0, 0, lambda alpha: float(norm.cdf(norm.ppf(1 - alpha) - mu)))
    root = np.linalg.cholesky(noise)
    coins = np.zeros((1500, people), bool)
    coins[:, : people // 2] = True
    coins = draw.permuted(coins, axis=1)
    scores = coins + draw.normal(size=(1500, people)) @ root.T * sigma
    found = [Curve(name="a", scores=s, members=c, confidence=0.9) for s, c in zip(scores, coins, strict=True)]
    out = people // 2
    for k in (0, 2):
        tpr = np.mean([each.at((k + 1e-9) / out).tpr for each in found])
        assert tpr <= promise.most_ranked(k, out) + 0.02
        assert tpr > 0.5 * promise.most_ranked(k, out)
    assert np.mean([each.auc[0] for each in found]) <= promise.most_area(out) + 0.01


def test_two_persons_with_nearly_the_same_noise_are_told_apart_better_than_by_one_threshold() -> None:
    """Why a curve within one run is bounded by ranks: the plain bound on the area would be wrong."""
    draw = np.random.default_rng(4)
    noise = np.array([[16, 15.68], [15.68, 16]])
    mu = math.sqrt(np.linalg.inv(noise)[0, 0])
    apart = 1 + (draw.normal(size=(20_000, 2)) @ np.linalg.cholesky(noise).T) @ [1, -1]
    promise = Promise(0, 0, lambda alpha: float(norm.cdf(norm.ppf(1 - alpha) - mu)))
    assert norm.cdf(mu / math.sqrt(2)) + 0.02 < (apart > 0).mean() <= promise.most_area(1) + 0.01


def test_the_area_of_a_promise_is_that_below_its_curve_for_many_people() -> None:
    promise = Promise(0, 0, lambda alpha: float(norm.cdf(norm.ppf(1 - alpha) - 1)))
    exact = norm.cdf(1 / math.sqrt(2))
    assert exact <= promise.most_area(10_000) <= exact + 0.03
