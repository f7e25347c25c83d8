"""What the devices of multi-message protocols send: alike for all values, as far as a shuffler can see."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus.local.clients import HistogramClient
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


@pytest.mark.parametrize("value", ["a", "c", "z", None, 3.5])
def test_a_device_of_a_histogram_sends_as_many_messages_whatever_its_category_and_coins(value: Any) -> None:
    bits, client = seeded(7), HISTOGRAM.client()
    for _ in range(50):
        sent = client.report(value, bits)
        assert len(sent) == HISTOGRAM.messages_per_user
        assert {len(message) for message in sent} == {HISTOGRAM.length}


@pytest.mark.statistical
def test_coins_that_do_not_fit_are_tossed_again() -> None:
    """With room for one head of three: as likely as among tosses of at most one head, and never more."""
    client, bits = HistogramClient(Categories.of(2), Fraction(1, 2), 2), seeded(5)
    blanks = np.array([client.report(0, bits).count(b"\3") for _ in range(4000)])
    assert set(blanks.tolist()) == {0, 1}
    assert abs((blanks == 1).mean() - 1 / 4) < 4 * math.sqrt(3 / 16 / 4000)  # 1 of 8 tosses has no head, 3 have one


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
    assert counts.users == 500
    found = counts.estimate()
    assert np.abs(found.counts - [167, 167, 0, 166]).max() < 4 * HISTOGRAM.error
    assert found.labels == ("a", "b", "c")


@pytest.mark.parametrize("garbage", [b"", b"\5", b"\0\0", b"\xff" * 9, None, 3, "1", bytearray(b"\1")])
def test_what_no_device_sends_is_rejected_and_counted(garbage: Any) -> None:
    for server in (SUM.server(), HISTOGRAM.server()):
        assert not server.add(garbage)
        assert server.rejected == 1
        assert server.messages == 0
