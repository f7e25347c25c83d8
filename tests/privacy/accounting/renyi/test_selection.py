"""The price of selection, against the exact law of the best of K runs."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as peer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from defocus.privacy.accounting.renyi import curve
from defocus.privacy.events import Gaussian, Pure, RandomizedResponse, Selected, SelectedPoisson
from defocus.privacy.units import Adjacency


def generating(gamma: float, eta: float, x: float) -> float:
    """E[x^K]."""
    if eta == 0:
        return math.log(1 - (1 - gamma) * x) / math.log(gamma)
    return (math.pow(1 - (1 - gamma) * x, -eta) - 1) / (math.pow(gamma, -eta) - 1)


@settings(max_examples=150, deadline=None)
@given(
    st.floats(0.05, 4),
    st.integers(2, 5),
    st.floats(0.01, 0.9),
    st.sampled_from([-0.5, 0.0, 0.5, 1.0, 3.0]),
    st.floats(1.1, 40),
)
def test_the_best_of_a_random_number_of_responses_stays_within_the_bound(
    epsilon: float, categories: int, gamma: float, eta: float, order: float
) -> None:
    e = math.exp(epsilon)
    law = np.ones((2, categories))
    law[0, -1] = law[1, 0] = e
    law /= law.sum(axis=1, keepdims=True)
    upto = np.cumsum(law, axis=1)
    best = np.array([[generating(gamma, eta, min(x, 1.0)) for x in row] for row in upto])
    best = np.diff(np.concatenate((np.zeros((2, 1)), best), axis=1), axis=1)
    event = Selected(RandomizedResponse(epsilon, categories), gamma, eta)
    bound = float(curve(event, np.array([order]), Adjacency.ADD_REMOVE)[0])
    for p, q in (best, best[::-1]):
        assert _renyi(p, q, order) <= bound


def _renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """The Rényi divergence of two laws, in logarithms so that small masses do not overflow."""
    with np.errstate(divide="ignore"):
        return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


@settings(max_examples=100, deadline=None)
@given(st.floats(0.05, 2), st.floats(0.1, 40), st.floats(1.1, 20))
def test_the_best_of_poisson_many_responses_stays_within_the_bound(epsilon: float, mean: float, order: float) -> None:
    e = math.exp(epsilon)
    low = np.array([e, 1]) / (e + 1)  # probability of the lower score on the two data sets
    laws = np.array(
        [[math.exp(-mean), math.exp(-mean * (1 - x)) - math.exp(-mean), -math.expm1(-mean * (1 - x))] for x in low]
    )
    bound = float(curve(SelectedPoisson(Pure(epsilon), mean), np.array([order]), Adjacency.ADD_REMOVE)[0])
    for p, q in (laws, laws[::-1]):
        assert _renyi(p, q, order) <= bound


def test_selection_costs_what_the_peer_says_or_less() -> None:
    """Papernot, Steinke (2022), Theorem 2, as dp_accounting computes it on its own orders."""
    orders = np.array([1.5, 2, 4, 8, 16, 32, 64, 128, 256, 512], dtype=np.float64)
    gamma, eta = 0.01, 0.0
    one = curve(Gaussian(5), orders, Adjacency.ADD_REMOVE)
    mean = peer._truncated_negative_binomial_mean(gamma, eta)
    theirs = peer._compute_rdp_repeat_and_select(orders, one, mean, eta)
    ours = curve(Selected(Gaussian(5), gamma, eta), orders, Adjacency.ADD_REMOVE)
    assert np.all(ours <= theirs * (1 + 1e-6))
    assert np.all(ours >= 0.8 * theirs)


@pytest.mark.parametrize("order", [2.0, 10.0])
def test_selecting_costs_at_least_the_release_itself(order: float) -> None:
    orders = np.array([order])
    one = curve(Gaussian(3), orders, Adjacency.ADD_REMOVE)
    for event in (Selected(Gaussian(3), 0.5), SelectedPoisson(Gaussian(3), 10)):
        assert curve(event, orders, Adjacency.ADD_REMOVE) > one
