"""What a model holds beside its parameters, noted before a pass and put back after it.

Buffers, attributes of modules, and what is in lists, mappings, sets and queues among them, one level deep. What lies
deeper, or outside of the modules, is not covered.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, final

import torch
from torch.nn import Module, Parameter

__all__ = ["Snapshot", "version"]

_SMALL = 1 << 20
"""Tensors of so many numbers are put back by value; larger ones if they were written to as far as PyTorch knows."""


@final
class Snapshot:
    """A model as it is now; ``before`` is an earlier one, whose copies of large tensors are still good."""

    __slots__ = ("_attributes", "_contents", "_tensors")

    def __init__(self, model: Module, before: "Snapshot | None" = None) -> None:
        self._attributes = [(module, dict(vars(module))) for module in model.modules()]
        held = [value for _, found in self._attributes for value in found.values()]
        self._contents = [(each, _inside(each)) for each in held if isinstance(each, list | dict | set | deque)]
        known = {} if before is None else before._tensors  # noqa: SLF001 -- of its own kind
        self._tensors: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}
        for tensor in _tensors(held, self._contents):
            old = known.get(id(tensor))
            good = old is not None and tensor.numel() > _SMALL and old[0] is tensor and old[1] == version(tensor)
            self._tensors[id(tensor)] = old if old and good else (tensor, version(tensor), tensor.detach().clone())

    def restore(self) -> None:
        """Put everything back. Nothing is written where nothing changed, as in almost every module."""
        for module, found in self._attributes:
            here = vars(module)
            if here.keys() != found.keys() or any(here[name] is not value for name, value in found.items()):
                here.clear()
                here.update(found)
        for container, inside in self._contents:
            now = _inside(container)
            if len(now) != len(inside) or any(one is not other for one, other in zip(now, inside, strict=True)):
                _refill(container, inside)
        with torch.no_grad():
            for key, (tensor, noted, kept) in self._tensors.items():
                if version(tensor) != noted or (tensor.numel() <= _SMALL and not torch.equal(tensor, kept)):
                    tensor.copy_(kept)
                    self._tensors[key] = (tensor, version(tensor), kept)


def version(tensor: torch.Tensor) -> int:
    """How often a tensor was written to."""
    return int(tensor._version)  # noqa: SLF001 -- what autograd itself goes by


def _inside(container: Any) -> list[Any]:
    """What is in a container: of a mapping its keys and values, one after the other."""
    return [each for pair in container.items() for each in pair] if isinstance(container, dict) else list(container)


def _refill(container: Any, inside: list[Any]) -> None:
    container.clear()
    if isinstance(container, dict):
        container.update(zip(inside[::2], inside[1::2], strict=True))
    elif isinstance(container, set):
        container.update(inside)
    else:
        container.extend(inside)


def _tensors(held: list[Any], contents: list[tuple[Any, list[Any]]]) -> Iterator[torch.Tensor]:
    """Tensors that are no parameters, in attributes and in containers."""
    for value in (*held, *(each for _, inside in contents for each in inside)):
        if isinstance(value, torch.Tensor) and not isinstance(value, Parameter):
            yield value
