"""What a model holds is put back by value, in place, and large tensors are copied once."""

from collections import deque

import torch
from torch import nn

from defocus.learning import snapshots
from defocus.learning.snapshots import Snapshot, version


def test_containers_of_every_kind_are_refilled_in_place() -> None:
    net = nn.Linear(2, 2)
    net.held = [1]
    net.named, net.several, net.latest = {"a": 1}, {1}, deque([1], maxlen=3)
    kept = (net.held, net.named, net.several, net.latest)
    noted = Snapshot(net)
    net.held.append(2)
    net.named["b"] = 2
    net.several.add(2)
    net.latest.append(2)
    net.new = 5
    noted.restore()
    assert (net.held, net.named, net.several, list(net.latest)) == ([1], {"a": 1}, {1}, [1])
    assert all(one is other for one, other in zip(kept, (net.held, net.named, net.several, net.latest), strict=True))
    assert not hasattr(net, "new")


def test_large_tensors_are_copied_once_and_put_back_when_written_to() -> None:
    net = nn.Linear(2, 2)
    net.register_buffer("large", torch.zeros(snapshots._SMALL + 1))
    first = Snapshot(net)
    second = Snapshot(net, first)
    (copy,) = (kept for tensor, _, kept in second._tensors.values() if tensor is net.large)
    assert any(kept is copy for _, _, kept in first._tensors.values())
    net.large += 1
    moved = version(net.large)
    second.restore()
    assert float(net.large.abs().max()) == 0
    assert version(net.large) > moved
