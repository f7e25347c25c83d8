"""What a backward pass leaves behind: per-example gradients as pieces, their norms, and later their clipped sum."""

from collections import defaultdict
from collections.abc import Mapping
from typing import final

import torch

from defocus.learning.gradients.pieces import Piece, joined
from defocus.learning.gradients.regions import Regions
from defocus.learning.gradients.tools import Tools

__all__ = ["Tape"]


@final
class Tape:
    """Collects the pieces of one batch as the backward pass reaches them.

    ``group_of`` says to which clipping group a parameter belongs. ``several`` names the parameters that the model
    uses more than once: their pieces wait for each other.
    """

    def __init__(self, regions: Regions, group_of: Mapping[str, int], several: frozenset[str], tools: Tools) -> None:
        self.tools = tools
        self._regions, self._group_of, self._several = regions, group_of, several
        self._squares: dict[int, torch.Tensor] = {}
        self._ready: list[Piece] = []
        self._waiting: defaultdict[str, list[Piece]] = defaultdict(list)

    def take(self, piece: Piece) -> None:
        """One more piece; its norm is found now, while its numbers are near, unless it has to wait for others."""
        if piece.region.name in self._several:
            self._waiting[piece.region.name].append(piece)
        else:
            self._measure(piece)

    def norms(self, groups: int, examples: int, device: torch.device) -> torch.Tensor:
        """The norms of all examples, (groups, B), when the backward pass is over."""
        for pieces in self._waiting.values():
            for piece in joined(pieces, self._regions, self.tools):
                self._measure(piece)
        self._waiting.clear()
        self.tools.grams.clear()
        none = torch.zeros(examples, device=device)
        return torch.stack([self._squares.get(group, none) for group in range(groups)]).sqrt_()

    def silence(self, usable: torch.Tensor) -> None:
        """Take the examples that are not usable out of every piece."""
        for piece in self._ready:
            piece.silence(usable)

    def add(self, factors: torch.Tensor) -> None:
        """Add the sums of the gradients times their factors (groups, B) to the parameters; the tape is empty then."""
        for piece in self._ready:
            self._regions.add(piece.region, piece.total(factors[self._group_of[piece.region.name]]))
        self._ready.clear()

    def _measure(self, piece: Piece) -> None:
        squares = piece.squares()
        group = self._group_of[piece.region.name]
        known = self._squares.get(group)
        self._squares[group] = squares if known is None else known.add_(squares)
        self._ready.append(piece)
