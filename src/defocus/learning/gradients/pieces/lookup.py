r"""Gradients of an embedding: rows that were looked up.

The gradient of example :math:`i` is :math:`\sum_t e_{k_{it}} g_{it}^\top`. It has at most as many rows as positions, so
that these are written out for the norm: positions that looked up the same row are added up.
"""

from typing import final

import torch

from defocus.learning.gradients.pieces.bounding import TIMES, written_margin
from defocus.learning.gradients.pieces.piece import Piece, Rough, dot, product, squared_norms, wide
from defocus.learning.gradients.regions import Region
from defocus.learning.gradients.tools import Tools

__all__ = ["Lookup"]


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
        flat = self.gradients.to(torch.float64 if length > TIMES else kind).flatten(0, 1)
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
