import math
from typing import Any

import numpy as np
import pytest

from defocus.errors import CannotCalibrateError, InvalidParameterError, UnfitDataError
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded
from defocus.privacy import events
from defocus.privacy.accounting import account
from defocus.privacy.budgets import Budget


def test_the_event_keeps_the_whole_law() -> None:
    assert Gaussian(sigma=3.5, sensitivity=2, dimension=7).event == events.DiscreteGaussian(3.5, 2, 7)


def test_rho_is_met_and_hardly_more() -> None:
    """Canonne, Kamath, Steinke (2020), Theorem 4: ρ = Δ²/2σ²."""
    m = Gaussian.calibrated(Budget(rho=0.125), sensitivity=3)
    assert 3**2 / (2 * float(m.sigma) ** 2) <= 0.125
    assert float(m.sigma) == pytest.approx(6, rel=1e-3)


def hockey_stick(sigma: float, shift: int, epsilon: float) -> float:
    k = np.arange(-500, 501)
    p = np.exp(-(k**2) / (2 * sigma**2))
    q = np.exp(-((k - shift) ** 2) / (2 * sigma**2))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() / p.sum())


@pytest.mark.parametrize(("epsilon", "delta", "shift"), [(1, 1e-5, 1), (0.3, 1e-6, 2), (4, 1e-8, 3)])
def test_epsilon_and_delta_are_met_by_the_exact_discrete_law_and_hardly_more(
    epsilon: float, delta: float, shift: int
) -> None:
    m = Gaussian.calibrated(Budget(epsilon, delta), sensitivity=shift)
    assert hockey_stick(float(m.sigma), shift, epsilon) <= delta
    assert hockey_stick(0.999 * float(m.sigma), shift, epsilon) > delta


def test_the_noise_is_close_to_that_of_the_continuous_analytic_formula() -> None:
    """Balle, Wang (2018): σ = 3.7304… at ε = 1, δ = 1e-5, Δ = 1."""
    assert float(Gaussian.calibrated(Budget(1, 1e-5)).sigma) == pytest.approx(3.7304, rel=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(1, 1e-5), Budget(0.1, 1e-6), Budget(10, 1e-6)])
@pytest.mark.parametrize(("sensitivity", "dimension"), [(1, 10), (1.5, 1), (10, 100), (1000, 10**6)])
def test_vectors_and_fractional_sensitivities_are_calibrated_too(
    budget: Budget, sensitivity: float, dimension: int
) -> None:
    m = Gaussian.calibrated(budget, sensitivity=sensitivity, dimension=dimension)
    assert budget.covers(account(m.event, method="rdp")) or budget.covers(account(m.event))
    analytic = Gaussian.calibrated(budget, sensitivity=1000).sigma
    assert float(m.sigma) <= 1.35 * float(analytic) * sensitivity / 1000


@pytest.mark.parametrize("sensitivity", [0.5, 1e-9])
def test_a_sensitivity_below_one_step_of_the_grid_is_a_slip(sensitivity: float) -> None:
    with pytest.raises(InvalidParameterError, match="at least 1 apart") as refusal:
        Gaussian(sigma=1, sensitivity=sensitivity)
    assert "Grid.bound" in refusal.value.fix


def test_budgets_it_cannot_meet_are_refused() -> None:
    with pytest.raises(CannotCalibrateError, match="without a delta") as refusal:
        Gaussian.calibrated(Budget(1))
    assert "Laplace" in refusal.value.fix
    with pytest.raises(CannotCalibrateError, match="Gaussian-DP"):
        Gaussian.calibrated(Budget(mu=1))


def test_the_dimension_is_declared_and_held() -> None:
    m = Gaussian(sigma=1, dimension=3)
    assert m.sample([1, 2, 3], seeded(1)).shape == (3,)
    for wrong in (1, [1, 2], [1, 2, 3, 4]):
        with pytest.raises(UnfitDataError, match="made for 3"):
            m.sample(wrong, seeded(1))


def test_a_single_number_may_be_a_vector_of_one() -> None:
    m = Gaussian(sigma=1)
    assert type(m.sample(5, seeded(2))) is int
    assert m.sample([5], seeded(2)).tolist() == [m.sample(5, seeded(2))]


def test_absolute_error_is_close_to_sigma_times_root_two_over_pi() -> None:
    """Specification 2.5."""
    assert Gaussian(sigma=50).error == pytest.approx(50 * math.sqrt(2 / math.pi), rel=1e-4)


def test_epsilon_and_delta_may_stand_for_a_budget() -> None:
    assert Gaussian.calibrated(epsilon=1, delta=1e-6) == Gaussian.calibrated(Budget(1, 1e-6))
    assert Gaussian.calibrated(rho=0.5) == Gaussian.calibrated(Budget(rho=0.5))
    with pytest.raises(CannotCalibrateError, match="without a delta"):
        Gaussian.calibrated(epsilon=1)


@pytest.mark.parametrize(
    ("budget", "named"),
    [(None, {}), (None, {"delta": 1e-6}), (Budget(1, 1e-6), {"epsilon": 1}), (Budget(1, 1e-6), {"delta": 1e-6})],
)
def test_two_budgets_or_none_are_refused(budget: Budget | None, named: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=r"got none|both were given"):
        Gaussian.calibrated(budget, **named)
