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
from types import CellType, FunctionType, MethodType
from typing import Any, final

import numpy as np
import torch
from torch.nn import Module, Parameter

from defocus.errors import ChangedModelError, UnfitModelError

__all__ = ["ModelGuard", "Snapshot", "version"]


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
        others = [each for each in self._model.parameters() if not each.requires_grad]
        grads = [each.grad for each in others]
        for each in others:
            each.grad = None
        before = [version(each) for each in self._model.parameters()]
        try:
            yield
            if any(each.grad is not None for each in others):
                raise UnfitModelError(
                    "A frozen parameter got a gradient, which nobody clipped.",
                    fix="do not change requires_grad in forward.",
                )
            if before != [version(each) for each in self._model.parameters()]:
                raise UnfitModelError(
                    "The model changes its own parameters in forward, by what it sees and without noise.",
                    fix="leave out max_norm= of embeddings and the like, or apply it between steps, to all rows.",
                )
        finally:
            for each, grad in zip(others, grads, strict=True):
                each.grad = grad

    def _parts(self) -> dict[str, tuple[int, bool, torch.dtype, torch.device, torch.Size]]:
        return {
            name: (id(each), each.requires_grad, each.dtype, each.device, each.shape)
            for name, each in self._model.named_parameters()
        }

    def _training(self) -> list[tuple[str, tuple[int, bool]]]:
        return [(name, (id(module), module.training)) for name, module in self._model.named_modules()]

    def _reached(self) -> list[int]:
        return [id(each) for group in self._optimizer.param_groups for each in group["params"]]


def _changed(what: str, fix: str) -> ChangedModelError:
    return ChangedModelError(
        f"Since the run was set up, {what}: clipping and noise were arranged for what it was then. Nothing of this step"
        " was released.",
        fix=fix,
    )
