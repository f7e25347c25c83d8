import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import CannotCalibrateError, InvalidParameterError
from defocus.mechanisms import Geometric, Laplace
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account
from defocus.privacy.budgets import Budget


def test_epsilon_four_fifths_means_scale_five_quarters() -> None:
    """Specification 2.1: ε = 0.8, Δ = 1 → b = 1.25, the expected absolute error of continuous noise."""
    m = Laplace.calibrated(epsilon=0.8)
    assert m.scale == 1.25
    assert m.epsilon <= Fraction(0.8)
    assert m.error == pytest.approx(1.1260, abs=1e-4)
    assert Laplace(scale=125).error == pytest.approx(125, rel=1e-4)


def test_a_budget_and_its_epsilon_give_the_same_noise_with_or_without_delta() -> None:
    by_epsilon = Laplace.calibrated(epsilon=0.3, sensitivity=5)
    assert Laplace.calibrated(Budget(0.3), sensitivity=5) == by_epsilon
    assert Laplace.calibrated(Budget(0.3, 1e-6), sensitivity=5) == by_epsilon


def test_a_budget_in_rho_uses_half_the_square_of_epsilon() -> None:
    m = Laplace.calibrated(Budget(rho=0.5), sensitivity=2)
    assert m.sensitivity == 2
    assert 1 - 1e-6 <= float(m.epsilon) <= 1.2, "epsilon²/2 always suffices; the exact law needs a little less"
    assert Budget(rho=0.5).covers(account(m.event, method="zcdp"))
    assert Laplace.calibrated(Budget(rho=0.5), sensitivity=10**6).error == pytest.approx(0.835e6, rel=0.01)


def test_gaussian_dp_and_missing_budgets_are_refused() -> None:
    with pytest.raises(CannotCalibrateError, match="Gaussian-DP") as refusal:
        Laplace.calibrated(Budget(mu=1))
    assert "epsilon or rho" in refusal.value.fix
    with pytest.raises(InvalidParameterError, match="got none"):
        Laplace.calibrated()
    with pytest.raises(InvalidParameterError, match="both were given"):
        Laplace.calibrated(Budget(1), epsilon=1)
    with pytest.raises(InvalidParameterError, match="got epsilon, rho"):
        Laplace.calibrated(epsilon=1, rho=1)


def test_every_price_has_a_name() -> None:
    assert Laplace.calibrated(rho=0.5) == Laplace.calibrated(Budget(rho=0.5))
    assert Laplace.calibrated(epsilon=1, delta=1e-6) == Laplace.calibrated(epsilon=1)
    with pytest.raises(CannotCalibrateError, match="Gaussian-DP"):
        Laplace.calibrated(mu=1)


def test_a_number_gives_a_number_and_a_vector_a_vector() -> None:
    m, bits = Laplace(scale=1), seeded(1)
    assert type(m.sample(5, bits)) is int
    vector = m.sample([5, 6, 7], bits)
    assert isinstance(vector, np.ndarray)
    assert vector.shape == (3,)
    assert m.sample(np.arange(100, dtype=np.uint8), bits).dtype == np.int64


def test_the_noise_is_added_to_the_value_and_centred_on_it() -> None:
    values = np.arange(0, 10**6, 1000)
    noisy = Laplace(scale=2).sample(values, seeded(9))
    assert abs((noisy - values).mean()) < 5 * 2.8 / np.sqrt(1000)
    assert np.abs(noisy - values).max() < 60


@given(st.fractions(Fraction(1, 100), 20), st.integers(1, 50))
def test_it_is_laplace_noise_of_scale_sensitivity_over_epsilon(epsilon: Fraction, bound: int) -> None:
    g, m = Geometric(epsilon=epsilon, sensitivity=bound), Laplace(scale=bound / epsilon, sensitivity=bound)
    assert g.event == m.event
    assert (g.error, g.variance, g.interval(0.9)) == (m.error, m.variance, m.interval(0.9))
    assert g.sample([1, 2, 3], seeded(4)).tolist() == m.sample([1, 2, 3], seeded(4)).tolist()


def test_alpha_of_the_classical_definition() -> None:
    """Ghosh, Roughgarden, Sundararajan (2012): P(0) = (1−α)/(1+α) with α = e^−ε; P(|X| > 0) is the rest."""
    alpha = math.exp(-0.5)
    g = Geometric(epsilon=0.5)
    assert g.error == pytest.approx(2 * alpha / (1 - alpha**2))
    assert g.variance == pytest.approx(2 * alpha / (1 - alpha) ** 2)
    assert g.interval((1 - alpha) / (1 + alpha) - 1e-9) == 0
    assert g.interval((1 - alpha) / (1 + alpha) + 1e-9) == 1
