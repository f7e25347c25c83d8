"""The Rényi accountant: published numbers, peers, and never below the certified truth."""

import math
from typing import Any

import dp_accounting
import pytest
from dp_accounting import rdp as peer
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import DefocusError, InvalidParameterError, UnsupportedEventError
from defocus.privacy import classical
from defocus.privacy.accounting import rdp
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
)
from defocus.privacy.units import Adjacency

TABLE = [
    (1000 * Sampled(Gaussian(1.0), 0.01), 1e-5, 2.1014, 1.8282357),
    (10_000 * Sampled(Gaussian(1.0), 0.01), 1e-5, 6.7128, 6.1877114),
    (14_063 * Sampled(Gaussian(1.1), 256 / 60000), 1e-5, 2.5967, 2.3816888),
    (100_000 * Sampled(Gaussian(0.6), 1e-3), 1e-5, 6.8741, 6.1128228),
    (1000 * Laplace(10), 1e-6, 20.047, 18.9502867),
    (200 * Gaussian(20) + 100 * Laplace(20) + 5000 * Sampled(Gaussian(1), 0.01), 1e-5, 6.352, 5.869122),
]


@pytest.mark.parametrize(("event", "delta", "published", "truth"), TABLE)
def test_published_cases_are_met_or_beaten_and_never_below_the_truth(
    event: Event, delta: float, published: float, truth: float
) -> None:
    """``published``: dp_accounting 0.6.0 with its own orders; ``truth``: a certified lower bound."""
    found = rdp.account(event).epsilon(delta)
    assert truth < found <= published + 5e-5
    assert found > 0.99 * published


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.6, 5),
    st.sampled_from([1.0, 0.3, 0.01, 0.001]),
    st.integers(1, 3000),
    st.sampled_from([1e-3, 1e-5, 1e-8]),
)
def test_the_peer_is_never_tighter(sigma: float, q: float, steps: int, delta: float) -> None:
    accountant = peer.RdpAccountant()
    accountant.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)), steps)
    theirs = accountant.get_epsilon(delta)
    ours = rdp.account(steps * Sampled(Gaussian(sigma), q)).epsilon(delta)
    assert ours <= theirs * (1 + 1e-5) or theirs == 0.0  # two grids of orders, of which neither has all of the other's


def test_laplace_and_randomised_response_agree_with_the_peer() -> None:
    orders = [1.5, 2, 3, 8, 32, 128]
    accountant = peer.RdpAccountant(orders)
    accountant.compose(dp_accounting.LaplaceDpEvent(4.0), 30)
    ours = rdp.account(30 * Laplace(4), orders=orders)
    assert ours.epsilon(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-9)
    k = 6
    e = 1.2
    noise = k / (math.exp(e) + k - 1)
    accountant = peer.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_accounting.RandomizedResponseDpEvent(noise, k), 5)
    ours = rdp.account(5 * RandomizedResponse(e, k), orders=orders)
    assert ours.epsilon(1e-3) == pytest.approx(accountant.get_epsilon(1e-3), rel=1e-9)


def test_batches_cost_less_than_the_peer_s_bound() -> None:
    accountant = peer.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(
        dp_accounting.SampledWithoutReplacementDpEvent(10_000, 100, dp_accounting.GaussianDpEvent(2.0)), 500
    )
    theirs = accountant.get_epsilon(1e-6)
    ours = rdp.account(500 * SampledBatch(Gaussian(2.0), 100, 10_000), Adjacency.REPLACE).epsilon(1e-6)
    assert 0.3 * theirs < ours < theirs


def test_a_count_is_never_dropped() -> None:
    """A peer's accountant forgot the count of randomised responses: ten cost as little as one."""
    ten = rdp.account(10 * RandomizedResponse(1.1))
    listed = rdp.account(Composed(tuple((RandomizedResponse(1.1 + i * 1e-15), 1) for i in range(10))))
    assert ten.epsilon(1e-6) == pytest.approx(listed.epsilon(1e-6), rel=1e-9)
    assert ten.epsilon(1e-6) > 5 * rdp.account(RandomizedResponse(1.1)).epsilon(1e-6)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.1, 300), st.floats(-100, -0.3))
def test_a_gaussian_is_never_below_the_exact_value_at_any_delta(sigma: float, log_delta: float) -> None:
    """Peers under-report at tiny delta, or answer zero when the best order is near one."""
    delta = 10**log_delta
    exact = classical.gaussian_epsilon(sigma, delta)
    found = rdp.account(Gaussian(sigma)).epsilon(delta)
    assert exact * (1 - 1e-9) <= found <= 1.35 * exact + 0.6


def test_ten_thousand_gaussians_at_tiny_delta_are_not_under_reported() -> None:
    """True values of 10 000 Gaussians with sigma 100, which a peer's pessimistic bound misses."""
    loss = rdp.account(10_000 * Gaussian(100))
    for delta, truth in ((1e-10, 6.54792), (1e-12, 7.2385), (1e-14, 7.869)):
        assert truth < loss.epsilon(delta) < truth + 0.4


def test_orders_can_be_chosen_and_the_best_of_few_is_no_better_than_the_best_of_all() -> None:
    event = 100 * Sampled(Gaussian(2), 0.05)
    free = rdp.account(event).epsilon(1e-6)
    assert free <= rdp.account(event, orders=[2, 4, 8, 16, 32]).epsilon(1e-6)
    assert rdp.account(event, orders=[5]).orders == (5.0,)
    assert rdp.account(event, orders=range(2, 4)).divergence(3) == rdp.account(event).divergence(3)


def test_refining_between_orders_helps_and_stays_sound() -> None:
    event = 3 * Gaussian(1.7)
    refined, grid = rdp.account(event), rdp.account(event, orders=rdp.ORDERS)
    assert classical.gaussian_epsilon(1.7 / math.sqrt(3), 1e-6) <= refined.epsilon(1e-6) <= grid.epsilon(1e-6)


@given(st.floats(-30, -1))
def test_epsilon_and_delta_are_inverse(log_delta: float) -> None:
    loss = rdp.account(5 * Laplace(2) + Gaussian(3))
    epsilon = loss.epsilon(10**log_delta)
    if loss.delta(epsilon * 0.999) > 0:
        assert loss.delta(epsilon) <= 10**log_delta * (1 + 1e-3) or epsilon == pytest.approx(2.5)


@pytest.mark.slow
def test_the_textbook_conversion_is_there_by_name_and_looser() -> None:
    event = 1000 * Sampled(Gaussian(1.0), 0.01)
    book = rdp.account(event, conversion="textbook")
    assert rdp.account(event).epsilon(1e-5) < book.epsilon(1e-5)
    assert book.delta(3.0) > rdp.account(event).delta(3.0)
    best = min(book.divergence(order) + math.log(1e5) / (order - 1) for order in [2 + i / 100 for i in range(3000)])
    assert book.epsilon(1e-5) == pytest.approx(best, rel=1e-5)


def test_pure_releases_keep_their_pure_epsilon() -> None:
    loss = rdp.account(3 * Pure(0.5) + RandomizedResponse(1))
    assert loss.epsilon(0) == pytest.approx(2.5)
    assert loss.delta(2.6) == 0.0
    assert loss.epsilon(1e-30) <= 2.5 * (1 + 1e-9)
    assert rdp.account(Gaussian(1)).epsilon(0) == math.inf
    assert rdp.account(NOTHING).epsilon(0) == rdp.account(NOTHING).epsilon(1e-9) == 0


def test_extreme_events_have_an_answer_on_the_safe_side() -> None:
    for event in (Gaussian(1e-200), 10**30 * Gaussian(1), Sampled(Gaussian(1e-3), 0.5)):
        assert rdp.account(event).epsilon(1e-6) > 1e3
    assert rdp.account(10**400 * Pure(1)).epsilon(1e-6) == math.inf
    assert rdp.account(10**400 * Pure(1)).delta(1) == 1.0
    assert rdp.account(Gaussian(10**200)).epsilon(1e-6) < 1e-3


def test_the_discrete_gaussian_costs_no_more_than_the_continuous_one() -> None:
    assert rdp.account(DiscreteGaussian(40, 4, 100)).epsilon(1e-6) == rdp.account(Gaussian(10)).epsilon(1e-6)


def test_refusals_name_the_event_and_the_way_out() -> None:
    with pytest.raises(UnsupportedEventError, match=r"rdp accountant cannot express Approximate[\s\S]*pld"):
        rdp.account(Gaussian(1) + Approximate(1, 1e-9))
    loss = rdp.account(Gaussian(1))
    for ask in (loss.rho, loss.mu, lambda: loss.interval(1e-5)):
        with pytest.raises(DefocusError, match="rdp accountant does not give"):
            ask()


@pytest.mark.parametrize("orders", [[], [1], [0.5], [-2], [float("nan")], [float("inf")], [True], ["2"], [1e10]])
def test_orders_that_mean_nothing_are_refused(orders: Any) -> None:
    with pytest.raises(InvalidParameterError):
        rdp.account(Gaussian(1), orders=orders)


def test_an_unknown_conversion_is_refused() -> None:
    wrong: Any = "wishful"
    with pytest.raises(InvalidParameterError, match="textbook"):
        rdp.account(Gaussian(1), conversion=wrong)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1e-9, 1, 2, True, "1e-5", None])
def test_a_bad_delta_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        rdp.account(Gaussian(1)).epsilon(bad)
