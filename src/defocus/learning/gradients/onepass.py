"""The fast way: one forward and one backward pass for the whole batch, and one product for each weight afterwards."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import final

import torch
from torch.nn import Module, Parameter

from defocus.learning.gradients.cuda_graphs import Recorder
from defocus.learning.gradients.handlers import HANDLERS
from defocus.learning.gradients.hooks import ChangedError, Plan, UnknownUseError, Watch
from defocus.learning.gradients.layouts import Batch, Regions, Rule, call, size, usable_factors
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.memory_format import Formats
from defocus.learning.gradients.probes import plan
from defocus.learning.gradients.reference import Looped, agrees
from defocus.learning.gradients.strategy import Choices, Tools
from defocus.learning.gradients.tape import Tape

__all__ = ["OnePass"]


@final
class OnePass:
    """Clipped sums by book-keeping: the backward pass computes no gradient of a parameter, only norms.

    Trainable parameters are detached in every use that a handler knows, and what their gradients are made of is kept
    until the factors are known. A use that no handler knows leaves its parameter attached; the backward pass then
    reaches it, and this way refuses with UnknownUseError before anything was added. So it does where a function that
    the batch goes through, in the model or in the loss, is not known to keep examples apart and in their order: that is
    decided by functions and their arguments, not by values, and every pass must call the functions that were looked at.
    Before the first batch, two of its examples are compared with the plain way besides.
    """

    def __init__(
        self,
        model: Module,
        losses: Losses,
        groups: tuple[Mapping[str, Parameter], ...],
        choices: Choices,
        *,
        record: bool = True,
        restored: Callable[[], None] = lambda: None,
    ) -> None:
        self._model, self._losses, self._groups, self._tools = model, losses, groups, Tools(choices)
        self._regions = Regions({name: p for group in groups for name, p in group.items()})
        self._group_of = {name: number for number, group in enumerate(groups) for name in group}
        self._single = Looped(model, losses, groups)
        self._plan: Plan | None = None
        self._trusted = False
        device = next(iter(self._regions.parameters.values())).device
        self._anchor = torch.zeros((), device=device, requires_grad=True)
        self._records = record and device.type == "cuda"
        self._formats = Formats(model, choices)
        self._recorder = Recorder(model, self._regions, self._tried, choices.remembered)
        self._restored = restored

    def add(self, batch: Batch, rule: Rule) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Add the clipped gradients to ``grad``; return losses (B,), norms (groups, B) and how many are unusable."""
        if size(batch) == 1:
            return self._single.add(batch, rule)
        if not self._trusted:
            self._trust(batch)
        if self._plan is not None:
            batch = self._formats.best(batch, self._plan.seats, self._tried)
        recording = self._recorder.find(batch) if self._records and self._plan is not None else None
        if recording is not None:
            losses, norms = recording.measure(batch)
            norms, factors, usable = usable_factors(norms, losses, rule)
            if bool(usable.all()):
                recording.add(factors)
                return losses, norms, 0
        tape, losses, norms = self._pass(batch)
        norms, factors, usable = usable_factors(norms, losses, rule)
        unusable = int((~usable).sum())
        if unusable:
            tape.silence(usable)
        tape.add(factors)
        return losses, norms, unusable

    def _pass(self, batch: Batch) -> tuple[Tape, torch.Tensor, torch.Tensor]:
        """A backward pass by the plan, or by a new plan where the model has changed: tape, losses and norms."""
        found = None
        if self._plan is not None:
            with suppress(ChangedError):
                found = self._backward(batch, self._plan, self._tools)
        if found is None:
            self._restored()
            self._plan = plan(self._model, self._losses, self._regions, batch, self._anchor)
            found = self._backward(batch, self._plan, self._tools)
        tape, losses = found
        return tape, losses, tape.norms(len(self._groups), len(losses), losses.device)

    def _tried(self, batch: Batch) -> tuple[Tape, torch.Tensor, torch.Tensor]:
        """A pass before the one that counts, for which it leaves nothing in the model and in the loss."""
        found = self._pass(batch)
        if not (self._anchor.is_cuda and torch.cuda.is_current_stream_capturing()):
            self._restored()
        return found

    def _trust(self, batch: Batch) -> None:
        verdict = agrees(self._model, self._losses, self._regions.parameters, batch, self._sums)
        if verdict is False:
            raise UnknownUseError
        self._trusted = verdict is True

    def _sums(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Squared norms and plain sums, with nothing added to any parameter and nothing measured."""
        expected = plan(self._model, self._losses, self._regions, batch, self._anchor)
        tape, losses = self._backward(batch, expected, Tools(Choices(forced=("ghost",)), margins=False))
        squares = tape.norms(len(self._groups), len(losses), losses.device).square().sum(0)
        parameters = self._regions.parameters
        aside = {name: p.grad for name, p in parameters.items()}
        try:
            for parameter in parameters.values():
                parameter.grad = torch.zeros_like(parameter)
            tape.add(torch.ones(len(self._groups), len(losses), device=losses.device))
            return squares, {name: p.grad for name, p in parameters.items()}
        finally:
            for name, parameter in parameters.items():
                parameter.grad = aside[name]

    def _backward(self, batch: Batch, expected: Plan, tools: Tools) -> tuple[Tape, torch.Tensor]:
        inputs, targets = batch
        examples = size(batch)
        uses = Counter(name for seat in expected.seats for name in set(seat.names))
        several = frozenset(name for name, count in uses.items() if count > 1)
        tape = Tape(self._regions, self._group_of, several, tools)
        parameters = self._regions.parameters
        aside = {name: p.grad for name, p in parameters.items()}
        try:
            for parameter in parameters.values():
                parameter.grad = None
            with Watch(
                HANDLERS, self._regions, examples=examples, anchor=self._anchor, tape=tape, plan=expected
            ) as watch:
                losses = self._losses.each(call(self._model, inputs), targets, examples)
            watch.finished()
            if losses.requires_grad:
                torch.autograd.backward(losses.sum())
            if any(parameter.grad is not None for parameter in parameters.values()):
                raise UnknownUseError
        finally:
            for name, parameter in parameters.items():
                parameter.grad = aside[name]
        return tape, losses.detach().float()
