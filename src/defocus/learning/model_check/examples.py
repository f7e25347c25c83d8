"""Examples that are made up: of the shapes and types of the data, and none of its values."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as trees

from defocus.errors import UnfitModelError
from defocus.learning.gradients.layouts import Batch, size
from defocus.learning.noise import Stream

__all__ = ["exchanged", "extremes", "families", "given_up", "ignoring", "made_up", "nearby", "told"]


def made_up(one: Batch, rows: int, stream: Stream) -> Batch:
    """Examples of the shapes and types of ``one``, with values that have nothing to do with the data.

    Floats are uniform on [-1, 1), whole numbers 0 or 1, which every vocabulary has.
    """

    def filled(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        shape = (rows, *leaf.shape[1:])
        total = int(torch.Size(shape).numel())
        words = torch.from_numpy((stream.words(total) >> 32).astype("int64")).view(shape)
        if leaf.dtype.is_floating_point:
            return (words.double() / 2**31 - 1).to(leaf.device, leaf.dtype)
        return (words % 2).to(leaf.device, leaf.dtype)

    found: Batch = trees.tree_map(filled, tuple(one))
    return found


def exchanged(one: Batch, rows: int, stream: Stream) -> Batch:
    """So many synthetic examples, and after them as many that differ from each of them in every number."""
    first, second = made_up(one, rows, stream), made_up(one, rows, stream)

    def both(a: Any, b: Any) -> Any:
        if not isinstance(a, torch.Tensor):
            return a
        return torch.cat([a, b if a.dtype.is_floating_point else a.logical_not().to(a.dtype)])

    found: Batch = trees.tree_map(both, first, second)
    return found


def told(probe: Batch, rows: int, device: torch.device) -> Batch:
    """The same out of examples that a user made up."""
    if size(probe) < 2 * rows:
        raise UnfitModelError(
            f"probe= has {size(probe)} examples, too few to exchange the neighbours of one.",
            fix=f"pass at least {2 * rows} synthetic examples that differ.",
        )
    leaves = [leaf for leaf in trees.tree_leaves(tuple(probe)) if isinstance(leaf, torch.Tensor)]
    differ = [(leaf[:rows] != leaf[rows : 2 * rows]).reshape(rows, -1).any(1).cpu() for leaf in leaves]
    if not bool(torch.stack(differ).any(0).all()):
        raise UnfitModelError(
            "Examples of probe= are alike, so that exchanging them shows nothing.",
            fix=f"pass at least {2 * rows} synthetic examples that differ.",
        )
    found: Batch = trees.tree_map(
        lambda leaf: leaf[: 2 * rows].to(device) if isinstance(leaf, torch.Tensor) else leaf, tuple(probe)
    )
    return found


def ignoring(batch: Batch, ignored: int) -> Batch:
    """The same examples, where every other whole number of the first ones' targets is one that a loss ignores."""

    def marked(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.dtype.is_floating_point or leaf.dtype == torch.bool:
            return leaf
        flat = leaf.reshape(-1).clone()
        flat[1 : len(flat) // 2 : 2] = ignored
        return flat.view(leaf.shape)

    return batch[0], trees.tree_map(marked, batch[1])


def given_up(batch: Batch, start: int) -> Batch | None:
    """The same examples, where the inputs of those from ``start`` on are not numbers; None if none is of floats."""
    leaves = [leaf for leaf in trees.tree_leaves(batch[0]) if isinstance(leaf, torch.Tensor)]
    if not any(leaf.dtype.is_floating_point for leaf in leaves):
        return None

    def lost(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.dtype.is_floating_point:
            return leaf
        return torch.cat([leaf[:start], torch.full_like(leaf[start:], torch.nan)])

    return trees.tree_map(lost, batch[0]), batch[1]


_ROWS = 2
_SCALES = {"small": 1e-3, "ten": 10.0, "large": 1e3, "huge": 1e6}
_NAMES = (*_SCALES, "constant", "negative", "positive", "heavy tails", "one large number", "large targets")
_EXTREMES = (0.0, 1e-30, 1e-6, -1.0, 1e3, -1e3, 1e6, -1e6, 1e12, 1e30, -1e30, math.inf, -math.inf, math.nan)
_WIDE = 256
"""How many whole numbers are tried where nothing tells how many there are."""


def families(one: Batch, stream: Stream, bounds: Mapping[int, int]) -> Iterator[tuple[Batch, ...]]:
    """Two examples of each family; where whole numbers may be too large for a model, once more with 0 and 1.

    ``bounds`` tells, by the number of a leaf, below what its whole numbers must be.
    """
    last = len(trees.tree_leaves(one[0]))
    for number, name in enumerate(_NAMES):
        even = made_up(one, _ROWS, stream)
        leaves, shape = trees.tree_flatten(even)
        found = []
        for limit in (None, 2):
            made = [
                _filled(leaf, name, number, limit or bounds.get(at, _WIDE), stream, target=at >= last)
                for at, leaf in enumerate(leaves)
            ]
            batch: Batch = trees.tree_unflatten(made, shape)
            found.append(batch)
        yield tuple(found)


def extremes(batch: Batch) -> Iterator[Batch]:
    """The same examples with floats from next to nothing to beyond all numbers, of either sign."""
    for factor in _EXTREMES:

        def moved(leaf: Any, by: float = factor) -> Any:
            there = isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point
            return leaf.abs() * by if there else leaf

        found: Batch = trees.tree_map(moved, tuple(batch))
        yield found


def nearby(batch: Batch, by: float) -> Batch:
    """The same examples, where floats are off by a relative ``by``, as by rounding."""

    def moved(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.dtype.is_floating_point:
            return leaf
        signs = 1 - 2 * (torch.arange(leaf.numel(), device=leaf.device) * 7 % 3 % 2).view(leaf.shape).to(leaf.dtype)
        return leaf * (1 + by * signs)

    found: Batch = trees.tree_map(moved, tuple(batch))
    return found


def _filled(leaf: Any, name: str, number: int, below: int, stream: Stream, *, target: bool) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if leaf.dtype.is_floating_point:
        if target:
            return leaf * 1e3 if name == "large targets" else leaf
        return _floats(leaf, name)
    words = torch.from_numpy((stream.words(leaf.numel()) >> 32).astype("int64")).view(leaf.shape)
    return _wholes(words, number, 2 if leaf.dtype == torch.bool else below, target=target).to(leaf.device, leaf.dtype)


def _floats(even: torch.Tensor, name: str) -> torch.Tensor:
    """Out of numbers that are even on [-1, 1)."""
    made = even * _SCALES.get(name, 1.0)
    match name:
        case "constant":
            made = (4 * even.reshape(_ROWS, -1)[:, 0]).view(_ROWS, *[1] * (even.dim() - 1)).expand_as(even).clone()
        case "negative":
            made = -4 * even.abs() - 0.1
        case "positive":
            made = 4 * even.abs() + 0.1
        case "heavy tails":
            made = torch.tan(1.56 * even)
        case "one large number":
            flat = (even / 4).reshape(_ROWS, -1)
            flat[:, flat.shape[1] // 2] += 100
            made = flat.view(even.shape)
    return made


def _wholes(words: torch.Tensor, number: int, below: int, *, target: bool) -> torch.Tensor:
    """Anything in the first row; the second ends in many of one number, as if it were padded with that."""
    made = words % below
    if words.dim() > 1 and not target:
        pad = _padding(number, below)
        cut = 1 + number % max(1, words.shape[1] - 1)
        made[1, :cut] = torch.where(made[1, :cut] == pad, (pad + 1) % below, made[1, :cut])
        made[1, cut:] = pad
    return made


def _padding(number: int, below: int) -> int:
    """The ends, the middle, and then all from the start."""
    likely = (0, below - 1, below // 2)
    return likely[number] if number < len(likely) else (number - 2) % below
