"""Steady randomness: whatever torch draws is the same for every example, at the level that was asked for."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients.fixed_randomness import Steady

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
