"""The door of this room: the sum of a batch's clipped per-example gradients, by the fastest way that is right."""

import warnings
from collections.abc import Sequence
from typing import final

import torch
from torch.nn import Module, Parameter

from defocus.errors import DefocusError, InvalidParameterError, UnfitModelError
from defocus.learning.gradients.batches import Batch, size
from defocus.learning.gradients.clipped import Clipped, Rule
from defocus.learning.gradients.losses import Loss, Losses
from defocus.learning.gradients.mapped import Mapped
from defocus.learning.gradients.reference import Looped

__all__ = ["Gradients", "SlowGradientsWarning"]


class SlowGradientsWarning(UserWarning):
    """A model uses parameters in a way that needs a slower pass. The sums are right; only time is lost."""


@final
class Gradients:
    """The sum of clipped per-example gradients of a model, added to the ``grad`` of its parameters.

    The model, its modules and its parameters stay the user's: nothing is wrapped, hooked or replaced.

    Guarantee:
        Every trainable parameter gets a ``grad``, used or not. The gradient of an example is that of the loss of a
        batch of this example alone, over all trainable parameters of a group together; it is multiplied by the factor
        that the rule gives for its norm, so that an example adds at most ``factor * norm`` to a group in L2 norm.
        An example whose loss or gradient is not finite adds nothing and is counted.
    Assumes:
        What the model makes of an example does not depend on the other examples of the batch. The rule looks at the
        norms of one example at a time. Floating-point arithmetic: norms are right up to rounding.
    """

    def __init__(self, model: Module, loss: Loss, *, groups: Sequence[Sequence[str]] | None = None) -> None:
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not trainable:
            raise UnfitModelError(
                "The model has no trainable parameter.", fix="set requires_grad of the parameters to be trained."
            )
        self._parameters = trainable
        self._groups = _grouped(trainable, groups)
        self._ways = [each(model, Losses(loss), self._groups) for each in (Mapped, Looped)]
        self._reasons: list[str] = []

    def clipped_sum(self, batch: Batch, rule: Rule) -> Clipped:
        """Add the clipped gradients of a batch to ``grad``, and tell losses and norms."""
        examples = size(batch)
        for parameter in self._parameters.values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if examples == 0:
            device = next(iter(self._parameters.values())).device
            norms = torch.zeros(len(self._groups), 0, device=device)
            return Clipped(torch.zeros(0, device=device), norms[0] if len(self._groups) == 1 else norms, 0)
        losses, norms = self._add(batch, rule)
        unusable = int(torch.isinf(norms).any(dim=0).sum())
        return Clipped(losses, norms[0] if len(self._groups) == 1 else norms, unusable)

    def explain(self) -> str:
        """How the gradients are computed, and why not faster."""
        return "\n".join([f"Gradients by {type(self._ways[0]).__name__}.", *self._reasons])

    def _add(self, batch: Batch, rule: Rule) -> tuple[torch.Tensor, torch.Tensor]:
        while len(self._ways) > 1:
            try:
                return self._ways[0].add(batch, rule)
            except DefocusError:
                raise
            except (RuntimeError, TypeError, ValueError) as error:
                self._reasons.append(f"{type(self._ways[0]).__name__} cannot: {type(error).__name__}.")
                warnings.warn(self._reasons[-1], SlowGradientsWarning, stacklevel=4)
                del self._ways[0]
        return self._ways[0].add(batch, rule)


def _grouped(
    trainable: dict[str, Parameter], groups: Sequence[Sequence[str]] | None
) -> tuple[dict[str, Parameter], ...]:
    if groups is None:
        return (trainable,)
    named = [name for group in groups for name in group]
    if sorted(named) != sorted(trainable):
        raise InvalidParameterError(
            "The groups do not name every trainable parameter exactly once.",
            fix="give each name of model.named_parameters() that requires a gradient to one group.",
        )
    return tuple({name: trainable[name] for name in group} for group in groups if group)
