r"""Gradients of the kernel of a convolution.

Unfolded, a convolution is a product of matrices: the gradient of example :math:`i` is :math:`g_i u_i^\top`, where the
columns of :math:`u_i` are the patches that the kernel saw. The patches are copied for a few examples at a time, into a
buffer that stays in the cache, and multiplied at once; in which order of dimensions is measured. Where the gradients
are too large to keep, their norms are ghost norms, or those of gradients that are written out and not kept, and the
clipped sum is one weight gradient of the whole batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod, sqrt
from typing import TypeAlias, final

import torch
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients.layouts import Region
from defocus.learning.gradients.pieces.norm_bounds import (
    bounded,
    convolution_rounding,
    part_width,
    rounding,
    written_margin,
)
from defocus.learning.gradients.pieces.outer import Product, fastest, met
from defocus.learning.gradients.pieces.piece import Piece, Rough, Tools, product, squared_norms, weighted, wide

__all__ = ["Convolution", "Shape"]

_SHORT = 48
"""Numbers side by side of which so many or fewer are dear to copy."""


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """How a kernel moves: stride, padding on both sides and dilation for each dimension of space, and groups."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int


_Way: TypeAlias = Callable[[torch.Tensor, torch.Tensor, Shape, torch.Tensor, Tools], tuple[torch.Tensor, torch.Tensor]]


@final
class Convolution(Piece):
    """The input (B, channels, space...) of a convolution and the gradients (B, outputs, space...) of its output."""

    __slots__ = ("_gradients", "_input", "_kept", "_order", "_shape", "_tools")

    def __init__(
        self, region: Region, inputs: torch.Tensor, gradients: torch.Tensor, shape: Shape, tools: Tools
    ) -> None:
        self.region, self._shape, self._tools = region, shape, tools
        self._input, self._gradients = inputs, gradients
        self._kept: torch.Tensor | None = None
        self._order = "instantiated"

    def squares(self) -> torch.Tensor | Rough:
        """By the way that was fastest for this shape."""
        x, g, shape = self._input, self._gradients, self._shape
        length, weights = prod(g.shape[2:]), prod(self.region.shape)
        ways: dict[str, Callable[[], torch.Tensor]] = {}
        if weights <= (1 if x.is_cuda else 4) * (prod(x.shape[1:]) + prod(g.shape[1:])):  # memory is dear on a GPU
            ways["instantiated"] = lambda: weighted(*self._instantiated(_channels_first))
            if shape.groups == 1:
                ways["instantiated, channels last"] = lambda: weighted(*self._instantiated(_channels_last))
                ways["instantiated, outputs last"] = lambda: weighted(*self._instantiated(_outputs_last))
                ways["instantiated, row by row"] = lambda: weighted(*self._instantiated(_row_by_row))
                if len(shape.kernel) == 2 and shape.kernel[1] * x.shape[1] <= _SHORT:
                    ways["instantiated, columns first"] = lambda: weighted(*self._instantiated(_columns_first))
        moved = prod(shape.kernel) if _moves(x, g, shape) else 1
        features, more = (g.shape[1] // shape.groups, prod(self.region.shape[1:]) // moved), moved - 1
        width = part_width(length, features, x, more) if self._tools.margins else max(features)
        if width is not None and (not ways or length * length <= 4 * weights):
            ways["ghost"] = lambda: self._total(_ghost(x, g, shape, width)[0])
        sizes = f"{tuple(x.shape[1:])} {tuple(self.region.shape)} {shape.stride}"
        work = f"convolution {len(x).bit_length()} {sizes} {x.stride()[1] == 1} {x.dtype} {x.device.type}"
        way = self._tools.choices.pick(work, ways) if ways else "written"
        if way == "written":
            return self._written(torch.arange(len(x), device=x.device), convolution_rounding(x))
        if way == "ghost":
            squares, most = _ghost(x, g, shape, width)
            if not self._tools.margins:
                return squares
            again = lambda few: bounded([self._written(few, 0.0)])[0]  # noqa: E731 -- one use
            off = rounding(features, width or max(features), x, more)
            return Rough(squares, most, off, convolution_rounding(x), again)
        self._order = way
        squares, self._kept = self._instantiated(_ORDERS[way])
        self._input = self._gradients = x.new_empty(0)
        return squares

    def _written(self, few: torch.Tensor, totals: float) -> Rough:
        """Squared norms of some examples, written out one at a time in 64 bits and not kept."""
        shape, found, most = self._shape, [], []
        for one in few.split(1):
            x, g = self._input[one].double(), self._gradients[one].double()
            found.append(
                squared_norms(_channels_first(x, g, shape, x.new_empty(prod(self.region.shape)), self._tools)[1])
            )
            most.append(x.norm() * g.norm())
        often = prod(
            -(-k // s) for k, s in zip(shape.kernel, shape.stride, strict=True)
        )  # a number is in so many patches
        off = totals + written_margin(prod(self._gradients.shape[2:]), self._input)
        return Rough(torch.cat(found), torch.stack(most).to(wide(self._input.dtype)), off=off * sqrt(often))

    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """A product with the kept gradients, or one weight gradient of the whole batch."""
        return self._shaped(weighted(factors, self._kept)) if self._kept is not None else self._total(factors)

    def each(self) -> torch.Tensor:
        """The gradients written out."""
        if self._kept is not None:
            return torch.stack([self._shaped(kept) for kept in self._kept])
        room = self._input.new_empty(len(self._input) * prod(self.region.shape))
        return _channels_first(self._input, self._gradients, self._shape, room, self._tools)[1].view(
            -1, *self.region.shape
        )

    def _instantiated(self, way: _Way) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared norms and gradients, (B, outputs, weights) in the order of the way."""
        x, g = (each.to(wide(each.dtype)) for each in (self._input, self._gradients))
        size = len(x) * prod(self.region.shape)
        return way(x, g, self._shape, self._tools.room(self.region, (size,), x), self._tools)

    def _shaped(self, kept: torch.Tensor) -> torch.Tensor:
        """One kept gradient in the shape of the kernel."""
        if self._order == "instantiated":
            return kept.view(self.region.shape)
        outputs, channels, *kernel = self.region.shape
        if self._order == "instantiated, outputs last":
            return kept.view(*kernel, channels, outputs).movedim((-1, -2), (0, 1))
        if self._order == "instantiated, row by row":
            return kept.view(kernel[0], outputs, *kernel[1:], channels).movedim((1, -1), (0, 1))
        if self._order == "instantiated, columns first":
            return kept.view(outputs, *reversed(kernel), channels).permute(0, 3, 2, 1)
        return kept.view(outputs, *kernel, channels).movedim(-1, 1)

    def silence(self, usable: torch.Tensor) -> None:
        """Input and gradients both, since an infinity in one would turn a zero of the other into no number."""
        if self._kept is not None:
            self._kept = torch.where(usable.view(-1, *[1] * (self._kept.dim() - 1)), self._kept, 0.0)
            return
        mask = usable.view(-1, *[1] * (self._input.dim() - 1))
        self._input = torch.where(mask, self._input, 0.0)
        self._gradients = torch.where(mask, self._gradients, 0.0)

    def _total(self, factors: torch.Tensor) -> torch.Tensor:
        shape, g = self._shape, self._gradients
        wide = torch.promote_types(g.dtype, torch.float32)  # the sum over examples must not be rounded to fewer bits
        scaled = g.to(wide) * factors.to(wide).view(-1, *[1] * (g.dim() - 1))
        x = _padded(self._input, shape).to(wide)
        weight = x.new_empty(self.region.shape)
        space = len(shape.kernel)
        found: torch.Tensor = torch.ops.aten.convolution_backward(
            scaled, x, weight, None, shape.stride, [0] * space, shape.dilation, False, [0] * space, shape.groups,
            (False, True, False),
        )[1]  # fmt: skip
        return found


def _padded(x: torch.Tensor, shape: Shape) -> torch.Tensor:
    sides = [side for pair in reversed(shape.padding) for side in pair]
    return F.pad(x, sides) if any(sides) else x


def _part(x: torch.Tensor, numbers: int) -> int:
    """How many examples are unfolded at a time: a buffer that stays in the cache; on a GPU 64 MB, to keep it busy."""
    return max(1, min(len(x), (2**24 if x.is_cuda else 2**20) // max(1, numbers)))


def _patches(x: torch.Tensor, g: torch.Tensor, shape: Shape) -> torch.Tensor:
    """A view of every patch: (B, channels, kernel..., space...)."""
    x = _padded(x, shape).contiguous()
    example, channel, *space = x.stride()
    kernel = [step * d for step, d in zip(space, shape.dilation, strict=True)]
    moves = [step * s for step, s in zip(space, shape.stride, strict=True)]
    size = (*x.shape[:2], *shape.kernel, *g.shape[2:])
    return x.as_strided(size, (example, channel, *kernel, *moves))


def _channels_first(
    x: torch.Tensor, g: torch.Tensor, shape: Shape, room: torch.Tensor, tools: Tools
) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared norms, and gradients (B, outputs, weights), in the room given."""
    view = _patches(x, g, shape)
    examples, channels = x.shape[:2]
    groups, outputs = shape.groups, g.shape[1]
    length, weights = prod(g.shape[2:]), prod(shape.kernel) * channels // groups
    whole = view.is_contiguous()  # a kernel of one number sees the input as it is
    part = examples if whole else _part(x, channels * prod(shape.kernel) * length)
    buffer = view if whole else view.new_empty(part, *view.shape[1:])
    kept = room.view(examples * groups, outputs // groups, weights)
    norms = x.new_empty(examples)
    g = g.reshape(examples * groups, outputs // groups, length)
    multiply: Product | None = None
    for start in range(0, examples, part):
        n = min(part, examples - start)
        if not whole:
            buffer[:n].copy_(view[start : start + n])
        patches = buffer[:n].view(n * groups, weights, length)
        rows = slice(start * groups, (start + n) * groups)
        sides = g[rows], patches.transpose(1, 2)
        multiply = multiply or fastest(*sides, kept[rows], norms[start : start + n], tools)
        multiply(*sides, kept[rows], norms[start : start + n])
    return norms.square_(), kept.view(examples, outputs, weights)


def _channels_last(
    x: torch.Tensor, g: torch.Tensor, shape: Shape, room: torch.Tensor, tools: Tools, *, turned: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, of one group, through patches (B, space..., kernel..., channels); (B, weights, outputs) if turned."""
    x = _padded(x, shape).movedim(1, -1).contiguous()
    example, *steps, channel = x.stride()
    moves = [step * s for step, s in zip(steps, shape.stride, strict=True)]
    kernel = [step * d for step, d in zip(steps, shape.dilation, strict=True)]
    view = x.as_strided((len(x), *g.shape[2:], *shape.kernel, x.shape[-1]), (example, *moves, *kernel, channel))
    if view.is_contiguous():  # a kernel of one number sees the input as it is
        return _multiplied(view, None, view, g, room=room, tools=tools, turned=turned)
    buffer = tools.room("patches", (_part(x, view[0].numel()), *view.shape[1:]), x)

    def unfold(part: torch.Tensor) -> None:
        buffer[: len(part)].copy_(part)

    return _multiplied(view, unfold, buffer, g, room=room, tools=tools, turned=turned)


def _outputs_last(
    x: torch.Tensor, g: torch.Tensor, shape: Shape, room: torch.Tensor, tools: Tools
) -> tuple[torch.Tensor, torch.Tensor]:
    return _channels_last(x, g, shape, room, tools, turned=True)


def _columns_first(
    x: torch.Tensor, g: torch.Tensor, shape: Shape, room: torch.Tensor, tools: Tools
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, in two dimensions, through patches (B, space, columns, rows, channels) of the kernel.

    They are copied in two steps, first for each row of the output and every column of the input, then for each column
    of the output: the second, which copies most, then finds whole patches side by side, also where channels are few.
    """
    (examples, channels, height, width), (high, wide_) = x.shape, g.shape[2:]
    (above, below), (before, behind) = shape.padding
    size: tuple[int, ...] = (examples, before + width + behind, above + height + below, channels)
    turned = tools.room("turned", size, x).zero_()
    turned[:, before : before + width, above : above + height].copy_(x.permute(0, 3, 2, 1))
    example, column, row, _ = turned.stride()
    (down, right), (lower, further), (rows, columns) = shape.stride, shape.dilation, shape.kernel
    size = (examples, high, turned.shape[1], rows, channels)
    view = turned.as_strided(size, (example, down * row, column, lower * row, 1))
    run = rows * channels
    part = _part(x, high * wide_ * columns * run)
    first = tools.room("columns", (part, *size[1:]), x)
    strides = (first.stride(0), first.stride(1), right * run, further * run, 1)
    second = first.as_strided((part, high, wide_, columns, run), strides)
    buffer = tools.room("patches", tuple(second.shape), x)

    def unfold(part: torch.Tensor) -> None:
        first[: len(part)].copy_(part)
        buffer[: len(part)].copy_(second[: len(part)])

    return _multiplied(view, unfold, buffer, g, room=room, tools=tools)


def _row_by_row(
    x: torch.Tensor, g: torch.Tensor, shape: Shape, room: torch.Tensor, tools: Tools
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, of one group, for one row of the kernel at a time; (B, rows of the kernel, outputs, others).

    What one row of the kernel sees is unfolded once, as (B, bands, rows of the input, columns..., columns of the
    kernel..., channels): the other rows of the kernel see the same some rows further down. Where the kernel passes over
    rows, those with the same remainder stand together.
    """
    (rows, *kernel), (step, *strides), (spread, *dilation) = shape.kernel, shape.stride, shape.dilation
    examples, channels, height, *width = x.shape
    outputs, high, length = g.shape[1], g.shape[2], prod(g.shape[3:])
    starts = [r * spread // step for r in range(rows)]
    (above, _), *sides = shape.padding
    tall = max(-(-(above + height) // step), starts[-1] + high) * step
    size: tuple[int, ...] = (examples, tall, *(a + w + b for w, (a, b) in zip(width, sides, strict=True)), channels)
    inside = (slice(above, above + height), *(slice(a, a + w) for w, (a, _) in zip(width, sides, strict=True)))
    padded = tools.room("padded", size, x).zero_()
    padded[(slice(None), *inside)].copy_(x.movedim(1, -1))
    bands = _bands(high, length, (examples, outputs, prod(kernel) * channels), x)
    example, row, *steps, channel = padded.stride()
    remainders = sorted({r * spread % step for r in range(rows)})
    size = (examples, bands, starts[-1] + high // bands, *g.shape[3:], *kernel, channels)
    moves = [n * s for n, s in zip(steps, strides, strict=True)], [n * d for n, d in zip(steps, dilation, strict=True)]
    strided = (example, high // bands * step * row, step * row, *moves[0], *moves[1], channel)
    views = [padded.as_strided(size, strided, padded.storage_offset() + each * row) for each in remainders]
    part = _part(x, len(remainders) * prod(size[1:]))
    buffer = tools.room("patches", (part, bands, len(remainders), *size[2:]), x)
    g = g.movedim(1, -1).reshape(examples * bands, -1, outputs).transpose(1, 2)
    kept = room.view(examples, rows, outputs, -1)
    found = kept if bands == 1 else x.new_empty(examples * bands, *kept.shape[1:])
    for start in range(0, examples, part):
        n = min(part, examples - start)
        for place, view in enumerate(views):
            buffer[:n, :, place].copy_(view[start : start + n])
        patches = buffer[:n].view(n * bands, len(remainders), size[2] * length, -1)
        some = slice(start * bands, (start + n) * bands)
        for r, begin in enumerate(starts):
            seen = patches[:, remainders.index(r * spread % step), begin * length :][:, : high // bands * length]
            torch.bmm(g[some], seen, out=found[some, r])
    if bands > 1:
        torch.sum(found.view(examples, bands, *kept.shape[1:]), 1, out=kept)
    return torch.linalg.vector_norm(kept.flatten(1), dim=1).square_(), kept


def _bands(high: int, length: int, sides: tuple[int, int, int], like: torch.Tensor) -> int:
    """Into how many bands of rows products of so many examples, outputs and weights are parted, each made by itself.

    A GPU has more units than there are tiles in products of small sides, each of which adds up many positions.
    """
    tiles = sides[0] * -(-sides[1] // 64) * -(-sides[2] // 64)
    fit = (m for m in (8, 7, 4, 2) if high % m == 0 and high // m * length >= 256 and m * tiles <= 1024)
    return next(fit, 1) if like.is_cuda else 1


def _multiplied(
    view: torch.Tensor,
    unfold: Callable[[torch.Tensor], None] | None,
    buffer: torch.Tensor,
    g: torch.Tensor,
    *,
    room: torch.Tensor,
    tools: Tools,
    turned: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared norms and gradients, where parts of a view are unfolded into patches (part, space..., weights...)."""
    examples, outputs, length, part = len(g), g.shape[1], prod(g.shape[2:]), len(buffer)
    last = g.movedim(1, -1)
    g = last.reshape(examples, length, -1) if last.is_contiguous() else g.flatten(2).transpose(1, 2)
    patches = buffer.view(part, length, -1)
    weights = patches.shape[2]
    kept = room.view(examples, *((weights, outputs) if turned else (outputs, weights)))
    norms = buffer.new_empty(examples)
    parts = zip(view.split(part), g.split(part), kept.split(part), norms.split(part), strict=True)
    multiply: Product | None = None
    for some, gradients, found, lengths in parts:
        if unfold is not None:
            unfold(some)
        few = patches[: len(some)]
        sides = (few.transpose(1, 2), gradients) if turned else (gradients.transpose(1, 2), few)
        multiply = multiply or fastest(*sides, found, lengths, tools)
        multiply(*sides, found, lengths)
    return norms.square_(), kept


_ORDERS: dict[str, _Way] = {
    "instantiated": _channels_first,
    "instantiated, channels last": _channels_last,
    "instantiated, outputs last": _outputs_last,
    "instantiated, columns first": _columns_first,
    "instantiated, row by row": _row_by_row,
}


def _ghost(x: torch.Tensor, g: torch.Tensor, shape: Shape, width: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared norms from products of pairs of positions, group by group, and what norms would be at most."""
    groups, channels, length = shape.groups, x.shape[1] * prod(shape.kernel), prod(g.shape[2:])
    met_ = _met_moved if _moves(x, g, shape) else _met_unfolded
    part = _part(x, channels * length)
    sums, most = [], []
    for some, gradients in zip(x.split(part), g.split(part), strict=True):
        n = len(some)
        grads = gradients.reshape(n * groups, -1, length)
        sides = [met_(some, gradients, shape, width), product(grads.transpose(1, 2), grads, width)]
        squares, reached = met(sides[:1], sides[1:], max(channels // groups, grads.shape[1]))
        sums.append(squares.view(n, -1).sum(1))
        most.append(reached.square().view(n, -1).sum(1).sqrt())
    return torch.cat(sums), torch.cat(most)


def _moves(x: torch.Tensor, g: torch.Tensor, shape: Shape) -> bool:
    """Whether products of pairs of positions are fewer than the numbers of all patches."""
    places = prod(n + sum(sides) for n, sides in zip(x.shape[2:], shape.padding, strict=True))
    return bool(shape.groups * places**2 <= x.shape[1] * prod(shape.kernel) * prod(g.shape[2:]))


def _met_unfolded(x: torch.Tensor, g: torch.Tensor, shape: Shape, width: int | None) -> torch.Tensor:
    """Products of pairs of patches (B * groups, positions, positions)."""
    patches = _patches(x, g, shape).reshape(len(x) * shape.groups, -1, prod(g.shape[2:]))
    return product(patches.transpose(1, 2), patches, width)


def _met_moved(x: torch.Tensor, g: torch.Tensor, shape: Shape, width: int | None) -> torch.Tensor:
    """The same as sums of products of pairs of positions that are moved together: patches need not be copied."""
    x = _padded(x, shape)
    places, length = x.shape[2:], prod(g.shape[2:])
    flat = x.reshape(len(x) * shape.groups, -1, prod(places))
    found = product(flat.transpose(1, 2), flat, width).view(-1, *places, *places)
    example, *steps = found.stride()
    moves = [step * s for step, s in zip(steps, shape.stride * 2, strict=True)]
    half = len(places)
    kernel = [(a + b) * d for a, b, d in zip(steps[:half], steps[half:], shape.dilation, strict=True)]
    size = (len(flat), *g.shape[2:], *g.shape[2:], *shape.kernel)
    moved = found.as_strided(size, (example, *moves, *kernel))
    return moved.sum(tuple(range(-half, 0))).view(-1, length, length)
