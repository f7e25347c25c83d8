"""Before anything is trained, the fast way is tried against the plain one."""

import pytest
import torch
from tests.learning.gradients.comparing import added, clip, grouped
from tests.learning.gradients.models import MODELS
from torch import nn

from defocus.learning.gradients import onepass
from defocus.learning.gradients.hooks import UnknownUseError
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.pieces import outer
from defocus.learning.gradients.strategy import Choices


def test_a_wrong_norm_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outer.Outer, "squares", lambda self: self.left.flatten(1).square().sum(1))
    model, batch = MODELS["linear of sequences"]()
    way = onepass.OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    with pytest.raises(UnknownUseError):
        added(way, model, batch, clip(1.0))


def test_a_wrong_sum_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = outer.Outer.total
    monkeypatch.setattr(outer.Outer, "total", lambda self, factors: 1.01 * right(self, factors))
    model, batch = MODELS["linear of sequences"]()
    way = onepass.OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    with pytest.raises(UnknownUseError):
        added(way, model, batch, clip(1.0))


class First(nn.Module):
    """In training, the first example is added to the others."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = x + torch.cat([torch.zeros_like(x[:1]), x[:1].expand(len(x) - 1, -1)])
        found: torch.Tensor = self.linear(mixed if self.training else x)
        return found


def test_the_trial_is_in_the_mode_of_the_model() -> None:
    model, batch = First(), (torch.randn(4, 5), torch.arange(4) % 3)
    way = onepass.OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    with pytest.raises(UnknownUseError):
        added(way, model, batch, clip(1.0))
    model.eval()
    added(way, model, batch, clip(1.0))


def test_dropout_is_no_reason_for_distrust() -> None:
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    way = onepass.OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    added(way, model, (torch.randn(4, 5), torch.arange(4) % 3), clip(1.0))
    assert way._trusted
    assert model.training


def test_examples_that_are_not_finite_postpone_the_trial() -> None:
    model, (x, y) = MODELS["linear of sequences"]()
    way = onepass.OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    poisoned = x.clone()
    poisoned[1] = torch.nan
    added(way, model, (poisoned, y), clip(1.0))
    assert not way._trusted
    added(way, model, (x, y), clip(1.0))
    assert way._trusted
