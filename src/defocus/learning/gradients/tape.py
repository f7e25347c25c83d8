"""What a backward pass leaves behind: per-example gradients as pieces, their norms, and later their clipped sum."""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import final

import torch

from defocus.learning.gradients.layouts import Regions
from defocus.learning.gradients.pieces import Direct, Piece, joined
from defocus.learning.gradients.pieces.direct import Several
from defocus.learning.gradients.pieces.norm_bounds import bounded
from defocus.learning.gradients.pieces.outer import met
from defocus.learning.gradients.pieces.piece import Paired, Rough, Tools

__all__ = ["Tape"]

_PAIRS = 2**25
"""How many products of pairs of positions wait at most until they are looked at together."""


@final
class Tape:
    """Collects the pieces of one batch as the backward pass reaches them.

    ``group_of`` says to which clipping group a parameter belongs. ``several`` names the parameters that the model
    uses more than once: their pieces wait for each other.
    """

    def __init__(self, regions: Regions, group_of: Mapping[str, int], several: frozenset[str], tools: Tools) -> None:
        self.tools = tools
        self._regions, self._group_of, self._several = regions, group_of, several
        self._squares: defaultdict[int, list[torch.Tensor]] = defaultdict(list)
        self._rough: defaultdict[int, list[Rough]] = defaultdict(list)
        self._pairs: defaultdict[tuple[int, torch.Size], list[Paired]] = defaultdict(list)
        self._ready: list[Piece] = []
        self._small: defaultdict[tuple[int, torch.dtype], list[Direct]] = defaultdict(list)
        self._together: list[tuple[int, Several]] = []
        self._derived: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._waiting: defaultdict[str, list[Piece]] = defaultdict(list)

    def take(self, piece: Piece) -> None:
        """One more piece; its norm is found now, while its numbers are near, unless it has to wait for others."""
        with self._wide():
            self._take(piece)

    def _take(self, piece: Piece) -> None:
        if piece.region.name in self._several:
            self._waiting[piece.region.name].append(piece)
        else:
            self._measure(piece)

    def derive(self, weight: torch.Tensor, each: torch.Tensor) -> None:
        """The gradients (B, ...) of something that was computed of parameters alone, to be led back to these."""
        self._derived.append((weight, each))

    def norms(self, groups: int, examples: int, device: torch.device) -> torch.Tensor:
        """The norms of all examples, (groups, B), when the backward pass is over."""
        with self._wide():
            return self._norms(groups, examples, device)

    def _norms(self, groups: int, examples: int, device: torch.device) -> torch.Tensor:
        self._lead_back()
        for pieces in self._waiting.values():
            for piece in joined(pieces, self._regions, self.tools):
                self._measure(piece)
        for (group, _), small in self._small.items():
            several = Several(small)
            self._squares[group].append(several.squares())
            self._together.append((group, several))
        for (group, _), waiting in self._pairs.items():
            if waiting:
                self._meet(group, waiting)
        for group, rough in self._rough.items():
            self._squares[group].append(bounded(rough).sum(0))
        self._rough.clear()
        self._pairs.clear()
        self._waiting.clear()
        self._small.clear()
        self.tools.forget()
        none = torch.zeros(examples, device=device)
        sums = [_summed(self._squares[group]) if self._squares[group] else none for group in range(groups)]
        return torch.stack(sums).clamp_(min=0).sqrt_()

    def _lead_back(self) -> None:
        wanted = self._regions.parameters
        for weight, each in self._derived:
            found = torch.autograd.grad(
                weight, list(wanted.values()), each.to(weight.dtype), retain_graph=True, allow_unused=True,
                is_grads_batched=True,
            )  # fmt: skip
            for name, gradients in zip(wanted, found, strict=True):
                if gradients is not None:
                    self._take(Direct(self._regions.whole(name), gradients))
        self._derived.clear()

    def silence(self, usable: torch.Tensor) -> None:
        """Take the examples that are not usable out of every piece."""
        for piece in self._ready:
            piece.silence(usable)
        for _, several in self._together:
            several.silence(usable)

    def add(self, factors: torch.Tensor) -> None:
        """Add the sums of the gradients times their factors (groups, B) to the parameters; the tape is empty then."""
        with self._wide():
            self._add(factors)

    def _add(self, factors: torch.Tensor) -> None:
        for piece in self._ready:
            self._regions.add(piece.region, piece.total(factors[self._group_of[piece.region.name]]))
        for group, several in self._together:
            for region, total in several.totals(factors[group]):
                self._regions.add(region, total)
        self._ready.clear()
        self._together.clear()
        self.tools.forget()

    def _wide(self) -> AbstractContextManager[None]:
        """Norms and sums are computed as they are written, whatever autocast makes of the model."""
        device = next(iter(self._regions.parameters.values())).device.type
        if not torch.is_autocast_enabled(device):
            return nullcontext()
        found: AbstractContextManager[None] = torch.autocast(device, enabled=False)
        return found

    def _measure(self, piece: Piece) -> None:
        group = self._group_of[piece.region.name]
        if isinstance(piece, Direct) and piece.joins:
            self._small[group, piece.each().dtype].append(piece)
            return
        squares = piece.squares()
        self._ready.append(piece)
        if isinstance(squares, Paired):
            waiting = self._pairs[group, squares.left.shape]
            waiting.append(squares)
            if not squares.left.is_cuda or len(waiting) * squares.left.numel() > _PAIRS:
                self._meet(group, waiting)
        elif isinstance(squares, Rough):
            self._rough[group].append(squares)
        else:
            self._squares[group].append(squares)

    def _meet(self, group: int, waiting: list[Paired]) -> None:
        """Squared norms of several pieces at once."""
        lefts, rights = ([each.left for each in waiting], [each.right for each in waiting])
        squares, reached = met(lefts, rights, max(max(each.features) for each in waiting))
        if not self.tools.margins:
            self._squares[group] += list(squares)
        else:
            for each, square, most in zip(waiting, squares, reached, strict=True):
                self._rough[group].append(Rough(square, most, each.rounding, each.off, each.again))
        waiting.clear()


def _summed(terms: list[torch.Tensor]) -> torch.Tensor:
    """The sums over all terms (B,) of each example."""
    return terms[0] if len(terms) == 1 else torch.stack(terms).sum(0)
