import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.privacy.accounting.shuffling.brute import k_rr, unary, worst_delta

from defocus.privacy.accounting.shuffling.blanket import chernoff, log_deltas
from defocus.privacy.accounting.shuffling.reports import reports_of
from defocus.privacy.events import Pure, RandomizedResponse, SubsetResponse

LOSSES = np.array([0.0, 0.1, 0.3, 0.6, 0.95])


@pytest.mark.parametrize("users", [1, 2, 3, 5])
@pytest.mark.parametrize("categories", [3, 4])
def test_the_blanket_covers_shuffled_randomised_response_and_is_close(users: int, categories: int) -> None:
    bounds = np.exp(log_deltas(reports_of(RandomizedResponse(1, categories)), users, LOSSES))
    truths = np.array([worst_delta(k_rr(1, categories), users, l) for l in LOSSES])
    assert np.all(bounds >= truths * (1 - 1e-12))
    assert np.all(bounds <= truths * 1.35 + 1e-9)


@pytest.mark.parametrize("users", [1, 2, 3])
def test_the_blanket_covers_shuffled_unary_encoding(users: int) -> None:
    q = 1 / (math.e + 1)
    bounds = np.exp(log_deltas(reports_of(SubsetResponse(1, q, q * q)), users, LOSSES))
    truths = np.array([worst_delta(unary(1, 3), users, l) for l in LOSSES])
    assert np.all(bounds >= truths * (1 - 1e-12))
    assert np.all(bounds <= truths * 1.6 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(
    weights=st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=3, max_size=3),
    users=st.integers(1, 4),
    loss=st.floats(0, 1.5),
)
def test_no_randomiser_loses_more_than_the_bound_for_any_of_its_epsilon(
    weights: list[list[float]], users: int, loss: float
) -> None:
    """Random laws, each likelihood within its own range, so that the local epsilon is whatever it turns out to be."""
    laws = [[math.exp(w) / sum(math.exp(v) for v in row) for w in row] for row in weights]
    epsilon = max(math.log(a[y] / b[y]) for a in laws for b in laws for y in range(4))
    if epsilon < 1e-6:
        return
    bound = math.exp(log_deltas(reports_of(Pure(epsilon)), users, np.array([min(loss, epsilon)]))[0])
    assert worst_delta(laws, users, min(loss, epsilon)) <= bound * (1 + 1e-9) + 1e-300


def test_the_bound_for_any_randomiser_is_the_published_pair_of_clones() -> None:
    """Feldman, McMillan, Talwar (2023): A of C ~ Bin(n-1, 2/(e+1)) clones, one of them moved."""
    n, e = 6, math.exp(1.0)
    p, keep = 2 / (e + 1), e / (e + 1)

    def law(first: float) -> dict[tuple[int, int], float]:
        found: dict[tuple[int, int], float] = {}
        for c in range(n):
            for a in range(c + 1):
                mass = math.comb(n - 1, c) * p**c * (1 - p) ** (n - 1 - c) * math.comb(c, a) / 2**c
                for counts, share in (((a + 1, c - a), first), ((a, c - a + 1), 1 - first)):
                    found[counts] = found.get(counts, 0.0) + mass * share
        return found

    one, other = law(keep), law(1 - keep)
    truths = [sum(max(0.0, m - math.exp(l) * other[c]) for c, m in one.items()) for l in LOSSES]
    assert np.exp(log_deltas(reports_of(Pure(1)), n, LOSSES)) == pytest.approx(truths, rel=1e-9)


@pytest.mark.parametrize("event", [Pure(1), RandomizedResponse(2, 16), SubsetResponse(1, 0.5, 0.25)])
def test_chernoff_lies_above_the_central_bound_and_falls_beyond_floats(event: Pure) -> None:
    reports = reports_of(event)
    scale = reports.spread / math.sqrt(5000)
    losses = scale * np.array([1.0, 3.0, 5.0])
    assert np.all(chernoff(reports, 5000, losses) >= log_deltas(reports, 5000, losses) - 1e-9)
    assert chernoff(reports, 10**6, np.array([0.9]))[0] < -1000


@pytest.mark.parametrize(("epsilon", "categories"), [(3.0, 16), (0.5, 3)])
def test_the_bound_for_many_categories_is_nearly_attained(epsilon: float, categories: int) -> None:
    """All others hold one third value: what is seen is then known exactly, but for the reports that tell nothing.

    Their number varies little, and replacing it by its mean gives a bound from below, by Jensen's inequality.
    """
    users, m = 5000, 1 / (math.exp(epsilon) + categories - 1)
    e, d = math.exp(epsilon), np.arange(users + 1)
    loss = 5 * (e - 1) * math.sqrt(2 * m / users)
    grown = math.exp(loss)
    rest = (users - d) * (categories - 2) * m / (1 - 2 * m) * (grown - 1)
    found = 0.0
    for coins in range(1, users + 1):
        mass = float(binom.pmf(coins, users, 2 * m))
        if mass > 1e-20:
            heads = np.arange(coins + 1)
            gain = heads * (e - grown) + (coins - heads) * (1 - e * grown) - rest[coins]
            found += mass * float(binom.pmf(heads, coins, 0.5) @ np.maximum(gain, 0.0))
    bound = float(log_deltas(reports_of(RandomizedResponse(epsilon, categories)), users, np.array([loss]))[0])
    assert math.log(found / users) <= bound <= math.log(found / users) + 0.03


def test_a_smaller_overlap_is_never_cheaper() -> None:
    losses = np.array([0.01, 0.03])
    bounds = [log_deltas(reports_of(SubsetResponse(1, 0.5, both)), 2000, losses) for both in (0.0, 0.1, 0.25)]
    assert np.all(bounds[0] > bounds[1])
    assert np.all(bounds[1] > bounds[2])


def test_more_users_hide_better() -> None:
    losses = np.array([0.05])
    found = [float(log_deltas(reports_of(Pure(2)), n, losses)[0]) for n in (10, 100, 1000, 10**4, 10**6, 10**12)]
    assert found == sorted(found, reverse=True)
