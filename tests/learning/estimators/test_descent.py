"""Accelerated descent: it arrives, averages noise as well as one look would, and takes its ridge from noise alone."""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus import Budget, rows
from defocus.learning.estimators.descent import (
    PULL,
    ROW_BITS,
    UNIT,
    Loss,
    bends,
    chances,
    course,
    descended,
    gradient_plan,
    largest,
    optimum,
    pulls,
    residuals,
)
from defocus.learning.estimators.descent import _fresh as fresh
from defocus.learning.estimators.fit_budget import FitBudget
from defocus.learning.estimators.grid import Ball, Held
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded
from defocus.privacy.events import DiscreteGaussian, parts_of


def test_without_noise_it_arrives_at_the_minimum() -> None:
    bend, best = np.array([[50.0], [5.0], [1.0]]), np.array([[1.0], [-2.0], [0.5]])
    way = course(0.02, 50.0, 400, width=3, spread=2.0)
    found = descended(lambda w: bend * (w - best), (3, 1), way)
    assert found.ravel() == pytest.approx((bend * best / (bend + way.ridge)).ravel(), abs=0.01)


@pytest.mark.statistical
def test_the_average_errs_hardly_more_than_one_look_at_the_minimum_would() -> None:
    rng = np.random.default_rng(3)
    steps, bend, noise = 400, 20.0, 1.0
    way = course(noise, bend, steps, width=1, spread=2.0)

    def gradient(w: np.ndarray) -> np.ndarray:
        return bend * w + rng.normal(0, noise * steps**0.5, w.shape)

    found = descended(gradient, (4000, 1), way)
    ideal = noise / (bend + way.ridge)
    assert ideal * 0.98 < found.std() < ideal * 1.1


def test_the_ridge_grows_with_noise_and_never_makes_the_way_too_long() -> None:
    assert course(2.0, 100.0, 400, width=1, spread=2.0).ridge == pytest.approx(1.0)
    assert course(1e-9, 1000.0, 400, width=1, spread=2.0).ridge == 1000.0 * (2 / 400) ** 2
    assert course(0.0, 1000.0, 400, width=1, spread=2.0).ridge == 1000.0 * (2 / 400) ** 2
    assert course(1.0, 10.0, 400, width=1, spread=2.0, ridge=7.0).ridge == 7.0
    assert course(1e-9, 1000.0, 400, width=1, spread=2.0).before == 200
    assert course(1e3, 1.0, 400, width=1, spread=2.0).before == 2


def regret(ridge: float, mean: float) -> float:
    """By how much a ridge costs more than the best for each direction, at worst, if curvatures have this mean.

    In units of noise and spread. The worst spectrum of a given mean mixes two curvatures: a chord of the graph.
    """
    bends = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 300)])
    lost = bends * (ridge**2 + 1) / (bends + ridge) ** 2 - bends / (bends**2 + 1)
    low, high = bends[bends <= mean, np.newaxis], bends[np.newaxis, bends > mean]
    share = (mean - low) / (high - low)
    chords = lost[bends <= mean, np.newaxis] * (1 - share) + lost[np.newaxis, bends > mean] * share
    return float(chords.max())


@pytest.mark.parametrize("mean", [0.01, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0])
def test_of_all_ridges_the_one_chosen_loses_least_in_the_worst_case(mean: float) -> None:
    chosen = course(1.0, 100 * mean, 10**6, width=100, spread=1.0).ridge
    least = min(regret(ridge, mean) for ridge in np.geomspace(0.3, 6, 60))
    assert regret(chosen, mean) < 1.03 * least + 0.002


def test_it_stays_finite_where_the_curvature_was_bounded_too_low() -> None:
    found = descended(lambda w: 1e6 * w + 1.0, (2, 1), course(1.0, 1.0, 51, width=2, spread=2.0))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 2**12


def test_a_plan_charges_every_gradient_and_the_lengths_once() -> None:
    plan = gradient_plan(FitBudget(Budget(1, 1e-6), "a.ledger", rows()), 12, 40)
    charged = {
        int(part.sensitivity): times for part, times in parts_of(plan.event) if isinstance(part, DiscreteGaussian)
    }
    assert charged == {2**26: 40, 2**13: 1}


def test_noise_is_fresh_for_every_release() -> None:
    drawn = list(islice(fresh(Gaussian(sigma=1000, sensitivity=5, dimension=3), seeded(1)), 10_000))
    assert len({tuple(each.tolist()) for each in drawn}) > 9_990
    together = np.array(drawn) / 1000.0
    assert np.abs(np.corrcoef(together[:-1, 0], together[1:, 0])[0, 1]) < 0.05


def test_the_optimum_of_a_square_is_found() -> None:
    rng = np.random.default_rng(0)
    held = Held(Ball(1.0, ROW_BITS).hold(rng.uniform(-0.7, 0.7, (5000, 2))))
    aims = held.times(np.array([[0.6], [-0.3]])) / 2**ROW_BITS

    def pulls(scores: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.trunc(np.clip(scores / UNIT - aims, -1, 1) * PULL)
        return found

    loss = Loss(pulls, columns=1, step=1 / PULL, bend=1.0, spread=0.5)
    plan = gradient_plan(FitBudget(Budget(2, 1e-6), "a.ledger", rows()), 2, 200)
    w = optimum(held, loss, plan, steps=200, ridge=None, bits=seeded(1))
    assert w.ravel() == pytest.approx([0.6, -0.3], abs=0.03)


SCORE = 2**29


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6), spread=st.sampled_from([0.0, 1.0, 30.0, 1e6]))
@settings(max_examples=80, deadline=None)
def test_no_row_pulls_harder_than_the_bound_and_each_pulls_by_itself(seed: int, classes: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    columns = 1 if classes == 2 else classes
    scores = np.rint(rng.normal(size=(9, columns)) * spread * SCORE)
    labels = rng.integers(-1, classes, size=9)
    found = pulls(scores, labels, unit=SCORE, classes=classes)
    assert ((found**2).sum(axis=1) <= PULL**2).all()
    assert (found[labels < 0] == 0).all()
    for i in range(9):
        assert (pulls(scores[i : i + 1], labels[i : i + 1], unit=SCORE, classes=classes)[0] == found[i]).all()


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_everybody_pulls_by_the_bound_before_anything_is_learned(classes: int) -> None:
    found = pulls(np.zeros((classes, 1 if classes == 2 else classes)), np.arange(classes), unit=SCORE, classes=classes)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.full(classes, PULL), rel=1e-3)


def test_right_rows_pull_as_the_logistic_loss_does() -> None:
    scores = np.array([0.5, 1.0, 3.0])
    found = pulls(np.rint(scores * SCORE)[:, np.newaxis], np.ones(3, np.int64), unit=SCORE, classes=2)
    assert found.ravel() / (2 * PULL) == pytest.approx(-1 / (1 + np.exp(scores)), abs=1e-4)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_probabilities_are_those_at_which_nothing_pulls(classes: int) -> None:
    rng = np.random.default_rng(classes)
    scores = rng.normal(size=(20, classes))
    eta = chances(scores)
    assert eta.sum(axis=1) == pytest.approx(np.ones(20))
    column = (scores[:, 1:] - scores[:, :1]) if classes == 2 else scores
    expected = np.zeros((20, column.shape[1]))
    for y in range(classes):
        pull = pulls(np.rint(column * SCORE), np.full(20, y), unit=SCORE, classes=classes)
        expected += eta[:, y : y + 1] * pull * largest(classes) / PULL
    assert np.abs(expected).max() < 2e-3


@given(score=st.integers(-(2**40), 2**40), label=st.integers(-1, 2))
def test_residuals_and_curvature_of_odds_are_whole_bounded_and_near(score: int, label: int) -> None:
    scores, labels = np.array([[float(score)]]), np.array([label])
    missed, bent = float(residuals(scores, labels)[0, 0]), float(bends(scores, labels)[0])
    assert missed == round(missed)
    assert bent == round(bent)
    assert abs(missed) <= PULL
    assert 0 <= bent <= PULL
    chance = 1 / (1 + math.exp(-max(-16, min(16, score / UNIT))))
    if label < 0:
        assert (missed, bent) == (0, 0)
    else:
        assert missed / PULL == pytest.approx(chance - (label == 1), abs=3e-4)
        assert (bent / PULL) ** 2 == pytest.approx(4 * chance * (1 - chance), abs=1e-3)
