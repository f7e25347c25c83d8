"""Places of what is read from a tensor by an index, and written to it."""

from typing import Any

import torch

from defocus.learning.gradients.places import LOST, Call, LostError, Place

__all__ = ["read", "write"]

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
