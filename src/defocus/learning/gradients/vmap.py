"""Per-example gradients of a whole model by ``torch.func``: for models that use parameters in ways not known here."""

from collections.abc import Mapping
from typing import Any, final

import torch
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import Module, Parameter
from torch.utils import _pytree as trees

from defocus.learning.gradients.hooks import Noticing, UnknownUseError
from defocus.learning.gradients.layouts import Batch, Rule, call, rows, size, usable_factors
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.pieces.piece import weighted
from defocus.learning.gradients.reference import Looped, agrees
from defocus.learning.model_guard import Snapshot

__all__ = ["Mapped"]

_FLOATS = 2**26
"""How many numbers of per-example gradients are held at a time."""


@final
class Mapped:
    """Clipped sums by ``vmap(grad)``, in parts of the batch that fit in memory.

    Before the first batch, two of its examples are compared with the plain way: a loss may reach parameters past the
    model, where other ones cannot be put in their place.
    """

    def __init__(self, model: Module, losses: Losses, groups: tuple[Mapping[str, Parameter], ...]) -> None:
        self._model, self._losses, self._groups = model, losses, groups
        self._parameters = {name: p for group in groups for name, p in group.items()}
        self._single, self._trusted = Looped(model, losses, groups), False
        self._part = max(1, _FLOATS // max(1, sum(p.numel() for p in self._parameters.values())))

    def add(self, batch: Batch, rule: Rule) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Add the clipped gradients to ``grad``; return losses (B,), norms (groups, B) and how many are unusable."""
        if not self._trusted and size(batch) == 1:
            return self._single.add(batch, rule)
        if not self._trusted:
            self._trust(batch)
        total, losses, norms = size(batch), [], []
        added = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
        found_there = Snapshot(self._model, loss=self._losses.loss)
        for start in range(0, total, self._part):
            if start:
                found_there.restore()
            part = rows(batch, start, min(total, start + self._part))
            gradients, loss = self._gradients(part)
            squares = [
                sum(gradients[name].float().flatten(1).square().sum(1) for name in group) for group in self._groups
            ]
            infinite, factors, usable = usable_factors(torch.stack(squares).sqrt(), loss, rule)
            with torch.autocast(loss.device.type, enabled=False):  # sums over examples keep all their bits
                for group, factor in zip(self._groups, factors, strict=True):
                    for name in group:
                        flat = gradients[name].flatten(1)
                        flat = torch.where(usable[:, None], flat, 0.0)
                        added[name] += weighted(factor, flat).view_as(added[name])
            losses.append(loss.float())
            norms.append(infinite)
        for name, parameter in self._parameters.items():
            parameter.grad = added[name] if parameter.grad is None else parameter.grad.add_(added[name])
        found = torch.cat(norms, dim=1)
        return torch.cat(losses), found, int(torch.isinf(found[0]).sum())

    def _trust(self, batch: Batch) -> None:
        verdict = agrees(self._model, self._losses, self._parameters, batch, self._sums)
        if verdict is False:
            raise UnknownUseError
        self._trusted = verdict is True

    def _sums(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        gradients, losses = self._gradients(batch)
        squares = torch.zeros(len(losses), device=losses.device)
        for each in gradients.values():
            squares = squares + each.float().flatten(1).square().sum(1)
        return squares, {name: each.sum(0) for name, each in gradients.items()}

    def _gradients(self, batch: Batch) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        def one(parameters: Mapping[str, torch.Tensor], example: Batch) -> torch.Tensor:
            inputs, target = trees.tree_map(_lift, example)
            return self._losses.one(call(_Frozen(self._model, parameters), inputs), target)

        leaves, shape = trees.tree_flatten(tuple(batch))
        spec = trees.tree_unflatten([0 if isinstance(leaf, torch.Tensor) else None for leaf in leaves], shape)
        parameters = {name: p.detach() for name, p in self._parameters.items()}
        with Noticing() as noticing:
            gradients, losses = vmap(grad_and_value(one), in_dims=(None, spec), randomness="different")(
                parameters, tuple(batch)
            )
        if noticing.failed:
            raise UnknownUseError  # in one example, and the model went on in another way with all
        return gradients, losses.detach()


@final
class _Frozen:
    """A model that is called with other parameters than its own."""

    def __init__(self, model: Module, parameters: Mapping[str, torch.Tensor]) -> None:
        self._model, self._parameters = model, parameters

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return functional_call(self._model, dict(self._parameters), arguments, keywords)


def _lift(leaf: Any) -> Any:
    return leaf.unsqueeze(0) if isinstance(leaf, torch.Tensor) else leaf
