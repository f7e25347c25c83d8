r"""Several uses of the same numbers: tied weights, a layer used twice, overlapping views.

The gradient of an example is the sum over the uses, so its squared norm has cross terms, and adding up squared norms of
the uses would be wrong. Sums of outer products are joined as one longer sum; a table that is looked up and multiplied
(a language model with tied weights) has a cross term of its own; anything else is written out and added.
"""

from collections.abc import Sequence
from typing import final

import torch

from defocus.learning.gradients.layouts import Regions
from defocus.learning.gradients.pieces.direct import Direct, Lookup
from defocus.learning.gradients.pieces.norm_bounds import (
    bounded,
    part_width,
    reach,
    rounding,
    times,
    total_rounding,
    written_margin,
)
from defocus.learning.gradients.pieces.outer import Outer
from defocus.learning.gradients.pieces.piece import Piece, Rough, Tools, product, squared_norms

__all__ = ["Tied", "joined"]


@final
class Tied(Piece):
    """A matrix that is looked up in and multiplied with."""

    __slots__ = ("_lookup", "_outer", "_tools")

    def __init__(self, lookup: Lookup, outer: Outer, tools: Tools) -> None:
        self.region = lookup.region
        self._lookup, self._outer, self._tools = lookup, outer, tools

    def squares(self) -> torch.Tensor | Rough:
        """The squares of both and twice their inner product, or the sums written out."""
        lookup, (left, right) = self._lookup, _long(self._outer)
        features, length = (left.shape[2], right.shape[2]), left.shape[1] + lookup.ids.shape[1]
        width = part_width(length, features, left) if self._tools.margins else max(features)
        if width is None:
            return self._written(torch.arange(len(left), device=left.device), total_rounding(left))
        outer, most = Outer(self.region, left, right, self._tools).ghost(width)
        longest, looked_up = lookup.norms().sum(1), lookup.bare()
        crossed = 2 * lookup.crossed(left, right, width)
        if not self._tools.margins:
            return looked_up + outer + crossed
        squares = (looked_up.sqrt() + lookup.off * longest).square() + outer + crossed
        again = lambda few: bounded([self._written(few, 0.0)])[0]  # noqa: E731 -- one use
        return Rough(squares, longest + most, rounding(features, width, left), total_rounding(left), again)

    def _written(self, few: torch.Tensor, totals: float) -> Rough:
        """Squared norms of some examples, written out one at a time."""
        (left, right), lookup = _long(self._outer), self._lookup
        found, most = [], lookup.norms()[few].sum(1) + reach(left[few], right[few])
        for one in few.split(1):
            total = Lookup(self.region, lookup.ids[one], lookup.gradients[one].double(), self._tools).each()
            found.append(squared_norms(total.add_(product(left[one].transpose(1, 2), right[one], times(left)))))
        return Rough(torch.cat(found), most, off=totals + written_margin(left.shape[1] + 1, left))

    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """The sum of both totals."""
        return self._lookup.total(factors) + self._outer.total(factors)

    def each(self) -> torch.Tensor:
        """The sum of both, written out."""
        return self._lookup.each() + self._outer.each()

    def silence(self, usable: torch.Tensor) -> None:
        """Both."""
        self._lookup.silence(usable)
        self._outer.silence(usable)


def joined(pieces: Sequence[Piece], regions: Regions, tools: Tools) -> list[Piece]:
    """Pieces of one parameter, joined so that no two of them share a number of it."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        touching = [group for group in groups if any(_overlap(piece, other) for other in group)]
        groups = [group for group in groups if all(group is not other for other in touching)]
        groups.append([*(each for group in touching for each in group), piece])
    return [_one(group, regions, tools) for group in groups]


def _one(pieces: list[Piece], regions: Regions, tools: Tools) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    region = pieces[0].region
    if all(piece.region == region for piece in pieces):
        outers = [piece for piece in pieces if isinstance(piece, Outer)]
        lookups = [piece for piece in pieces if isinstance(piece, Lookup)]
        if len(outers) + len(lookups) == len(pieces):
            sides = [_long(piece) for piece in outers]
            if not outers:
                return _lookup(lookups, tools)
            outer = Outer(region, torch.cat([l for l, _ in sides], 1), torch.cat([r for _, r in sides], 1), tools)
            return Tied(_lookup(lookups, tools), outer, tools) if lookups else outer
    else:
        region = regions.whole(region.name)
    return Direct(region, torch.stack([_spread(piece, regions) for piece in pieces]).sum(0))


def _lookup(pieces: list[Lookup], tools: Tools) -> Lookup:
    ids = torch.cat([piece.ids for piece in pieces], 1)
    return Lookup(pieces[0].region, ids, torch.cat([piece.gradients for piece in pieces], 1), tools)


def _long(outer: Outer) -> tuple[torch.Tensor, torch.Tensor]:
    if outer.left.dim() == 2:
        return outer.left.unsqueeze(1), outer.right.unsqueeze(1)
    return outer.left, outer.right


def _overlap(one: Piece, other: Piece) -> bool:
    if one.region == other.region:
        return True
    return bool(torch.isin(one.region.places(), other.region.places()).any())


def _spread(piece: Piece, regions: Regions) -> torch.Tensor:
    """The gradients with respect to the whole parameter, where the piece is a view into it."""
    values, region = piece.each(), piece.region
    whole = regions.whole(region.name)
    if region == whole:
        return values
    parameter = regions.parameters[region.name]
    size = 1 + sum((length - 1) * step for length, step in zip(whole.shape, whole.stride, strict=True))
    flat = values.new_zeros(len(values), size)
    flat[:, region.places().to(values.device)] = values.flatten(1)
    return flat.as_strided((len(values), *parameter.shape), (size, *whole.stride))
