"""Mixing that begins at values that are rare is found, and models that stand alone pass."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from defocus.errors import DependentExamplesError
from defocus.learning.gradients import Gradients
from defocus.learning.model_check import check_independent


class Net(nn.Module):
    """A linear layer after something else, and a table for words."""

    def __init__(self, before: Callable[[Any, torch.Tensor], torch.Tensor], words: int = 50) -> None:
        super().__init__()
        self.table, self.linear, self.before = nn.Embedding(words, 6), nn.Linear(6, 4), before
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.before(self, x))


def checked(before: Callable[[Any, torch.Tensor], torch.Tensor], one: torch.Tensor) -> Gradients:
    torch.manual_seed(0)
    net, loss = Net(before), nn.CrossEntropyLoss()
    gradients = Gradients(net, loss)
    check_independent(net, loss, gradients, (one, torch.zeros(1, dtype=torch.long)), None)
    return gradients


def counting(net: Any, x: torch.Tensor) -> torch.Tensor:
    net.count += (x.detach().abs() > 5).any(1).sum()
    return x


def unknown(net: Any, words: torch.Tensor) -> torch.Tensor:
    net.count += (words == 49).sum()
    found: torch.Tensor = net.table(words).mean(1)
    return found


FLOATS = torch.zeros(1, 6)
WORDS = torch.zeros(1, 8, dtype=torch.long)

TIED: dict[str, tuple[Callable[[Any, torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "the largest, above one": (lambda _, x: x / x.abs().max().clamp(min=1), FLOATS),
    "a bound by mean and deviation": (lambda _, x: torch.minimum(x, x.mean() + 3 * x.std(correction=0)), FLOATS),
    "a bound on the norm of all": (lambda _, x: x / (x.norm() / 100).clamp(min=1), FLOATS),
    "pixels": (lambda _, x: torch.where(x.max() > 200, x / 255, x), FLOATS),
    "outliers only": (lambda _, x: torch.where((x.abs() > 5).any(1, keepdim=True), x - x.mean(0), x), FLOATS),
    "a row of one number": (lambda _, x: x + (x == x[:, :1]).all(1).any(), FLOATS),
    "none above zero": (lambda _, x: x + (x < 0).all(1).any(), FLOATS),
    "tiny rows": (lambda _, x: x + (x.abs() < 0.01).all(1).any(), FLOATS),
    "a rare word": (lambda net, t: net.table(t).mean(1) + (t == 49).any(), WORDS),
    "the longest": (
        lambda net, t: (net.table(t) * (t != 25)[..., None]).sum(1) / (t != 25).sum(1).max().clamp(min=1),
        WORDS,
    ),
    "outliers counted": (counting, FLOATS),
    "unknown words counted": (unknown, WORDS),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TIED)
def test_mixing_that_begins_at_values_is_refused(name: str) -> None:
    with pytest.raises(DependentExamplesError, match="the operator"):
        checked(*TIED[name])


FREE: dict[str, tuple[Callable[[Any, torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "the largest of an example": (lambda _, x: x / x.abs().amax(1, keepdim=True), FLOATS),
    "signs": (lambda _, x: x.sign() + x.round(), FLOATS),
    "numbers that grow": (lambda _, x: x.exp() + x**3, FLOATS),
    "logarithms of some families": (lambda _, x: (x + 1.5).log(), FLOATS),
    "a mean without padding": (
        lambda net, t: (net.table(t) * (t != 9)[..., None]).sum(1) / (t != 9).sum(1, keepdim=True).clamp(min=1),
        WORDS,
    ),
    "half of a table": (lambda net, t: net.table(t + 25).mean(1), WORDS),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FREE)
def test_models_whose_examples_stand_alone_pass_beside_all_families(name: str) -> None:
    checked(*FREE[name])


def test_attention_to_the_likeliest_is_not_thought_to_mix() -> None:
    """Large numbers make rounding decide, which differs with the size of a batch."""
    checked(lambda _, x: x * (1e4 * x).softmax(1), FLOATS)
