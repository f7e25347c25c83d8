import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from defocus.errors import InvalidParameterError, TooFewUsersError, UnsupportedEventError
from defocus.local.domains import Categories
from defocus.local.shuffling import MultiMessageHistogram
from defocus.local.shuffling.histograms import _again
from defocus.local.shuffling.sums import delta_of
from defocus.noise.testing import seeded
from defocus.privacy import account

ASKED = MultiMessageHistogram(Categories(20), users=2000, epsilon=1, delta=1e-6)


def test_the_event_keeps_what_was_promised() -> None:
    loss = account(ASKED.event, "basic", "replace")
    assert loss.epsilon(1e-6) <= 1 + 1e-9
    assert loss.delta(1.001) > 5e-7
    with pytest.raises(UnsupportedEventError, match="replace=True"):
        account(ASKED.event)


@pytest.mark.statistical
def test_counts_are_unbiased_with_the_stated_error_and_no_other() -> None:
    values = np.arange(2000) % 5
    truth = np.bincount(values, minlength=20)
    source = seeded(11)
    off = np.concatenate([ASKED.estimate(ASKED.encode(values, source)).counts - truth for _ in range(60)])
    n = len(off)
    assert abs(off.mean()) < 4 * ASKED.error / math.sqrt(n)
    ratio = off.var() / ASKED.error**2
    spread = math.sqrt(2 / n)
    assert abs(ratio - 1) < 4 * spread
    assert abs(ratio / 1.1**2 - 1) > 3 * spread


def test_the_error_does_not_grow_with_the_users() -> None:
    few, many = (MultiMessageHistogram(Categories(20), n, 1, 1e-6).error for n in (1000, 10**6))
    assert many < 1.1 * few


@pytest.mark.parametrize(("size", "users"), [(2, 300), (20, 2000), (300, 5000), (100_000, 1000)])
def test_room_for_coins_is_the_least_that_delta_bears(size: int, users: int) -> None:
    asked = MultiMessageHistogram(Categories(size), users, 1, 1e-6)
    room, chance = asked.messages_per_user, float(asked.chance)
    tails = [float(binom.sf(slots - 1, size, chance)) * users * (1 + math.e) for slots in (room - 1, room)]
    assert tails[1] <= 1e-6 / 1024 < tails[0]
    assert account(asked.event, "basic", "replace").epsilon(1e-6) <= 1 + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_tossing_coins_again_costs_no_more_than_is_charged(epsilon: float) -> None:
    """Three users, three categories, room for one head only: all outcomes of all coins, against the bound."""
    size, users, chance = 3, 3, Fraction(1, 4)
    tosses = {
        heads: chance ** sum(heads) * (1 - chance) ** (size - sum(heads))
        for heads in itertools.product((0, 1), repeat=size)
    }
    kept = {heads: mass for heads, mass in tosses.items() if sum(heads) <= 1}
    again = 1 - sum(kept.values())

    def law(mine: int) -> dict[tuple[int, ...], Fraction]:
        found = defaultdict[tuple[int, ...], Fraction](Fraction)
        for all_heads in itertools.product(kept, repeat=users):
            counts = np.sum(all_heads, axis=0)
            counts[mine] += 1
            found[tuple(counts.tolist())] += math.prod(kept[heads] for heads in all_heads) / (1 - again) ** users
        return found

    one, other, grown = law(0), law(1), Fraction(math.exp(epsilon))
    truth = sum(max(Fraction(0), mass - grown * other[outcome]) for outcome, mass in one.items())
    assert sum(one.values()) == sum(other.values()) == 1
    assert _again(size, chance, 2) == pytest.approx(float(again), rel=1e-5)
    assert float(truth) <= delta_of(users, chance, (1, -1), epsilon) + (1 + math.exp(epsilon)) * users * float(again)


def test_too_few_users_and_strange_messages() -> None:
    for call in (
        lambda: ASKED.encode([1] * 1999),
        lambda: ASKED.estimate(np.arange(9), users=500),
        lambda: ASKED.server().estimate(),
    ):
        with pytest.raises(TooFewUsersError, match="too few coins"):
            call()
    assert account(ASKED.event_among(500), "basic", "replace").delta(1.001) > 1e-3
    found = ASKED.estimate(np.array([-5, 20, 10**9, 3]))
    assert found.counts[3] - found.counts[4] == 1


@pytest.mark.parametrize("bad", [0, -1, math.nan, "1", None])
def test_bad_parameters_are_refused(bad: object) -> None:
    for change in ({"users": bad}, {"epsilon": bad}, {"delta": bad}):
        given = {"domain": Categories.of(3), "users": 10, "epsilon": 1, "delta": 0.1} | change
        with pytest.raises(InvalidParameterError):
            MultiMessageHistogram(**given)  # type: ignore[arg-type]  # one of them is bad
