"""Amplified pairs, against brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.privacy.accounting.spends import spend, spends
from defocus.privacy.events import Approximate, Gaussian, Pure, Sampled, SampledBatch


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.floats(0.01, 8), st.floats(0.001, 1))
def test_a_sampled_pure_release_is_as_private_as_claimed(seed: int, epsilon: float, rate: float) -> None:
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.ones(5))
    u, p, r = (base * np.exp(rng.choice([-1, 1], 5) * epsilon / 4) for _ in range(3))
    u, p, r = u / u.sum(), p / p.sum(), r / r.sum()
    claimed = spend(Sampled(Pure(epsilon), rate)).epsilon(0.0)
    mixed, other = (1 - rate) * u + rate * p, (1 - rate) * u + rate * r
    for a, b in ((mixed, u), (u, mixed), (mixed, other)):
        assert np.max(np.log(a / b)) <= claimed + 1e-12


def test_amplification_is_reached_by_randomised_response() -> None:
    e, q = math.exp(2), 0.1
    u, p = np.array([1, e]) / (1 + e), np.array([e, 1]) / (1 + e)
    worst = float(np.max(np.log(((1 - q) * u + q * p) / u)))
    assert spend(Sampled(Pure(2), q)).epsilon(0.0) == pytest.approx(worst)


def test_delta_shrinks_with_the_rate() -> None:
    found = spend(SampledBatch(Approximate(1, 1e-3), 1, 100))
    assert found.delta == pytest.approx(1e-5)
    assert found.epsilon(0.0) == pytest.approx(math.log1p(0.01 * math.expm1(1)))


def test_huge_losses_do_not_overflow() -> None:
    assert spend(Sampled(Pure(5000), 0.01)).epsilon(0.0) == pytest.approx(5000 + math.log(0.01))
    assert spend(Sampled(Pure(10**400), 0.01)).epsilon(0.0) == math.inf


def test_shares_are_counted_inside_samples() -> None:
    ((one, times),) = spends(7 * Sampled(3 * Gaussian(1) + Pure(1), 0.5))
    assert (one.shares, times) == (3, 7)
    assert one.epsilon(1e-6) == pytest.approx(math.log1p(0.5 * math.expm1(1 + 3 * spend(Gaussian(1)).epsilon(2e-6))))
