"""Half pairs are probability laws, seen from one side."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.privacy.accounting.renyi import curve
from defocus.privacy.accounting.renyi.curves import log_bernoulli, log_sum
from defocus.privacy.accounting.renyi.pairs import HalfPair, half_pair
from defocus.privacy.events import (
    Composed,
    Concentrated,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
)
from defocus.privacy.units import Adjacency

known = st.one_of(
    st.builds(Gaussian, st.floats(0.5, 30)),
    st.builds(Laplace, st.floats(0.1, 30)),
    st.builds(DiscreteLaplace, st.floats(0.3, 30), st.integers(1, 40)),
    st.builds(Pure, st.floats(0.01, 20)),
    st.builds(RandomizedResponse, st.floats(0.01, 20), st.integers(2, 9)),
)


def needed(event: Event, order: float) -> HalfPair:
    pair = half_pair(event, order)
    assert pair is not None
    return pair


@settings(max_examples=200, deadline=None)
@given(known, st.floats(1.05, 40))
def test_the_losses_of_a_pair_have_the_divergence_of_the_event(event: Event, order: float) -> None:
    pair = needed(event, order)
    beta = np.array([order])
    upper = log_bernoulli(beta, pair.losses) + pair.log_q
    lower = log_bernoulli(beta, -pair.losses) + pair.losses + pair.log_q
    excess = log_sum(np.concatenate((upper, lower)))
    found = float(np.logaddexp(0, excess)) / (order - 1)
    truth = float(curve(event, beta, Adjacency.ADD_REMOVE)[0])
    assert found == pytest.approx(truth, rel=1e-9) or (found < truth <= found * 1.001)


@settings(max_examples=100, deadline=None)
@given(known)
def test_probabilities_do_not_exceed_one(event: Event) -> None:
    pair = needed(event, 8.0)
    assert np.all(pair.losses > 0)
    assert np.exp(pair.log_q).sum() * 2 <= 1 + np.exp(pair.log_q).sum()
    assert np.exp(pair.log_q + pair.losses)[pair.losses < 50].sum() <= 1 + 1e-9


def test_gaussians_on_one_sample_merge() -> None:
    one = needed(Gaussian(2), 4.0)
    four = needed(4 * Gaussian(4), 4.0)
    assert np.allclose(one.losses, four.losses)
    assert np.allclose(one.log_q, four.log_q)


def test_events_without_a_worst_pair_have_none() -> None:
    for event in (Concentrated(1), Gaussian(1) + Laplace(1), Composed(()), Pure(0), Pure(10**400), Gaussian(1e-3)):
        assert half_pair(event, 8.0) is None
    assert needed(Exponential(1), 2.0).largest == needed(Pure(1), 2.0).largest == 1
    assert needed(DiscreteLaplace(10.0, 10**6), 2.0).largest == 100000.0
    assert half_pair(Laplace(1e-9), 8.0) is None
    assert math.isinf(needed(Gaussian(1), 2.0).largest)
