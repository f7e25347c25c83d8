"""Before anything is trained, the fast way is tried against the plain one."""

from collections.abc import Callable

import pytest
import torch
from tests.learning.gradients.comparing import added, clip, grouped
from tests.learning.gradients.models import MODELS
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients import onepass
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.pieces import outer
from defocus.learning.gradients.pieces.piece import Choices
from defocus.learning.gradients.reference import Steady
from defocus.learning.gradients.trace import UnknownUseError


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


DRAWS: dict[str, tuple[Callable[[], torch.Tensor], float, float, float]] = {
    "rand": (lambda: torch.rand(3), 0.25, 0.5, 0.75),
    "rand_like": (lambda: torch.rand_like(torch.zeros(3)), 0.25, 0.5, 0.75),
    "uniform_": (lambda: torch.empty(3).uniform_(2, 4), 2.5, 3, 3.5),
    "randn": (lambda: torch.randn(3), -0.6745, 0, 0.6745),
    "normal of tensors": (lambda: torch.normal(torch.ones(3), 2 * torch.ones(3)), 1 - 1.349, 1, 1 + 1.349),
    "normal_": (lambda: torch.empty(3).normal_(1, 2), 1 - 1.349, 1, 1 + 1.349),
    "a normal law": (lambda: torch.distributions.Normal(1.0, 2.0).sample((3,)), 1 - 1.349, 1, 1 + 1.349),
    "bernoulli": (lambda: torch.bernoulli(torch.full((3,), 0.1)), 1, 1, 0),
    "bernoulli_ of the default": (lambda: torch.empty(3).bernoulli_(), 1, 1, 0),
    "impossible": (lambda: torch.bernoulli(torch.zeros(3)), 0, 0, 0),
    "certain": (lambda: torch.empty(3).bernoulli_(1.0), 1, 1, 1),
    "randint": (lambda: torch.randint(2, 6, (3,)), 3, 4, 5),
    "randint from zero": (lambda: torch.randint(4, (3,)), 1, 2, 3),
    "random_": (lambda: torch.zeros(3).random_(0, 8), 2, 4, 6),
    "exponential_": (lambda: torch.empty(3).exponential_(), 1, 1, 1),
    "a beta law": (lambda: torch.distributions.Beta(0.5, 0.5).sample((3,)), 0.5, 0.5, 0.5),
    "dropout": (lambda: F.dropout(torch.ones(3), 0.5), 2, 2, 0),
    "native dropout": (lambda: torch.native_dropout(torch.ones(3), 0.5, True)[0], 2, 2, 0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_the_level_of_their_law(name: str) -> None:
    draw, *expected = DRAWS[name]
    for level, value in zip((0.25, 0.5, 0.75), expected, strict=True):
        with Steady(level):
            found = draw()
        assert found.tolist() == pytest.approx([value] * 3, abs=1e-3)


def test_orders_are_reversed_and_choices_are_the_likeliest() -> None:
    with Steady():
        assert torch.randperm(4).tolist() == [3, 2, 1, 0]
        assert torch.multinomial(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), 1).tolist() == [[1], [0]]


@pytest.mark.parametrize("layer", [nn.LSTM(4, 4, 2, dropout=0.5), nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5)])
def test_layers_that_draw_below_the_surface_are_steady(layer: nn.Module) -> None:
    x = torch.linspace(-1, 1, 24).view(3, 2, 4)
    with Steady():
        one, other = layer(x), layer(x)
    first, second = (each[0] if isinstance(each, tuple) else each for each in (one, other))
    assert torch.equal(first, second)


def test_gradients_go_with_what_was_drawn() -> None:
    x = torch.ones(4, requires_grad=True)
    with Steady():
        torch.native_dropout(x, 0.75, True)[0].sum().backward()
        mapped = torch.vmap(torch.func.grad(lambda a: F.dropout(a, 0.75).sum()), randomness="different")(x.detach())
    assert x.grad is not None
    assert x.grad.tolist() == [4.0] * 4
    assert mapped.tolist() == [4.0] * 4


def test_nothing_is_left_of_it() -> None:
    with Steady():
        torch.rand(2)
    assert len(set(torch.rand(4).tolist())) > 1
