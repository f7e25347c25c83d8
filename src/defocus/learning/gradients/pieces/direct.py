r"""Gradients that are small enough to be written out: biases, scales, tokens.

The gradient of example :math:`i` is :math:`\sum_t e_{k_{it}} g_{it}^\top`. It has at most as many rows as positions, so
that these are written out for the norm: positions that looked up the same row are added up.
"""

from collections.abc import Sequence
from math import prod
from typing import final

import torch

from defocus.learning.gradients.layouts import Region
from defocus.learning.gradients.pieces.norm_bounds import times, written_margin
from defocus.learning.gradients.pieces.piece import Piece, Rough, Tools, dot, product, squared_norms, weighted, wide

__all__ = ["Direct", "Lookup", "Several"]


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


@final
class Lookup(Piece):
    """Rows ``ids`` (B, T) of a table, and the gradients (B, T, width) of what was found there."""

    __slots__ = ("_tools", "gradients", "ids")

    def __init__(self, region: Region, ids: torch.Tensor, gradients: torch.Tensor, tools: Tools) -> None:
        self.region = region
        self.ids, self.gradients, self._tools = ids, gradients, tools

    def squares(self) -> torch.Tensor | Rough:
        """Those of the rows that were looked up."""
        squares = self.bare()
        if self.ids.shape[1] == 1 or not self._tools.margins:
            return squares
        return Rough(squares, self.norms().sum(1), off=self.off)

    def bare(self) -> torch.Tensor:
        """The squares as they come out; many positions are added up in 64 bits."""
        examples, length = self.ids.shape
        if length == 1:
            return squared_norms(self.gradients)
        kind = wide(self.gradients.dtype)
        order = self.ids.sort(1)
        number = (order.values.diff(dim=1) != 0).cumsum(1)
        rows = torch.zeros_like(self.ids).scatter_(1, order.indices[:, 1:], number)
        rows += length * torch.arange(examples, device=rows.device).unsqueeze(1)
        flat = self.gradients.to(torch.float64 if length > times(self.gradients) else kind).flatten(0, 1)
        found = torch.ops.aten.embedding_dense_backward(flat, rows.flatten(), examples * length, -1, False)
        return squared_norms(found.view(examples, length, -1)).to(kind)

    @property
    def off(self) -> float:
        """How far rounding may move the rows that are added up, relative to the sum of the norms of all."""
        return written_margin(self.ids.shape[1], self.gradients)

    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """Scaled rows, added up where they belong."""
        kind = wide(self.gradients.dtype)
        scaled = self.gradients.to(kind) * factors.to(kind).view(-1, 1, 1)
        found: torch.Tensor = torch.ops.aten.embedding_dense_backward(scaled, self.ids, self.region.shape[0], -1, False)
        return found

    def each(self) -> torch.Tensor:
        """The table written out for each example, in at least 32 bits."""
        rows, width = self.region.shape
        examples = len(self.ids)
        gradients = self.gradients.to(wide(self.gradients.dtype))
        flat = gradients.new_zeros(examples * rows, width)
        places = self.ids + rows * torch.arange(examples, device=self.ids.device).unsqueeze(1)
        flat.index_add_(0, places.flatten(), gradients.reshape(-1, width))
        return flat.view(examples, rows, width)

    def silence(self, usable: torch.Tensor) -> None:
        """Zeros, never zero times infinity."""
        self.gradients = torch.where(usable.view(-1, 1, 1), self.gradients, 0.0)

    def crossed(self, left: torch.Tensor, right: torch.Tensor, width: int | None) -> torch.Tensor:
        r"""The inner product with the gradients :math:`\sum_s l_{is} r_{is}^\top` of another use of the same table."""
        examples, length = self.ids.shape
        at_rows = left.gather(2, self.ids.unsqueeze(1).expand(examples, left.shape[1], length))
        return dot(at_rows, product(right, self.gradients.transpose(1, 2), width))

    def norms(self) -> torch.Tensor:
        """The norms of all gradients, (B, T)."""
        return torch.linalg.vector_norm(self.gradients, dim=2, dtype=wide(self.gradients.dtype))
