"""The oracle for gradients: one example at a time, with randomness that is the same for every example."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from statistics import NormalDist
from typing import Any, final

import torch
from torch.nn import Module, Parameter
from torch.utils import _pytree as trees
from torch.utils._python_dispatch import TorchDispatchMode

from defocus.learning.gradients.layouts import Batch, Rule, call, rows, size, usable_factors
from defocus.learning.gradients.losses import Losses
from defocus.learning.model_guard import Snapshot

__all__ = [
    "Looped",
    "Steady",
    "Sums",
    "agrees",
    "agrees_in_sum",
    "allowed",
    "gradients_one_by_one",
    "picked",
    "undisturbed",
]


def picked(batch: Batch, which: list[int]) -> Batch:
    """Some examples of a batch, by their numbers."""
    chosen: Batch = trees.tree_map(lambda leaf: leaf[which] if isinstance(leaf, torch.Tensor) else leaf, tuple(batch))
    return chosen


@contextmanager
def undisturbed(model: Module, losses: Losses | None = None) -> Iterator[None]:
    """Leave the model, the loss and random numbers as they were, whatever a trial run does to them."""
    before = Snapshot(model, loss=None if losses is None else losses.loss)
    devices = sorted({p.device.index for p in model.parameters() if p.is_cuda})
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            before.restore()


@final
class Steady(TorchDispatchMode):
    """While it lasts, whatever torch draws is the ``level`` of its law, the same number everywhere.

    A coin shows one up to the middle level and zero above, so that dropout drops nothing, or everything. Orders are
    reversed, and choices take the likeliest. Draws below autograd are met as well, such as those of attention and of
    recurrent layers. Other generators than torch's are not.

    >>> with Steady():
    ...     torch.rand(2), torch.randn(1), torch.randperm(3), torch.dropout(torch.ones(2), 0.5, True)
    (tensor([0.5000, 0.5000]), tensor([0.]), tensor([2, 1, 0]), tensor([2., 2.]))
    """

    def __init__(self, level: float = 0.5) -> None:
        super().__init__()
        self._level, self._coin = level, float(level <= 0.5)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run what draws nothing as it is, and put the same number everywhere into what was drawn."""
        del types
        if not _may_draw(func):
            return func(*args, **(kwargs or {}))
        arguments = func._schema.arguments  # noqa: SLF001 -- its only name
        given = {each.name: each.default_value for each in arguments if each.has_default_value()}
        given |= dict(zip((each.name for each in arguments), args, strict=False)) | (kwargs or {})
        for name in _RATES:
            if isinstance(given.get(name), float):
                given[name] = 0.0
        what = func.overloadpacket.__name__.removesuffix("_")
        if what == "native_dropout" and given["train"] is not False:
            return self._dropped(given["input"], given["p"])
        made = func(**given)
        if what in _DRAWS:
            made.copy_(self._drawn(what, given, made))
        return made

    def _dropped(self, whole: torch.Tensor, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
        scale = 0.0 if rate == 1 else self._coin / (1 - rate)
        return whole * scale, torch.full_like(whole, bool(self._coin), dtype=torch.bool)

    def _drawn(self, what: str, given: dict[str, Any], made: torch.Tensor) -> Any:
        match what:
            case "randperm":
                found: Any = torch.arange(len(made) - 1, -1, -1, device=made.device)
            case "multinomial":
                found = given["self"].topk(made.shape[-1]).indices
            case "_sample_dirichlet":
                found = given["self"] / given["self"].sum(-1, keepdim=True)
            case "bernoulli":
                chance = torch.as_tensor(given.get("p", given["self"]), device=made.device)
                found = chance > 0 if self._coin else chance >= 1
            case "randint" | "randint_like" | "random":
                low, high = given.get("low", given.get("from", 0)), given.get("high", given.get("to"))
                found = torch.full_like(made, low if high is None else low + int((high - low) * self._level))
            case "rand" | "rand_like" | "uniform":
                low, high = given.get("from", 0.0), given.get("to", 1.0)
                found = torch.full_like(made, low + (high - low) * self._level)
            case "randn" | "randn_like" | "normal" | "normal_functional":
                away = given.get("std", 1.0) * torch.full_like(made, NormalDist().inv_cdf(self._level))
                found = given.get("mean", 0.0) + away
            case _:
                found = torch.ones_like(made)
        return found


_DRAWS = frozenset(
    {
        *("rand", "rand_like", "uniform", "randn", "randn_like", "normal", "normal_functional", "bernoulli"),
        *("randint", "randint_like", "random", "randperm", "multinomial", "_sample_dirichlet"),
        *("exponential", "cauchy", "log_normal", "geometric", "poisson", "_standard_gamma"),  # all taken to be one
    }
)


_RATES = ("dropout_p", "dropout")


@cache
def _may_draw(func: Any) -> bool:
    """Whether a function draws numbers, or has a rate by which it drops some."""
    names = {argument.name for argument in func._schema.arguments}  # noqa: SLF001 -- its only name
    return func.overloadpacket.__name__.removesuffix("_") in {*_DRAWS, "native_dropout"} or not names.isdisjoint(_RATES)


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


def agrees_in_sum(model: Module, losses: Losses, batch: Batch) -> bool:
    """Whether what a loss makes of two examples is the sum or the mean of what it makes of each."""
    two = picked(batch, [0, 1])
    with undisturbed(model, losses), Steady(), torch.no_grad():
        whole = losses.loss(call(model, two[0]), two[1]).reshape(-1)
        alone = torch.stack([losses.one(call(model, each[0]), each[1]) for each in (rows(two, 0, 1), rows(two, 1, 2))])
    most = allowed(next(model.parameters())) * alone.abs().sum()
    return len(whole) == 1 and any(bool((whole[0] - each).abs() <= most) for each in (alone.sum(), alone.mean()))


def allowed(parameter: Parameter) -> float:
    """How far rounding may carry two ways apart in the precision that is in use, relatively."""
    device = parameter.device.type
    if torch.is_autocast_enabled(device) or parameter.dtype in {torch.float16, torch.bfloat16}:
        return 0.1
    return 0.02 if device == "cuda" else 1e-3
