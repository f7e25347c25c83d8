"""Recorded passes: sizes on any machine, replays where there is a GPU."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learning.gradients.comparing import clip
from torch import nn

from defocus.learning.gradients import Gradients
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import _room, _rounded, channels_last
from defocus.learning.gradients.reference import Looped

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@given(st.integers(1, 100_000))
def test_few_sizes_serve_all_and_none_is_much_larger_than_needed(examples: int) -> None:
    rounded = _rounded(examples)
    assert examples <= rounded < examples * 17 / 16 + 1
    assert _rounded(rounded) == rounded


def test_room_is_ordered_like_what_is_copied_there() -> None:
    images = channels_last(torch.randn(3, 2, 4, 5))
    room = _room(images, 7)
    assert room.shape == (7, 2, 4, 5)
    assert room.stride() == images.stride()
    assert _room("text", 7) == "text"


@GPU
def test_replays_give_what_plain_passes_give() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).cuda()
    x, y = torch.randn(19, 5, device="cuda"), torch.randint(0, 3, (19,), device="cuda")
    gradients = Gradients(model, nn.CrossEntropyLoss())
    found = []
    for _ in range(6):
        model.zero_grad()
        gradients.clipped_sum((x, y), clip(0.5))
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert all(torch.allclose(each, found[0], atol=1e-5) for each in found)
    gradients.clipped_sum((x, y), clip(0.5))  # added to the last, not written over it
    assert torch.allclose(torch.cat([p.grad.flatten() for p in model.parameters()]), 2 * found[0], atol=1e-5)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.out, self.scale = nn.Linear(8, 8), nn.Linear(8, 3), 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.out(self.a(x).tanh().mean(1)) * self.scale
        return found


@GPU
@pytest.mark.parametrize("length", [1, 6, 7, 64])
def test_replays_are_those_of_the_loop_for_odd_lengths_and_see_what_was_exchanged(length: int) -> None:
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = Scaled().cuda()
    loss, parameters = nn.CrossEntropyLoss(), dict(model.named_parameters())
    gradients, loop = Gradients(model, loss), Looped(model, Losses(loss), (parameters,))
    for turn in range(12):
        model.scale = 3.0 if turn >= 6 else 1.0
        x, y = torch.randn(9, length, 8, device="cuda"), torch.randint(0, 3, (9,), device="cuda")
        if turn in {4, 10}:
            x[3] = torch.inf
        found = []
        for add in (gradients.clipped_sum, loop.add):
            model.zero_grad()
            add((x, y), clip(0.5))
            found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        assert torch.allclose(*found, atol=1e-4 * float(found[1].norm())), turn
