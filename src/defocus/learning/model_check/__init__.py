r"""What is checked of a model before the first charge: that an example means the same whoever is beside it.

Clipping bounds what one example adds to a sum. It bounds nothing if the example also moves the terms of the others, as
with batch normalisation, ``x - x.mean(0)``, or a loss averaged over the tokens of a whole batch.

Guarantee:
    On examples that are *made up* (of the shape of the data and none of its values), with the model in its own mode
    and its closed gates opened, the loss and the gradient of an example are the same

    - whatever the others are: every place of a batch in turn is kept while the others are exchanged, each time with the
      generators of torch, numpy and Python started anew, from eight states in all;
    - alone and in any company: in batches of several sizes and orders, up to the largest that is likely to be trained
      (that one for losses only), beside others that are not numbers, with randomness that is steady at three levels,
      and beside examples of other families: tiny, huge, constant, of one sign, with heavy tails, of words from all over
      a vocabulary and with paddings (:mod:`~.examples`), but for those that the model alone makes nothing finite of;
    - whatever was seen before, far larger or smaller or no numbers at all, also by state outside of the model and the
      loss; and buffers, which are released without noise, keep nothing of any example.

    The sums that a step would add are those of the examples alone, and no norm is told shorter than the noise allows
    for. What cannot be judged so is refused: losses and gradients that are not finite, models that fail on synthetic
    examples, that change their inputs or that draw from generators of their own.

    Where numbers of a batch come to Python (:mod:`~.trials`), which may decide by them what is computed, no trial
    tells what other numbers would do. Such a model is given one example at a time from then on, as is one that fails on
    several at once, and all of the above is checked of that.
Assumes:
    A model ties no examples for other values than the synthetic ones only, by chances of less than a tenth drawn
    outside of torch, in batches larger than any that is likely, or, where something is kept outside of the model and
    the loss (in these, all is put back: :mod:`~.model_guard`), after more batches than the check has. (Where examples
    go through a model together, they are also followed through all its functions: :mod:`~.batch_tracking`.) One
    dropout mask for a whole batch is allowed: it is drawn without looking at any example, and given the mask all stand
    alone.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, final

import torch
from torch.nn import Module
from torch.utils import _pytree as trees

from defocus.errors import DefocusError, DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients, SlowGradientsWarning
from defocus.learning.gradients.layouts import Batch, rows, size
from defocus.learning.gradients.losses import Loss, Losses
from defocus.learning.gradients.pieces.norm_bounds import TOLD
from defocus.learning.gradients.reference import Steady, picked
from defocus.learning.model_check.examples import (
    exchanged,
    extremes,
    families,
    given_up,
    ignoring,
    made_up,
    nearby,
    told,
)
from defocus.learning.model_check.trials import (
    Gradient,
    Seen,
    Trial,
    alike,
    close,
    dependent,
    finite,
    left_alone,
    of_length_one,
)
from defocus.learning.noise import Stream

__all__ = [
    "Alone",
    "check_buffers",
    "check_independent",
    "check_mixtures",
    "check_sums_are_wide",
    "joined",
    "parts",
    "usable",
]


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


_Found = TypeVar("_Found")

_KEPT = 4
_STATES = 2
"""How many states of the generators for each place."""
_TRIES = 4
_USUAL = 64
_ROUNDING = 1e-5
"""What single precision may leave of a gradient where its terms cancel, as a share of the whole."""

_EDGES = (1 / 1024, 1 - 1 / 1024)
"""Levels of steady randomness at which rare branches are taken."""

_MIXED: tuple[tuple[int, ...], ...] = ((0, 1, 2, 3), (5, 3, 4, 2, 1, 6, 0), (1, 0))
"""Batches of different sizes and orders, by the numbers of their examples.

Each size once: where passes are recorded, as on a GPU, one that is seen twice may be kept, steady as it is."""


def check_independent(
    model: Module, loss: Loss, gradients: Gradients, one: Batch, probe: Batch | None, *, batch: float = _USUAL
) -> None:
    """Refuse a model or a loss that ties the examples of a batch together, or that keeps statistics of them.

    ``batch`` is the expected size of a batch. The model and everything about it are left as they were found.
    """
    stream = Stream(bytes(32), "synthetic examples")
    device = next(model.parameters()).device
    with left_alone(model, loss) as again:
        trial = Trial(model, Losses(loss), gradients, again)
        try:
            pool = _together(trial, lambda: _judged(trial, one, probe, stream, device))
            then = _first_of(trial, pool)
            seen = _together(trial, lambda: trial.peeks(rows(pool, 0, _KEPT)))
            others = [] if probe is not None else usable(trial, one, stream, seen.bounds)
            _together(trial, lambda: _look(trial, pool, others, looked=seen.python))
            _check_memory(trial, pool, others)
            _check_others(trial, pool)
            marked = getattr(loss, "ignore_index", -100)
            if probe is None and not trial.apart:
                _check_ignored(Trial(model, Losses(loss), gradients, again), ignoring(pool, marked))
            _check_company(trial, pool, 1 if trial.apart else math.ceil(batch + 6 * math.sqrt(batch)))
            check_mixtures(trial, pool, others)
            _check_families(trial, others)
            _check_history(trial, pool, then)
        except (DefocusError, SlowGradientsWarning, torch.OutOfMemoryError):
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise _unfit(
                f"The model failed on synthetic examples of the shape of the data: {said}"[:600],
                _converting(model, one),
            ) from error


def check_sums_are_wide(model: Module, gradients: Gradients, one: Batch, precision: torch.dtype) -> None:
    """Refuse mixed precision where the sum of clipped gradients comes out rounded to the narrow type.

    Rounding a sum s to 8 bits moves it by up to :math:`2^{-9}|s|`, and by how much depends on every example: for a
    thousand aligned gradients that is more than the clip. Products may be narrow; what adds up examples must not be.
    """
    device = next(model.parameters()).device
    batch = made_up(one, 4 * _KEPT, Stream(bytes(32), "synthetic examples"))
    with left_alone(model) as again:
        again(0)
        with torch.autocast(device.type, dtype=precision):
            gradients.clipped_sum(batch, torch.ones_like)
        for name, parameter in model.named_parameters():
            found = parameter.grad
            if found is None or not parameter.requires_grad or int((found != 0).sum()) < _KEPT:
                continue
            if torch.equal(found, found.to(precision).to(found.dtype)):
                raise UnfitModelError(
                    f"In {precision} the sum of the gradients of {name} is itself rounded to few bits, by more than one"
                    " example adds to a large batch, so clipping would not bound anyone.",
                    fix='use precision="float32" for this model.',
                )


def _judged(trial: Trial, one: Batch, probe: Batch | None, stream: Stream, device: torch.device) -> Batch:
    """Eight examples, of which the last four are exchanged for the first, that can be told apart by their losses."""
    for _ in range(_TRIES if probe is None else 1):
        pool = exchanged(one, _KEPT, stream) if probe is None else told(probe, _KEPT, device)
        seen = trial.seen(pool, tuple(range(2 * _KEPT)))
        if finite(seen.losses, *seen.gradient):
            return pool
    raise _unfit("Losses or gradients of synthetic examples are not finite, so that nothing can be told of the model.")


def _together(trial: Trial, work: Callable[[], _Found]) -> _Found:
    """What is found with several examples at once; where that fails, with one at a time."""
    try:
        return work()
    except (DefocusError, SlowGradientsWarning, torch.OutOfMemoryError):
        raise
    except Exception:
        if trial.apart:
            raise
    trial.apart = True
    found = work()
    trial.keep_apart("the model or the loss fails on several examples at once, and not on one")
    return found


def _look(trial: Trial, pool: Batch, others: list[Alone], *, looked: bool) -> None:
    """If Python sees numbers of a batch, no two examples are put in one from now on.

    What it does with them is its own business then: of one example it may know everything.
    """
    batch = joined([rows(pool, 0, 1), *(each.batch for each in others)])
    mixtures = parts(size(batch)) if others and not looked else []
    if not trial.apart and (looked or any(trial.peeks(picked(batch, which)).python for which in mixtures)):
        trial.keep_apart(
            "the model or the loss looks at numbers of the whole batch (if x.max() > 1, .item(), x[mask] and the like),"
            " which may tie examples"
        )


def _check_families(trial: Trial, others: list[Alone]) -> None:
    """What a step adds of examples of all families is what they are alone."""
    known = [each for each in others if each.gradient is not None]
    if known:
        batch = joined([rows(each.batch, 0, 1) for each in known])
        shaken = sum(each.shaken for each in known)
        with Steady():
            _check_sums(trial, batch, [each.gradient for each in known if each.gradient is not None], shaken=shaken)


def _check_others(trial: Trial, pool: Batch) -> None:
    """Keep each place in turn, exchange the others: with the same draws, its loss and gradient must be the same."""
    first = rows(pool, 0, _KEPT)
    for state in range(_KEPT * _STATES):
        place = state % _KEPT
        mixed = _keeping(pool, place)
        here, there = (trial.losses(batch, state=state) for batch in (first, mixed))
        if not close(here[place], there[place], here, trial.same):
            raise dependent("the loss of an example changes with the other examples of its batch")
    for place in range(_KEPT):
        one, other = (trial.seen(batch, (place,), state=place) for batch in (first, _keeping(pool, place)))
        if not alike(one.gradient, other.gradient, trial.same, trial.same):
            raise dependent("the gradient of an example changes with the other examples of its batch")
        check_buffers(one.buffers, other.buffers)


def _keeping(pool: Batch, place: int) -> Batch:
    """The first examples, where all but one are exchanged."""
    return picked(pool, [i if i == place else i + _KEPT for i in range(_KEPT)])


def _check_memory(trial: Trial, pool: Batch, others: list[Alone]) -> None:
    """What was seen before must not matter: a memory of earlier batches is released without noise.

    Whatever it is: examples far larger or smaller than others, of either sign, or no numbers at all. Nothing that they
    leave is put back in between.
    """
    first, second = rows(pool, 0, _KEPT), rows(pool, _KEPT, 2 * _KEPT)
    here = trial.after(first, first)
    for before in (second, *(each.batch for each in others), *extremes(first)):
        there = trial.after(before, first)
        if here is not None and there is not None and not close(here, there, here, trial.same):
            raise _recalling()


def _first_of(trial: Trial, pool: Batch) -> Seen | None:
    """What the first example alone comes to before others are tried; None if a model fails on one, as will show."""
    try:
        return trial.seen(rows(pool, 0, 1), (0,))
    except (DefocusError, torch.OutOfMemoryError):
        raise
    except Exception:  # noqa: BLE001 -- batch normalisation, for example
        return None


def _check_history(trial: Trial, pool: Batch, then: Seen | None) -> None:
    """Outside of the model and the loss, where nothing is put back, all that was tried must not have mattered."""
    if then is None:
        return
    one = rows(pool, 0, 1)
    for before in (one, *extremes(rows(pool, 0, _KEPT))):
        trial.fed(before)
        now = trial.seen(one, (0,))
        same = close(now.losses, then.losses, then.losses, trial.same)
        if not (same and alike(now.gradient, then.gradient, trial.same, trial.same)):
            raise _recalling()


def _recalling() -> DependentExamplesError:
    return DependentExamplesError(
        "The loss of an example changes with the batches before, or each time that it is computed.",
        fix="keep nothing of a batch in the model, the loss or anywhere else, and draw from the generators that all of"
        " torch shares.",
    )


def _check_ignored(trial: Trial, pool: Batch) -> None:
    """The same for targets that the loss ignores, where it takes them: a mean over the others ties examples."""
    try:
        here = trial.losses(rows(pool, 0, _KEPT))
        there = torch.stack([trial.losses(_keeping(pool, place))[place] for place in range(_KEPT)])
    except DefocusError:
        raise
    except Exception:  # noqa: BLE001 -- a loss that knows no ignored targets
        return
    told_apart = torch.isfinite(here) & torch.isfinite(there)
    if bool(told_apart.any()) and not close(here[told_apart], there[told_apart], here[told_apart], trial.same):
        raise dependent("the loss of an example changes with how many targets of the others are ignored")


def _check_company(trial: Trial, pool: Batch, largest: int) -> None:
    """Alone and in any company, losses and what a step adds must be the same."""
    with Steady():
        alone = [trial.seen(rows(pool, i, i + 1), (0,)) for i in range(2 * _KEPT)]
        losses = torch.cat([each.losses for each in alone])
        if not finite(losses, *(part for each in alone for part in each.gradient)):
            raise _unfit("The loss or gradient of a synthetic example alone is not finite.")
        for which in _MIXED:
            _check_losses(trial, picked(pool, list(which)), losses[list(which)])
            _check_sums(trial, picked(pool, list(which)), [alone[i].gradient for i in which])
        _check_lost(trial, pool, losses)
        _check_large(trial, pool, losses, largest)
    for level in _EDGES:
        with Steady(level):
            losses = torch.cat([trial.losses(rows(pool, i, i + 1)) for i in range(2)])
            if finite(losses):
                _check_losses(trial, picked(pool, [5, 0, 1]), losses, start=1)


def _check_losses(trial: Trial, batch: Batch, alone: torch.Tensor, *, start: int = 0) -> None:
    found = trial.losses(batch)[start:][: len(alone)]
    if not close(found, alone, alone, trial.most):
        raise dependent("the loss of an example changes with the number or the order of the examples in its batch")


def _check_sums(trial: Trial, batch: Batch, alone: list[Gradient], *, shaken: float = 0.0) -> None:
    norms, found = trial.added(batch)
    lengths = [torch.stack([part.double().norm() for part in each]).norm() for each in alone]
    margin = (TOLD if trial.exact else 1 + trial.most) + shaken
    if any(float(length) > margin * float(norm) + _ROUNDING for length, norm in zip(lengths, norms, strict=True)):
        raise UnfitModelError(
            "The gradient of an example is longer than its norm says, so that clipping would not bound it.",
            fix="this is a fault in how gradients are computed for this model; report it, with the layers it uses.",
        )
    factors = of_length_one(norms).tolist()
    expected = [sum(f * part for f, part in zip(factors, parts, strict=True)) for parts in zip(*alone, strict=True)]
    share = shaken + (_ROUNDING if trial.exact else trial.most)
    if not alike(found, expected, trial.most, share, terms=len(alone)):
        raise dependent("the gradient of an example changes with the number or the order of the examples in its batch")


def _check_lost(trial: Trial, pool: Batch, alone: torch.Tensor) -> None:
    """Beside examples that are not numbers: however small the part of another is, it shows."""
    lost = given_up(picked(pool, [0, 1, 2, 4, 5]), 3)
    if lost is None:
        return
    try:
        found = trial.losses(lost)
    except Exception:  # noqa: BLE001 -- a model that takes numbers only
        return
    if not close(found[:3], alone[:3], alone, trial.most):
        raise dependent("an example whose values are not finite moves the losses of the others")


def _check_large(trial: Trial, pool: Batch, alone: torch.Tensor, largest: int) -> None:
    """In a batch as large as will be trained; in half of it where memory is too small, as a step would do."""
    while largest > 1:
        which = [(i + 5) % (2 * _KEPT) for i in range(largest)]
        try:
            _check_losses(trial, picked(pool, which), alone[which])
        except torch.OutOfMemoryError:
            largest //= 2
        else:
            return


def _unfit(what: str, first: str = "") -> UnfitModelError:
    return UnfitModelError(
        what, fix=f"{first}mend it, or pass probe=(inputs, targets), a few synthetic examples that it accepts."
    )


def _converting(model: Module, one: Batch) -> str:
    """What to do about inputs and targets of another type than the parameters."""
    own = next(model.parameters()).dtype
    name = str(own).removeprefix("torch.")
    said = []
    for part, which in zip(one, ("inputs", "targets"), strict=True):
        kinds = {leaf.dtype for leaf in trees.tree_leaves(part) if isinstance(leaf, torch.Tensor)}
        odd = [kind for kind in kinds if kind == torch.uint8 or (kind.is_floating_point and kind != own)]
        if odd:
            is_now = " and ".join(sorted(str(kind).removeprefix("torch.") for kind in odd))
            said.append(
                f"convert {which} from {is_now} to {name}, the type of the model, by .to(torch.{name}) or"
                f' .astype("{name}"); else '
            )
    return "".join(said)
