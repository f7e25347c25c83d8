"""Sums in lockstep: who was told other numbers before is in another sum."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from defocus.errors import ProtocolError
from defocus.federated import Coordinator, Identity, Party
from defocus.federated.lockstep import Hub, Link, after, sum_plan
from defocus.federated.messages import Kind, bitmap, heading

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


@pytest.mark.parametrize("before", [*(kind for kind in Kind if kind % 2), None])
def test_a_sum_is_heard_only_once_its_survivors_are_signed_by_enough(before: Kind | None) -> None:
    """A coordinator tells site 1 alone that site 4 is gone, and then a sum: its errors would not be those of others."""
    own = [Identity.generate() for _ in range(4)]

    hub, others, said = Hub(tuple(each.public for each in own), NAME, 1, 0), dict[int, Party](), dict[int, bytes]()

    def lying(number: int, plan: Any, message: bytes) -> Any:
        if hub.coordinator is None:
            hub.coordinator = Coordinator(plan)
            others.update({n: Party(plan, n, own[n - 1], [n, n]) for n in (2, 3, 4)})
            answers = [each.begin() for each in others.values()]
        else:
            answers = [each.receive(said[n]) for n, each in others.items()]
        if hub.coordinator.due is before:
            return np.array([5, 5], np.int64)
        for each in (message, *answers):
            hub.coordinator.accept(each)
        said.update(hub.coordinator.advance())
        if hub.coordinator.due is Kind.CONFIRMED and before is Kind.CONFIRMED:
            return heading(Kind.SURVIVORS, plan.session) + bitmap([1, 2, 3], 4)
        return hub.coordinator.sum() if hub.coordinator.due is None else said[number]

    circle: Any = Mock(wraps=hub, parties=hub.parties, dropouts=1, exchange=lying)
    link = Link(circle, 1, own[0], honest=2, overlap=1)
    vector = np.array([1, 1], np.int64)
    if before in {None, Kind.REVEALED}:  # then it has opened what it holds, for a set that enough signed
        assert link._added(vector, None).tolist() == ([5, 5] if before else [10, 10])
        assert link.missing == 0
        return
    with pytest.raises(ProtocolError, match="before its survivors were signed"):
        link._added(vector, None)
    assert link.missing is None
    assert link.seen == b""
