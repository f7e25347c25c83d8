"""Examples of different families side by side: what a huge, a constant or a padded one does to the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch.utils import _pytree as trees

from defocus.errors import DefocusError, DependentExamplesError
from defocus.learning.gradients.layouts import Batch, rows, size
from defocus.learning.gradients.probes import picked
from defocus.learning.gradients.reference import Steady
from defocus.learning.model_check.examples import families, nearby
from defocus.learning.model_check.trials import Gradient, Trial, dependent, finite, of_length_one
from defocus.learning.noise import Stream

__all__ = ["Alone", "check_buffers", "check_mixtures", "joined", "parts", "usable"]

_LONGEST = 1e15
"""Squares of longer gradients may leave the range of single precision."""
_SHAKEN = 1e-3
"""Gradients that rounding of the inputs moves by more are not compared."""
_ROUNDINGS = 4
_MOST = 8


@final
@dataclass(frozen=True, slots=True)
class Alone:
    """Examples, what each comes to in a batch of its own, and how far rounding may move that.

    ``gradient`` is that of the first one, None where it cannot be compared; ``shaken`` is what rounding does to it.
    """

    batch: Batch
    losses: torch.Tensor
    slack: torch.Tensor
    gradient: Gradient | None
    shaken: float


def usable(trial: Trial, one: Batch, stream: Stream, bounds: Mapping[int, int]) -> list[Alone]:
    """Two examples of each family, but for those on which the model alone fails or is not finite."""
    found = []
    for variants in families(one, stream, bounds):
        for batch in variants:
            made = _alone(trial, batch)
            if made is not None:
                found.append(made)
                break
    return found


def joined(parts: list[Batch]) -> Batch:
    """All examples in one batch."""
    leaves = [trees.tree_leaves(tuple(part)) for part in parts]
    shape = trees.tree_structure(tuple(parts[0]))
    together = [
        torch.cat(list(each)) if isinstance(each[0], torch.Tensor) else each[0] for each in zip(*leaves, strict=True)
    ]
    found: Batch = trees.tree_unflatten(together, shape)
    return found


def check_mixtures(trial: Trial, pool: Batch, others: list[Alone]) -> None:
    """The losses of ordinary examples and of all families are the same beside each other as alone."""
    ordinary = _alone(trial, rows(pool, 0, 4))
    if ordinary is None:
        return
    with Steady():
        _, buffers = trial.noted(ordinary.batch)
        for each in others:
            which = [0, 4, 1, 5]
            losses, after = trial.noted(picked(joined([ordinary.batch, each.batch]), which))
            _compare(trial, losses, [ordinary, each], which)
            check_buffers(buffers, after)
        everyone = [ordinary, *others]
        batch = joined([each.batch for each in everyone])
        for which in (*parts(size(batch)), *(list(reversed(each)) for each in parts(size(batch), side_by_side=True))):
            _compare(trial, trial.losses(picked(batch, which)), everyone, which)


def parts(examples: int, *, side_by_side: bool = False) -> list[list[int]]:
    """Numbers of examples in parts that need no more memory than the rest of the check: neighbours, or far apart."""
    count = -(-examples // _MOST)
    if side_by_side:
        return [list(range(start, min(examples, start + _MOST))) for start in range(0, examples, _MOST)]
    return [list(range(start, examples, count)) for start in range(count)]


def _compare(trial: Trial, found: torch.Tensor, alone: list[Alone], which: list[int]) -> None:
    losses, slack = (
        torch.cat(each)[which].double() for each in zip(*((a.losses, a.slack) for a in alone), strict=True)
    )
    if not bool(((found.double() - losses).abs() <= trial.most * losses.abs() + slack + 1e-6).all()):
        raise dependent("the loss of an example changes with the values of the other examples of its batch")


def check_buffers(buffers: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor]) -> None:
    """Refuse those that are not the same after other examples."""
    for name, buffer in buffers.items():
        if name not in others or not torch.equal(buffer, others[name]):
            raise DependentExamplesError(
                f"The buffer {name} of the model keeps statistics of the examples, and would release them.",
                fix="turn it off (track_running_stats=False), or put that module in eval() for the training.",
            )


def _alone(trial: Trial, batch: Batch) -> Alone | None:
    """Each of a few examples alone; None where that fails, or is not finite."""
    shaken = nearby(batch, 2.0**-20 if trial.exact else 2.0**-8)
    try:
        with Steady():
            first, again = (trial.seen(rows(each, 0, 1), (0,)) for each in (batch, shaken))
            rest = [[trial.losses(rows(each, i, i + 1)) for i in range(1, size(batch))] for each in (batch, shaken)]
    except (DefocusError, torch.OutOfMemoryError):
        raise
    except Exception:  # noqa: BLE001 -- a model that takes no such numbers
        return None
    losses, near = torch.cat([first.losses, *rest[0]]), torch.cat([again.losses, *rest[1]])
    if not finite(losses, near):
        return None
    gap = _gap(first.gradient, again.gradient)
    fit = finite(*first.gradient) and float(_length(first.gradient)) < _LONGEST and gap < _SHAKEN
    return Alone(batch, losses, _ROUNDINGS * (near - losses).abs(), first.gradient if fit else None, gap)


def _length(gradient: Gradient) -> torch.Tensor:
    return torch.stack([each.double().norm() for each in gradient]).norm()


def _gap(one: Gradient, other: Gradient) -> float:
    """How far apart two gradients are, of length one each."""
    lengths = of_length_one(torch.stack([_length(one), _length(other)])).tolist()
    apart = [lengths[0] * a.double() - lengths[1] * b.double() for a, b in zip(one, other, strict=True)]
    return float(torch.stack([each.norm() for each in apart]).norm())
