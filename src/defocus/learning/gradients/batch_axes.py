"""Where the examples of a batch are in a tensor, and what becomes of a place under a call."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch

__all__ = ["LOST", "Call", "LostError", "Place", "agreed", "name_of", "read", "reshaped", "write"]


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


_MASKS = (torch.bool, torch.uint8)


def read(call: Call) -> Place:
    """The examples stay where they are if nothing but all of them is asked for, in their order."""
    value, index = call.args[0], call.args[1]
    place = call.of(value)
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, torch.Tensor) and part.dtype in _MASKS and call.of(part) is not None for part in parts):
        raise LostError  # how many it chooses, Python can see
    if place == Place(0) and isinstance(parts[0], torch.Tensor) and call.counts(parts[0]):
        return _of_each(call, parts)
    if place is None or any(_chooses(call, part) for part in parts):
        return LOST
    full = value.dim() - sum(_taken(part) for part in parts)
    at = next((number for number, part in enumerate(parts) if part is Ellipsis), None)
    if at is not None:
        parts[at : at + 1] = [slice(None)] * full
    return _kept(call, parts, place)


def _kept(call: Call, parts: list[Any], place: Place) -> Place:
    axis, kept, tensors = 0, 0, 0
    for part in parts:
        if part is None:
            kept += 1
            continue
        if axis == place.axis:
            break
        tensors += not isinstance(part, slice | int)
        kept += isinstance(part, slice)
        axis += 1
    else:
        part = slice(None)
        kept += place.axis - axis
    rest = [each for each in parts if not isinstance(each, slice | int) and each is not None]
    if tensors or (rest and not isinstance(part, slice)):
        return LOST  # where indices are tensors, their axes come in between, or in front of all
    if not isinstance(part, slice) or part != slice(None):
        return LOST
    found = Place(kept, place.outer, place.inner)
    if len(rest) > 1 and not _side_by_side(parts):
        return LOST
    return found if call.results[0].shape[kept] == call.args[0].shape[place.axis] else LOST


def _of_each(call: Call, parts: list[Any]) -> Place:
    """Entries that each example chooses for itself, when the first index counts the examples."""
    chosen = [part for part in parts if isinstance(part, torch.Tensor)]
    rest = parts[len(chosen) :]
    if any(not isinstance(part, torch.Tensor) for part in parts[: len(chosen)]) or any(_chooses(call, p) for p in rest):
        return LOST
    dims = max(part.dim() for part in chosen)
    if parts[0].dim() != dims or any(part.dtype in _MASKS for part in chosen):
        return LOST
    places = [(part, call.of(part)) for part in chosen[1:]]
    right = all(place is None or (place == Place(0) and part.dim() == dims) for part, place in places)
    return Place(0) if right else LOST


def write(call: Call) -> Place | None:
    """What is written must be the same for all examples, or a number that a mask of the same place chooses."""
    value, index, new = call.args
    place = call.of(value)
    simple = not isinstance(new, torch.Tensor) or (call.of(new) is None and new.dim() == 0)
    if isinstance(index, torch.Tensor) and index.dtype == torch.bool and simple:
        return place if place is not None and call.of(index) == place and index.dim() > place.axis else LOST
    if place is None or not simple or _tensors(index):
        return LOST
    return place


def _tensors(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(not (part is None or part is Ellipsis or isinstance(part, slice | int)) for part in parts)


def _chooses(call: Call, part: Any) -> bool:
    """Whether a part of an index depends on the batch, or is of a kind that is not looked into here."""
    if isinstance(part, slice):
        return any(call.of(each) is not None for each in (part.start, part.stop, part.step))
    if isinstance(part, torch.Tensor):
        return call.of(part) is not None or part.dtype in _MASKS
    return not (part is None or part is Ellipsis or (isinstance(part, int) and not isinstance(part, bool)))


def _taken(part: Any) -> int:
    return 0 if part is None or part is Ellipsis else 1


def _side_by_side(parts: list[Any]) -> bool:
    at = [number for number, part in enumerate(parts) if isinstance(part, torch.Tensor | int) and part is not None]
    return not at or at == list(range(at[0], at[-1] + 1))
