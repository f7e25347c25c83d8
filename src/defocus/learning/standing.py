"""What stands still while a run goes on: the model, its modes and its optimizer are those that were checked.

Clipping and noise are arranged for the parameters that were trainable at the set-up, and examples were found to be
independent in the modes that modules had then. A parameter that is frozen later would be left with a sum without noise,
one that is unfrozen with gradients that nobody clipped, and batch normalisation that is switched on again would keep
statistics of a batch. So every step looks first, and refuses what has changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import torch
from torch.nn import Module

from defocus.errors import ChangedModelError, UnfitModelError
from defocus.learning.snapshots import version

__all__ = ["Standing"]


@final
class Standing:
    """A model and its optimizer as they were when they were checked."""

    __slots__ = ("_model", "_modes", "_moved", "_optimizer", "_parameters")

    def __init__(self, model: Module, optimizer: torch.optim.Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        self._parameters, self._modes, self._moved = self._parts(), self._training(), self._reached()

    def check(self) -> None:
        """Refuse a step if something has changed since."""
        now = self._parts()
        for name in [*self._parameters, *now]:
            if self._parameters.get(name) != now.get(name):
                raise _changed(
                    f"the parameter {name} was frozen, unfrozen, exchanged, moved or made anew",
                    "put it back; to train other parameters, make another Trainer, which is charged on its own.",
                )
        if self._training() != self._modes:
            before, after = dict(self._modes), dict(self._training())
            name = next(name for name in [*before, *after] if before.get(name) != after.get(name))
            raise _changed(
                f"the module {name or 'itself'} was switched between train() and eval(), or exchanged",
                "switch it back before the next step, or make the Trainer with every module in the mode that it trains"
                " in.",
            )
        if self._reached() != self._moved:
            raise _changed(
                "the optimizer was given other parameters",
                "give it all of them before the Trainer is made: what is trained is fixed there.",
            )

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Refuse a pass that wrote to a parameter, or left a gradient in one that is not trained."""
        others = [each for each in self._model.parameters() if not each.requires_grad]
        grads = [each.grad for each in others]
        for each in others:
            each.grad = None
        before = [version(each) for each in self._model.parameters()]
        try:
            yield
            if any(each.grad is not None for each in others):
                raise UnfitModelError(
                    "A frozen parameter got a gradient, which nobody clipped.",
                    fix="do not change requires_grad in forward.",
                )
            if before != [version(each) for each in self._model.parameters()]:
                raise UnfitModelError(
                    "The model changes its own parameters in forward, by what it sees and without noise.",
                    fix="leave out max_norm= of embeddings and the like, or apply it between steps, to all rows.",
                )
        finally:
            for each, grad in zip(others, grads, strict=True):
                each.grad = grad

    def _parts(self) -> dict[str, tuple[int, bool, torch.dtype, torch.device, torch.Size]]:
        return {
            name: (id(each), each.requires_grad, each.dtype, each.device, each.shape)
            for name, each in self._model.named_parameters()
        }

    def _training(self) -> list[tuple[str, tuple[int, bool]]]:
        return [(name, (id(module), module.training)) for name, module in self._model.named_modules()]

    def _reached(self) -> list[int]:
        return [id(each) for group in self._optimizer.param_groups for each in group["params"]]


def _changed(what: str, fix: str) -> ChangedModelError:
    return ChangedModelError(
        f"Since the run was set up, {what}: clipping and noise were arranged for what it was then. Nothing of this step"
        " was released.",
        fix=fix,
    )
