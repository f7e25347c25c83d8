"""What a pass over a batch gives back, and the rule that it asks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import torch

__all__ = ["Clipped", "Rule", "usable_factors"]

Rule: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""From norms, of shape (B,) or (groups, B), to factors of the same shape.

A factor may depend on the norms of its own example and on public numbers, and on nothing else: a rule may be asked for
a part of a batch at a time.
"""


@final
@dataclass(frozen=True, slots=True)
class Clipped:
    """Losses and gradient norms of one batch, whose clipped gradients have been added to the parameters' ``grad``.

    ``losses`` has shape (B,). ``norms`` has shape (B,), or (groups, B) where groups are clipped apart. ``unusable``
    counts the examples whose loss or gradient was not finite: their norms read infinity and they contributed nothing.
    All of it is private: nothing here may be shown without paying for it.
    """

    losses: torch.Tensor
    norms: torch.Tensor
    unusable: int


def usable_factors(
    norms: torch.Tensor, losses: torch.Tensor, rule: Rule
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Norms with infinity where an example is unusable, its factors (zero there), and which examples are usable.

    ``norms`` has shape (groups, B).
    """
    usable = torch.isfinite(norms).all(dim=0) & torch.isfinite(losses)
    norms = torch.where(usable, norms, torch.inf)
    factors = rule(norms[0] if norms.shape[0] == 1 else norms).reshape(norms.shape)
    return norms, torch.where(usable, factors, 0.0).to(torch.float32), usable
