"""From a user's loss to one number for each example."""

import copy
from collections.abc import Callable
from typing import Any, TypeAlias, final

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere
from torch.utils import _pytree as trees

from defocus.errors import InvalidParameterError, UnfitModelError

__all__ = ["Loss", "Losses"]

Loss: TypeAlias = Callable[[Any, Any], torch.Tensor]
"""``loss(output, target)``: a sum or mean of one term for each example, or the vector of these terms."""

_MODULES = (
    nn.CrossEntropyLoss,
    nn.NLLLoss,
    nn.MSELoss,
    nn.L1Loss,
    nn.SmoothL1Loss,
    nn.HuberLoss,
    nn.BCEWithLogitsLoss,
    nn.BCELoss,
)
_FUNCTIONS = (
    F.cross_entropy,
    F.nll_loss,
    F.mse_loss,
    F.l1_loss,
    F.smooth_l1_loss,
    F.huber_loss,
    F.binary_cross_entropy_with_logits,
    F.binary_cross_entropy,
)
_CLASSES = {nn.CrossEntropyLoss, nn.NLLLoss, F.cross_entropy, F.nll_loss}

_FIX = (
    "return one loss for each example, a vector of shape (B,): reduction='none', then the mean over all dimensions but"
    " the first. A mean weighted over the whole batch (class weights, ignored targets) ties examples together."
)


@final
class Losses:
    """One loss for each example, out of a loss that returns their vector, their sum or their mean.

    The loss of an example is what the user's loss says of a batch of this example alone. Losses known to PyTorch are
    asked without their reduction; of any other, that its sum or mean is the sum or mean of the single losses is
    checked on every batch of two examples or more.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = _called(loss)
        self._apart = _apart(loss)

    def one(self, output: Any, target: Any) -> torch.Tensor:
        """The loss of a batch of one example, as a scalar."""
        value = self.loss(output, target)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise UnfitModelError("The loss of one example is not one number.", fix=_FIX)
        return _floats(value).reshape(())

    def each(self, output: Any, target: Any, size: int) -> torch.Tensor:
        """The losses of a batch, of shape (B,)."""
        if self._apart is not None:
            apart = self._apart(output, target)
            if apart is not None and apart.dim() and apart.shape[0] == size:
                return apart if apart.dim() == 1 else apart.flatten(1).mean(1)
        value = self.loss(output, target)
        if not isinstance(value, torch.Tensor):
            raise UnfitModelError(f"The loss is not a tensor, but of type {type(value).__name__}.", fix=_FIX)
        if _floats(value).shape == (size,):
            return value
        if value.numel() != 1:
            raise UnfitModelError(f"The loss has shape {tuple(value.shape)} for {size} examples.", fix=_FIX)
        alone = self._alone(output, target)
        if size > 1:
            _made_of_losses(alone, value)
        return alone

    def whole(self, output: Any, target: Any, size: int) -> torch.Tensor:
        """The losses of a batch, of shape (B,), or what the user's loss makes of all of them."""
        apart = None if self._apart is None else self._apart(output, target)
        if apart is not None and apart.dim() and apart.shape[0] == size:
            return apart if apart.dim() == 1 else apart.flatten(1).mean(1)
        value = self.loss(output, target)
        if not isinstance(value, torch.Tensor):
            raise UnfitModelError(f"The loss is not a tensor, but of type {type(value).__name__}.", fix=_FIX)
        return _floats(value)

    def _alone(self, output: Any, target: Any) -> torch.Tensor:
        """Every example's loss in a batch of its own, all at once."""
        lift = lambda leaf: leaf.unsqueeze(0) if isinstance(leaf, torch.Tensor) else leaf  # noqa: E731 -- one use

        def alone(output: Any, target: Any) -> torch.Tensor:
            return self.one(trees.tree_map(lift, output), trees.tree_map(lift, target))

        mapped = any(isinstance(leaf, torch.Tensor) for leaf in trees.tree_leaves(target))
        every = torch.vmap(alone, in_dims=(0, 0 if mapped else None), randomness="different")
        losses: torch.Tensor = every(output, target)
        return losses


def _called(loss: Any) -> Loss:
    """A loss that can be called with an output and a target."""
    if isinstance(loss, type):
        raise InvalidParameterError(
            f"loss= is the class {loss.__name__}, not a loss made of it.", fix=f"call it: loss={loss.__name__}()."
        )
    if not callable(loss):
        raise InvalidParameterError(
            f"loss= is of type {type(loss).__name__}, which cannot be called.",
            fix="pass a function or module of an output and a target, such as torch.nn.CrossEntropyLoss().",
        )
    found: Loss = loss
    return found


def _floats(value: torch.Tensor) -> torch.Tensor:
    if not value.dtype.is_floating_point:
        raise UnfitModelError(
            f"The loss is made of integers ({value.dtype}), which have no gradient.",
            fix="return floats that the output can be differentiated by, not a count of errors.",
        )
    return value


def _apart(loss: Any) -> Loss | None:
    """The same loss without its reduction, where that is known to mean the same for each example."""
    if type(loss) in _MODULES and loss.reduction == "mean" and getattr(loss, "weight", None) is None:
        if getattr(loss, "pos_weight", None) is not None:
            return None
        bare = copy.copy(loss)
        bare.reduction = "none"
        return _single(bare, classes=type(loss) in _CLASSES)
    if loss in _FUNCTIONS:
        return _single(lambda output, target: loss(output, target, reduction="none"), classes=loss in _CLASSES)
    return None


def _single(loss: Loss, *, classes: bool) -> Loss:
    """Among the losses of classes, those of several targets for an example are left to the general way."""

    def apart(output: Any, target: Any) -> Any:
        if not isinstance(output, torch.Tensor) or not isinstance(target, torch.Tensor):
            return None
        if not classes and output.dim() != target.dim():
            raise _unlike(output, target)
        several = output.dim() != 2 if classes else output.shape != target.shape
        return None if several else loss(output, target)

    return apart


def _unlike(output: torch.Tensor, target: torch.Tensor) -> UnfitModelError:
    """Numbers of all examples would be paired with each other."""
    shapes = [
        f"({', '.join(['B', *map(str, each.shape[1:])])}{',' if each.dim() == 1 else ''})" for each in (output, target)
    ]
    return UnfitModelError(
        f"The output of the model has the shape {shapes[0]} and the target {shapes[1]}, which differ: the loss would"
        " pair every example with every other.",
        fix="give them one shape: targets.unsqueeze(1), or output.squeeze(1) at the end of forward.",
    )


def _made_of_losses(alone: torch.Tensor, whole: torch.Tensor) -> None:
    """Refuse a loss that is neither the sum nor the mean of the losses of examples."""
    alone, whole = alone.detach(), whole.detach().reshape(())
    if not bool(torch.isfinite(alone).all()):
        return
    tolerance = 1e-3 * alone.abs().sum() + 1e-6
    total = alone.sum()
    if (whole - total).abs() > tolerance and (whole * len(alone) - total).abs() > tolerance:
        raise UnfitModelError("The loss is neither the sum nor the mean of one loss for each example.", fix=_FIX)
