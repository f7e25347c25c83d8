"""What the devices of multi-message protocols send: alike for all values, as far as a shuffler can see."""

import math
from typing import Any

import numpy as np
import pytest

from defocus.local.domains import Categories, Interval
from defocus.local.shuffling import Key, MultiMessageHistogram, MultiMessageSum, seal
from defocus.noise.testing import seeded

SUM = MultiMessageSum(Interval(0, 10), users=500, epsilon=1, delta=1e-6)
HISTOGRAM = MultiMessageHistogram(Categories.of(["a", "b", "c"], outside="other"), users=500, epsilon=1, delta=1e-6)


@pytest.mark.parametrize("value", [0, 10, 3.3, -99, 1e9, math.nan, None, "x", 10**400])
def test_a_device_sends_as_many_messages_of_one_length_whatever_its_number(value: Any) -> None:
    sent = SUM.client().report(value)
    assert len(sent) == SUM.levels + SUM.coins == SUM.messages_per_user
    assert {len(message) for message in sent} == {1}
    assert set(sent) <= {b"\0", b"\1"}


@pytest.mark.statistical
def test_how_many_messages_a_histogram_takes_does_not_depend_on_the_category() -> None:
    """One and as many heads as there are, which is the same law for every value, also for one outside."""
    lengths = {}
    for value in ("a", "c", "z", None, 3.5):
        bits = seeded(7)  # the same coins
        lengths[str(value)] = [len(HISTOGRAM.client().report(value, bits)) for _ in range(200)]
    assert len({tuple(each) for each in lengths.values()}) == 1
    assert np.mean(lengths["a"]) == pytest.approx(HISTOGRAM.messages_per_user, abs=4 * math.sqrt(0.25 * 4 / 200))


def test_sealed_messages_show_a_shuffler_nothing_but_their_number() -> None:
    reader = Key.generate()
    for client, values in ((SUM.client(), (0, 10)), (HISTOGRAM.client(), ("a", "z"))):
        for value in values:
            sealed = [seal(message, reader.public, b"a poll") for message in client.report(value)]
            assert len({len(each) for each in sealed}) == 1
            assert len(set(sealed)) == len(sealed)


def test_the_order_of_a_device_s_messages_says_nothing() -> None:
    """A number at the top has ones for all its levels: at every place of the line in some report."""
    ones = np.array([[message == b"\1" for message in SUM.client().report(10)] for _ in range(60)])
    assert not ones.all(axis=0).any()


@pytest.mark.statistical
def test_a_server_adds_up_what_devices_sent_one_by_one() -> None:
    bits, server, client = seeded(4), SUM.server(), SUM.client()
    values = np.linspace(0, 10, 500)
    for value in values:
        assert all(server.add(message) for message in client.report(value, bits))
    assert server.users == 500
    assert abs(server.sum() - values.sum()) < 4 * SUM.error
    assert server.mean() == pytest.approx(server.sum() / 500)
    counts, device = HISTOGRAM.server(), HISTOGRAM.client()
    for i in range(500):
        counts.add_many(device.report("abz"[i % 3], bits))
    found = counts.estimate(users=500)
    assert np.abs(found.counts - [167, 167, 0, 166]).max() < 4 * HISTOGRAM.error
    assert found.labels == ("a", "b", "c")


@pytest.mark.parametrize("garbage", [b"", b"\4", b"\0\0", b"\xff" * 9, None, 3, "1", bytearray(b"\4")])
def test_what_no_device_sends_is_rejected_and_counted(garbage: Any) -> None:
    for server in (SUM.server(), HISTOGRAM.server()):
        assert not server.add(garbage)
        assert server.rejected == 1
        assert server.messages == 0
