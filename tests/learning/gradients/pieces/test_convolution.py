"""Norms of gradients of kernels are not told too small, however large images are and however small what comes back."""

import pytest
import torch
from torch import nn

from defocus.learning.gradients import onepass
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.piece import Choices


@pytest.mark.parametrize("way", ["ghost", "instantiated"])
@pytest.mark.parametrize(("image", "back"), [(1e18, 2e-23), (2e-23, 1e18), (1.0, 1.0)])
def test_norms_of_sides_of_any_size_are_bounded(way: str, image: float, back: float) -> None:
    """Squares of one side may vanish while the other makes up for it."""
    net = nn.Sequential(nn.Conv2d(4, 8, 1, bias=False), nn.Flatten())
    x, y = torch.zeros(4, 4, 3, 3), torch.zeros(4, 72)
    x[1], y[1] = image, back
    (weight,) = net.parameters()
    found = OnePass(
        net, Losses(lambda made, told: (made * told).sum(1)), ({"0.weight": weight},), Choices(forced=(way,))
    )
    found._trusted.add(onepass._key((x, y)))  # no trial on these examples, which would take a plainer way
    clip = 1e-6
    found.add((x, y), lambda norms: (clip / norms).clamp(max=1.0))
    assert weight.grad is not None
    assert float(weight.grad.double().norm()) <= 1.001 * clip
