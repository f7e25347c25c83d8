import math

import numpy as np
import pytest

from defocus.errors import InvalidParameterError, TooFewUsersError, UnsupportedEventError
from defocus.local.domains import Categories
from defocus.local.shuffling import MultiMessageHistogram
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


def test_too_few_users_and_strange_messages() -> None:
    for call in (
        lambda: ASKED.encode([1] * 1999),
        lambda: ASKED.estimate(np.arange(9), users=500),
        lambda: ASKED.server().estimate(users=1999),
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
