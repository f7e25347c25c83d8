"""Numbers in the test suites of other libraries: ours are those where they are exact, and below where they are bounds.

Sources, all of their main branches in 2024 and 2025: Google's dp_accounting (``pld/pld_privacy_accountant_test.py``,
``rdp/rdp_privacy_accountant_test.py``, ``gaussian_mechanism_test.py``), Meta's Opacus (``tests/accountants_test.py``),
Microsoft's prv_accountant (``tests/test_accountant.py``), autodp (``test/unit_test_calibrator.py``). What only asks
whether something is supported, or compares a library with itself, is not here.
"""

import math

import numpy as np
import pytest

from defocus.privacy import Budget, account, calibrate
from defocus.privacy.accounting.renyi import curve
from defocus.privacy.accounting.renyi.conversion import delta_at, epsilon_at
from defocus.privacy.events import (
    Approximate,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    RandomizedResponse,
    Sampled,
    Selected,
    SelectedPoisson,
)
from defocus.privacy.selection import expected_runs
from defocus.privacy.units import Adjacency

ADD = Adjacency.ADD_REMOVE


def exact_delta(epsilon: float, mu: float) -> float:
    """Of Gaussian noise: Balle and Wang (2018), Theorem 8."""
    near, far = (epsilon / mu - mu / 2) / math.sqrt(2), (epsilon / mu + mu / 2) / math.sqrt(2)
    return (math.erfc(near) - math.exp(epsilon) * math.erfc(far)) / 2


@pytest.mark.parametrize(
    ("event", "epsilon", "delta", "off"),
    [
        (3 * Gaussian(math.sqrt(3)), 1.0, 0.126936, 1e-6),  # Google: test_gaussian_basic
        (3 * Sampled(Gaussian(0.5), 0.2), 1.0, 0.15594, 1e-5),  # test_poisson_subsampled_gaussian
        (3 * Laplace(1) + 2 * Laplace(2), 4.0, 0.0, 1e-14),  # test_laplace_basic
        (3 * Sampled(Laplace(0.5), 0.2), 2.469645, 0.0, 1e-6),  # test_poisson_subsampled_laplace, rounded there
        (3 * DiscreteLaplace(1) + 2 * DiscreteLaplace(2), 4.0, 0.0, 1e-14),  # test_discrete_laplace_basic
        (Approximate(1, 0.1) + Approximate(2, 0.2), 3.0, 0.28, 1e-12),  # test_epsilon_delta_basic
    ],
)
def test_deltas_of_the_loss_distributions_of_google(event: Event, epsilon: float, delta: float, off: float) -> None:
    assert account(event).delta(epsilon) == pytest.approx(delta, abs=off)


@pytest.mark.parametrize(
    ("event", "delta", "epsilon"),
    [
        (3 * Gaussian(math.sqrt(3)), 0.126936, 1.0),
        (3 * Sampled(Gaussian(0.5), 0.2), 0.15594, 1.0),
        (3 * Sampled(Laplace(0.5), 0.2), 1e-14, 2.46964),
        (Approximate(1, 0.1) + Approximate(2, 0.2), 0.28, 3.0),
    ],
)
def test_epsilons_of_the_loss_distributions_of_google(event: Event, delta: float, epsilon: float) -> None:
    assert account(event).epsilon(delta) == pytest.approx(epsilon, abs=1e-4)


def test_a_randomised_response_has_the_epsilon_that_google_says() -> None:
    """Four answers, one of which is drawn with probability 4/(3 + e): epsilon 1 where a unit is replaced."""
    made = account(RandomizedResponse(1.0, 4), adjacency="replace")
    assert made.delta(1.0) == pytest.approx(0.0, abs=1e-12)
    assert made.delta(0.99) > 1e-4


def test_renyi_divergences_of_the_sampled_gaussian_are_those_of_google() -> None:
    """``test_compute_rdp_poisson_sampled_gaussian``: σ 2.5, q .01, 50 steps. At order 1.5 theirs is 3 % too large.

    There it is nearly α q² (exp(1/σ²) − 1)/2 for each step, 6.507e-4 in all; a relative difference of 1e-4 is theirs.
    """
    orders = np.array([1.5, 2.5, 5.0, 50.0, 100.0])
    theirs = np.array([6.70579741e-04, 1.08548710e-03, 2.18075656e-03, 2.38460375e-02, 1.67416308e02])
    ours = curve(50 * Sampled(Gaussian(2.5), 0.01), orders, ADD)
    assert ours[1:] == pytest.approx(theirs[1:], rel=1e-4)
    assert ours[0] == pytest.approx(0.75 * 50 * 0.01**2 * math.expm1(1 / 2.5**2), rel=1e-3)
    assert ours[0] < theirs[0]


def test_a_constant_divergence_is_converted_as_google_does_by_hand() -> None:
    orders = np.arange(2.0, 33.0)
    constant = np.full_like(orders, 1.1)
    assert epsilon_at(constant, orders, 1e-5).min() == pytest.approx(1.32783806176, abs=1e-10)
    assert delta_at(constant, orders, 1.32783806176).min() == pytest.approx(1e-5, rel=1e-9)


def test_the_noise_that_divergences_say_is_one_epsilon_at_a_millionth() -> None:
    """``test_compute_epsilon_delta_gaussian``: by divergences, exactly (1, 1e-6); by the loss itself, less."""
    made = Gaussian(4.530877117)
    assert account(made, method="rdp").epsilon(1e-6) == pytest.approx(1.0, abs=1e-6)
    assert account(made).epsilon(1e-6) < 1.0


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
def test_noise_that_is_calibrated_costs_what_it_was_calibrated_to(epsilon: float, delta: float) -> None:
    """Google's ``gaussian_mechanism_test`` and autodp's ``unit_test_calibrator``: there and back."""
    sigma = float(calibrate(Gaussian, Budget(epsilon, delta)))
    assert exact_delta(epsilon, 1 / sigma) == pytest.approx(delta, rel=1e-4)
    assert exact_delta(epsilon, 1 / sigma) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("parts", "mu"), [(((10_000, 100.0),), 1.0), (((50, 10.0), (50, 5.0)), math.sqrt(2.5))])
def test_gaussians_compose_as_microsoft_says(parts: tuple[tuple[int, float], ...], mu: float) -> None:
    event = sum((times * Gaussian(sigma) for times, sigma in parts[1:]), parts[0][0] * Gaussian(parts[0][1]))
    assert account(event).delta(4.0) == pytest.approx(exact_delta(4.0, mu), rel=1e-6)


def test_training_costs_what_opacus_says_by_divergences_and_less_by_losses() -> None:
    """``test_rdp_accountant``: σ 1.5, q .04, 2250 steps. Their orders are fewer than ours."""
    event = 2250 * Sampled(Gaussian(1.5), 0.04)
    assert account(event, method="rdp").epsilon(1e-5) == pytest.approx(7.32911117143, abs=2e-3)
    assert account(event, method="rdp").epsilon(1e-5) <= 7.32911117143
    assert account(event).epsilon(1e-5) < 7.0


@pytest.mark.parametrize(("steps", "sigma"), [(2250, 1.416), (2000, 1.3562)])
def test_noise_for_training_is_that_of_opacus_by_divergences(steps: int, sigma: float) -> None:
    """``test_get_noise_multiplier_rdp_epochs`` and ``_steps``: theirs are above ours by the tolerance of its search."""
    spent = account(steps * Sampled(Gaussian(sigma), 0.04), method="rdp").epsilon(1e-5)
    assert 7.9 < spent <= 8.0


@pytest.mark.parametrize(("eta", "factor"), [(0.0, 2.0), (0.5, 2.5), (1.0, 3.0), (5.0, 7.0)])
def test_the_best_of_pure_runs_costs_what_google_says(eta: float, factor: float) -> None:
    """Papernot and Steinke (2022), Corollary 3, ``test_repeat_select_pure_negative_binomial``, at a large order."""
    found = float(curve(Selected(Laplace(1), 0.001, eta), np.array([1e9]), ADD)[0])
    assert found == pytest.approx(factor, rel=0.02)


@pytest.mark.parametrize(("rho", "gamma"), [(0.01, 0.01), (1.0, 0.1)])
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 5.0])
def test_the_best_of_gaussian_runs_costs_what_google_says(rho: float, gamma: float, eta: float) -> None:
    """Corollary 4, ``test_repeat_select_gaussian_negative_binomial``; all runs together can cost less."""
    event = Selected(Gaussian(math.sqrt(0.5 / rho)), gamma, eta)
    mean = expected_runs(event)
    turn = 1 + math.sqrt(math.log(mean) / rho)
    for order in (1.1, 2.0, 3.0, 10.0, 100.0, 1000.0):
        fixed = 2 * (1 + eta) * math.sqrt(-rho * math.log(gamma)) - eta * rho
        own = rho * (order - 1) + math.log(mean) / (order - 1) if order > turn else 2 * math.sqrt(rho * math.log(mean))
        found = float(curve(event, np.array([order]), ADD)[0])
        assert found <= (own + fixed) * 1.003
        assert order < turn or found >= 0.997 * (own + fixed)


@pytest.mark.parametrize(("epsilon", "mean"), [(0.1, 2.0), (1.0, 10.0), (0.01, 100.0)])
def test_the_best_of_poisson_many_pure_runs_costs_what_google_says(epsilon: float, mean: float) -> None:
    """``test_repeat_and_select_pure_poisson``, with the mass of no run at all beside it, which they leave out."""
    order = 1 + 1 / math.expm1(epsilon)
    one = epsilon + math.log1p(math.expm1((1 - 2 * order) * epsilon) * (order - 1) / (2 * order - 1)) / (order - 1)
    theirs = one + math.log(mean) * math.expm1(epsilon)
    found = float(curve(SelectedPoisson(Laplace(1 / epsilon), mean), np.array([order]), ADD)[0])
    assert found <= theirs * (1 + 1e-6) + math.exp(-mean) / mean / (order - 1)
