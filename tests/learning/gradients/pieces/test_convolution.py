"""Gradients of kernels are those of each example, whatever the way, and their norms are not told too small."""

import random

import pytest
import torch
from torch import nn

from defocus.learning.gradients import onepass
from defocus.learning.gradients.layouts import Region
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces import convolution
from defocus.learning.gradients.pieces.piece import Choices, Tools


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


@pytest.mark.parametrize("seed", range(60))
def test_every_way_finds_the_gradients_of_each_example(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of any size, stride, padding, dilation and groups, also in bands of rows as on a GPU."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    space, groups = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2))
    kernel, stride, dilation = (tuple(rng.randint(1, most) for _ in range(space)) for most in (4, 3, 3))
    padding = tuple((rng.randint(0, 2), rng.randint(0, 2)) for _ in range(space))
    size = [(k - 1) * d + rng.randint(1, 6) for k, d in zip(kernel, dilation, strict=True)]
    examples, channels, outputs = rng.randint(1, 3), groups * rng.randint(1, 3), groups * rng.randint(1, 3)
    x = torch.randn(examples, channels, *size, dtype=torch.float64)
    sides = [side for pair in reversed(padding) for side in pair]
    convolve = (nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d)[space - 1]
    weight = torch.randn(outputs, channels // groups, *kernel, dtype=torch.float64, requires_grad=True)
    result = convolve(nn.functional.pad(x, sides), weight, None, stride, 0, dilation, groups)
    back = torch.randn_like(result)
    wanted = torch.stack(
        [
            torch.autograd.grad((one * g).sum(), weight, retain_graph=True)[0]
            for one, g in zip(result, back, strict=True)
        ]
    )
    high = result.shape[2]
    bands = rng.choice([n for n in range(1, high + 1) if high % n == 0])
    monkeypatch.setattr(convolution, "_bands", lambda *_: bands)
    shape = convolution.Shape(kernel, stride, padding, dilation, groups)
    region = Region("", tuple(weight.shape), tuple(weight.stride()), 0)
    back = back.detach()
    for way in convolution._ORDERS:
        if (groups > 1 and way != "instantiated") or ("columns" in way and space != 2):
            continue
        monkeypatch.setattr(Choices, "pick", lambda *_, way=way: way if _[1].startswith("convolution") else "torch")
        piece = convolution.Convolution(region, x, back, shape, Tools(Choices()))
        assert torch.allclose(piece.squares(), wanted.flatten(1).square().sum(1)), way
        assert torch.allclose(piece.each(), wanted), way
        assert torch.allclose(piece.total(torch.ones(examples, dtype=torch.float64)), wanted.sum(0)), way
    for moved in (True, False):
        monkeypatch.setattr(convolution, "_moves", lambda *_, moved=moved: moved)
        found, reached = convolution._ghost(x, back, shape, rng.choice((None, 2)))
        assert torch.allclose(found, wanted.flatten(1).square().sum(1)), moved
        assert bool((found.sqrt() <= reached * (1 + 1e-9)).all())


def test_patches_are_copied_where_they_are_fewer_than_pairs_of_positions() -> None:
    """As of large images that are cut into few tiles, whose pairs of positions would fill any memory."""
    tiles = convolution.Shape((16, 16), (16, 16), ((0, 0), (0, 0)), (1, 1), 1)
    assert not convolution._moves(torch.zeros(1, 3, 224, 224), torch.zeros(1, 8, 14, 14), tiles)
    late = convolution.Shape((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    assert convolution._moves(torch.zeros(1, 512, 7, 7), torch.zeros(1, 8, 7, 7), late)
