r"""Gradients of an embedding: rows that were looked up.

The gradient of example :math:`i` is :math:`\sum_t e_{k_{it}} g_{it}^\top`, so its squared norm is the sum of
:math:`\langle g_{it}, g_{is} \rangle` over the pairs of positions that looked up the same row.
"""

from typing import final

import torch

from defocus.learning.gradients.pieces.piece import Piece, product, squared_norms
from defocus.learning.gradients.regions import Region
from defocus.learning.gradients.tools import Tools

__all__ = ["Lookup"]

_PRODUCTS = 2**24


@final
class Lookup(Piece):
    """Rows ``ids`` (B, T) of a table, and the gradients (B, T, width) of what was found there."""

    __slots__ = ("_tools", "gradients", "ids")

    def __init__(self, region: Region, ids: torch.Tensor, gradients: torch.Tensor, tools: Tools) -> None:
        self.region = region
        self.ids, self.gradients, self._tools = ids, gradients, tools

    def squares(self) -> torch.Tensor:
        """Pairs of equal rows, or the table written out for each example where that is measured to be faster."""
        if self.ids.shape[1] == 1:
            return squared_norms(self.gradients)
        examples, length = self.ids.shape
        ways = {"ghost": self._ghost}
        if self.region.shape[0] <= 4 * length:
            ways["instantiated"] = lambda: squared_norms(self.each())
        kind = f"{self.gradients.dtype} {self.gradients.device.type}"
        work = f"lookup {examples.bit_length()} {self.region.shape} {length} {kind}"
        return ways[self._tools.choices.pick(work, ways)]()

    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """Scaled rows, added up where they belong."""
        wide = torch.promote_types(self.gradients.dtype, torch.float32)
        scaled = self.gradients.to(wide) * factors.to(wide).view(-1, 1, 1)
        found: torch.Tensor = torch.ops.aten.embedding_dense_backward(scaled, self.ids, self.region.shape[0], -1, False)
        return found

    def each(self) -> torch.Tensor:
        """The table written out for each example."""
        rows, width = self.region.shape
        examples = len(self.ids)
        flat = self.gradients.new_zeros(examples * rows, width)
        places = self.ids + rows * torch.arange(examples, device=self.ids.device).unsqueeze(1)
        flat.index_add_(0, places.flatten(), self.gradients.reshape(-1, width))
        return flat.view(examples, rows, width)

    def silence(self, usable: torch.Tensor) -> None:
        """Zeros, never zero times infinity."""
        self.gradients = torch.where(usable.view(-1, 1, 1), self.gradients, 0.0)

    def crossed(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        r"""The inner product with the gradients :math:`\sum_s l_{is} r_{is}^\top` of another use of the same table."""
        examples, length = self.ids.shape
        at_rows = left.gather(2, self.ids.unsqueeze(1).expand(examples, left.shape[1], length))
        return (at_rows * product(right, self.gradients.transpose(1, 2))).flatten(1).sum(1)

    def _ghost(self) -> torch.Tensor:
        part = max(1, _PRODUCTS // self.ids.shape[1] ** 2)
        sums = []
        for ids, g in zip(self.ids.split(part), self.gradients.split(part), strict=True):
            same = ids.unsqueeze(2) == ids.unsqueeze(1)
            sums.append((product(g, g.transpose(1, 2)) * same).flatten(1).sum(1))
        return torch.cat(sums)
