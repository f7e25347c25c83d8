"""A fast way held against the plain loop over examples."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from defocus.learning.gradients.gradients import Mapped
from defocus.learning.gradients.layouts import Rule
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces import Piece
from defocus.learning.gradients.pieces.norm_bounds import bounded
from defocus.learning.gradients.pieces.outer import met
from defocus.learning.gradients.pieces.piece import Choices, Paired, Rough
from defocus.learning.gradients.reference import Looped

TOLERANCE = 1e-5


class Model(nn.Module):
    """A model out of a function and the modules and parameters that it uses by name."""

    def __init__(self, forward: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.function(self, *inputs, **named)


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape))


def clip(bound: float) -> Rule:
    return lambda norms: (bound / norms).clamp(max=1)


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def added(way: Any, model: nn.Module, batch: Any, rule: Rule) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Losses, norms and the sum that a way adds, as one long vector."""
    parameters = trained(model)
    for each in parameters.values():
        each.grad = torch.zeros_like(each)
    losses, norms, _ = way.add(batch, rule)
    return losses, norms, torch.cat([each.grad.flatten() for each in parameters.values()])


def grouped(model: nn.Module, groups: Sequence[Sequence[str]] | None) -> tuple[dict[str, nn.Parameter], ...]:
    parameters = trained(model)
    return tuple({name: parameters[name] for name in group} for group in groups or [list(parameters)])


def assert_right(
    model: nn.Module,
    batch: Any,
    loss: Any = None,
    *,
    forced: tuple[str, ...] = (),
    groups: Sequence[Sequence[str]] | None = None,
    mapped: bool = False,
) -> None:
    """Losses, norms and clipped sums of one backward pass are those of the loop, to a relative error of 1e-5."""
    losses = Losses(loss or nn.CrossEntropyLoss())
    parts = grouped(model, groups)
    loop = Looped(model, losses, parts)
    bound = float(added(loop, model, batch, clip(1.0))[1].median())
    expected = added(loop, model, batch, clip(bound))
    way = Mapped(model, losses, parts) if mapped else OnePass(model, losses, parts, Choices(forced=forced))
    found = added(way, model, batch, clip(bound))
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        assert float((mine - theirs).norm()) <= TOLERANCE * float(theirs.norm()) + 1e-12
    assert float(((found[1] - expected[1]).abs() / expected[1].clamp(min=1e-9)).max()) <= TOLERANCE


def told_squares(piece: Piece) -> torch.Tensor:
    """The squared norms that a piece tells, margins for rounding included."""
    found = piece.squares()
    if isinstance(found, Paired):
        squares, reached = met([found.left], [found.right], max(found.features))
        found = Rough(squares[0], reached[0], found.rounding, found.off, found.again)
    return bounded([found])[0] if isinstance(found, Rough) else found
