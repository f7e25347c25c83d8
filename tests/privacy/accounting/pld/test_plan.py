"""Grids: fine enough for the tolerance asked, coarse where nothing is gained."""

import math

import numpy as np
import pytest

from defocus.privacy.accounting.pld import plan as planning
from defocus.privacy.accounting.pld.direction import both_ways
from defocus.privacy.accounting.pld.lowering import lower
from defocus.privacy.accounting.pld.plan import coarse_for, plan_at, plan_for
from defocus.privacy.events import Approximate, Gaussian, Laplace, Sampled
from defocus.privacy.units import Adjacency

TERMS = lower(300 * Sampled(Gaussian(1.0), 0.05) + 50 * Laplace(4), Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-4, 1e-5])
def test_the_estimated_error_meets_the_tolerance(tolerance: float) -> None:
    plan = plan_for(TERMS, 1e-6, tolerance)
    assert plan is not None
    assert planning._error(plan.dots, plan.found.theta) <= 1.01 * tolerance * plan.found.epsilon
    assert plan.accuracy <= tolerance * plan.found.epsilon


def test_a_finer_tolerance_makes_a_finer_grid() -> None:
    coarse, fine = (plan_for(TERMS, 1e-6, tolerance) for tolerance in (1e-3, 1e-5))
    assert coarse is not None
    assert fine is not None
    assert fine.step < coarse.step
    assert len(fine.indices[0]) > len(coarse.indices[0])


def test_losses_are_exact_multiples_of_the_step() -> None:
    plan = plan_for(TERMS, 1e-6, 1e-4)
    assert plan is not None
    assert math.frexp(plan.step)[0] * 32 == int(math.frexp(plan.step)[0] * 32)
    for dots, indices in zip(plan.dots, plan.indices, strict=True):
        places = np.rint(dots.losses / plan.step)
        assert np.all(places * plan.step == dots.losses)
        assert set(places.astype(int).tolist()) <= set(indices.tolist())


def test_delta_below_the_mass_at_infinity_has_no_plan() -> None:
    terms = lower(10 * Approximate(0.1, 1e-6) + Laplace(1), Adjacency.ADD_REMOVE)
    assert plan_for(terms, 0.9e-5, 1e-4) is None
    assert plan_for(terms, 1.1e-5, 1e-4) is not None


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 15.0, 60.0])
def test_a_plan_at_an_epsilon_reaches_the_tail_asked_for(epsilon: float) -> None:
    plan = plan_at(TERMS, epsilon, 1e-4)
    lost = sum(dots.times * dots.lost for dots in plan.dots)
    assert lost <= 1e-4 * math.exp(plan.found.log_delta)


def test_steps_are_rounded_down_to_five_bits() -> None:
    for step in (0.1, 1 / 3, 1e-7, 0.999, 1.0):
        short = planning._short(step)
        assert step * (1 - 1 / 16) <= short <= step
        assert (short / 2 ** math.floor(math.log2(short)) * 32).is_integer()


def test_points_that_all_but_coincide_are_dropped() -> None:
    thinned = planning._thinned(np.array([0.0, 1e-12, 0.50000001, 0.50000001 + 1e-10, 1 - 1e-9, 1.0]))
    assert thinned.tolist() == pytest.approx([0.0, 0.5, 1.0, 1.0], abs=1e-7)
    assert thinned[-1] == 1.0
    assert planning._thinned(np.array([2.0])).tolist() == [2.0]


def test_a_direction_whose_losses_crowd_at_their_end_still_has_a_plan() -> None:
    """The unit being added: all of its largest losses lie just below -log(1-q)."""
    terms = lower(400 * Sampled(Gaussian(1), 0.02), Adjacency.ADD_REMOVE)
    assert plan_for(both_ways(terms)[1], 1e-30, 1e-5) is not None


def test_coarse_dots_keep_what_is_asked_in_sight() -> None:
    dots = coarse_for(TERMS, math.log(1e-30))
    assert [part.times for part in dots] == [term.times for term in TERMS]
    assert sum(part.times * part.lost for part in dots) < 1e-33
