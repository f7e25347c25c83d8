"""From one order to (epsilon, delta): sound for real laws, and tighter than the textbook."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.privacy.accounting.renyi.conversion import delta_at, epsilon_at, textbook_delta_at, textbook_epsilon_at
from defocus.privacy.classical import gaussian_delta

one = np.ones(1)


@settings(max_examples=300)
@given(st.floats(0.05, 0.95), st.floats(0.001, 0.95), st.floats(1.02, 60), st.floats(0, 6))
def test_two_outcomes_never_beat_the_conversion(p: float, q: float, order: float, epsilon: float) -> None:
    moment = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    divergence = one * math.log(moment) / (order - 1)
    truth = max(0.0, p - math.exp(epsilon) * q)
    assert truth <= delta_at(divergence, one * order, epsilon)[0] + 1e-15
    if truth > 0:
        assert epsilon <= epsilon_at(divergence, one * order, truth)[0] + 1e-9


@given(st.floats(0, 20), st.floats(1.05, 500), st.floats(-200, -0.1))
def test_the_two_directions_agree_and_the_textbook_is_looser(divergence: float, order: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon = epsilon_at(one * divergence, one * order, delta)[0]
    assert textbook_epsilon_at(one * divergence, one * order, delta)[0] >= epsilon
    if epsilon > 0:
        assert delta_at(one * divergence, one * order, epsilon)[0] <= delta * (1 + 1e-9)
        assert delta_at(one * divergence, one * order, epsilon)[0] >= delta * (1 - 1e-6)
        assert textbook_delta_at(one * divergence, one * order, epsilon)[0] >= delta * (1 - 1e-9)


def test_the_best_order_of_a_gaussian_is_close_to_the_truth_and_never_below_it() -> None:
    orders = 1 + np.geomspace(0.01, 1000, 2000)
    for sigma in (0.5, 1, 5):
        for epsilon in (0.1, 1, 5):
            found = float(np.min(delta_at(orders / (2 * sigma**2), orders, epsilon)))
            assert gaussian_delta(sigma, epsilon) <= found
            assert found <= min(1.0, 40 * gaussian_delta(sigma, epsilon))


def test_no_delta_means_no_epsilon_and_a_hopeless_epsilon_means_delta_one() -> None:
    assert epsilon_at(one, one * 2, 0.0)[0] == math.inf
    assert textbook_epsilon_at(one, one * 2, 0.0)[0] == math.inf
    assert delta_at(one * math.inf, one * 2, 1.0)[0] == 1.0
    assert textbook_delta_at(one * 50, one * 2, 1.0)[0] == 1.0
    assert delta_at(one * 0.0, one * 1e6, 1.0)[0] == 5e-324


def test_the_published_example_of_the_conversion() -> None:
    """Mironov (2017), Proposition 3: divergence 1 at order 10 and delta 1e-5 give 1 + ln(1e5)/9."""
    assert textbook_epsilon_at(one, one * 10, 1e-5)[0] == pytest.approx(1 + math.log(1e5) / 9)
