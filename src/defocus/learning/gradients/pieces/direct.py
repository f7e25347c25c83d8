"""Gradients that are small enough to be written out: biases, scales, tokens."""

from typing import final

import torch

from defocus.learning.gradients.pieces.piece import Piece, squared_norms, weighted
from defocus.learning.gradients.regions import Region

__all__ = ["Direct"]


@final
class Direct(Piece):
    """One gradient for each example, (B, ...)."""

    __slots__ = ("_values",)

    def __init__(self, region: Region, values: torch.Tensor) -> None:
        self.region = region
        self._values = values

    def squares(self) -> torch.Tensor:
        """By definition."""
        return squared_norms(self._values)

    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """One product of a vector and a matrix."""
        return weighted(factors, self._values)

    def each(self) -> torch.Tensor:
        """What is held."""
        return self._values

    def silence(self, usable: torch.Tensor) -> None:
        """Zeros, never zero times infinity."""
        self._values = torch.where(usable.view(-1, *[1] * (self._values.dim() - 1)), self._values, 0.0)
