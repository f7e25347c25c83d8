"""Amplification against quadrature with many digits, brute force over laws, and the peers."""

import math
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as peer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting.renyi import curve
from defocus.privacy.events import (
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Selected,
    SelectedPoisson,
)
from defocus.privacy.units import Adjacency

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE


def at(event: Event, order: float, adjacency: Adjacency = ADD) -> float:
    return float(curve(event, np.array([float(order)]), adjacency)[0])


def moment(sigma: float, q: float, order: float, power: Any, low: Any = None) -> Any:
    """E over N(0, σ²) of f(L) with L = 1 + q(P/Q − 1), by quadrature around every bump."""
    s, rate = mp.mpf(sigma), mp.mpf(q)

    def integrand(x: Any) -> Any:
        ratio = 1 + rate * mp.expm1((2 * x - 1) / (2 * s * s))
        return mp.npdf(x, 0, s) * power(ratio)

    start = mp.mpf(-15 * sigma) if low is None else mp.mpf(low)
    ends = [start, *[mp.mpf(k) for k in np.arange(math.floor(start) + 1.5, order + 15 * sigma, max(0.5, sigma))]]
    return mp.quad(integrand, [*ends, mp.mpf(order + 16 * sigma)])


CASES = [(1.0, 0.01, 2.5), (1.0, 0.01, 7.3), (0.6, 0.001, 3.7), (4.0, 0.2, 11.5), (0.5, 0.9, 1.3), (20.0, 1e-6, 40.25)]


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "q", "order"), CASES)
def test_fractional_orders_of_the_sampled_gaussian_are_exact(sigma: float, q: float, order: float) -> None:
    with mp.workdps(40):
        excess = moment(sigma, q, order, lambda l: mp.power(l, order) - 1 - order * (l - 1))
        truth = mp.log1p(excess) / (mp.mpf(order) - 1)
    assert 0 <= at(Sampled(Gaussian(sigma), q), order) - truth <= 3e-11 * truth


@pytest.mark.parametrize(("sigma", "q", "order"), CASES)
def test_replacing_one_unit_gives_the_integral_of_the_amplified_profile(sigma: float, q: float, order: float) -> None:
    with mp.workdps(40):
        excess = moment(sigma, q, order, lambda l: mp.power(l, order) + mp.power(l, 1 - mp.mpf(order)) - 1 - l, low=0.5)
        truth = mp.log1p(excess) / (mp.mpf(order) - 1)
    found = at(Sampled(Gaussian(sigma), q), order, REPLACE)
    assert 0 <= found - min(truth, mp.mpf(order) / (2 * sigma**2)) <= 3e-11 * truth
    if round(1 / q) == 1 / q:
        assert found == at(SampledBatch(Gaussian(sigma), 1, round(1 / q)), order, REPLACE)


@settings(max_examples=150, deadline=None)
@given(st.floats(0.3, 50), st.floats(-6, -0.01), st.integers(2, 200))
def test_integer_orders_match_the_published_formula(sigma: float, log_q: float, order: int) -> None:
    """Mironov, Talwar, Zhang (2019), as dp_accounting implements it."""
    q = 10**log_q
    theirs = peer._compute_log_a_int(q, sigma, order) / (order - 1)
    assert at(Sampled(Gaussian(sigma), q), order) == pytest.approx(theirs, rel=1e-6, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.5, 20), st.floats(-4, -0.1), st.floats(1.05, 60))
def test_fractional_orders_are_at_most_the_published_series(sigma: float, log_q: float, order: float) -> None:
    """dp_accounting cuts its series early, which costs tightness at low orders."""
    q = 10**log_q
    theirs = peer._compute_log_a_frac(q, sigma, order) / (order - 1)
    if np.isfinite(theirs) and theirs > 1e-9:
        assert 0 < at(Sampled(Gaussian(sigma), q), order) <= theirs * (1 + 1e-6) + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.floats(0.4, 20), st.floats(-4, -0.1), st.integers(2, 60))
def test_batches_never_cost_more_than_the_published_bound(sigma: float, log_q: float, order: int) -> None:
    """Wang, Balle, Kasiviswanathan (2019), Theorem 27, as dp_accounting implements it; and never less than one pair."""
    q = 10**log_q
    theirs = peer._compute_rdp_sample_wor_gaussian_scalar(q, sigma, order)
    found = at(Sampled(Gaussian(sigma), q), order, REPLACE)
    assert found <= theirs * (1 + 1e-9)
    assert found >= at(Sampled(Gaussian(sigma), q), order, ADD) * (1 - 1e-9) or found == at(Gaussian(sigma), order)


def laws(rng: np.random.Generator, epsilon: float, size: int) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Three laws, each two of them ε-DP neighbours: a base law tilted by factors within e^±ε/2, many at the ends."""
    found: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    base = rng.dirichlet(np.ones(size))
    while len(found) < 3:
        tilt = rng.uniform(-1, 1, size) if rng.random() < 0.3 else rng.choice([-1.0, 1.0], size)
        law = base * np.exp(tilt * epsilon / 4)
        found.append(law / law.sum())
    return found


def divergence(p: Any, q: Any, order: float) -> float:
    return float(np.log(np.sum(np.exp(order * np.log(p) + (1 - order) * np.log(q)))) / (order - 1))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.05, 6), st.floats(0.01, 0.99), st.floats(1.05, 30))
def test_no_pure_mechanism_on_a_sample_exceeds_its_bound(seed: int, epsilon: float, q: float, order: float) -> None:
    u, p, r = laws(np.random.default_rng(seed), epsilon, 4)
    inner = Sampled(Pure(epsilon), q)
    bound, replaced = at(inner, order), at(inner, order, REPLACE)
    mixed, other = (1 - q) * u + q * p, (1 - q) * u + q * r
    assert max(divergence(mixed, u, order), divergence(u, mixed, order)) <= bound + 1e-12
    assert divergence(mixed, other, order) <= replaced + 1e-12


def test_randomised_response_on_a_sample_is_exact_in_its_worse_direction() -> None:
    e, q, order = math.exp(1.5), 0.3, 3.5
    p, u = np.array([e, 1, 1, 1]) / (e + 3), np.array([1, e, 1, 1]) / (e + 3)
    mixed = (1 - q) * u + q * p
    truth = max(divergence(mixed, u, order), divergence(u, mixed, order))
    assert at(Sampled(RandomizedResponse(1.5, 4), q), order) == pytest.approx(truth, rel=1e-11)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(
        [
            Gaussian(2.0),
            Laplace(1.5),
            DiscreteLaplace(3.0, 4),
            Pure(1),
            Exponential(1),
            Concentrated(0.1),
            Gaussian(3) + Laplace(2),
            DiscreteGaussian(6.0, 3),
        ]
    ),
    st.floats(0.001, 0.99),
    st.floats(1.05, 50),
    st.sampled_from([ADD, REPLACE]),
)
def test_a_sample_is_never_worse_than_the_whole_and_more_is_worse(
    event: Event, q: float, order: float, adjacency: Adjacency
) -> None:
    found = at(Sampled(event, q), order, adjacency)
    assert 0 < found <= at(event, order)
    assert found <= at(Sampled(event, min(1.0, 1.1 * q)), order, adjacency) * (1 + 1e-9)
    assert found <= at(Sampled(event, q), order + 0.5, adjacency) * (1 + 1e-9)
    assert at(Sampled(event, 1), order, adjacency) == at(event, order)


def test_events_known_only_by_their_divergence_cover_those_known_exactly() -> None:
    for order in (2, 3.5, 16):
        for q in (0.001, 0.1):
            for adjacency in (ADD, REPLACE):
                general = at(Sampled(Concentrated(0.125), q), order, adjacency)
                assert general >= at(Sampled(Gaussian(2), q), order, adjacency) * (1 - 1e-12)
                assert at(Sampled(DiscreteGaussian(2), q), order, adjacency) <= general * (1 + 1e-12)


@pytest.mark.parametrize("order", [2, 3, 7, 20])
@pytest.mark.parametrize("q", [0.01, 0.2])
def test_events_known_only_by_their_divergence_follow_the_published_expansion(order: int, q: float) -> None:
    """Wang, Balle, Kasiviswanathan (2019), Theorem 9; a unit added or removed saves the factors 2 and 4."""
    rho = 0.05
    for adjacency, second, factor in (
        (ADD, math.expm1(2 * rho), 1),
        (REPLACE, min(4 * math.expm1(2 * rho), 2 * math.exp(2 * rho)), 2),
    ):
        total = math.comb(order, 2) * q**2 * second
        total += sum(math.comb(order, j) * q**j * factor * math.exp(j * (j - 1) * rho) for j in range(3, order + 1))
        bound = min(math.log1p(total) / (order - 1), order * rho)
        assert at(Sampled(Concentrated(rho), q), order, adjacency) == pytest.approx(bound, rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.05, 3), st.floats(0.01, 0.99), st.integers(2, 12))
def test_no_composed_mechanism_on_a_sample_exceeds_its_bound(seed: int, epsilon: float, q: float, order: int) -> None:
    rng = np.random.default_rng(seed)
    u, p, r = (np.outer(a, b).ravel() for a, b in zip(laws(rng, epsilon, 3), laws(rng, epsilon, 3), strict=True))
    inner = Sampled(2 * Pure(epsilon), q)
    mixed, other = (1 - q) * u + q * p, (1 - q) * u + q * r
    assert max(divergence(mixed, u, order), divergence(u, mixed, order)) <= at(inner, order) + 1e-12
    assert divergence(mixed, other, order) <= at(inner, order, REPLACE) + 1e-12


@pytest.mark.parametrize("sigma", [1.0, 3.0])
def test_the_sampled_discrete_gaussian_is_covered_in_both_directions(sigma: float) -> None:
    x = np.arange(-int(12 * sigma), int(12 * sigma) + 2)
    u = np.exp(-(x**2) / (2 * sigma**2))
    p = np.exp(-((x - 1) ** 2) / (2 * sigma**2))
    u, p = u / u.sum(), p / p.sum()
    for q in (0.01, 0.3):
        mixed = (1 - q) * u + q * p
        for order in (2.0, 5.0, 9.0):
            found = at(Sampled(DiscreteGaussian(sigma), q), order)
            assert found >= max(divergence(mixed, u, order), divergence(u, mixed, order)) * (1 - 1e-9)


def test_a_sample_of_a_sample_is_one_sample() -> None:
    assert at(Sampled(Sampled(Gaussian(1), 0.5), 0.02), 4) == pytest.approx(at(Sampled(Gaussian(1), 0.01), 4))


def test_small_noise_and_huge_orders_stay_finite_and_quick() -> None:
    for sigma in (0.05, 0.1, 0.3, 100.0, 1e6):
        values = [at(Sampled(Gaussian(sigma), 0.01), order) for order in (1.01, 1.5, 2, 5.5, 30, 300, 5000, 1e6)]
        assert all(0 < a <= b * (1 + 1e-9) for a, b in pairwise(values))
        assert all(math.isfinite(v) for v in values)


@pytest.mark.parametrize(
    "inner", [SampledBatch(Pure(1), 1, 2), Pure(1) + Sampled(Pure(1), 0.5), Selected(Pure(1), 0.5)]
)
def test_nested_sampling_and_selection_are_refused(inner: Event) -> None:
    for outer in (SampledBatch(inner, 1, 10), Sampled(inner, 0.1)):
        with pytest.raises(UnsupportedEventError, match=r"no proven bound here[\s\S]*separately"):
            at(outer, 2)


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


@pytest.mark.parametrize("inner", [Gaussian(0.5), Gaussian(5), Laplace(1), Laplace(10)])
@pytest.mark.parametrize(("gamma", "eta"), [(0.5, 0.0), (0.1, 0.5), (0.01, 0.0), (0.001, 3.0)])
def test_selection_costs_what_the_peer_says_at_its_own_orders(inner: Event, gamma: float, eta: float) -> None:
    orders = np.array([1.1, 1.5, 2.0, 3.7, 8.0, 25.0, 64.0, 512.0])
    one = curve(inner, orders, ADD)
    theirs = peer._compute_rdp_repeat_and_select(orders, one, peer._truncated_negative_binomial_mean(gamma, eta), eta)
    assert np.all(curve(Selected(inner, gamma, eta), orders, ADD) <= theirs * 1.0001)


@pytest.mark.parametrize("inner", [Gaussian(1), Gaussian(5), Laplace(1), Laplace(5)])
@pytest.mark.parametrize("mean", [5, 20, 100])
def test_selection_among_a_poisson_number_costs_what_the_peer_says(inner: Event, mean: float) -> None:
    """Papernot, Steinke (2022), Theorem 6, and the mass of no run at all, which the peer leaves out."""
    orders = np.array([1.1, 1.5, 2.0, 3.7, 8.0, 25.0, 64.0, 512.0])
    theirs = peer._compute_rdp_repeat_and_select(orders, curve(inner, orders, ADD), mean, np.inf)
    missing = math.exp(-mean) / (orders - 1) / mean
    assert np.all(curve(SelectedPoisson(inner, mean), orders, ADD) <= theirs * (1 + 1e-9) + missing)


def test_selection_among_about_one_run_costs_little_more_than_that_run() -> None:
    assert at(SelectedPoisson(Laplace(1), 1), 1.1) == pytest.approx(0.4082, abs=1e-4)
    few = Selected(Gaussian(5), 0.999, 1.0)
    assert at(few, 2.0) < 1.01 * at(Gaussian(5), 2.0)


@pytest.mark.parametrize("order", [2.0, 10.0])
def test_selecting_costs_at_least_the_release_itself(order: float) -> None:
    orders = np.array([order])
    one = curve(Gaussian(3), orders, Adjacency.ADD_REMOVE)
    for event in (Selected(Gaussian(3), 0.5), SelectedPoisson(Gaussian(3), 10)):
        assert curve(event, orders, Adjacency.ADD_REMOVE) > one


@pytest.mark.parametrize("eta", [1.2e-8, -3e-9, 1.5e-9, 6e-7, -0.5, 0, 1, 1e-3])
@pytest.mark.parametrize(("gamma", "ratio", "order"), [(0.61, 84, 1.03), (0.1, 87, 1.0144), (0.73, 18.8, 1.045)])
def test_few_runs_of_nearly_logarithmic_number_are_not_below_their_exact_sum(
    eta: float, gamma: float, ratio: float, order: float
) -> None:
    """All runs together cost log E[M^K]/(α-1): a difference of nearly equal numbers, here with fifty digits."""
    with mp.workdps(50):
        g, e, above_one = mp.mpf(gamma), mp.mpf(eta), mp.mpf(order) - 1
        left = 1 - (1 - g) * mp.exp(above_one * mp.mpf(order) / (2 * mp.mpf(ratio) ** 2))
        mean = (left**-e - 1) / (g**-e - 1) if eta else mp.log(left) / mp.log(g)
        exact = mp.log(mean) / above_one
        found = at(Selected(Gaussian(ratio), gamma, eta), order)
        assert exact <= mp.mpf(found) <= exact * (1 + mp.mpf("1e-9"))
