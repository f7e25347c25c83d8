"""Measures from cells: those of scikit-learn where there is no noise, and errors as large as they are."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from defocus.learning.evaluation.measures import Measure, area, calibration_error, difference, moments, share

RNG = np.random.default_rng(5)
EDGES = np.linspace(0, 1, 21)
SCORES = RNG.beta(2, 2, 3000)
LABELS = RNG.random(3000) < SCORES**1.3


def cells(scores: Any = SCORES, labels: Any = LABELS) -> tuple[Any, Any]:
    counts = [np.histogram(scores[labels == label], EDGES)[0].astype(float) for label in (False, True)]
    return counts[0], counts[1]


def test_the_area_is_that_of_rounded_scores_and_near_that_of_scores() -> None:
    found = area(*cells(), 0.0, ties=False)
    rounded = np.digitize(SCORES, EDGES)
    assert found.value == pytest.approx(metrics.roc_auc_score(LABELS, rounded), abs=1e-12)
    exact = metrics.roc_auc_score(LABELS, SCORES)
    assert abs(found.value - exact) <= found.slack < 0.03
    assert area(*cells(), 0.0, ties=True).slack == 0


def test_buckets_hide_no_more_of_the_area_than_is_said() -> None:
    """Two buckets, of which each has all its rows in the worst order."""
    labels = np.array([True] * 30 + [False] * 10 + [True] * 25 + [False] * 20)
    scores = np.concatenate([np.linspace(0.0, 0.2, 30), np.full(10, 0.4), np.linspace(0.6, 0.7, 25), np.full(20, 0.9)])
    counts = [np.histogram(scores[labels == label], [0, 0.5, 1])[0].astype(float) for label in (False, True)]
    found = area(counts[0], counts[1], 0.0, ties=False)
    assert found.value - metrics.roc_auc_score(labels, scores) == pytest.approx(found.slack)


def test_errors_of_the_area_are_as_large_as_noise_and_sampling_make_them() -> None:
    truth = cells()
    variance = 9.0
    with_noise, drawn = [], []
    for _ in range(1500):
        shaken = [each + RNG.normal(0, 3, 20) for each in truth]
        with_noise.append(area(shaken[0], shaken[1], 0.0, ties=True).value)
        again = RNG.integers(0, 3000, 3000)
        drawn.append(area(*cells(SCORES[again], LABELS[again]), 0.0, ties=True).value)
    said = area(*truth, variance, ties=True)
    assert said.noise == pytest.approx(np.std(with_noise), rel=0.08)
    assert said.sampling == pytest.approx(np.std(drawn), rel=0.08)


def test_errors_of_a_share_are_as_large_as_noise_and_sampling_make_them() -> None:
    table, variance = np.array([300.0, 80.0, 40.0, 500.0]), 16.0
    hit, whole = np.array([1.0, 0, 0, 1]), np.ones(4)
    said = share(hit, whole, table, variance)
    assert said.value == pytest.approx(800 / 920)
    noise = [share(hit, whole, table + RNG.normal(0, 4, 4), 0.0).value for _ in range(2000)]
    drawn = [share(hit, whole, RNG.multinomial(920, table / 920).astype(float), 0.0).value for _ in range(2000)]
    assert said.noise == pytest.approx(np.std(noise), rel=0.06)
    assert said.sampling == pytest.approx(np.std(drawn), rel=0.06)


def test_nothing_is_said_about_what_noise_drowns() -> None:
    few = np.array([2.0, 1.0])
    assert math.isnan(share(np.array([1.0, 0]), np.ones(2), few, 4.0).value)
    assert math.isnan(area(few, few, 4.0, ties=False).value)
    assert math.isnan(calibration_error(few, few, np.array([0, 0.5, 1]), [slice(0, 2)], 4.0).value)
    assert all(math.isnan(each.value) for each in moments(np.ones(6), 4.0, 1.0).values())
    assert math.isnan(share(np.ones(2), np.ones(2), -few, 0.0).value)


def test_the_calibration_error_is_small_for_calibrated_scores_and_right_for_others() -> None:
    bins = [slice(place, place + 2) for place in range(0, 20, 2)]
    honest = RNG.random(3000) < SCORES
    small = calibration_error(*cells(SCORES, honest), EDGES, bins, 2.0)
    assert small.value < 0.03
    large = calibration_error(*cells(), EDGES, bins, 2.0)
    places = np.digitize(SCORES, EDGES[::2])
    exact = sum(abs((LABELS - SCORES)[places == place].sum()) for place in np.unique(places)) / 3000
    assert abs(large.value - exact) <= large.half(1.96)
    assert large.value == pytest.approx(exact, abs=0.02)


def test_errors_of_numbers_are_those_of_scikit_learn() -> None:
    y = RNG.random(5000)
    foretold = np.clip(0.2 + 0.6 * y + RNG.normal(0, 0.1, 5000), 0, 1)

    def sums(aims: Any, guesses: Any) -> Any:
        e = np.abs(aims - guesses)
        return np.array([len(e), e.sum(), (e**2).sum(), (e**4).sum(), aims.sum(), (aims**2).sum()])

    found = moments(sums(y, foretold), 0.0, 10.0)
    assert found["mae"].value == pytest.approx(10 * metrics.mean_absolute_error(y, foretold))
    assert found["mse"].value == pytest.approx(100 * metrics.mean_squared_error(y, foretold))
    assert found["rmse"].value == pytest.approx(10 * metrics.root_mean_squared_error(y, foretold))
    assert found["r2"].value == pytest.approx(metrics.r2_score(y, foretold))
    said = moments(sums(y, foretold), 9.0, 10.0)
    again = [RNG.integers(0, 5000, 5000) for _ in range(800)]
    drawn = [moments(sums(y[each], foretold[each]), 0.0, 10.0) for each in again]
    noise = [moments(sums(y, foretold) + RNG.normal(0, 3, 6), 0.0, 10.0) for _ in range(800)]
    for name in ("mae", "mse", "rmse", "r2"):
        assert said[name].noise == pytest.approx(np.std([each[name].value for each in noise]), rel=0.1), name
        spread = np.std([each[name].value for each in drawn])
        assert said[name].sampling >= 0.93 * spread, name
        assert said[name].sampling <= (6 if name == "r2" else 1.1) * spread, name


def test_a_difference_adds_up_errors() -> None:
    apart = difference(Measure(0.7, 0.3, 0.0, 0.1), Measure(0.5, 0.4, 0.2, 0.2))
    assert (apart.value, apart.noise, apart.sampling, apart.slack) == pytest.approx((0.2, 0.5, 0.2, 0.3))
