import math

import pytest

from defocus.privacy import gaussian_sigma
from defocus.tables.power_planning import Plan

PLAN = Plan(null=5.0, low=0.0, high=30.0, std=None, groups=1, alpha=0.05, delta=0.0)


def test_noise_is_that_of_one_person_against_the_whole_epsilon() -> None:
    assert PLAN.noise(0.5) == (2.0, 0.0)
    assert PLAN.noise(math.inf) == (0.0, 0.0)
    other = Plan(5.0, 0.0, 30.0, None, 1, 0.05, 0.01)
    assert other.noise(0.01) == (0.0, gaussian_sigma(0.01, 0.01))
    assert other.noise(2.0) == (0.5, 0.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.01, 0.05, 0.1])
def test_the_noise_with_less_variance_is_taken(epsilon: float, delta: float) -> None:
    laplace, gaussian = Plan(5.0, 0.0, 30.0, None, 1, 0.05, delta).noise(epsilon)
    taken = 2 * laplace**2 + gaussian**2
    assert taken == pytest.approx(min(2 / epsilon**2, gaussian_sigma(epsilon, delta) ** 2))


def test_the_design_is_on_the_unit_interval_with_the_largest_variance() -> None:
    design = PLAN.design(100, 1.0, 3.0)
    assert design.null == pytest.approx(1 / 6)
    assert design.shift == pytest.approx(0.1)
    assert design.variance(0.25) == 0.1875


@pytest.mark.parametrize("found", ["n", "epsilon", "effect", "power"])
def test_every_number_can_be_the_one_that_is_found(found: str) -> None:
    every = {"n": 2000.0, "epsilon": 0.2, "effect": 1.0, "power": 0.9}
    known = {name: value for name, value in every.items() if name != found}
    solved = PLAN.solved(known, found)
    assert solved.keys() == every.keys()
    assert solved["power"] == PLAN.power(solved["n"], solved["epsilon"], solved["effect"])
    if found != "power":
        assert solved["power"] >= 0.9


def test_fewest_is_the_least_number_without_noise() -> None:
    fewest = PLAN.fewest(1.0, 0.9)
    assert PLAN.power(fewest, math.inf, 1.0) >= 0.9 > PLAN.power(fewest - 1, math.inf, 1.0)
