"""A told norm is never far below the true one, however much an example's contributions cancel."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.learning.gradients.comparing import Model
from torch import nn

from defocus.learning.gradients.choosing import Choices
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.bounding import bounded

WAYS = [("ghost",), ("instantiated",)]


def slopes(output: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return (output * slope).flatten(1).sum(1)


def worst(model: nn.Module, batches: Callable[[], Any], forced: tuple[str, ...], *, narrow: bool = False) -> float:
    """The largest contribution that the last example of a batch makes at clip 1, in twenty batches."""
    found = []
    parameters = dict(model.named_parameters())

    def last(norms: torch.Tensor) -> torch.Tensor:
        factors = (1 / norms).clamp(max=1)
        factors[..., :-1] = 0
        return factors

    for _ in range(20):
        model.zero_grad()
        way = OnePass(model, Losses(slopes), (parameters,), Choices(forced=forced))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            way.add(batches(), last)
        found.append(float(torch.cat([p.grad.flatten() for p in parameters.values()]).norm()))
    return max(found)


@pytest.mark.parametrize("forced", WAYS)
@pytest.mark.parametrize("scale", [1e4, 1e6, 1e7])
def test_two_visits_that_cancel(scale: float, forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def visits() -> Any:
        base = torch.randn(1, 1, 64) * scale
        bad = torch.cat([base + torch.randn(1, 1, 64) * scale * 3e-5, base], 1)
        return torch.cat([torch.randn(7, 2, 64), bad]), torch.randn(8, 64) * 0.1

    def forward(self: Any, x: torch.Tensor) -> Any:
        h = self.l(x)
        return h[:, 0] - h[:, 1]

    assert worst(Model(forward, l=nn.Linear(64, 64, bias=False)), visits, forced) <= 1 + 1e-3


@pytest.mark.parametrize("forced", WAYS)
def test_a_row_looked_up_again_and_again_with_gradients_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def words() -> Any:
        ids = torch.randint(0, 12, (8, 4))
        ids[-1] = 7
        a = torch.randn(1, 1, 16) * 1e6
        bad = torch.cat([a + torch.randn(1, 1, 16) * 10, -a, a, -a], 1)
        return ids, torch.cat([torch.randn(7, 4, 16), bad])

    model = Model(lambda self, ids: self.e(ids), e=nn.Embedding(12, 16))
    assert worst(model, words, forced) <= 1 + 1e-3


@pytest.mark.parametrize("forced", WAYS)
def test_a_table_looked_up_and_multiplied_with_gradients_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def forward(self: Any, ids: torch.Tensor, x: torch.Tensor) -> Any:
        return torch.cat([self.e(ids), nn.functional.linear(x, self.e.weight)], 2)

    def words() -> Any:
        ids, x = torch.randint(0, 12, (8, 2)), torch.randn(8, 2, 16)
        slope = torch.randn(8, 2, 28)
        a = torch.randn(16) * 1e6
        ids[-1], x[-1], slope[-1] = 7, a + torch.randn(2, 16) * 10, 0.0
        slope[-1, :, :16] = -a
        slope[-1, :, 16 + 7] = 1.0
        return (ids, x), slope

    assert worst(Model(forward, e=nn.Embedding(12, 16)), words, forced) <= 1 + 1e-3


@pytest.mark.parametrize("forced", WAYS)
def test_patches_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def images() -> Any:
        x, slope = torch.randn(8, 16, 2), torch.randn(8, 24, 2)
        base = torch.randn(16) * 1e7
        x[-1, :, 0], x[-1, :, 1] = base * (1 + 3e-5 * torch.randn(16)), base
        slope[-1, :, 1] = -slope[-1, :, 0]
        return x, slope * 0.1

    model = Model(lambda self, x: self.c(x), c=nn.Conv1d(16, 24, 1, bias=False))
    assert worst(model, images, forced) <= 1 + 1e-3


@pytest.mark.parametrize("forced", WAYS)
def test_narrow_numbers_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def forward(self: Any, x: torch.Tensor) -> Any:
        h = self.l(x)
        return h[:, 0] + h[:, 1] - h[:, 2]

    def visits() -> Any:
        one, two = (torch.randint(-32, 32, (1, 1, 256)).float() for _ in range(2))
        three = one + two
        three[..., 0] += 2
        return torch.cat([torch.randn(7, 3, 256), torch.cat([one, two, three], 1) / 32]), torch.randn(8, 256) * 10

    model = Model(forward, l=nn.Linear(256, 256, bias=False))
    assert worst(model, visits, forced, narrow=True) <= 1 + 1e-3


def test_ordinary_norms_are_told_as_they_are_and_what_is_no_number_stays_so() -> None:
    squares = torch.tensor([4.0, torch.nan, torch.inf, -1e-3, 1e-6])
    reach = torch.tensor([16.0, 16.0, torch.inf, 16.0, 16.0])
    found = bounded(squares, reach, 100)
    share = 100 * 2.0**-24
    assert float(found[0]) == 4.0
    assert bool(found[1].isnan())
    assert float(found[2]) == torch.inf
    assert float(found[3]) == pytest.approx(16 * share)
    assert float(found[4]) == pytest.approx(1e-6 + 16 * share)
    coarse = bounded(squares[:1], reach[:1], 0, products=2**-10, totals=2**-10)
    assert float(coarse) == pytest.approx(((4 + 2**-5) ** 0.5 + 2**-8) ** 2)
