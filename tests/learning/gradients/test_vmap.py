"""The way for models whose parameters are used in unknown ways."""

import pytest
import torch
from tests.learning.gradients.comparing import assert_right
from tests.learning.gradients.models import MODELS
from torch import nn

from defocus.learning.gradients import gradients
from defocus.learning.gradients.losses import Losses

NAMES = ["linear", "convolution of two dimensions", "embedding", "layer norm", "tied weights", "an unused parameter"]


@pytest.mark.parametrize("name", NAMES)
def test_norms_and_clipped_sums_are_those_of_the_loop(name: str) -> None:
    torch.manual_seed(3)
    model, batch = MODELS[name]()
    assert_right(model, batch, mapped=True)


def test_a_batch_is_taken_in_parts_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = MODELS["linear"]()
    monkeypatch.setattr(gradients, "_FLOATS", 2 * sum(p.numel() for p in model.parameters()))
    assert_right(model, batch, mapped=True)
    assert_right(model, batch, mapped=True, groups=[["0.weight"], ["0.bias", "2.weight"]])


def test_dropout_draws_for_each_example_apart() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(30, 2))
    way = gradients.Mapped(model, Losses(nn.CrossEntropyLoss()), (dict(model.named_parameters()),))
    _, norms, unusable = way.add((torch.ones(2, 30), torch.zeros(2, dtype=torch.long)), torch.ones_like)
    assert norms[0, 0] != norms[0, 1]
    assert unusable == 0
