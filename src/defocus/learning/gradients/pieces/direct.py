"""Gradients that are small enough to be written out: biases, scales, tokens."""

from collections.abc import Sequence
from math import prod
from typing import final

import torch

from defocus.learning.gradients.pieces.piece import Piece, squared_norms, weighted
from defocus.learning.gradients.regions import Region
from defocus.learning.gradients.tools import Tools

__all__ = ["Direct", "Several"]


@final
class Direct(Piece):
    """One gradient for each example, (B, ...)."""

    __slots__ = ("_tools", "_values")

    def __init__(self, region: Region, values: torch.Tensor, tools: Tools | None = None) -> None:
        self.region = region
        self._values, self._tools = values, tools

    @property
    def joins(self) -> bool:
        """Whether the gradients are few, and on a GPU, where many small steps cost more than one large one."""
        return bool(self._values.is_cuda) and self._values.numel() <= 2**21

    def squares(self) -> torch.Tensor:
        """By definition."""
        return squared_norms(self._values) if self._tools is None else self._tools.squared(self._values, squared_norms)

    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """One product of a vector and a matrix."""
        return weighted(factors, self._values)

    def each(self) -> torch.Tensor:
        """What is held."""
        return self._values

    def silence(self, usable: torch.Tensor) -> None:
        """Zeros, never zero times infinity."""
        self._values = torch.where(usable.view(-1, *[1] * (self._values.dim() - 1)), self._values, 0.0)


@final
class Several:
    """Gradients of several parameters side by side in one matrix, (B, all of their numbers)."""

    __slots__ = ("_regions", "_values")

    def __init__(self, pieces: Sequence[Direct]) -> None:
        self._regions = [piece.region for piece in pieces]
        self._values = torch.cat([piece.each().reshape(len(piece.each()), -1) for piece in pieces], 1)

    def squares(self) -> torch.Tensor:
        """Squared norms over all of them."""
        return squared_norms(self._values)

    def totals(self, factors: torch.Tensor) -> list[tuple[Region, torch.Tensor]]:
        """The sums of the gradients, each times its factor, by region."""
        parts = weighted(factors, self._values).split([prod(region.shape) for region in self._regions])
        return [(region, part.view(region.shape)) for region, part in zip(self._regions, parts, strict=True)]

    def silence(self, usable: torch.Tensor) -> None:
        """Zeros, never zero times infinity."""
        self._values = torch.where(usable[:, None], self._values, 0.0)
