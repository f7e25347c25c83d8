"""Batches, and regions of parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
from torch.nn import Module, Parameter
from torch.utils import _pytree as trees

from defocus.errors import UnfitDataError

__all__ = [
    "Batch",
    "Clipped",
    "Region",
    "Regions",
    "Rule",
    "call",
    "rows",
    "size",
    "usable_factors",
    "usable_norms",
]


@final
@dataclass(frozen=True, slots=True)
class Region:
    """A parameter, or a view into one: its shape, and where its numbers lie in the parameter."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    def places(self) -> torch.Tensor:
        """The place of every number of this region in the storage of its parameter."""
        place = torch.full(self.shape, self.offset)
        for axis, (length, step) in enumerate(zip(self.shape, self.stride, strict=True)):
            line = torch.arange(length) * step
            place = place + line.reshape([-1 if each == axis else 1 for each in range(len(self.shape))])
        return place.flatten()


@final
class Regions:
    """The trainable parameters of a model, found again by identity."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.parameters = dict(parameters)
        self._names = {id(parameter): name for name, parameter in parameters.items()}

    def find(self, tensor: Any) -> Region | None:
        """The region that a tensor is, if it is a trainable parameter or a view of one."""
        name = self._names.get(id(tensor))
        if name is not None:
            return Region(name, tuple(tensor.shape), tuple(tensor.stride()), 0)
        if not isinstance(tensor, torch.Tensor) or not tensor._is_view():  # noqa: SLF001 -- there is no public way to ask
            return None
        base = tensor._base  # noqa: SLF001 -- there is no public way to ask
        name = self._names.get(id(base))
        if name is None or tensor.dtype != base.dtype or tensor.is_conj() or tensor.is_neg():
            return None
        return Region(
            name, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset() - base.storage_offset()
        )

    def whole(self, name: str) -> Region:
        """The region of a whole parameter."""
        parameter = self.parameters[name]
        return Region(name, tuple(parameter.shape), tuple(parameter.stride()), 0)

    def add(self, region: Region, value: torch.Tensor) -> None:
        """Add to the gradient of a region, in the dtype of its parameter."""
        parameter = self.parameters[region.name]
        value = value.to(parameter.dtype)
        if region.shape == tuple(parameter.shape) and region.stride == tuple(parameter.stride()):
            if parameter.grad is not None:
                parameter.grad.add_(value)
            elif value.stride() == parameter.stride():
                parameter.grad = value
            else:
                parameter.grad = torch.empty_like(parameter).copy_(value)
            return
        spread = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        spread.as_strided(region.shape, region.stride, region.offset).add_(value)
        parameter.grad = spread if parameter.grad is None else parameter.grad.add_(spread)


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


def usable_norms(norms: torch.Tensor, losses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Norms (groups, B) with infinity where an example is unusable, and which examples are usable."""
    usable = torch.isfinite(norms).all(dim=0) & torch.isfinite(losses)
    return torch.where(usable, norms, torch.inf), usable


def usable_factors(
    norms: torch.Tensor, losses: torch.Tensor, rule: Rule
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Norms with infinity where an example is unusable, its factors (zero there), and which examples are usable.

    ``norms`` has shape (groups, B).
    """
    norms, usable = usable_norms(norms, losses)
    factors = rule(norms[0] if norms.shape[0] == 1 else norms).reshape(norms.shape)
    return norms, torch.where(usable, factors, 0.0).to(torch.float32), usable
