"""The order of dimensions in memory: channels last where that makes a model of images faster."""

from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from torch.nn import Module
from torch.utils import _pytree as trees

from defocus.learning.gradients.hooks import Seat
from defocus.learning.gradients.layouts import Batch, size
from defocus.learning.gradients.probes import undisturbed
from defocus.learning.gradients.strategy import Choices

__all__ = ["Formats", "channels_last"]


@final
class Formats:
    """Measures once whether a model is faster with its images stored pixel by pixel, and then stores them so.

    The numbers, and what the model computes from them, are the same. A model that insists on one order, for example
    with ``view``, is given what it was given.
    """

    def __init__(self, model: Module, choices: Choices) -> None:
        self._model, self._choices = model, choices

    def best(self, batch: Batch, seats: Sequence[Seat], run: Callable[[Batch], Any]) -> Batch:
        """The batch in the faster order."""
        shapes = [tuple(leaf.shape[1:]) for leaf in trees.tree_leaves(batch[0]) if _is_images(leaf)]
        if not shapes or not any(seat.what == "convolution" for seat in seats):
            return batch
        other = (trees.tree_map(lambda leaf: channels_last(leaf) if _is_images(leaf) else leaf, batch[0]), batch[1])
        work = f"format {size(batch).bit_length()} {shapes}"
        if work not in self._choices.remembered:
            with undisturbed(self._model):
                ways = {"as given": lambda: run(batch)}
                if _works(run, other):
                    ways["channels last"] = lambda: run(other)
                self._choices.remembered[work] = self._choices.pick(work, ways)
        return other if self._choices.remembered[work] == "channels last" else batch


def channels_last(images: torch.Tensor) -> torch.Tensor:
    """The same images with the channels of a pixel side by side; said in the strides even if there is one channel."""
    turned = images.contiguous(memory_format=torch.channels_last)
    if images.shape[1] == 1:
        _, _, height, width = images.shape
        turned = turned.as_strided(turned.shape, (height * width, 1, width, 1))
    return turned


def _is_images(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dim() == 4 and leaf.is_floating_point()


def _works(run: Callable[[Batch], Any], batch: Batch) -> bool:
    try:
        run(batch)
    except RuntimeError:
        return False
    return True
