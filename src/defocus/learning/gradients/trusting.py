"""A trial of the fast way against the plain one, before anything is trained with it."""

from collections.abc import Callable, Mapping

import torch
from torch.nn import Module, Parameter

from defocus.learning.gradients.batches import Batch
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.probing import picked, undisturbed
from defocus.learning.gradients.reference import gradients_one_by_one
from defocus.learning.gradients.steadiness import Steady

__all__ = ["Sums", "agrees", "allowed"]

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
