r"""What is checked of a model before the first charge: that an example means the same whoever is beside it.

Clipping bounds what one example adds to a sum. It bounds nothing if the example also moves the terms of the others, as
with batch normalisation, ``x - x.mean(0)``, or a loss averaged over the tokens of a whole batch.

Guarantee:
    Where examples go through a model together, they do so in a graph whose every operator is known to keep them apart
    (:mod:`~.operators`). An operator that mixes them is named and refused, and so is what keeps something of a batch.

    Any other model gets one example at a time, by ``vmap`` or in a loop, so that none can move the terms of others.
    Of these, examples are *made up* (of the shape of the data and none of its values): the loss of an example is the
    same alone and in batches of several sizes and orders, up to the largest that is likely to be trained, and so is its
    gradient, unless the model takes one example only; and it is the same whatever was seen before,
    far larger or smaller or no numbers at all, also by state outside of the model and the loss.

    In both cases the sums that a step adds for made-up examples are those of the examples alone, and no norm is told
    shorter than the noise allows for. What cannot be judged is refused: losses and gradients that are not finite,
    models that fail on made-up examples, that change their inputs or that draw from generators of their own.
Assumes:
    What a model keeps outside of itself and the loss (in these, all is put back: :mod:`~.model_guard`), it keeps within
    the batches that the check has. One dropout mask for a whole batch is allowed: it is drawn without looking at any
    example, and given the mask all stand alone.
"""

import math

import torch
from torch.nn import Module
from torch.utils import _pytree as trees

from defocus.errors import DefocusError, DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients, SlowGradientsWarning
from defocus.learning.gradients.independence import dependent
from defocus.learning.gradients.layouts import Batch, rows
from defocus.learning.gradients.losses import Loss, Losses
from defocus.learning.gradients.pieces.norm_bounds import TOLD
from defocus.learning.gradients.reference import Steady, picked
from defocus.learning.gradients.trace import raised_in
from defocus.learning.model_check.examples import exchanged, extremes, made_up, told
from defocus.learning.model_check.trials import Gradient, Trial, alike, close, finite, left_alone, of_length_one
from defocus.learning.noise import Stream

__all__ = ["check_independent", "check_sums_are_wide"]

_KEPT = 4
_TRIES = 4
_USUAL = 64
_ROUNDING = 1e-5
"""What single precision may leave of a gradient where its terms cancel, as a share of the whole."""

_DRAWS = ((1 / 1024, 0), (1 - 1 / 1024, 0), *((0.5, state) for state in range(8)))
"""Levels of steady randomness, where rare branches are taken and in the middle; and states of other generators."""

_MIXED: tuple[tuple[int, ...], ...] = ((0, 1, 2, 3), (5, 3, 4, 2, 1, 6, 0), (1, 0))
"""Batches of different sizes and orders, by the numbers of their examples."""


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
            first = rows(_pool(one, probe, stream, device), 0, 1)
            then = _alone(trial, first)
            gradients.check(made_up(one, 2, stream) if probe is None else told(probe, _KEPT, device))
            if not gradients.checked:
                trial.apart = False
                trial.apart = not _goes_together(trial, one, probe, stream, device) or (gradients.looks and trial.drew)
            pool = _judged(trial, one, probe, stream, device)
            if not gradients.checked:
                _check_memory(trial, pool)
                _check_company(trial, pool, math.ceil(batch + 6 * math.sqrt(batch)))
                trial.apart = True
                _check_history(trial, pool, first, then)
            _check_sums(trial, picked(pool, [0, 1, 2, 5]))
            gradients.tell()
        except UnfitModelError as error:
            raise _explained(error, gradients.why) from None
        except (DefocusError, SlowGradientsWarning, torch.OutOfMemoryError):
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise _unfit(
                f"The model failed on synthetic examples of the shape of the data{raised_in(error)}: {said}"[:600],
                _converting(model, one),
            ) from error


def _explained(error: UnfitModelError, why: str) -> UnfitModelError:
    """The same refusal, with the operator and the line where the model could not be followed any further."""
    if not why or why in error.what:
        return error
    return type(error)(f"{error.what} It could not be followed operator by operator: {why}.", fix=error.fix)


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


def _pool(one: Batch, probe: Batch | None, stream: Stream, device: torch.device) -> Batch:
    """Eight examples, of which the last four are exchanged for the first."""
    return exchanged(one, _KEPT, stream) if probe is None else told(probe, _KEPT, device)


def _judged(trial: Trial, one: Batch, probe: Batch | None, stream: Stream, device: torch.device) -> Batch:
    """Examples that can be told apart by their losses."""
    for _ in range(_TRIES if probe is None else 1):
        pool = _pool(one, probe, stream, device)
        if finite(trial.losses(pool)):
            return pool
    raise _unfit("Losses or gradients of synthetic examples are not finite, so that nothing can be told of the model.")


def _goes_together(trial: Trial, one: Batch, probe: Batch | None, stream: Stream, device: torch.device) -> bool:
    """Whether several examples go through a model at once at all."""
    try:
        trial.losses(_pool(one, probe, stream, device))
    except (DefocusError, SlowGradientsWarning, torch.OutOfMemoryError):
        raise
    except Exception:  # noqa: BLE001 -- whatever it is, one example may do
        return False
    return True


def _check_memory(trial: Trial, pool: Batch) -> None:
    """What was seen before must not matter: a memory of earlier batches is released without noise.

    Whatever it is: examples far larger or smaller than others, of either sign, or no numbers at all. Nothing that they
    leave is put back in between.
    """
    first, second = rows(pool, 0, _KEPT), rows(pool, _KEPT, 2 * _KEPT)
    here = trial.after(first, first)
    for before in (second, *extremes(first)):
        there = trial.after(before, first)
        if here is not None and there is not None and not close(here, there, here, trial.same):
            raise _recalling()


def _alone(trial: Trial, one: Batch) -> tuple[torch.Tensor, Gradient] | None:
    """What an example alone comes to before others are tried; None if a model fails on one, as will show."""
    try:
        return trial.alone(one)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # noqa: BLE001 -- batch normalisation, for example; whatever is wrong is named later
        return None


def _check_history(trial: Trial, pool: Batch, one: Batch, then: tuple[torch.Tensor, Gradient] | None) -> None:
    """Outside of the model and the loss, where nothing is put back, all that was tried must not have mattered."""
    if then is None or not finite(then[0]):
        return
    for before in (one, *extremes(rows(pool, 0, _KEPT))):
        trial.fed(before)
        now = trial.alone(one)
        same = close(now[0], then[0], then[0], trial.same)
        if not (same and alike(now[1], then[1], trial.same, trial.same)):
            raise _recalling()


def _recalling() -> DependentExamplesError:
    return DependentExamplesError(
        "The loss of an example changes with the batches before, or each time that it is computed.",
        fix="keep nothing of a batch in the model, the loss or anywhere else, and draw from the generators that all of"
        " torch shares.",
    )


def _check_company(trial: Trial, pool: Batch, largest: int) -> None:
    """Alone and in any company, losses must be the same, and gradients; where only one goes through, there is none."""
    if trial.apart:
        return
    for level, state in _DRAWS:
        with Steady(level):
            alone = torch.cat([trial.losses(rows(pool, i, i + 1), state=state) for i in range(2 * _KEPT)])
            large = tuple((i + 5) % (2 * _KEPT) for i in range(1 if state else largest))
            for which in (*_MIXED, large) if finite(alone) else ():
                found = trial.losses(picked(pool, list(which)), state=state)
                if not close(found, alone[list(which)], alone, trial.most):
                    raise dependent(f"the loss of an example {_CHANGES}")
    some = picked(pool, [0, 1, 2, 5])
    for state in range(_KEPT):
        with Steady():
            alone, together = _gradients_alone(trial, some, state), trial.alone(some, state=state)[1]
        expected: Gradient = [torch.stack(parts).sum(0) for parts in zip(*alone, strict=True)]
        if not alike(together, expected, trial.most, trial.most, terms=len(alone)):
            raise dependent(f"the gradient of an example {_CHANGES}")


_CHANGES = "changes with the number or the order of the examples in its batch"


def _gradients_alone(trial: Trial, batch: Batch, state: int = 0) -> list[Gradient]:
    alone = [trial.alone(rows(batch, i, i + 1), state=state)[1] for i in range(len(trees.tree_leaves(batch)[0]))]
    if not finite(*(part for each in alone for part in each)):
        raise _unfit("The loss or gradient of a synthetic example alone is not finite.")
    return alone


def _check_sums(trial: Trial, batch: Batch) -> None:
    """What a step adds is what examples come to alone, and no norm is told too short."""
    with Steady():
        alone = _gradients_alone(trial, batch)
        norms, found = trial.added(batch)
    lengths = [torch.stack([part.double().norm() for part in each]).norm() for each in alone]
    margin = TOLD if trial.exact else 1 + trial.most
    if any(float(length) > margin * float(norm) + _ROUNDING for length, norm in zip(lengths, norms, strict=True)):
        raise UnfitModelError(
            "The gradient of an example is longer than its norm says, so that clipping would not bound it.",
            fix="this is a fault in how gradients are computed for this model; report it, with the layers it uses.",
        )
    factors = of_length_one(norms).tolist()
    expected: Gradient = [
        torch.stack([f * part for f, part in zip(factors, parts, strict=True)]).sum(0)
        for parts in zip(*alone, strict=True)
    ]
    share = _ROUNDING if trial.exact else trial.most
    if not alike(found, expected, trial.most, share, terms=len(alone)):
        raise dependent(f"the gradient of an example {_CHANGES}")


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
