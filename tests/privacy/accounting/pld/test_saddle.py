"""Tilts and windows: for Gaussians all are known in closed form."""

import math

import numpy as np
import pytest
from tests.privacy.accounting.pld import oracles

from defocus.privacy.accounting.pld.continuous import GaussianProfile
from defocus.privacy.accounting.pld.dots import Dots, connect
from defocus.privacy.accounting.pld.saddle import cumulant, moments, saddle_at, saddle_for, window

MU, TIMES = 0.1, 400
WHOLE = MU * math.sqrt(TIMES)


@pytest.fixture
def parts() -> list[Dots]:
    return [connect(GaussianProfile(MU), np.linspace(-1.5, 1.5, 3001), TIMES)]


@pytest.mark.parametrize("theta", [0.0, 0.5, 2.0, 5.0])
def test_cumulants_and_moments_are_those_of_the_normal_law(parts: list[Dots], theta: float) -> None:
    value, mean, variance = moments(parts, theta)
    assert value == pytest.approx(WHOLE**2 / 2 * theta * (1 + theta), abs=1e-3)
    assert value == cumulant(parts, theta)
    assert mean == pytest.approx(WHOLE**2 * (theta + 0.5), rel=1e-3)
    assert variance == pytest.approx(WHOLE**2, rel=1e-3)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-30])
def test_the_tilt_for_a_delta_is_close_to_the_true_epsilon(parts: list[Dots], delta: float) -> None:
    found = saddle_for(parts, delta, tolerance=1e-3)
    true = float(oracles.gaussian_epsilon(WHOLE, delta))
    assert found.epsilon == pytest.approx(true, rel=0.01, abs=0.05)
    assert found.log_delta == pytest.approx(math.log(delta), abs=0.01)


@pytest.mark.parametrize("epsilon", [0.0, 3.0, 20.0])
def test_the_tilt_at_an_epsilon_estimates_its_delta(parts: list[Dots], epsilon: float) -> None:
    found = saddle_at(parts, epsilon)
    true = math.log(float(oracles.gaussian(WHOLE).excess(epsilon)))
    assert found.log_delta == pytest.approx(true, abs=0.5)


def test_a_law_of_one_atom_has_a_finite_tilt() -> None:
    one = [Dots(np.array([800.0]), np.array([0.0]), 0.0, 0.0, 3, np.array([1.0]))]
    found = saddle_for(one, 1e-5)
    assert found.epsilon == pytest.approx(2400)
    assert 0 < found.theta < 1e12


@pytest.mark.parametrize("delta", [0.5, 1e-5, 1e-50])
def test_the_window_is_wide_enough_for_what_wraps(parts: list[Dots], delta: float) -> None:
    found = saddle_for(parts, delta)
    chosen = window(parts, found, max(found.epsilon, 0.0), math.log(delta))
    assert 0 < chosen.theta <= 1.1 * found.theta
    assert chosen.theta * chosen.width >= -math.log(delta)
    top = max(found.epsilon, 0.0) + chosen.width
    beyond = min(value - steeper * top for steeper, value in chosen.cumulants)
    assert beyond <= math.log(delta) - math.log(1e6)
