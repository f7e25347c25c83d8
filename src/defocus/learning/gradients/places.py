"""Where the examples of a batch are in a value of a graph, and the operators that values go through."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import torch
from torch import fx
from torch.utils import _pytree as trees

from defocus.learning.gradients.trace import UnknownUseError, line_of

__all__ = ["MixingError", "Op", "Place", "place_of", "rank_of", "reshaped", "words"]


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Axis ``axis`` counts ``outer`` times examples times ``inner``, in this order, the last one fastest.

    Where all entries are ``alike``, or drawn each for itself, they may as well be in another order.
    """

    axis: int
    outer: int = 1
    inner: int = 1
    alike: bool = field(default=False, compare=False)

    @property
    def each(self) -> int:
        """How many entries of the axis belong to one example."""
        return self.outer * self.inner

    def apart(self, tensor: torch.Tensor, examples: int) -> torch.Tensor:
        """The tensor with the examples as its first axis, and the entries of each where they all were."""
        if self.each == 1:
            return tensor.movedim(self.axis, 0)
        parts = tensor.unflatten(self.axis, (self.outer, examples, self.inner)).movedim(self.axis + 1, 0)
        return parts.flatten(self.axis + 1, self.axis + 2)

    def sequences(self, tensor: torch.Tensor, examples: int) -> torch.Tensor:
        """The tensor as (examples, entries, features), or (examples, features) where one entry belongs to each."""
        apart = self.apart(tensor, examples)
        if apart.dim() <= 3:
            return apart
        return apart.reshape(examples, -1, apart.shape[-1])

    def takes(self, other: "Place") -> bool:
        """Whether entries in this place may stand for those in another."""
        return self == other or (self.alike and self.axis == other.axis and self.each == other.each)


class MixingError(Exception):
    """What an operator does to examples that must not meet."""


_Dims: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape of a value for each of the sizes of a batch that were traced."""


@final
class Op:
    """One node of a graph with its arguments by name, and where the examples are in them."""

    def __init__(self, node: fx.Node) -> None:
        self.node, func = node, node.target
        name = getattr(getattr(func, "overloadpacket", func), "__name__", str(func))
        if getattr(func, "namespace", "aten") != "aten":
            name = f"{func.namespace}::{name}"
        self.changes = name.endswith("_") and not name.startswith("_")
        self.name = name.removesuffix("_") if self.changes else name
        self.given: dict[str, Any] = dict(node.kwargs)
        schema = getattr(func, "_schema", None)
        self.types: dict[str, str] = {}
        if schema is not None:
            for at, argument in enumerate(schema.arguments):
                if at < len(node.args):
                    self.given[argument.name] = node.args[at]
                elif argument.name not in self.given:
                    self.given[argument.name] = argument.default_value
                self.types[argument.name] = str(argument.real_type)
        else:
            self.given |= {str(at): value for at, value in enumerate(node.args)}

    def __getitem__(self, name: str) -> Any:
        """An argument by its name in PyTorch's schema; None where it has none of that name."""
        return self.given.get(name)

    @property
    def first(self) -> fx.Node:
        """The tensor that the operator is about."""
        for name in ("self", "input", "query", "x1"):
            if isinstance(self.given.get(name), fx.Node):
                found: fx.Node = self.given[name]
                return found
        raise UnknownUseError(f"the operator {self.name} has no tensor{line_of(self.node)}")

    @property
    def tensors(self) -> list[fx.Node]:
        """All arguments that are tensors."""
        return [each for each in trees.tree_leaves(list(self.given.values())) if _is_tensor(each)]

    @property
    def placed(self) -> list[fx.Node]:
        """The arguments that have examples in them."""
        return [each for each in self.tensors if each.meta.get("place") is not None]

    @property
    def shape(self) -> _Dims:
        """The shape of the result."""
        found: _Dims = self.node.meta["shape"]
        return found


def _is_tensor(value: Any) -> bool:
    return isinstance(value, fx.Node) and value.meta.get("shape") is not None


def rank_of(node: fx.Node) -> int:
    """How many axes a value has."""
    return len(node.meta["shape"][0])


def place_of(value: Any) -> Place | None:
    """Where the examples are in a value."""
    found: Place | None = value.meta.get("place") if isinstance(value, fx.Node) else None
    return found


def reshaped(place: Place, before: Sequence[int], after: Sequence[int]) -> Place | None:
    """The place in a tensor with the same numbers in the same order and another shape."""
    outer = math.prod(before[: place.axis]) * place.outer
    inner = math.prod(before[place.axis + 1 :]) * place.inner
    examples = before[place.axis] // (place.outer * place.inner)
    for axis in range(len(after)):
        ahead, behind = math.prod(after[:axis]), math.prod(after[axis + 1 :])
        if ahead and behind and outer % ahead == 0 and inner % behind == 0:
            found = Place(axis, outer // ahead, inner // behind)
            if found.outer * examples * found.inner == after[axis]:
                return found
    return None


def words(text: str) -> list[str]:
    """Names in a row."""
    return text.split()
