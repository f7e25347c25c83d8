"""What a batch is: inputs of the model and targets of the loss, the example first in every tensor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
from torch.nn import Module
from torch.utils import _pytree as trees

from defocus.errors import UnfitDataError

__all__ = ["Batch", "Clipped", "Rule", "call", "rows", "size", "usable_factors"]


Batch: TypeAlias = tuple[Any, Any]
"""``(inputs, targets)``: each a tensor, or a tuple, list or mapping of them; ``targets`` may be None."""

_FIX = (
    "give (inputs, targets), where every tensor has the example as its first dimension;"
    " transpose before, and back inside of the model, if it wants another order."
)


def size(batch: Any) -> int:
    """How many examples a batch has; refuse it if its tensors do not agree."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise UnfitDataError("A batch is a pair of inputs and targets.", fix=_FIX)
    tensors = [leaf for leaf in trees.tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
    if not any(isinstance(leaf, torch.Tensor) for leaf in trees.tree_leaves(batch[0])):
        raise UnfitDataError("The inputs of a batch hold no tensor.", fix=_FIX)
    if any(each.dim() == 0 for each in tensors):
        raise UnfitDataError("A tensor of a batch has no dimension for the examples.", fix=_FIX)
    if len({each.shape[0] for each in tensors}) != 1:
        raise UnfitDataError("The tensors of a batch do not agree on the number of examples.", fix=_FIX)
    return int(tensors[0].shape[0])


def rows(batch: Batch, start: int, stop: int) -> Batch:
    """The examples from ``start`` to before ``stop``."""
    part: Batch = trees.tree_map(lambda leaf: leaf[start:stop] if isinstance(leaf, torch.Tensor) else leaf, batch)
    return part


def call(model: Module, inputs: Any) -> Any:
    """The model applied to inputs: one tensor, positional arguments in a tuple or list, or keywords in a mapping."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, tuple | list):
        return model(*inputs)
    return model(inputs)


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
