r"""Gradients of a matrix that multiplies: sums of outer products.

The gradient of example :math:`i` is :math:`\sum_t l_{it} r_{it}^\top`. Its squared norm is
:math:`\sum_{t,s} \langle l_{it}, l_{is}\rangle \langle r_{it}, r_{is}\rangle` (the ghost norm), which needs two
matrices of products of size :math:`T \times T` and never the gradient itself; or the gradient is written out, and
kept for the clipped sum. Which of the two costs less depends on the shape and the machine, and is measured. Sequences
too long for exact ghost norms are written out in any case, in parts that are not kept where they are too large.

Reference:
    Goodfellow (2015), arXiv 1510.01799, for T = 1; Li, Tramèr, Liang, Hashimoto (2022), arXiv 2110.05679, for the ghost
    norm; Bu, Wang, Zha, Karypis (2023), arXiv 2210.00038, for keeping both factors until the clipping is known.

Products of many small matrices, and their norms, while these are in the cache.

Libraries are made for large matrices and differ by half in small ones, so that which is faster is measured: torch's, or
numpy's, which comes with another one.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import TypeAlias, final

import numpy as np
import torch

from defocus.learning.gradients.layouts import Region
from defocus.learning.gradients.pieces.norm_bounds import (
    bounded,
    part_width,
    reach,
    rounding,
    total_rounding,
    written,
    written_margin,
)
from defocus.learning.gradients.pieces.piece import (
    Paired,
    Piece,
    Rough,
    Tools,
    added,
    matrix,
    pairs,
    product,
    squared_norms,
    weighted,
)

__all__ = ["FAINT", "Outer", "Product", "fastest", "met"]


FAINT = 2.0**-125
"""How much of the square of one number, or of a product of two, may vanish below the least float of 32 bits.

A side whose squares vanish may still meet one whose squares are huge: without this, such a gradient would have no norm.
"""
_PRODUCTS = 2**24
"""How many products of pairs of positions are held at a time."""


@final
class Outer(Piece):
    """The factors of the gradients: ``left`` (B, T, rows) and ``right`` (B, T, columns), or (B, rows), (B, columns)."""

    __slots__ = ("_kept", "_tools", "_turned", "left", "right")

    def __init__(self, region: Region, left: torch.Tensor, right: torch.Tensor, tools: Tools) -> None:
        self.region = region
        self.left, self.right, self._tools = left, right, tools
        self._kept: torch.Tensor | None = None
        self._turned = left.shape[-1] > right.shape[-1]

    def squares(self) -> torch.Tensor | Rough | Paired:
        """By the way that was fastest for this shape, with a margin for rounding unless the gradients are kept."""
        left, right = self.left, self.right
        if left.dim() == 2 or left.shape[1] == 1:
            inputs = self._tools.squared(right, squared_norms) + FAINT * right.shape[-1]
            outputs = self._tools.squared(left, squared_norms)  # in this order: the last are asked for again
            return inputs * (outputs + FAINT * left.shape[-1])
        examples, length, rows = left.shape
        columns = right.shape[2]
        ways = {"ghost": self._rehearse_ghost} if self.width is not None else {}
        if 2 * rows * columns <= (1 if left.is_cuda else 8) * length * (rows + columns):  # memory is dear on a GPU
            ways["instantiated"] = self._rehearse_instantiated
        work = f"outer {examples.bit_length()} {length}x{rows}x{columns} {left.dtype} {left.device.type}"
        way = self._tools.choices.pick(work, ways) if ways else "written"
        if way == "instantiated":
            squares, self._kept = self._instantiated()
            self.left = self.right = left.new_empty(examples, 0)
            return squares
        if way == "written":
            return self._written(slice(None), total_rounding(left))
        features, width = (rows, columns), self.width
        again = lambda few: bounded([self._written(few, 0.0)])[0]  # noqa: E731 -- one use
        squares, totals = 0.0, 0.0
        if self._tools.margins:
            squares, totals = rounding(features, width or max(features), left), total_rounding(left)
        if examples * length * length <= _PRODUCTS:
            return Paired(self._gram(left, width), self._gram(right, width), features, squares, totals, again)
        found, most = self.ghost(width)
        return Rough(found, most, squares, totals, again)

    def _written(self, few: slice | torch.Tensor, totals: float) -> Rough:
        left, right = self.left[few], self.right[few]
        off = totals + written_margin(left.shape[1], left)
        return Rough(written(left, right), reach(left, right), off=off)

    @property
    def width(self) -> int | None:
        """Of how many features the products of pairs are made at a time; None for sequences too long for them."""
        features: tuple[int, ...] = (self.left.shape[-1], self.right.shape[-1])
        if not self._tools.margins:
            return max(features)
        return part_width(self.left.shape[1] if self.left.dim() == 3 else 1, features, self.left)

    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """One matrix product for the whole batch; the factors go to whichever side is smaller."""
        if self._kept is not None:
            total = weighted(factors, self._kept)
            return total.t() if self._turned else total
        left, right = self.left, self.right
        scale = factors.view(-1, *[1] * (left.dim() - 1))
        if left.shape[-1] < right.shape[-1]:
            left = self._tools.scaled(left, scale)
        else:
            right = self._tools.scaled(right, scale)
        return matrix(left.reshape(-1, left.shape[-1]).t(), right.reshape(-1, right.shape[-1]))

    def each(self) -> torch.Tensor:
        """The gradients written out."""
        if self._kept is not None:
            return self._kept.transpose(1, 2) if self._turned else self._kept
        if self.left.dim() == 2:
            return self.left.unsqueeze(2) * self.right.unsqueeze(1)
        return product(self.left.transpose(1, 2), self.right)

    def silence(self, usable: torch.Tensor) -> None:
        """Both factors, since the other one's infinity would turn a zero into no number."""
        if self._kept is not None:
            self._kept = torch.where(usable.view(-1, 1, 1), self._kept, 0.0)
            return
        mask = usable.view(-1, *[1] * (self.left.dim() - 1))
        self.left, self.right = torch.where(mask, self.left, 0.0), torch.where(mask, self.right, 0.0)

    def ghost(self, width: int | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared norms from products of pairs of positions, made of parts of so many features, and the reach."""
        length = self.left.shape[1]
        part = max(1, _PRODUCTS // (length * length))
        most = max(self.left.shape[2], self.right.shape[2])
        found = [
            met([self._gram(l, width)], [self._gram(r, width)], most)
            for l, r in zip(self.left.split(part), self.right.split(part), strict=True)
        ]
        return torch.cat([squares[0] for squares, _ in found]), torch.cat([reached[0] for _, reached in found])

    def _gram(self, side: torch.Tensor, width: int | None) -> torch.Tensor:
        """Products of pairs; the last are remembered, because several layers often share their input."""
        key = (side.data_ptr(), side._version, *side.shape, *side.stride(), min(width or 0, side.shape[2]))  # noqa: SLF001 -- its only name
        known = self._tools.grams.get(key)
        if known is None:
            known = (pairs(side, width), side)
            while len(self._tools.grams) >= 2:
                del self._tools.grams[next(iter(self._tools.grams))]
            self._tools.grams[key] = known
        return known[0]

    def _rehearse_ghost(self) -> torch.Tensor:
        self._tools.forget()
        return self.total(self.ghost(self.width)[1])

    def _rehearse_instantiated(self) -> torch.Tensor:
        squares, kept = self._instantiated()
        return weighted(squares, kept)

    def _instantiated(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared norms and gradients, the longer side last, which processors multiply faster."""
        first, second = self.left.transpose(1, 2), self.right
        if self._turned:
            first, second = self.right.transpose(1, 2), self.left
        if first.dtype != torch.float32 or first.is_cuda:
            kept = product(first, second)
        else:
            kept = self._tools.room(self.region, (len(first), first.shape[1], second.shape[2]), first)
            torch.bmm(first, second, out=kept)
        return squared_norms(kept), kept


def met(
    lefts: Sequence[torch.Tensor], rights: Sequence[torch.Tensor], features: int
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Squared norms and reaches (pieces, B) out of matrices of products of pairs: norms are on their diagonals.

    Many pieces are looked at together, because on a GPU many small steps cost more than one large one.
    Products of pairs lose up to a faint :math:`f` of each feature, of which there are at most so many. What that loses
    of a squared norm is at most :math:`f (\sum_t \|r_t\| + \sum_t \|l_t\|)^2`, and is added to it.
    """
    faint = FAINT * features
    first, second = (
        torch.stack([side.diagonal(dim1=1, dim2=2) for side in sides]).add_(faint).sqrt_() for sides in (lefts, rights)
    )
    lost = (first.sum(2) + second.sum(2)) * sqrt(faint)
    products = torch._foreach_mul(lefts, rights)  # noqa: SLF001 -- few kernels for all
    together = products[0].unsqueeze(0) if len(products) == 1 else torch.stack(products)
    return added(together.flatten(2)) + lost.square_(), (first * second).sum(2)


Product: TypeAlias = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], None]
"""From two tensors (B, n, m) and (B, m, k), and room for their product (B, n, k) and its norms, of one or more of B."""

_SMALL = 2**18
"""Products of no more multiplications are made by one thread, whatever the library."""


def _by_torch(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor, norms: torch.Tensor) -> None:
    torch.bmm(a, b, out=product)
    torch.linalg.vector_norm(product.view(len(norms), -1), dim=1, out=norms)


def _by_numpy(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor, norms: torch.Tensor) -> None:
    with np.errstate(all="ignore"):  # what is not finite is found later, and told to nobody
        found = np.matmul(a.numpy(), b.numpy(), out=product.numpy()).reshape(len(norms), -1)
        np.sqrt(np.vecdot(found, found), out=norms.numpy())


def fastest(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor, norms: torch.Tensor, tools: Tools) -> Product:
    """Which way is faster for matrices of this shape and order."""
    ways: dict[str, Product] = {"torch": _by_torch}
    if a.device.type == "cpu" and a[0].numel() * b.shape[2] <= _SMALL:
        ways["numpy"] = _by_numpy
    shapes = f"{tuple(a.shape[1:])}x{b.shape[2]} {a.stride(2) == 1} {b.stride(2) == 1}"
    work = f"small products {shapes} {a.dtype} {a.device.type}"
    rehearsals = {name: lambda way=way: way(a, b, product, norms) for name, way in ways.items()}
    return ways[tools.choices.pick(work, rehearsals)]
