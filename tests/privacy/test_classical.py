"""One release by formula, against sixty digits and against the published ratios."""

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError
from defocus.privacy import classical
from defocus.privacy.classical import (
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_sigma,
    laplace_scale,
)


def exact_log_delta(mu: float, epsilon: float) -> Any:
    with mp.workdps(90):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        a, b = e / m - m / 2, e / m + m / 2
        return mp.log(mp.erfc(a / mp.sqrt(2)) / 2 - mp.exp(e) * mp.erfc(b / mp.sqrt(2)) / 2)


@settings(max_examples=300, deadline=None)
@given(st.floats(-8, 2.5), st.floats(-6, 60))
def test_log_delta_is_never_below_the_truth_and_hardly_above(log_mu: float, a: float) -> None:
    mu = 10**log_mu
    epsilon = max(0.0, mu * a + mu * mu / 2)
    truth = exact_log_delta(mu, epsilon)
    found = classical.log_delta(mu, epsilon)
    assert 0 <= found - truth <= 1e-9 * max(1, epsilon)


@settings(max_examples=100, deadline=None)
@given(st.floats(-3, 2), st.floats(-100, -0.5))
def test_epsilon_sigma_and_delta_invert_each_other(log_sigma: float, log_delta: float) -> None:
    sigma, delta = 10**log_sigma, 10**log_delta
    epsilon = gaussian_epsilon(sigma, delta)
    assert gaussian_log_delta(sigma, epsilon) <= math.log(delta)
    if epsilon > 1e-6:
        assert gaussian_log_delta(sigma, epsilon * (1 - 1e-6)) > math.log(delta)
        assert gaussian_sigma(epsilon, delta) == pytest.approx(sigma, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "ratio"), [(0.1, 1.58), (0.25, 1.46), (0.5, 1.38), (1, 1.30), (2, 1.21), (4, 1.12), (8, 1.009)]
)
def test_the_textbook_wastes_the_noise_it_is_known_to_waste(epsilon: float, ratio: float) -> None:
    """Ratios as in Balle, Wang (2018), at delta 1e-5; beyond epsilon 1 the textbook formula is not offered."""
    assert classical._textbook_ratio(epsilon, 1e-5) / gaussian_sigma(epsilon, 1e-5) == pytest.approx(ratio, abs=0.006)
    if epsilon <= 1:
        assert classical_gaussian_sigma(epsilon, 1e-5) == classical._textbook_ratio(epsilon, 1e-5)


@given(st.floats(1e-3, 1), st.floats(1e-12, 0.4))
def test_the_textbook_formula_is_sound_where_it_is_offered(epsilon: float, delta: float) -> None:
    assert gaussian_delta(classical_gaussian_sigma(epsilon, delta), epsilon) <= delta


def test_the_textbook_formula_is_refused_where_it_is_unsound() -> None:
    assert gaussian_delta(classical._textbook_ratio(10, 1e-2), 10) > 1e-2
    for epsilon, delta in ((1.0001, 1e-5), (10, 1e-2), (0.5, 0.5)):
        with pytest.raises(FormulaOutOfRangeError, match="gaussian_sigma"):
            classical_gaussian_sigma(epsilon, delta)


def test_a_hundredfold_smaller_delta_than_floats_of_probabilities_is_no_obstacle() -> None:
    assert gaussian_log_delta(1, 25) == pytest.approx(float(exact_log_delta(1, 25)), abs=1e-10)
    assert gaussian_delta(1, 100) == 5e-324
    assert gaussian_epsilon(1, 1e-100) == pytest.approx(21.6275, abs=1e-4)


def test_sensitivity_scales_the_noise() -> None:
    assert gaussian_sigma(1, 1e-6, sensitivity=7) == pytest.approx(7 * gaussian_sigma(1, 1e-6))
    assert gaussian_epsilon(14, 1e-6, sensitivity=7) == gaussian_epsilon(2, 1e-6)


def test_laplace_needs_scale_one_and_a_quarter_for_epsilon_eight_tenths() -> None:
    assert laplace_scale(0.8) == 1.25
    assert laplace_scale(1, sensitivity=3) == 3.0


def test_edges_have_an_answer() -> None:
    assert gaussian_epsilon(1, 0) == math.inf
    assert gaussian_epsilon(10**400, 1e-9) == 0.0
    assert gaussian_delta(1e-300, 1) == 1.0
    assert gaussian_epsilon(5, 0.9) == 0.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0, -1, True, "1", None])
def test_bad_input_is_refused(bad: Any) -> None:
    calls: list[Callable[[], float]] = [
        lambda: gaussian_sigma(1, bad),
        lambda: gaussian_epsilon(bad, 1e-5),
        lambda: gaussian_delta(bad, 1),
        lambda: laplace_scale(bad),
        lambda: classical_gaussian_sigma(bad, 1e-5),
        lambda: laplace_scale(1, sensitivity=bad),
    ]
    for call in calls:
        with pytest.raises(InvalidParameterError):
            call()


def test_an_epsilon_or_delta_at_the_end_of_floats_has_an_answer_or_a_refusal() -> None:
    for epsilon in (1e50, 1e200, 10**400):
        assert gaussian_delta(1, epsilon) == 5e-324
        assert gaussian_sigma(epsilon, 1e-6) > 0
    assert -math.inf < classical.log_delta(1.0, 1e60) <= -1e119
    with pytest.raises(InvalidParameterError, match="No finite Gaussian noise"):
        gaussian_sigma(0, 1e-300)
