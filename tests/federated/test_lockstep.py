"""Sums in lockstep: who was told other numbers before is in another sum."""

import numpy as np
import pytest

from defocus.errors import ProtocolError
from defocus.federated import Identity, Party
from defocus.federated.lockstep import Hub, Link, after, sum_plan

NAME = bytes(32)
WHO = [Identity.generate() for _ in range(3)]
KEYS = tuple(each.public for each in WHO)


def test_the_name_of_a_sum_holds_every_sum_before_it() -> None:
    told = [np.array([5, 7]), np.array([5, 8])]
    sessions = {sum_plan(KEYS, 0, 0, NAME, (2, 4, after(b"", each), None)).session for each in told}
    sessions |= {sum_plan(KEYS, 0, 0, NAME, (2, 4, after(after(b"", each), told[0]), None)).session for each in told}
    assert len(sessions) == 4


def test_a_site_that_was_told_another_sum_is_refused_in_the_next_one() -> None:
    hub, vector = Hub(KEYS, NAME, 0, 0), np.array([1, 2], dtype=np.int64)
    plan = hub.plan(2, 2, after(b"", vector), None)
    hub.replies = {1: b"go on"}  # what the others will make of it, so that nobody waits
    assert hub.exchange(1, plan, Party(plan, 1, WHO[0], vector).begin()) == b"go on"
    hub.opening[3] = plan, Party(plan, 3, WHO[2], vector).begin()
    other = Link(hub, 2, WHO[1], honest=2, overlap=1, steps=1, seen=after(b"", vector + 1))
    with pytest.raises(ProtocolError, match="computes something else"):
        other._added(vector, None)
