"""What a batch is: inputs of the model and targets of the loss, the example first in every tensor."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch.nn import Module
from torch.utils import _pytree as trees

from defocus.errors import UnfitDataError

__all__ = ["Batch", "call", "rows", "size"]

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
