r"""Gradients of an embedding: rows that were looked up.

The gradient of example :math:`i` is :math:`\sum_t e_{k_{it}} g_{it}^\top`, so its squared norm is the sum of
:math:`\langle g_{it}, g_{is} \rangle` over the pairs of positions that looked up the same row.
"""

from typing import final

import torch

from defocus.learning.gradients.pieces.bounding import bounded, product_rounding
from defocus.learning.gradients.pieces.piece import Piece, product, squared_norms, wide
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
        """With a margin for rounding."""
        squares = self.bare()
        if self.ids.shape[1] == 1 or not self._tools.margins:
            return squares
        return bounded(squares, self._reach(), self.numbers, products=product_rounding(self.gradients))

    @property
    def numbers(self) -> int:
        """How many numbers a squared norm adds up one after the other."""
        return int(self.region.shape[1] + 2 * self.ids.shape[1] + 2)

    def bare(self) -> torch.Tensor:
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

    def crossed(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        r"""The inner product with the gradients :math:`\sum_s l_{is} r_{is}^\top` of another use of the same table."""
        examples, length = self.ids.shape
        at_rows = left.gather(2, self.ids.unsqueeze(1).expand(examples, left.shape[1], length))
        return (at_rows * product(right, self.gradients.transpose(1, 2))).flatten(1).sum(1)

    def norms(self) -> torch.Tensor:
        """The norms of all gradients, (B, T)."""
        return torch.linalg.vector_norm(self.gradients, dim=2, dtype=wide(self.gradients.dtype))

    def _reach(self) -> torch.Tensor:
        """The sum over the pairs of equal rows of the products of their norms."""
        part = max(1, _PRODUCTS // self.ids.shape[1] ** 2)
        sums = []
        for ids, norms in zip(self.ids.split(part), self.norms().split(part), strict=True):
            pairs = norms.unsqueeze(2) * norms.unsqueeze(1)
            sums.append((pairs * (ids.unsqueeze(2) == ids.unsqueeze(1))).flatten(1).sum(1))
        return torch.cat(sums)

    def _ghost(self) -> torch.Tensor:
        part = max(1, _PRODUCTS // self.ids.shape[1] ** 2)
        sums = []
        for ids, g in zip(self.ids.split(part), self.gradients.split(part), strict=True):
            same = ids.unsqueeze(2) == ids.unsqueeze(1)
            sums.append((product(g, g.transpose(1, 2)) * same).flatten(1).sum(1))
        return torch.cat(sums)
