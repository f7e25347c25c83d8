"""What a model and a loss hold beside parameters, noted before a pass and put back after it.

Buffers, attributes of modules and of the loss, of plain objects among them and of their own classes, and what functions
among them (the loss, hooks) keep in closures; with whatever is in lists, mappings, sets and queues there. What is kept
under global names, in large arrays or behind an object that another object holds is not covered.
"""

import functools
from collections import deque
from collections.abc import Iterator
from types import CellType, FunctionType, MethodType
from typing import Any, final

import numpy as np
import torch
from torch.nn import Module, Parameter

__all__ = ["Snapshot", "version"]

_SMALL = 1 << 20
"""Tensors of so many numbers are put back by value; larger ones if they were written to as far as PyTorch knows."""
_HOLDERS = (dict, list, set, deque, CellType, type)
_FIXED = (int, float, str, bytes, complex, type(None), torch.device, torch.dtype, Parameter)
_OTHERS = frozenset({"torch", "numpy", "builtins", "defocus", "collections", "functools", "typing", "abc", "enum"})
"""Whose classes are nobody's own."""


@final
class Snapshot:
    """A model and its loss as they are now; ``before`` is an earlier one, whose copies of large tensors are good."""

    __slots__ = ("_arrays", "_contents", "_tensors")

    def __init__(self, model: Module, before: "Snapshot | None" = None, *, loss: Any = None) -> None:
        known = {} if before is None else before._tensors  # noqa: SLF001 -- of its own kind
        self._contents: list[tuple[Any, list[Any]]] = []
        self._arrays: list[tuple[Any, Any]] = []
        self._tensors: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}
        for each in _reached([*model.modules(), loss]):
            if isinstance(each, torch.Tensor):
                old = known.get(id(each))
                good = old is not None and each.numel() > _SMALL and old[0] is each and old[1] == version(each)
                self._tensors[id(each)] = old if old and good else (each, version(each), each.detach().clone())
            elif isinstance(each, np.ndarray):
                self._arrays.append((each, each.copy()))
            else:
                self._contents.append((each, _inside(each)))

    def restore(self) -> None:
        """Put everything back. Nothing is written where nothing changed, as in almost every module."""
        for holder, inside in self._contents:
            now = _inside(holder)
            if len(now) != len(inside) or any(one is not other for one, other in zip(now, inside, strict=True)):
                _refill(holder, inside)
        for array, values in self._arrays:
            np.copyto(array, values)
        with torch.no_grad():
            for key, (tensor, noted, kept) in self._tensors.items():
                if version(tensor) != noted or (tensor.numel() <= _SMALL and not torch.equal(tensor, kept)):
                    tensor.copy_(kept)
                    self._tensors[key] = (tensor, version(tensor), kept)


def version(tensor: torch.Tensor) -> int:
    """How often a tensor was written to."""
    return int(tensor._version)  # noqa: SLF001 -- what autograd itself goes by


def _reached(roots: list[Any]) -> Iterator[Any]:
    """Whatever can hold something of a pass, each once: holders, tensors and arrays."""
    left, seen = [(each, True) for each in roots], set()
    while left:
        each, near = left.pop()
        if isinstance(each, _FIXED) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, torch.Tensor) or (isinstance(each, np.ndarray) and each.size <= _SMALL):
            yield each
        elif isinstance(each, _HOLDERS):
            if not isinstance(each, type) or _own(each):
                yield each
                left += [(inside, near) for inside in _inside(each)]
        else:
            left += _behind(each, near=near)


def _behind(each: Any, *, near: bool) -> list[tuple[Any, bool]]:
    """Where something holds what it holds, and whether objects that are found there are looked into."""
    found: list[Any] = []
    if isinstance(each, Module):
        return [(vars(each), True), *((kind, True) for kind in type(each).__mro__)]
    if isinstance(each, FunctionType):
        found, near = [*(each.__closure__ or ()), vars(each), each.__defaults__, each.__kwdefaults__], False
    elif isinstance(each, MethodType):
        found = [each.__self__, each.__func__]
    elif isinstance(each, functools.partial):
        found = [each.func, each.args, each.keywords]
    elif isinstance(each, tuple):
        found = list(each)
    elif near and _own(type(each)) and hasattr(each, "__dict__"):
        found, near = [vars(each), type(each)], False
    return [(one, near) for one in found]


def _own(kind: type) -> bool:
    """Whether a class is that of a user, who may keep something in it."""
    return kind.__module__.partition(".")[0] not in _OTHERS


def _inside(holder: Any) -> list[Any]:
    """What is in a holder: of a mapping or a class its names and values, one after the other."""
    if isinstance(holder, type):
        return [each for name, value in vars(holder).items() if _kept(name, value) for each in (name, value)]
    if isinstance(holder, CellType):
        try:
            return [holder.cell_contents]
        except ValueError:  # it is empty
            return []
    return [each for pair in holder.items() for each in pair] if isinstance(holder, dict) else list(holder)


def _kept(name: str, value: Any) -> bool:
    """Whether an attribute of a class is one in which something is kept, and no part of its making."""
    return not (name.startswith("__") or callable(value) or hasattr(value, "__get__"))


def _refill(holder: Any, inside: list[Any]) -> None:
    if isinstance(holder, type):
        before = dict(zip(inside[::2], inside[1::2], strict=True))
        for name in _inside(holder)[::2]:
            if name not in before:
                delattr(holder, name)
        for name, value in before.items():
            setattr(holder, name, value)
    elif isinstance(holder, CellType):
        del holder.cell_contents
        for value in inside:
            holder.cell_contents = value
    else:
        holder.clear()
        if isinstance(holder, dict):
            holder.update(zip(inside[::2], inside[1::2], strict=True))
        elif isinstance(holder, set):
            holder.update(inside)
        else:
            holder.extend(inside)
