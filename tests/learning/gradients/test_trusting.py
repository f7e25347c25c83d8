"""Before anything is trained, the fast way is tried against the plain one."""

import pytest
import torch
from tests.learning.gradients.comparing import added, clip, grouped
from tests.learning.gradients.models import MODELS
from torch import nn

from defocus.learning.gradients import onepass
from defocus.learning.gradients.choosing import Choices
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.pieces import outer
from defocus.learning.gradients.watching import UnknownUseError


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


def test_examples_that_are_not_finite_postpone_the_trial() -> None:
    model, (x, y) = MODELS["linear of sequences"]()
    way = onepass.OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    poisoned = x.clone()
    poisoned[1] = torch.nan
    added(way, model, (poisoned, y), clip(1.0))
    assert not way._trusted
    added(way, model, (x, y), clip(1.0))
    assert way._trusted
