"""Accelerated descent: it arrives, averages noise as well as one look would, and takes its ridge from noise alone."""

import numpy as np
import pytest

from defocus.learning.estimators.descent import course, descended


def test_without_noise_it_arrives_at_the_minimum() -> None:
    bend, best = np.array([[50.0], [5.0], [1.0]]), np.array([[1.0], [-2.0], [0.5]])
    way = course(0.02, 50.0, 400, spread=2.0)
    found = descended(lambda w: bend * (w - best), (3, 1), way)
    assert found.ravel() == pytest.approx((bend * best / (bend + way.ridge)).ravel(), abs=0.01)


@pytest.mark.statistical
def test_the_average_errs_hardly_more_than_one_look_at_the_minimum_would() -> None:
    rng = np.random.default_rng(3)
    steps, bend, noise = 400, 20.0, 1.0
    way = course(noise, bend, steps, spread=2.0)

    def gradient(w: np.ndarray) -> np.ndarray:
        return bend * w + rng.normal(0, noise * steps**0.5, w.shape)

    found = descended(gradient, (4000, 1), way)
    ideal = noise / (bend + way.ridge)
    assert ideal * 0.98 < found.std() < ideal * 1.1


def test_the_ridge_grows_with_noise_and_never_makes_the_way_too_long() -> None:
    assert course(2.0, 1.0, 400, spread=2.0).ridge == 1.0
    assert course(1e-9, 1000.0, 400, spread=2.0).ridge == 1000.0 * (2 / 400) ** 2
    assert course(1.0, 10.0, 400, spread=2.0, ridge=7.0).ridge == 7.0
    assert course(1e-9, 1000.0, 400, spread=2.0).before == 200
    assert course(1e3, 1.0, 400, spread=2.0).before == 2


def test_it_stays_finite_where_the_curvature_was_bounded_too_low() -> None:
    found = descended(lambda w: 1e6 * w + 1.0, (2, 1), course(1.0, 1.0, 51, spread=2.0))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 2**12
