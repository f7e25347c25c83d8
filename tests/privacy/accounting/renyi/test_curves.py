"""Divergences against their definition, digit by digit."""

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting.renyi import curve
from defocus.privacy.accounting.renyi.curves import log_bernoulli, log_expm1, log_sum
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Shuffled,
)
from defocus.privacy.units import Adjacency

orders_ = st.floats(1.01, 200)


def at(event: Event, order: float) -> float:
    return float(curve(event, np.array([float(order)]), Adjacency.ADD_REMOVE)[0])


def from_laws(p: list[Any], q: list[Any], order: float) -> Any:
    total = mp.fsum(mp.power(a, order) * mp.power(b, 1 - mp.mpf(order)) for a, b in zip(p, q, strict=True))
    return mp.log(total) / (mp.mpf(order) - 1)


def close(found: float, truth: Any, tolerance: float = 3e-12) -> bool:
    return bool(0 <= found - truth <= tolerance * truth)


@settings(max_examples=150, deadline=None)
@given(st.floats(-6, 2), st.integers(2, 40), orders_)
def test_randomised_response_is_exact(log_epsilon: float, categories: int, order: float) -> None:
    epsilon = 10**log_epsilon
    with mp.workdps(60):
        e = mp.exp(mp.mpf(epsilon))
        p = [e] + [mp.mpf(1)] * (categories - 1)
        q = [mp.mpf(1), e] + [mp.mpf(1)] * (categories - 2)
        truth = from_laws([x / mp.fsum(p) for x in p], [x / mp.fsum(q) for x in q], order)
        assert close(at(RandomizedResponse(epsilon, categories), order), truth)


@settings(max_examples=150, deadline=None)
@given(st.floats(-6, 2), orders_)
def test_laplace_is_exact(log_epsilon: float, order: float) -> None:
    epsilon = 10**log_epsilon
    with mp.workdps(60):
        e, a = mp.mpf(1) / mp.mpf(1 / epsilon), mp.mpf(order)
        truth = mp.log((a * mp.exp((a - 1) * e) + (a - 1) * mp.exp(-a * e)) / (2 * a - 1)) / (a - 1)
        assert close(at(Laplace(1 / epsilon), order), truth)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.05, 50), st.integers(1, 30), st.floats(1.01, 60))
def test_discrete_laplace_is_exact_or_bounded_by_its_largest_loss(scale: float, shift: int, order: float) -> None:
    found = at(DiscreteLaplace(scale, shift), order)
    with mp.workdps(50):
        r = mp.exp(-1 / mp.mpf(scale))
        norm = (1 - r) / (1 + r)
        inner = [norm * r ** abs(x) for x in range(shift + 1)]
        far = [norm * r ** abs(x - shift) for x in range(shift + 1)]
        tail = r / (1 - r)
        q = [inner[0] * (1 + tail), *inner[1:-1], inner[-1] * (1 + tail)]
        p = [far[0] * (1 + tail), *far[1:-1], far[-1] * (1 + tail)]
        truth = from_laws(p, q, order)
    assert found >= truth * (1 - mp.mpf(10) ** -13)
    assert found <= truth * (1 + 2e-3 if shift / scale < 1e-3 else 1 + 1e-6)


def test_shifting_one_coordinate_is_never_better_than_spreading_the_shift() -> None:
    for order in (1.5, 2, 8, 40):
        for scale in (0.5, 2, 10):
            spread = at(DiscreteLaplace(scale, 3), order) + at(DiscreteLaplace(scale, 4), order)
            assert at(DiscreteLaplace(scale, 7), order) >= spread


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-3, 20), st.floats(1.01, 100), st.floats(0.001, 0.999))
def test_bounded_range_covers_every_pair_it_allows(epsilon: float, order: float, where: float) -> None:
    """Losses t and t − epsilon, for every t: Dong, Durfee, Rogers (2020)."""
    with mp.workdps(50):
        e, t = mp.mpf(epsilon), mp.mpf(epsilon) * mp.mpf(where)
        p = (mp.exp(e) - mp.exp(t)) / (mp.exp(e) - 1)
        truth = from_laws([p, 1 - p], [p * mp.exp(-t), (1 - p) * mp.exp(e - t)], order)
    found = at(Exponential(epsilon), order)
    assert found >= truth * (1 - mp.mpf(10) ** -12)
    assert found <= min(order * epsilon**2 / 8, epsilon) * (1 + 1e-9)


def test_bounded_range_is_reached_by_its_worst_pair() -> None:
    epsilon, order = 2.0, 4.0
    best = 0.0
    for t in np.linspace(0.01, 1.99, 199):
        p = (math.exp(epsilon) - math.exp(t)) / math.expm1(epsilon)
        best = max(best, float(from_laws([p, 1 - p], [p * math.exp(-t), (1 - p) * math.exp(epsilon - t)], order)))
    assert at(Exponential(epsilon), order) == pytest.approx(best, rel=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.3, 8), st.integers(1, 12), st.floats(1.01, 30))
def test_discrete_gaussian_is_covered_by_the_continuous_one(sigma: float, shift: int, order: float) -> None:
    """Canonne, Kamath, Steinke (2020), Proposition 5."""
    x = np.arange(-int(order * shift + 12 * sigma) - 5, int(order * shift + 12 * sigma) + 6)
    logs = order * -((x - shift) ** 2) / (2 * sigma**2) + (1 - order) * -(x**2) / (2 * sigma**2)
    norm = np.log(np.exp(-(x**2) / (2 * sigma**2)).sum())
    largest = logs.max()
    truth = (largest + np.log(np.exp(logs - largest).sum()) - norm) / (order - 1)
    assert at(DiscreteGaussian(sigma, shift), order) >= truth * (1 - 1e-9)


def test_gaussians_of_every_spelling_agree() -> None:
    assert at(Gaussian(Fraction(5, 2)), 3) == at(DiscreteGaussian(5, 2), 3) == at(Concentrated(Fraction(2, 25)), 3)


@given(orders_, st.integers(1, 10**6))
def test_divergences_add_up(order: float, times: int) -> None:
    event = Laplace(3) + Gaussian(2)
    assert at(times * event, order) == pytest.approx(times * at(event, order), rel=1e-11)
    assert at(NOTHING, order) == 0


def test_extreme_parameters_stay_on_the_safe_side() -> None:
    assert at(Gaussian(Fraction(1, 10**300)), 2) == math.inf
    assert at(Laplace(Fraction(1, 10**400)), 2) == math.inf
    assert at(Pure(10**400), 2) == math.inf
    assert at(Pure(0), 2) == 0
    assert at(10**400 * Gaussian(1), 2) == math.inf
    assert at(Gaussian(10**400), 2) == pytest.approx(0, abs=1e-300)
    assert at(Pure(5000.0), 1.5) == pytest.approx(5000.0, rel=1e-9)
    assert 0 < at(Pure(1e-150), 2) < 1e-290


def test_an_approximate_guarantee_has_no_divergence() -> None:
    with pytest.raises(UnsupportedEventError, match=r"Approximate.*infinite divergence[\s\S]*pld"):
        at(Approximate(1, 1e-9), 2)
    assert at(Approximate(1, 0), 2) == at(Pure(1), 2)


def test_an_unknown_event_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedEventError, match=r"cannot express Event[\s\S]*To fix"):
        at(Event(), 2)


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.floats(1.0001, 2000), st.floats(-2000, -0.0001)),
    st.one_of(st.floats(-12, 2), st.floats(-3, 300)),
    st.booleans(),
)
def test_bernoulli_s_excess_keeps_its_digits(beta: float, size: float, negative: bool) -> None:
    base = (-(10**size) if negative else 10**size) if size <= 2 else size
    if base < -3:
        return
    with mp.workdps(80):
        u = mp.expm1(mp.mpf(base))
        truth = mp.log(mp.power(1 + u, beta) - 1 - mp.mpf(beta) * u)
    found = float(log_bernoulli(np.array(beta), np.array(base)))
    assert abs(found - truth) <= 1e-11 + 1e-14 * abs(truth)


@given(st.floats(1e-300, 1e300))
def test_log_expm1_never_overflows(x: float) -> None:
    found = float(log_expm1(np.array(x)))
    with mp.workdps(40):
        truth = x if x > 1000 else float(mp.log(mp.expm1(mp.mpf(x))))
    assert math.isclose(found, truth, rel_tol=1e-13, abs_tol=1e-13)


def test_sums_of_nothing_vanish() -> None:
    assert log_sum(np.zeros(0)) == -np.inf
    assert log_sum(np.array([-np.inf, -np.inf])) == -np.inf
    assert np.allclose(log_sum(np.array([[1000.0, 1000.0], [0.0, -np.inf]])), [1000 + math.log(2), 0.0])


ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 64.0])


def test_one_user_has_the_divergence_of_the_report_itself() -> None:
    found = curve(Shuffled(Pure(1), 1), ORDERS, Adjacency.REPLACE)
    truth = curve(Pure(1), ORDERS, Adjacency.REPLACE)
    assert np.all(found >= truth * (1 - 1e-12))
    assert np.all(found <= truth * 1.01)


def test_many_users_have_nearly_the_divergence_of_a_gaussian() -> None:
    """Its variance of the loss is (e^ε-1)²/(e^ε n); half of that times the order."""
    users = 100_000
    found = curve(Shuffled(RandomizedResponse(1), users), ORDERS, Adjacency.REPLACE)
    limit = ORDERS / 2 * math.expm1(1) ** 2 / (math.e * users)
    assert np.all(found >= limit * 0.99)
    assert np.all(found <= limit * 1.03)


def test_divergences_rise_with_the_order_up_to_the_local_epsilon() -> None:
    orders = np.geomspace(1.01, 1e8, 60)
    found = curve(Shuffled(Pure(2), 500), orders, Adjacency.REPLACE)
    assert np.all(np.diff(found) >= -1e-9 * found[:-1])
    assert found[-1] == pytest.approx(2)


def test_a_user_added_or_removed_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="can be counted"):
        curve(Shuffled(Pure(2), 500), ORDERS, Adjacency.ADD_REMOVE)
