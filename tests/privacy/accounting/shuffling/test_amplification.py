"""Shuffled events as accountants and filters meet them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.accounting.shuffling.brute import k_rr, shuffled_law, worst_delta

from defocus.errors import InvalidParameterError, UnsupportedEventError
from defocus.privacy import (
    NOTHING,
    Adjacency,
    Approximate,
    Budget,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Shuffled,
    SubsetResponse,
    account,
    filter,  # noqa: A004 - privacy.filter(budget)
    from_wire,
    group,
    parse,
    to_wire,
    unparse,
)
from defocus.privacy.accounting.renyi import curve
from defocus.privacy.accounting.shuffling import amplification

RR = Shuffled(RandomizedResponse(1), 10_000)


@pytest.mark.parametrize(
    ("event", "least", "most"),
    [
        (RR, 0.0356, 0.0358),
        (Shuffled(Pure(1), 10_000), 0.0430, 0.0433),
        (Shuffled(RandomizedResponse(3), 10_000), 0.1692, 0.1694),
        (Shuffled(Pure(3), 10_000), 0.2255, 0.2262),
    ],
)
def test_published_numbers_at_delta_one_in_a_million(event: Shuffled, least: float, most: float) -> None:
    """Exact randomised response and the clones of Feldman, McMillan, Talwar (2023)."""
    assert least < account(event, adjacency="replace").epsilon(1e-6) < most


@pytest.mark.parametrize("users", [1, 2, 4, 7])
@pytest.mark.parametrize("by", ["pld", "rdp", "basic"])
def test_no_accountant_is_below_the_truth_for_few_users(users: int, by: str) -> None:
    loss = account(Shuffled(RandomizedResponse(1.5), users), by, "replace")
    for epsilon in (0.1, 0.5, 1.0):
        assert loss.delta(epsilon) >= worst_delta(k_rr(1.5, 2), users, epsilon) * (1 - 1e-9)


def test_the_certified_accountant_is_close_to_the_truth_for_few_users() -> None:
    loss = account(Shuffled(RandomizedResponse(1.5), 6), adjacency="replace")
    for epsilon in (0.1, 0.5, 1.0):
        assert loss.delta(epsilon) <= worst_delta(k_rr(1.5, 2), 6, epsilon) * 1.01


def test_two_shuffles_compose_above_the_truth_and_close_to_it() -> None:
    laws = k_rr(1.0, 2)
    one, other = (shuffled_law([laws[0]] * 4 + [laws[x]]) for x in (0, 1))
    truth = sum(max(0.0, one[a] * one[b] - math.exp(0.8) * other[a] * other[b]) for a in one for b in one)
    found = account(2 * Shuffled(RandomizedResponse(1), 5), adjacency="replace").delta(0.8)
    assert truth * (1 - 1e-9) <= found <= truth * 1.15


def test_the_renyi_divergence_is_above_the_truth_and_close_to_it() -> None:
    laws = k_rr(1.0, 2)
    orders = np.array([1.5, 2.0, 8.0])
    worst = np.zeros(3)
    for ones in range(5):
        rest = [laws[1]] * ones + [laws[0]] * (4 - ones)
        one, other = (shuffled_law([*rest, laws[x]]) for x in (0, 1))
        for p, q in ((one, other), (other, one)):
            moments = [sum(p[c] ** a * q[c] ** (1 - a) for c in p) for a in orders]
            worst = np.maximum(worst, np.log(moments) / (orders - 1))
    found = curve(Shuffled(RandomizedResponse(1), 5), orders, Adjacency.REPLACE)
    assert np.all(found >= worst)
    assert np.all(found <= worst * 1.2)


@pytest.mark.parametrize("by", ["pld", "rdp", "zcdp", "basic", "advanced"])
def test_shuffling_never_costs_more_than_the_reports_themselves_and_less_among_many(by: str) -> None:
    assert account(Shuffled(Pure(1), 3), by, "replace").epsilon(1e-6) <= account(Pure(1), by).epsilon(1e-6) + 1e-9
    assert account(Shuffled(Pure(1), 10**6), by, "replace").epsilon(1e-6) < 0.2


def test_a_hundred_shuffles_compose_by_their_root() -> None:
    one, many = (account(k * RR, adjacency="replace").epsilon(1e-6) for k in (1, 100))
    assert 8 * one < many < 13 * one


@pytest.mark.parametrize("by", ["pld", "rdp", "zcdp", "basic", "advanced"])
def test_a_user_added_or_removed_is_refused(by: str) -> None:
    with pytest.raises(UnsupportedEventError, match=r'can be counted.*\n.*adjacency="replace"'):
        account(RR + Gaussian(1), by)


def test_a_filter_for_users_added_or_removed_refuses_and_one_for_values_admits() -> None:
    with pytest.raises(UnsupportedEventError, match="replace=True"):
        filter(Budget(1, 1e-6)).cost(RR)
    rule = filter(Budget(1, 1e-6), Adjacency.REPLACE)
    spent, times = rule.start, 0
    while rule.admits(spent, RR):
        spent, times = spent + rule.cost(RR), times + 1
    assert 200 < times < 600


def test_a_poisson_sample_of_shuffled_reports_is_refused_and_a_batch_is_amplified() -> None:
    with pytest.raises(UnsupportedEventError, match="depend on one user"):
        account(Sampled(RR, 0.1), adjacency="replace")
    batch = account(SampledBatch(RR, 10_000, 100_000), adjacency="replace")
    assert batch.epsilon(1e-6) < account(RR, adjacency="replace").epsilon(1e-6) / 3


def test_gaussian_accounting_and_groups_refuse() -> None:
    with pytest.raises(UnsupportedEventError, match="Gaussian"):
        account(RR, "gdp", "replace")
    with pytest.raises(UnsupportedEventError, match="fewer"):
        group(RR, 2)


@pytest.mark.parametrize("inner", [Gaussian(1), Approximate(1, 1e-6), 2 * Pure(1), NOTHING, RR, 1.0, None])
def test_what_has_no_pure_epsilon_cannot_be_shuffled(inner: object) -> None:
    with pytest.raises(InvalidParameterError, match="pure epsilon"):
        Shuffled(inner, 10)  # type: ignore[arg-type]  # what a caller without types may pass


@pytest.mark.parametrize("users", [0, -1, True, 1.5, "10", math.nan, math.inf, None])
def test_users_are_counted(users: object) -> None:
    with pytest.raises(InvalidParameterError):
        Shuffled(Pure(1), users)  # type: ignore[arg-type]  # what a caller without types may pass


@pytest.mark.parametrize(("inside", "both"), [(0.5, 0.6), (0.8, 0.5), (0, 0), (1, 1), (math.nan, 0)])
def test_shares_of_sets_that_cannot_be_are_refused(inside: float, both: float) -> None:
    with pytest.raises(InvalidParameterError):
        SubsetResponse(1, inside, both)


@pytest.mark.parametrize("users", [2**40, 2**62])
def test_huge_numbers_of_users_are_no_trouble(users: int) -> None:
    assert 0 < account(Shuffled(Pure(1), users), adjacency="replace").epsilon(1e-6) < 0.001


def test_reports_that_say_nothing_cost_nothing_and_those_that_hide_nothing_are_refused() -> None:
    for by in ("pld", "rdp", "basic"):
        assert account(Shuffled(Pure(0), 5), by, "replace").epsilon(1e-6) == 0
    with pytest.raises(UnsupportedEventError, match="hides nothing"):
        account(Shuffled(Pure(10**6), 5), adjacency="replace")


@given(epsilon=st.floats(0.01, 8), users=st.integers(1, 10**7), k=st.integers(2, 50))
def test_shuffled_events_survive_storage_and_text(epsilon: float, users: int, k: int) -> None:
    event = Shuffled(RandomizedResponse(epsilon, k), users) + Shuffled(SubsetResponse(epsilon, 0.5, 0.25), users)
    assert from_wire(to_wire(event)) == event == parse(unparse(event))


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.05, 6), users=st.integers(1, 3000))
def test_the_polygon_falls_and_is_convex(epsilon: float, users: int) -> None:
    found = amplification(Shuffled(Laplace(1 / epsilon), users))
    assert found is not None
    deltas, rises = np.exp(found.log_deltas), np.expm1(found.losses)
    slopes = np.diff(deltas) / np.diff(rises)
    assert np.all(slopes <= 0)
    assert np.all(np.diff(slopes) >= -1e-9 * np.abs(slopes[:-1]) - 1e-280)
    for delta in (1e-3, 1e-9):
        at = found.epsilon_at(delta)
        assert found.at(np.array([at]))[0][0] <= delta
