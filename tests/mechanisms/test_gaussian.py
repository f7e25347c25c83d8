import math

import pytest

from defocus.errors import CannotCalibrateError, UnfitDataError
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded
from defocus.privacy import events
from defocus.privacy.budgets import Budget


def test_the_event_keeps_the_whole_law() -> None:
    assert Gaussian(sigma=3.5, sensitivity=2, dimension=7).event == events.DiscreteGaussian(3.5, 2, 7)


def test_rho_is_met_and_hardly_more() -> None:
    """Canonne, Kamath, Steinke (2020), Theorem 4: ρ = Δ²/2σ²."""
    m = Gaussian.calibrated(Budget(rho=0.125), sensitivity=3)
    assert 3**2 / (2 * float(m.sigma) ** 2) <= 0.125
    assert float(m.sigma) == pytest.approx(6, rel=1e-3)


def test_epsilon_and_delta_need_no_more_noise_than_the_continuous_analytic_formula() -> None:
    """Balle, Wang (2018): σ = 3.7304… at ε = 1, δ = 1e-5, Δ = 1; discrete noise follows closely."""
    m = Gaussian.calibrated(Budget(1, 1e-5))
    assert float(m.sigma) == pytest.approx(3.7304, rel=2e-3)


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
