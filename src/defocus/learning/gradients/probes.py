"""Looking at a model before trusting it: where the examples are in every tensor that meets a parameter.

Shapes alone can mislead (a batch of 32 sentences of 32 words), so the model is run on two examples and on three:
the axis that grew counts the examples. Where examples share an axis with something
else, a third run with one example exchanged shows which entries are whose. That rows are in the order of the examples
is not seen from these runs, in which an order may happen to be kept, but from the functions that are called.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import Module
from torch.utils import _pytree as trees

from defocus.learning.gradients.batch_axes import LostError, Place
from defocus.learning.gradients.batch_tracking import Follower
from defocus.learning.gradients.batch_tracking import expected as expected_calls
from defocus.learning.gradients.handlers import HANDLERS
from defocus.learning.gradients.hooks import Plan, Seat, Sight, UnknownUseError, Watch
from defocus.learning.gradients.layouts import Batch, Regions, call, compare
from defocus.learning.gradients.losses import Losses
from defocus.learning.model_guard import Snapshot

__all__ = ["picked", "plan", "undisturbed"]


def plan(model: Module, losses: Losses, regions: Regions, batch: Batch, anchor: torch.Tensor) -> Plan:
    """Every use of a trainable parameter in the order of a forward pass, and the layout of what it meets."""
    other_one = _unlike_the_first(batch)
    with torch.enable_grad(), undisturbed(model, losses):
        two, fewer, before = _look(model, losses, regions, picked(batch, [0, other_one]), anchor)
    with torch.enable_grad(), undisturbed(model, losses):
        three, more, after = _look(model, losses, regions, picked(batch, [0, 0, other_one]), anchor)
    if not {id(each) for each in after.strangers} <= {id(each) for each in before.constants}:
        raise UnknownUseError  # made of the batch by something that is not seen
    if [(each.what, each.names) for each in two] != [(each.what, each.names) for each in three]:
        raise UnknownUseError
    calls = expected_calls(fewer, more)
    if calls is None or before.course != after.course:
        raise UnknownUseError
    other: Sequence[Sight | None] = [None] * len(three)
    if any(_shares_an_axis(a.tensor, b.tensor) for a, b in zip(two, three, strict=True)):
        with torch.enable_grad(), undisturbed(model, losses):
            other, _, _ = _look(model, losses, regions, picked(batch, [0, other_one, other_one]), anchor)
    seats = []
    for a, b, c in zip(two, three, other, strict=True):
        layout = compare(tuple(a.tensor.shape), tuple(b.tensor.shape), b.tensor, None if c is None else c.tensor)
        if layout is None or any(each.place not in {None, layout.place} for each in (a, b)):
            raise UnknownUseError
        seats.append(Seat(a.what, a.names, layout))
    found = Plan(tuple(seats), calls)
    if any(b.place != seat.layout.place for b, seat in zip(three, seats, strict=True)):
        with torch.enable_grad(), undisturbed(model, losses):
            _look(model, losses, regions, picked(batch, [0, 0, other_one]), anchor, expected=found)
    return found


def picked(batch: Batch, which: list[int]) -> Batch:
    """Some examples of a batch, by their numbers."""
    chosen: Batch = trees.tree_map(lambda leaf: leaf[which] if isinstance(leaf, torch.Tensor) else leaf, tuple(batch))
    return chosen


def _unlike_the_first(batch: Batch) -> int:
    """An example whose inputs differ from those of the first; the second, if all are alike."""
    tensors = [leaf for leaf in trees.tree_leaves(batch[0]) if isinstance(leaf, torch.Tensor)]
    differs = torch.stack([(leaf != leaf[:1]).reshape(len(leaf), -1).any(1).cpu() for leaf in tensors]).any(0)
    return int(differs.nonzero()[0]) if bool(differs.any()) else 1


@contextmanager
def undisturbed(model: Module, losses: Losses | None = None) -> Iterator[None]:
    """Leave the model, the loss and random numbers as they were, whatever a trial run does to them."""
    before = Snapshot(model, loss=None if losses is None else losses.loss)
    devices = sorted({p.device.index for p in model.parameters() if p.is_cuda})
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            before.restore()


def _look(
    model: Module,
    losses: Losses,
    regions: Regions,
    batch: Batch,
    anchor: torch.Tensor,
    *,
    expected: Plan | None = None,
) -> tuple[list[Sight], list[tuple[Callable[..., Any], tuple[Any, ...]]], Follower]:
    """Uses of parameters, the functions that were called and with what, and where examples were followed to."""
    inputs, targets = batch
    examples = len(next(leaf for leaf in trees.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)))
    follower = Follower(batch)
    with Watch(HANDLERS, regions, examples=examples, anchor=anchor, plan=expected, follower=follower) as watch:
        try:
            output: Any = call(model, inputs)
            each = losses.each(output, targets, examples)
        except LostError as error:
            raise UnknownUseError from error
    watch.finished()
    try:
        apart = follower.place(each) == Place(0)
    except LostError as error:
        raise UnknownUseError from error
    if not apart:
        raise UnknownUseError
    return watch.sights, watch.calls, follower


def _shares_an_axis(two: torch.Tensor, three: torch.Tensor) -> bool:
    pairs = zip(two.shape, three.shape, strict=False)
    return any(a not in {b, 2} for a, b in pairs)
