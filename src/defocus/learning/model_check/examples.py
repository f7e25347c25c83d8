"""Examples that are made up: of the shapes and types of the data, and none of its values."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as trees

from defocus.errors import UnfitModelError
from defocus.learning.gradients.layouts import Batch, size
from defocus.learning.noise import Stream

__all__ = ["exchanged", "extremes", "made_up", "told"]


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


_EXTREMES = (0.0, 1e-30, 1e-6, -1.0, 1e3, -1e3, 1e6, -1e6, 1e12, 1e30, -1e30, math.inf, -math.inf, math.nan)


def extremes(batch: Batch) -> Iterator[Batch]:
    """The same examples with floats from next to nothing to beyond all numbers, of either sign."""
    for factor in _EXTREMES:

        def moved(leaf: Any, by: float = factor) -> Any:
            there = isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point
            return leaf.abs() * by if there else leaf

        found: Batch = trees.tree_map(moved, tuple(batch))
        yield found
