"""The plain way: a forward and a backward pass for every example. Slow, always right, the oracle of the tests."""

from collections.abc import Callable, Iterator, Mapping
from typing import final

import torch
from torch.nn import Module, Parameter

from defocus.learning.gradients.batches import Batch, Rule, call, rows, size, usable_factors
from defocus.learning.gradients.fixed_randomness import Steady
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.probes import picked, undisturbed
from defocus.learning.model_guard import Snapshot

__all__ = ["Looped", "Sums", "agrees", "allowed", "gradients_one_by_one"]


def gradients_one_by_one(
    model: Module, losses: Losses, parameters: Mapping[str, Parameter], batch: Batch
) -> Iterator[tuple[torch.Tensor, dict[str, torch.Tensor]]]:
    """The loss of each example alone, and its gradient by the name of each parameter: zero where it is not used.

    What an example leaves in the model or in the loss is put back before the next one.
    """
    wanted = list(parameters.values())
    found_there = Snapshot(model, loss=losses.loss)
    for i in range(size(batch)):
        if i:
            found_there.restore()
        inputs, target = rows(batch, i, i + 1)
        loss = losses.one(call(model, inputs), target)
        found = torch.autograd.grad(loss, wanted, allow_unused=True) if loss.requires_grad else [None] * len(wanted)
        pairs = zip(parameters.items(), found, strict=True)
        yield loss.detach(), {name: torch.zeros_like(p) if g is None else _dense(g) for (name, p), g in pairs}


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient


@final
class Looped:
    """Clipped sums by the plain way: needs no more memory than one example, and works for any model."""

    def __init__(self, model: Module, losses: Losses, groups: tuple[Mapping[str, Parameter], ...]) -> None:
        self._model, self._losses, self._groups = model, losses, groups
        self._parameters = {name: p for group in groups for name, p in group.items()}

    def add(self, batch: Batch, rule: Rule) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Add the clipped gradients to ``grad``; return losses (B,), norms (groups, B) and how many are unusable."""
        losses, norms = [], []
        for loss, gradient in gradients_one_by_one(self._model, self._losses, self._parameters, batch):
            squares = [sum(gradient[name].float().square().sum() for name in group) for group in self._groups]
            infinite, factors, usable = usable_factors(torch.stack(squares).sqrt()[:, None], loss[None], rule)
            if bool(usable):
                for group, factor in zip(self._groups, factors[:, 0], strict=True):
                    for name, parameter in group.items():
                        value = gradient[name] * factor.to(parameter.dtype)
                        parameter.grad = value if parameter.grad is None else parameter.grad.add_(value)
            losses.append(loss.float())
            norms.append(infinite)
        found = torch.cat(norms, dim=1)
        return torch.stack(losses), found, int(torch.isinf(found[0]).sum())


Sums = Callable[[Batch], tuple[torch.Tensor, dict[str, torch.Tensor]]]
"""From a batch to the squared norms of its examples over all parameters, and the sums of their gradients by name."""


def agrees(model: Module, losses: Losses, parameters: Mapping[str, Parameter], batch: Batch, sums: Sums) -> bool | None:
    """Whether two examples get the norms and sums of the plain way; None if their gradients are not finite.

    The model is in its own mode. Randomness is steady for the trial, since the two ways would draw different numbers.
    """
    two = picked(batch, [0, 1])
    with undisturbed(model, losses), Steady():
        plain = [gradient for _, gradient in gradients_one_by_one(model, losses, parameters, two)]
        norms = torch.stack([torch.stack([g.float().norm() for g in each.values()]).norm() for each in plain])
        if not bool(torch.isfinite(norms).all()):
            return None
        squares, found = sums(two)
    most = allowed(next(iter(parameters.values())))
    worst = (squares.sqrt() - norms).abs().max() / norms.max().clamp(min=1e-30)
    gap = torch.stack([(found[name] - sum(each[name] for each in plain)).float().norm() for name in parameters]).norm()
    return bool(worst <= most) and bool(gap <= most * norms.sum().clamp(min=1e-30))


def allowed(parameter: Parameter) -> float:
    """How far rounding may carry two ways apart in the precision that is in use, relatively."""
    device = parameter.device.type
    if torch.is_autocast_enabled(device) or parameter.dtype in {torch.float16, torch.bfloat16}:
        return 0.1
    return 0.02 if device == "cuda" else 1e-3
