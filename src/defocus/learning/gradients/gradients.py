"""The door of this room: the sum of a batch's clipped per-example gradients, by the fastest way that is right."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, final

import torch
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import Module, Parameter
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as trees

from defocus.errors import DefocusError, InvalidParameterError, UnfitModelError
from defocus.learning.gradients.independence import dependent
from defocus.learning.gradients.layouts import Batch, Clipped, Rule, call, rows, size, usable_factors
from defocus.learning.gradients.losses import Loss, Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.piece import Choices, weighted
from defocus.learning.gradients.reference import Looped, agrees, agrees_in_sum
from defocus.learning.gradients.trace import LookedError, MixedError, UnknownUseError
from defocus.learning.model_guard import Snapshot

__all__ = ["Gradients", "Mapped", "Noticing", "SlowGradientsWarning"]


_FLOATS = 2**26
"""How many numbers of per-example gradients are held at a time."""


@final
class Noticing(TorchFunctionMode):
    """Remembers whether a function failed.

    A model may catch an error and go on in another way. What failed for one example then decides for all of them,
    though no number of the batch came to Python.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failed = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function, and remember if it fails."""
        del types
        try:
            return func(*args, **(kwargs or {}))
        except Exception:
            self.failed = True
            raise


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
            raise UnknownUseError("two examples got other gradients than each of them alone")
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
            raise UnknownUseError("a function failed")  # in one example, and the model went on in another way with all
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


class SlowGradientsWarning(UserWarning):
    """A model uses parameters in a way that needs a slower pass. The sums are right; only time is lost."""


class _Way(Protocol):
    def add(self, batch: Batch, rule: Rule) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Add the clipped gradients to ``grad``, or raise before anything was added."""


_NAMES = ("one backward pass", "vmap over the examples", "one backward pass for each example")
_APART = "examples"
"""What is remembered of a model whose examples must not meet."""


@final
class Gradients:
    """The sum of clipped per-example gradients of a model, added to the ``grad`` of its parameters.

    The model, its modules and its parameters stay the user's: nothing is wrapped, hooked or replaced. ``groups`` names
    parameters that are clipped together, each group with a norm of its own; without it, all of them are. ``tuning`` is
    what an earlier run found out about the speed of this machine. On a GPU, passes that are worth it are recorded and
    replayed, so that Python code inside of the model runs in the first batches only; ``record=False`` forbids that.
    Copy gradients that are to outlive the next call: other references to them may be written over.

    Guarantee:
        Every trainable parameter gets a ``grad``, used or not. The gradient of an example is that of the loss of a
        batch of this example alone, over all trainable parameters of a group together; it is multiplied by the factor
        that the rule gives for its norm, so that an example adds at most ``factor * norm`` to a group in L2 norm, up to
        a relative 2e-3 (``TOLD``, for which noise is made), also where its contributions cancel.
        An example whose loss or gradient is not finite adds nothing and is counted. What a pass leaves in the model and
        in the loss is put back (:mod:`defocus.learning.model_guard`) before another pass, and before the next example
        where they are passed one by one.
    Assumes:
        What the model makes of an example does not depend on the other examples of the batch. The rule looks at the
        norms of one example at a time. Parameters are not frozen or exchanged later on.

    Error:
        Norms and sums are right up to rounding of the precision in use: about 1e-6 in float32, 1e-3 with TF32 products,
        1e-2 in bfloat16. A norm found by products of pairs loses more where an example's contributions cancel: where
        rounding could have lost more than 2e-3 of it, what is told is larger by the rest, which clips it more.
        In float32 such a bound is at most 1 % too large for sequences of up to 4096 positions whose contributions point
        anywhere (TF32: 2 % for 256 positions, 6 % for 4096), and larger for those that cancel more than that.

    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> found = Gradients(model, torch.nn.MSELoss()).clipped_sum(
    ...     (torch.eye(2), model.weight.detach().T - 3), lambda norms: (0.5 / norms).clamp(max=1)
    ... )
    >>> [round(float(norm), 4) for norm in found.norms], model.weight.grad.tolist()
    ([6.0, 6.0], [[0.5, 0.5]])
    """

    def __init__(
        self,
        model: Module,
        loss: Loss,
        *,
        groups: Sequence[Sequence[str]] | None = None,
        tuning: Mapping[str, str] | None = None,
        record: bool = True,
    ) -> None:
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not trainable:
            raise UnfitModelError(
                "The model has no trainable parameter.", fix="set requires_grad of the parameters to be trained."
            )
        self._model, self._loss, self._found = model, loss, Snapshot(model, loss=loss)
        self._parameters = trainable
        self._groups = _grouped(trainable, groups)
        self._choices = Choices(tuning)
        self._losses = single = Losses(loss)
        self._ways: list[_Way] = [
            OnePass(model, single, self._groups, self._choices, record=record, restored=self._restore),
            Mapped(model, single, self._groups),
            Looped(model, single, self._groups),
        ]
        self._reasons: list[str] = []
        self.why, self.looks = "", False
        if _APART in self._choices.remembered:
            self._keep_apart(self._choices.remembered[_APART])

    @property
    def tuning(self) -> dict[str, str]:
        """Which way was fastest for which layer. Given to a later run, it rounds exactly as this one does."""
        return dict(self._choices.remembered)

    def clipped_sum(self, batch: Batch, rule: Rule) -> Clipped:
        """Add the clipped gradients of a batch to ``grad``, and tell losses and norms."""
        way, before = self._ways[0], self._marks()
        if isinstance(way, OnePass):
            if way.follows(batch):  # no code of the model runs, and nothing is left in it
                try:
                    return self._told(*way.add(batch, rule, self._found.holds))
                except (DefocusError, torch.OutOfMemoryError):
                    raise
                except Exception:
                    if not self._restored(before):
                        raise
            if not self._found.holds():
                way.forget()
        self._found = Snapshot(self._model, self._found, loss=self._loss)
        try:
            return self._clipped_sum(batch, rule)
        finally:
            self._restore()

    @property
    def checked(self) -> bool:
        """Whether examples go together through a graph in which every operator keeps them apart."""
        return isinstance(self._ways[0], OnePass)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Whatever fails meanwhile, go on as before afterwards: no private example decides how others are computed."""
        ways, reasons = list(self._ways), list(self._reasons)
        try:
            yield
        finally:
            self._ways, self._reasons = ways, reasons

    def _restore(self) -> None:
        """Put back what passes left in the model and in the loss."""
        self._found.restore()

    def _clipped_sum(self, batch: Batch, rule: Rule) -> Clipped:
        examples = size(batch)
        if examples == 0:
            device = next(iter(self._parameters.values())).device
            losses, norms, unusable = torch.zeros(0, device=device), torch.zeros(len(self._groups), 0, device=device), 0
        else:
            losses, norms, unusable = self._add(batch, rule)
        return self._told(losses, norms, unusable)

    def _told(self, losses: torch.Tensor, norms: torch.Tensor, unusable: int) -> Clipped:
        for parameter in self._parameters.values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        return Clipped(losses, norms[0] if len(self._groups) == 1 else norms, unusable)

    def check(self, batch: Batch) -> None:
        """Find the way for batches like this one, and refuse a model that mixes examples; later runs take it too."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SlowGradientsWarning)
            self.clipped_sum(batch, torch.zeros_like)
        if len(self._ways) == 1:
            self._choices.remembered.setdefault(_APART, self.why)
            self._keep_apart(self._choices.remembered[_APART])

    def tell(self) -> None:
        """Warn if gradients are computed by a slower way."""
        if self._reasons:
            warnings.warn(f"{self.explain()} The sums are right, but slower.", SlowGradientsWarning, stacklevel=4)

    def explain(self) -> str:
        """How the gradients are computed, and why not faster."""
        way = _NAMES[len(_NAMES) - len(self._ways)]
        notes = self._ways[0].notes if isinstance(self._ways[0], OnePass) else []
        return "\n".join([f"Per-example gradients by {way}.", *self._reasons, *notes])

    def _add(self, batch: Batch, rule: Rule) -> tuple[torch.Tensor, torch.Tensor, int]:
        while len(self._ways) > 1:
            before = self._marks()
            try:
                return self._ways[0].add(batch, rule)
            except (DefocusError, torch.OutOfMemoryError):
                raise
            except MixedError as error:
                if not agrees_in_sum(self._model, self._losses, batch):
                    raise dependent(str(error)) from None
                self._step_down(error)
            except Exception as error:  # whatever it is, a plainer way may do; the plainest one raises
                if not self._restored(before):
                    raise
                self._restore()
                self._step_down(error)
        return self._ways[0].add(batch, rule)

    def _marks(self) -> list[tuple[torch.Tensor | None, int]]:
        """What tells whether a sum was changed."""
        return [(p.grad, 0 if p.grad is None else p.grad._version) for p in self._parameters.values()]  # noqa: SLF001

    def _restored(self, before: list[tuple[torch.Tensor | None, int]]) -> bool:
        """Whether sums are as they were: what a way that failed had added already would count twice otherwise."""
        for parameter, (grad, version) in zip(self._parameters.values(), before, strict=True):
            if grad is None:
                parameter.grad = None
            elif parameter.grad is not grad or grad._version != version:  # noqa: SLF001
                return False
        return True

    def _keep_apart(self, why: str) -> None:
        del self._ways[:-1]
        self._reasons = [f"Not for several examples at once: {why}."]

    def _step_down(self, error: Exception) -> None:
        name = _NAMES[len(_NAMES) - len(self._ways)]
        why = str(error) if isinstance(error, UnknownUseError) else f"it ended in a {type(error).__name__}"
        self.looks = self.looks or isinstance(error, LookedError)
        del self._ways[0]
        self.why = self.why or why
        self._reasons.append(f"Not by {name}: {why}.")
        self.tell()


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
