"""Optima through noisy gradients: what is charged, that noise is fresh, and that the optimum is found."""

from itertools import islice

import numpy as np
import pytest

from defocus import Budget, rows
from defocus.learning.estimators.balls import Ball, Held
from defocus.learning.estimators.noisy_gradients import ROW_BITS, UNIT, Loss, gradient_plan, optimum
from defocus.learning.estimators.noisy_gradients import _fresh as fresh
from defocus.learning.estimators.residuals import PULL
from defocus.learning.estimators.spending import Purse
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded
from defocus.privacy.events import DiscreteGaussian, parts_of


def test_a_plan_charges_every_gradient_and_the_lengths_once() -> None:
    plan = gradient_plan(Purse(Budget(1, 1e-6), None, rows()), 12, 40)
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
    plan = gradient_plan(Purse(Budget(2, 1e-6), None, rows()), 2, 200)
    w = optimum(held, loss, plan, steps=200, ridge=None, bits=seeded(1))
    assert w.ravel() == pytest.approx([0.6, -0.3], abs=0.03)
