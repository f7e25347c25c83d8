"""Where the examples of a batch are in a tensor, and what becomes of a place under a call."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch

__all__ = ["LOST", "Call", "LostError", "Place", "agreed", "name_of", "reshaped"]


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Axis ``axis`` counts ``outer`` times examples times ``inner``, in this order, the last one fastest."""

    axis: int
    outer: int = 1
    inner: int = 1


class LostError(Exception):
    """Examples of a batch may be mixed, or in another order, where a pass of all of them needs them apart."""


LOST = Place(-1)
"""The examples may be anywhere."""


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A function called with arguments, at least one of which has examples in it, and what it returned."""

    func: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: list[torch.Tensor]
    place: Callable[[torch.Tensor], Place | None]
    counts: Callable[[torch.Tensor], bool]
    """Whether a tensor has the numbers of all examples in their order, along its first axis."""

    def at(self, position: int, *names: str, default: Any = None) -> Any:
        """An argument by its position or one of its names."""
        if position < len(self.args):
            return self.args[position]
        return next((self.kwargs[name] for name in names if name in self.kwargs), default)

    def of(self, value: Any) -> Place | None:
        """The place of an argument, if it is a tensor."""
        return self.place(value) if isinstance(value, torch.Tensor) else None

    def only(self, *positions: int) -> bool:
        """Whether no other tensors than the arguments in these positions have examples in them."""
        rest = [each for at, each in enumerate(self.args) if at not in positions]
        rest += self.kwargs.values()
        return all(
            self.of(each) is None for value in rest for each in (value if isinstance(value, list | tuple) else [value])
        )


def agreed(places: Sequence[Place | None]) -> Place:
    """The one place of all tensors that have one."""
    found = {place for place in places if place is not None}
    return found.pop() if len(found) == 1 else LOST


def name_of(func: Any) -> tuple[str, bool]:
    """What a function is called, whatever form of it was, and whether it changes its first argument."""
    name = getattr(func, "__name__", "")
    if name in {"__get__", "__set__", "__delete__"}:
        return f"{getattr(func.__self__, '__name__', '')}.{name}", name != "__get__"
    if name.startswith("__") and name.endswith("__"):
        inner = name[2:-2]
        return (f"__{inner[1:]}__", True) if inner in _CHANGING else (name, False)
    return (name[:-1], True) if name.endswith("_") and not name.startswith("_") else (name, False)


def reshaped(place: Place, before: Sequence[int], after: Sequence[int]) -> Place:
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
    return LOST


_CHANGING = frozenset(
    {"iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift"}
)
