"""The model guard: refuses a model or an optimizer that changed since it was checked.

What a model and a loss hold beside parameters, noted before a pass and put back after it.

Buffers, attributes of modules and of the loss, of plain objects among them and of their own classes, and what functions
among them (the loss, hooks) keep in closures; with whatever is in lists, mappings, sets and queues there. What is kept
under global names, in large arrays or behind an object that another object holds is not covered.

What stands still while a run goes on: the model, its modes and its optimizer are those that were checked.

Clipping and noise are arranged for the parameters that were trainable at the set-up, and examples were found to be
independent in the modes that modules had then. A parameter that is frozen later would be left with a sum without noise,
one that is unfrozen with gradients that nobody clipped, and batch normalisation that is switched on again would keep
statistics of a batch. So every step looks first, and refuses what has changed.
"""

import functools
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from operator import is_
from types import CellType, FunctionType, MethodType
from typing import Any, final

import numpy as np
import torch
from torch.nn import Module, Parameter

from defocus.errors import ChangedModelError, UnfitModelError

__all__ = ["ModelGuard", "Snapshot", "held", "tensors_in", "version"]


_SMALL = 1 << 20
"""Tensors of so many numbers are put back by value; larger ones if they were written to as far as PyTorch knows."""
_SIZED = (dict, list, set, deque)
_HOLDERS = (*_SIZED, CellType, type)
_FIXED = (int, float, str, bytes, complex, type(None), torch.device, torch.dtype, Parameter)
_OTHERS = frozenset({"torch", "numpy", "builtins", "defocus", "collections", "functools", "typing", "abc", "enum"})
"""Whose classes are nobody's own."""


@final
class Snapshot:
    """A model and its loss as they are now; ``before`` is an earlier one, whose copies of large tensors are good."""

    __slots__ = ("_arrays", "_contents", "_empty", "_tensors")

    def __init__(self, model: Module, before: "Snapshot | None" = None, *, loss: Any = None) -> None:
        earlier = {} if before is None else before._tensors  # noqa: SLF001 -- of its own kind
        self._contents: list[tuple[Any, list[Any]]] = []
        self._arrays: list[tuple[Any, Any]] = []
        self._tensors: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}
        for thing in _reached([*model.modules(), loss]):
            if isinstance(thing, torch.Tensor):
                old = earlier.get(id(thing))
                good = old is not None and thing.numel() > _SMALL and old[0] is thing and old[1] == version(thing)
                self._tensors[id(thing)] = old if old and good else (thing, version(thing), thing.detach().clone())
            elif isinstance(thing, np.ndarray):
                self._arrays.append((thing, thing.copy()))
            else:
                self._contents.append((thing, _inside(thing)))
        self._empty = [thing for thing, inside in self._contents if not inside and isinstance(thing, _SIZED)]

    def holds(self) -> bool:
        """Whether the same objects are still held in the same places, whatever numbers tensors and arrays have."""
        return not any(self._empty) and all(
            (len(holder) * 2 == len(inside) and all(map(is_, holder.values(), inside[1::2])) and _named(holder, inside))
            if type(holder) is dict
            else len(now := _inside(holder)) == len(inside) and all(map(is_, now, inside))
            for holder, inside in self._contents
            if inside or not isinstance(holder, _SIZED)
        )

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


def _named(holder: dict[Any, Any], inside: list[Any]) -> bool:
    return all(map(is_, holder, inside[::2]))


def held(model: Module, loss: Any) -> list[Any]:
    """All that a model and its loss hold, in holders that a snapshot looks into."""
    holders = [thing for thing in _reached([*model.modules(), loss]) if isinstance(thing, _HOLDERS)]
    return [each for holder in holders for each in _inside(holder)]


def tensors_in(model: Module, loss: Any) -> list[torch.Tensor]:
    """All tensors that a model and its loss hold, parameters and buffers among them."""
    found = [*model.parameters(), *_reached([*model.modules(), loss])]
    return [each for each in found if isinstance(each, torch.Tensor) and each.layout is torch.strided]


def version(tensor: torch.Tensor) -> int:
    """How often a tensor was written to."""
    return int(tensor._version)  # noqa: SLF001 -- what autograd itself goes by


def _reached(roots: list[Any]) -> Iterator[Any]:
    """Whatever can hold something of a pass, each once: holders, tensors and arrays."""
    left, seen = [(thing, True) for thing in roots], set()
    while left:
        thing, near = left.pop()
        if isinstance(thing, _FIXED) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor) or (isinstance(thing, np.ndarray) and thing.size <= _SMALL):
            yield thing
        elif isinstance(thing, _HOLDERS):
            if not isinstance(thing, type) or _own(thing):
                yield thing
                left += [(inside, near) for inside in _inside(thing)]
        else:
            left += _behind(thing, near=near)


def _behind(thing: Any, *, near: bool) -> list[tuple[Any, bool]]:
    """Where something holds what it holds, and whether objects that are found there are looked into."""
    inside: list[Any] = []
    if isinstance(thing, Module):
        return [(vars(thing), True), *((kind, True) for kind in type(thing).__mro__)]
    if isinstance(thing, FunctionType):
        inside, near = [*(thing.__closure__ or ()), vars(thing), thing.__defaults__, thing.__kwdefaults__], False
    elif isinstance(thing, MethodType):
        inside = [thing.__self__, thing.__func__]
    elif isinstance(thing, functools.partial):
        inside = [thing.func, thing.args, thing.keywords]
    elif isinstance(thing, tuple):
        inside = list(thing)
    elif near and _own(type(thing)) and hasattr(thing, "__dict__"):
        inside, near = [vars(thing), type(thing)], False
    return [(one, near) for one in inside]


def _own(kind: type) -> bool:
    """Whether a class is that of a user, who may keep something in it."""
    return kind.__module__.partition(".")[0] not in _OTHERS


def _inside(holder: Any) -> list[Any]:
    """What is in a holder: of a mapping or a class its names and values, one after the other."""
    if isinstance(holder, type):
        return [part for name, value in vars(holder).items() if _kept(name, value) for part in (name, value)]
    if isinstance(holder, CellType):
        try:
            return [holder.cell_contents]
        except ValueError:  # it is empty
            return []
    return [part for pair in holder.items() for part in pair] if isinstance(holder, dict) else list(holder)


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


@final
class ModelGuard:
    """A model and its optimizer as they were when they were checked."""

    __slots__ = ("_model", "_modes", "_moved", "_optimizer", "_parameters")

    def __init__(self, model: Module, optimizer: torch.optim.Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        self._parameters, self._modes, self._moved = self._parts(), self._training(), self._reached()

    def check(self) -> None:
        """Refuse a step if something has changed since."""
        now = self._parts()
        for name in [*self._parameters, *now]:
            if self._parameters.get(name) != now.get(name):
                raise _changed(
                    f"the parameter {name} was frozen, unfrozen, exchanged, moved or made anew",
                    "put it back; to train other parameters, make another Trainer, which is charged on its own.",
                )
        if self._training() != self._modes:
            before, after = dict(self._modes), dict(self._training())
            name = next(name for name in [*before, *after] if before.get(name) != after.get(name))
            raise _changed(
                f"the module {name or 'itself'} was switched between train() and eval(), or exchanged",
                "switch it back before the next step, or make the Trainer with every module in the mode that it trains"
                " in.",
            )
        if self._reached() != self._moved:
            raise _changed(
                "the optimizer was given other parameters",
                "give it all of them before the Trainer is made: what is trained is fixed there.",
            )

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Refuse a pass that wrote to a parameter, or left a gradient in one that is not trained."""
        others = [other for other in self._model.parameters() if not other.requires_grad]
        grads = [other.grad for other in others]
        for other in others:
            other.grad = None
        before = [version(other) for other in self._model.parameters()]
        try:
            yield
            if any(other.grad is not None for other in others):
                raise UnfitModelError(
                    "A frozen parameter got a gradient, which nobody clipped.",
                    fix="do not change requires_grad in forward.",
                )
            if before != [version(other) for other in self._model.parameters()]:
                raise UnfitModelError(
                    "The model changes its own parameters in forward, by what it sees and without noise.",
                    fix="leave out max_norm= of embeddings and the like, or apply it between steps, to all rows.",
                )
        finally:
            for other, grad in zip(others, grads, strict=True):
                other.grad = grad

    def _parts(self) -> dict[str, tuple[int, bool, torch.dtype, torch.device, torch.Size]]:
        return {
            name: (id(each), each.requires_grad, each.dtype, each.device, each.shape)
            for name, each in self._model.named_parameters()
        }

    def _training(self) -> list[tuple[str, tuple[int, bool]]]:
        return [(name, (id(module), module.training)) for name, module in self._model.named_modules()]

    def _reached(self) -> list[int]:
        return [id(parameter) for group in self._optimizer.param_groups for parameter in group["params"]]


def _changed(what: str, fix: str) -> ChangedModelError:
    return ChangedModelError(
        f"Since the run was set up, {what}: clipping and noise were arranged for what it was then. Nothing of this step"
        " was released.",
        fix=fix,
    )
