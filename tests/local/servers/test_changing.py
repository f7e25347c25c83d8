"""Counts at every epoch, from reports about changes."""

from typing import Any

import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.local import Categories, Changing, ChangingMemory, ChangingServer
from defocus.noise import Bits
from defocus.noise.testing import seeded


def collected(asked: Changing, series: Any, bits: Bits) -> ChangingServer:
    server = ChangingServer(asked)
    for values in series:
        device = ChangingMemory(asked, bits=bits)
        for value in values:
            assert server.add(device.report(value))
    return server


def moving(users: int, epochs: int, changes: int) -> Any:
    """Series of three categories that change so often at random moments."""
    rng = np.random.default_rng(8)
    steps = np.zeros((users, epochs), int)
    for i in range(users):
        steps[i, rng.choice(np.arange(1, epochs), changes, replace=False)] = rng.integers(1, 3, changes)
    return (rng.integers(0, 2, (users, 1)) + steps.cumsum(axis=1)) % 3


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("epochs", "changes", "declared"), [(6, 2, 2), (9, 1, 1), (6, 5, None), (5, 0, 0)])
def test_counts_are_unbiased_with_the_stated_error(epochs: int, changes: int, declared: int | None) -> None:
    users, runs, bits = 120, 40, seeded(2)
    asked = Changing(Categories.of(3), epochs, declared, 3, "changes" if declared else "best")
    assert (len(asked.groups) > 1) is bool(declared)
    series = moving(users, epochs, changes)
    at = [1, 2, epochs // 2 + 1, epochs]
    truth = np.array([np.bincount(series[:, epoch - 1], minlength=4) for epoch in at])
    z, squares = [], []
    for _ in range(runs):
        server = collected(asked, series, bits)
        assert server.users == users
        found = [server.estimate(epoch) for epoch in at]
        exact = np.array(
            [[asked.variance(users, epoch, int(n)) for n in counts] for epoch, counts in zip(at, truth, strict=True)]
        )
        off = np.array([each.counts for each in found]) - truth
        z.append(off / np.sqrt(exact))
        squares.append(np.array([each.variances for each in found]).mean() / exact.mean())
    scores = np.array(z)
    independent = runs * 4
    assert abs(scores.mean(axis=(0, 2))).max() < 4.5 / np.sqrt(independent)
    assert (scores**2).mean() == pytest.approx(1, abs=0.3)
    assert np.mean(squares) == pytest.approx(1, abs=0.1)


@pytest.mark.statistical
def test_who_changes_more_often_than_declared_is_counted_where_they_were() -> None:
    """Devices keep to their last: with no change declared, all are counted as they began."""
    asked = Changing(Categories.of(3), 4, 0, 8)
    server = collected(asked, [[0, 1, 2, 1]] * 400, seeded(3))
    for epoch in (1, 4):
        found = server.estimate(epoch)
        assert abs(found.counts[0] - 400) < 5 * np.sqrt(asked.variance(400, epoch))


@pytest.mark.parametrize("garbage", [b"", b"x" * 18, b"x" * 10**6, None, "text", 3])
def test_what_no_device_sends_is_rejected(garbage: Any) -> None:
    server = ChangingServer(Changing(Categories.of(3), 4, 1, 1))
    assert not server.add(garbage)
    assert server.rejected == 1


def test_messages_with_numbers_that_no_device_has_are_rejected() -> None:
    asked = Changing(Categories.of(3), 4, 1, 1)
    server, good = ChangingServer(asked), ChangingMemory(asked).report(1)
    for place, byte in ((8, 0), (8, 5), (11, 1), (12, 200), (16, 77), (17, 2), (0, good[0] ^ 1)):
        assert not server.add(good[:place] + bytes([byte]) + good[place + 1 :])
    assert server.add(good)
    assert (server.users, server.rejected) == (1, 7)


def test_a_server_that_would_not_fit_into_memory_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="sums"):
        ChangingServer(Changing(Categories.of(60_000), 2000, None, 1))
