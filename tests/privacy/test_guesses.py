"""No promise is called broken more often than its test says: exact, over all outcomes of small releases."""

import math
from itertools import product

import numpy as np
import pytest

from defocus.privacy import Gaussian, Sampled, account
from defocus.privacy.guesses import Curve, approximate, independent, tradeoff

Laws = tuple[tuple[float, ...], tuple[float, ...]]
"""What is seen of a canary that is out, and of one that is in."""
RESPONSE: Laws = ((0.75, 0.25), (0.25, 0.75))
THREE: Laws = ((0.6, 0.3, 0.1), (0.1, 0.3, 0.6))
UNEVEN: Laws = ((0.9, 0.1, 0.0), (0.7, 0.2, 0.1))
EPSILONS = (0.0, 0.3, 0.7, 1.1, 1.8, 2.5)


def curve(laws: Laws, *, worse: bool = False) -> Curve:
    """Exactly, on average over both directions, or in the worse one."""
    both = [
        [
            sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(one, other, strict=True))
            for one, other in (laws, laws[::-1])
        ]
        for epsilon in EPSILONS
    ]
    return Curve(np.array(EPSILONS), np.max(both, axis=1) if worse else np.mean(both, axis=1))


def right(laws: Laws, m: int, guesses: int) -> np.ndarray:
    """The law of the number of right guesses, where the likeliest are made."""
    counted = np.zeros(guesses + 1)
    for seen in product(range(len(laws[0])), repeat=m):
        both = [(laws[0][x] / 2, laws[1][x] / 2) for x in seen]
        odds = sorted((max(pair) / sum(pair) for pair in both), reverse=True)[:guesses]
        law = np.ones(1)
        for odd in odds:
            law = np.convolve(law, [1 - odd, odd])
        counted += math.prod(sum(pair) for pair in both) * law
    return counted


@pytest.mark.parametrize("laws", [RESPONSE, THREE, UNEVEN])
@pytest.mark.parametrize("guesses", [2, 3, 5])
def test_releases_made_of_independent_ones_are_right_no_more_often_than_both_tests_say(
    laws: Laws, guesses: int
) -> None:
    tails = right(laws, 5, guesses)[::-1].cumsum()[::-1]
    for least in range(guesses + 1):
        assert independent(5, guesses, least, curve(laws)) >= tails[least] * (1 - 1e-9)
        assert tradeoff(5, guesses, least, curve(laws)) >= tails[least] * (1 - 2e-3)


def test_the_test_of_independent_canaries_is_exact_where_all_are_guessed() -> None:
    tails = right(THREE, 5, 5)[::-1].cumsum()[::-1]
    for least in range(1, 6):
        assert independent(5, 5, least, curve(THREE)) == pytest.approx(tails[least], rel=1e-6)


@pytest.mark.parametrize(("leak", "truth"), [(0.05, 1.0), (0.3, 0.8), (0.5, 0.7), (1.0, 0.75)])
def test_a_chance_event_that_tells_about_all_canaries_is_within_the_test_of_the_curve(
    leak: float, truth: float
) -> None:
    """With probability ``leak`` each coin is told truly with probability ``truth``, and otherwise nothing is told."""
    wrong = 1 - truth
    laws = ((1 - leak, leak * truth, leak * wrong), (1 - leak, leak * wrong, leak * truth))
    for m in (4, 20):
        for least in range(m // 2 + 1, m + 1):
            told = sum(math.comb(m, j) * truth**j * wrong ** (m - j) for j in range(least, m + 1))
            blind = sum(math.comb(m, j) for j in range(least, m + 1)) / 2**m
            exact = leak * told + (1 - leak) * blind
            assert tradeoff(m, m, least, curve(laws)) >= exact * (1 - 2e-3)


def test_the_independent_test_is_not_for_such_events() -> None:
    """All coins with probability 5 %: the curve holds, and all 20 guesses are right far more often than it says."""
    laws = ((0.95, 0.05, 0.0), (0.95, 0.0, 0.05))
    assert independent(20, 20, 20, curve(laws)) < 1e-4
    assert tradeoff(20, 20, 20, curve(laws)) >= 0.05


def test_the_bound_of_a_pair_tells_nothing_where_it_may_fail() -> None:
    """All three wrong with .0375, every other guess with .1375: that is (0, .1)-DP, and one is right with .9625."""
    assert approximate(3, 3, 1, 0.0, 0.1) >= 0.9625


def test_a_pair_is_a_curve_of_one_point() -> None:
    """For pure epsilon, three tests are of one promise; the oldest knows that no chance event can tell more."""
    for least in (60, 70, 80):
        pure = Curve.of_pure(1.0)
        alone = independent(100, 100, least, pure)
        assert approximate(100, 100, least, 1.0, 0.0) == pytest.approx(alone if alone <= 0.5 else 1, rel=1e-6)
        assert tradeoff(100, 100, least, pure) >= independent(100, 100, least, pure) * (1 - 2e-3)


def test_a_curve_is_the_average_of_both_directions_and_no_less() -> None:
    """A step in which one in ten is drawn tells less of who leaves than of who comes."""
    drawn = 20 * Sampled(Gaussian(1), 0.1)
    found = Curve.of(account(drawn), 1e-5)
    draw = np.random.default_rng(0)
    coins, x = draw.integers(0, 2, 200_000), draw.normal(size=(20, 200_000))
    x += coins * (draw.random((20, 200_000)) < 0.1)
    scores = np.log1p(0.1 * np.expm1(x - 0.5)).sum(axis=0)
    for part in (0.5, found.telling(), 1.0):
        told = np.argsort(-np.abs(scores))[: int(part * len(coins))]
        exact = ((scores[told] > 0) == coins[told]).sum() / len(coins)
        assert exact - 0.003 < found.right(part) < exact + 0.006
        assert found.right(part) < Curve.of(account(drawn), 1e-5, changes=2).right(part)


def test_fewer_points_of_a_curve_promise_less() -> None:
    whole = Curve.of(account(Gaussian(1)), 1e-5)
    part = Curve(whole.epsilons[::3], whole.deltas[::3])
    for test in (independent, tradeoff):
        assert test(200, 100, 80, part) >= test(200, 100, 80, whole) * (1 - 2e-3)


LEVELS: tuple[tuple[float, ...], ...] = ((0.6, 0.3, 0.1), (0.3, 0.45, 0.25), (0.1, 0.3, 0.6))
"""Three laws, each one change from the one beside it."""


@pytest.mark.parametrize("guesses", [2, 3, 5])
def test_laws_that_are_two_changes_apart_are_told_no_more_often_than_the_curve_of_two_says(guesses: int) -> None:
    steps = [curve((LEVELS[i], LEVELS[i + 1]), worse=True) for i in (0, 1)]
    both = Curve(np.array(EPSILONS), np.maximum(steps[0].deltas, steps[1].deltas)).twice()
    tails = right((LEVELS[0], LEVELS[2]), 5, guesses)[::-1].cumsum()[::-1]
    for least in range(guesses + 1):
        assert independent(5, guesses, least, both) >= tails[least] * (1 - 1e-9)
        assert tradeoff(5, guesses, least, both) >= tails[least] * (1 - 2e-3)


@pytest.mark.parametrize("ratio", [0.6, 1.0, 4.0, 20.0])
def test_two_changes_under_gaussian_noise_are_one_that_is_twice_as_far(ratio: float) -> None:
    twice = Curve.of(account(Gaussian(ratio)), 1e-5, changes=2)
    exact = (1 + math.erf(1 / ratio / math.sqrt(2))) / 2
    assert exact <= twice.right(1.0) <= exact + 0.003
    far = Curve.of(account(Gaussian(ratio / 2)), 1e-5)
    for right_ones in (0.1, 0.4, 0.5):
        assert twice.wrong(right_ones) <= far.wrong(right_ones) + 0.003
