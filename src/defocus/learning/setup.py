"""What is checked before a run."""

from typing import Any

import torch

from defocus.errors import InvalidParameterError, Number, UnfitModelError, count
from defocus.learning.accountant import protected
from defocus.learning.suggestions import EPOCHS, suggest
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit

__all__ = [
    "checked_optimizer",
    "checked_parameters",
    "checked_precision",
    "checked_size",
    "checked_unit",
    "lasting",
]

_PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}


def checked_parameters(model: torch.nn.Module) -> list[str]:
    """The names of the trainable parameters, if sums of their gradients hold what was clipped."""
    trainable = {name: each for name, each in model.named_parameters() if each.requires_grad}
    if not trainable:
        raise UnfitModelError(
            "The model has no trainable parameter.", fix="set requires_grad of the parameters to be trained."
        )
    if any(getattr(module, "max_norm", None) is not None for module in model.modules()):
        raise UnfitModelError(
            "An embedding with max_norm= shortens the rows that a batch looks up, frozen or not, and so tells which.",
            fix="leave max_norm= out, and shorten all rows between steps where they must be short.",
        )
    for name, each in trainable.items():
        if each.dtype not in (torch.float32, torch.float64):
            raise UnfitModelError(
                f"The parameter {name} is of type {each.dtype}: sums of gradients in it are rounded by more than an"
                " example moves them, so clipping would not bound anyone.",
                fix='keep parameters in float32, and pass precision="bfloat16" for mixed precision.',
            )
    if len({each.device for each in trainable.values()}) > 1:
        raise UnfitModelError("The trainable parameters are on several devices.", fix="move the model to one device.")
    return list(trainable)


def checked_optimizer(optimizer: object, model: torch.nn.Module) -> None:
    """Refuse an optimizer that moves other parameters than those whose gradients are made private."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise UnfitModelError(
            f"The optimizer must be a torch.optim.Optimizer, but it is of type {type(optimizer).__name__}.",
            fix="pass for example torch.optim.Adam(model.parameters(), lr=1e-3).",
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UnfitModelError(
            "LBFGS asks for gradients several times in a step, which is not what is charged.",
            fix="use an optimizer that takes one gradient for each step, such as SGD or Adam.",
        )
    moved = {id(each) for group in optimizer.param_groups for each in group["params"]}
    trainable = {id(each): name for name, each in model.named_parameters() if each.requires_grad}
    known = {id(each) for each in model.parameters()}
    if moved - known:
        raise UnfitModelError(
            "The optimizer moves parameters that the model does not have, whose gradients would not be private.",
            fix="make it after the model, from model.parameters(), and move the model to its device before.",
        )
    forgotten = [name for key, name in trainable.items() if key not in moved]
    if forgotten:
        raise UnfitModelError(
            f"The optimizer does not move the trainable parameter {forgotten[0]}.",
            fix="pass it to the optimizer, or freeze it: parameter.requires_grad_(False).",
        )


def checked_unit(unit: object, users: object) -> None:
    """Refuse a unit that examples cannot be counted in."""
    if (protected(unit).kind == "user") != (users is not None):
        raise InvalidParameterError(
            "With unit=user(…), and only with it, users= says whose each example is.",
            fix="pass users=, an array with one user for each example, or unit=rows().",
        )


def checked_size(size: int | None, found: int, sampling: object) -> int:
    """The public number of units: what was declared, or what the data has."""
    if size is None:
        return found
    if count("size", size) != found and sampling in ("fixed size", "shuffled"):
        raise InvalidParameterError(
            f"With sampling={sampling!r} the number of units is public, and it is not the size declared.",
            fix='leave size= out, or use sampling="poisson".',
        )
    return size


def checked_precision(precision: str) -> torch.dtype | None:
    """The type that products are rounded to; None where they are not."""
    if precision not in _PRECISIONS:
        raise InvalidParameterError(
            f"There is no precision called {precision!r:.60}.", fix=f"choose one of {', '.join(_PRECISIONS)}."
        )
    return _PRECISIONS[precision]


def lasting(
    model: torch.nn.Module,
    *,
    batch_size: Number | None,
    epochs: Number | None,
    steps: int | None,
    unit: Unit,
    size: int,
    price: Budget | None,
) -> dict[str, Any]:
    """How large batches are and how long a run is; what is left out is proposed for the price, from public facts."""
    if price is not None and epochs is None and steps is None:
        epochs = EPOCHS
    if batch_size is None:
        if price is None or epochs is None:
            raise InvalidParameterError(
                "How large batches are is found for a price and a number of epochs, and one of them is missing.",
                fix="pass batch_size=, the expected number of units in a step; or epsilon= and epochs=.",
            )
        given = {"epsilon": price.epsilon, "delta": price.delta} if price.rho is None else {"rho": price.rho}
        batch_size = suggest(size=size, model=model, unit=unit, epochs=epochs, **given).batch_size
    return {"batch_size": batch_size, "epochs": epochs, "steps": steps}
