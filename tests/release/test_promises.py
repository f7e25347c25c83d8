import math
from fractions import Fraction

import pytest

from defocus.privacy.budgets import Budget
from defocus.privacy.events import Gaussian, Pure
from defocus.privacy.units import Adjacency
from defocus.release import promise


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), 3])
def test_a_pure_release_moves_even_odds_by_e_to_the_epsilon(epsilon: Fraction | int) -> None:
    made = promise(Pure(epsilon), Budget(5, 1e-6), Adjacency.ADD_REMOVE)
    assert made.delta == 0
    assert made.epsilon == pytest.approx(float(epsilon))
    assert made.odds == pytest.approx(math.exp(epsilon))
    assert str(made) == f"epsilon {float(epsilon):.4g}"


@pytest.mark.parametrize(("budget", "delta"), [(Budget(1, 1e-9), 1e-9), (Budget(rho=1), 1e-6), (Budget(mu=1), 1e-6)])
def test_a_gaussian_release_is_stated_at_the_delta_of_the_budget_or_the_customary_one(
    budget: Budget, delta: float
) -> None:
    made = promise(Gaussian(5), budget, Adjacency.ADD_REMOVE)
    assert made.delta == delta
    assert math.isfinite(made.epsilon)
    assert f"{delta:.3g}" in str(made)


def test_a_gaussian_release_without_a_delta_promises_nothing_and_does_not_break() -> None:
    made = promise(Gaussian(5), Budget(1), Adjacency.ADD_REMOVE)
    assert made.epsilon == math.inf
    assert made.posterior == 1
