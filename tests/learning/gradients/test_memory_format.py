"""Images may be stored channels last where that is faster; what is computed stays the same."""

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learning.gradients.comparing import Model, added, clip, grouped
from torch import nn

from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.piece import Choices


@given(channels=st.integers(1, 3), height=st.integers(2, 4), width=st.integers(2, 4))
def test_channels_last_is_another_order_of_the_same_numbers(channels: int, height: int, width: int) -> None:
    from defocus.learning.gradients.onepass import channels_last  # noqa: PLC0415 -- beside its only use

    images = torch.randn(2, channels, height, width)
    turned = channels_last(images)
    assert torch.equal(turned, images)
    assert turned.stride(1) == 1


def images(model: nn.Module, way: str) -> tuple[torch.Tensor, dict[str, str]]:
    torch.manual_seed(0)
    batch = (torch.randn(4, 1, 6, 6), torch.randint(0, 3, (4,)))
    choices = Choices({"format 3 [(1, 6, 6)]": way} if way else None)
    one = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), choices)
    added(one, model, batch, clip(0.5))
    return added(one, model, batch, clip(0.5))[2], choices.remembered


def test_both_orders_give_the_same_sums() -> None:
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3))
    given_order, turned = images(model, "as given")[0], images(model, "channels last")[0]
    assert torch.allclose(given_order, turned, atol=1e-6)
    assert images(model, "")[1]["format 3 [(1, 6, 6)]"] in {"as given", "channels last"}


def test_a_model_that_insists_on_its_order_keeps_it() -> None:
    def forward(m: Any, x: torch.Tensor) -> Any:
        return m.out(m.conv(x).view(len(x), -1))

    model = Model(forward, conv=nn.Conv2d(1, 3, 3), out=nn.Linear(48, 3))
    assert images(model, "")[1]["format 3 [(1, 6, 6)]"] == "as given"
