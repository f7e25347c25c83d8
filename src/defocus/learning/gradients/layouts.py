"""Where the examples of a batch are inside of a tensor."""

from dataclasses import dataclass
from typing import final

import torch

from defocus.learning.gradients.places import Place

__all__ = ["Layout", "compare"]


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The axis that counts examples; ``each`` entries of it belong to one, side by side if ``major``.

    ``axis`` is None for a tensor that does not depend on the batch.
    """

    axis: int | None
    each: int = 1
    major: bool = True

    @property
    def place(self) -> Place | None:
        """The same, as examples are followed."""
        if self.axis is None:
            return None
        return Place(self.axis, 1, self.each) if self.major else Place(self.axis, self.each, 1)

    @property
    def plain(self) -> bool:
        """Whether the first axis is the example, and nothing else."""
        return self.axis == 0 and self.each == 1

    def fits(self, shape: torch.Size, examples: int) -> bool:
        """Whether a shape has room for so many examples in this layout; that they are there, functions must tell."""
        if self.axis is None:
            return True
        return len(shape) > self.axis and shape[self.axis] == examples * self.each

    def apart(self, tensor: torch.Tensor, examples: int) -> torch.Tensor:
        """The tensor with the examples as its first axis and nothing else in it."""
        axis = self.axis
        if axis is None:
            return tensor.expand(examples, *tensor.shape)
        if self.each == 1:
            return tensor.movedim(axis, 0)
        if self.major:
            return tensor.unflatten(axis, (examples, self.each)).movedim(axis, 0)
        return tensor.unflatten(axis, (self.each, examples)).movedim(axis + 1, 0)

    def sequences(self, tensor: torch.Tensor, examples: int) -> torch.Tensor:
        """The tensor as (examples, entries, features), or (examples, features) where one entry belongs to each."""
        apart = self.apart(tensor, examples)
        if apart.dim() <= 3:
            return apart
        return apart.reshape(examples, -1, apart.shape[-1])


def compare(
    two: tuple[int, ...], three: tuple[int, ...], first: torch.Tensor | None, second: torch.Tensor | None
) -> Layout | None:
    """The layout of a tensor that had shape ``two`` for two examples and ``three`` for three.

    ``first`` and ``second`` are what it was for three examples that differ in the second alone: they decide whether
    entries that share an axis with the examples lie side by side. None if no layout is sure.
    """
    if len(two) != len(three):
        return None
    grown = [axis for axis, (a, b) in enumerate(zip(two, three, strict=True)) if a != b]
    if not grown:
        return Layout(None)
    axis = grown[0]
    if len(grown) > 1 or three[axis] * 2 != two[axis] * 3 or two[axis] % 2:
        return None
    each = two[axis] // 2
    if each == 1:
        return Layout(axis)
    if first is None or second is None or first.shape != second.shape:
        return None
    changed = (first != second).movedim(axis, 0).flatten(1).any(1).nonzero().flatten()
    sure = [
        major
        for major in (True, False)
        if len(changed) and bool(((changed // each if major else changed % 3) == 1).all())
    ]
    return Layout(axis, each, major=sure[0]) if len(sure) == 1 else None
