"""Which part of which trainable parameter a tensor is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import torch
from torch.nn import Parameter

__all__ = ["Region", "Regions"]


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
