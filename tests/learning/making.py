"""Small models, data and runs for tests."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

from defocus import Budget, rows
from defocus.learning import Trainer
from defocus.learning import trainer as running
from defocus.learning.model_check import check_independent
from defocus.noise.testing import seeded

BUDGET = Budget(8, 1e-5)
_PASSED: set[tuple[str, ...]] = set()
"""Models that passed the check in this process, in words, with how they are clipped and the form of examples."""


def data(n: int = 64, width: int = 5, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    x = torch.randn(n, width, generator=drawn)
    return x, (x.sum(1) > 0).long()


def model(width: int = 5, seed: int = 0, *layers: nn.Module) -> nn.Module:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed)
        return nn.Sequential(nn.Linear(width, 8), *(layers or (nn.Tanh(),)), nn.Linear(8, 2))


def trainer(folder: Path, **more: Any) -> Trainer:
    """A run on 64 examples of eight steps of 16, with known noise, so that nothing is calibrated.

    The usual model is checked once, and not again for the other runs of a process.
    """
    net = more.pop("model", None) or model()
    given: dict[str, Any] = {
        "loss": nn.CrossEntropyLoss(),
        "optimizer": torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
        "data": data(),
        "unit": rows(),
        "epsilon": 8,
        "delta": 1e-5,
        "max_grad_norm": 1.0,
        "batch_size": 16,
        "steps": 8,
        "noise_multiplier": None if more.get("noise") else 1.0,
        "ledger": folder / "run.ledger",
        "bits": seeded(1),
        **more,
    }
    if "optimizer" in more and callable(more["optimizer"]):
        given["optimizer"] = more["optimizer"](net.parameters())
    loss, optimizer, examples = given.pop("loss"), given.pop("optimizer"), given.pop("data")
    with _checked_once(net, more):
        return Trainer(net, loss, optimizer, examples, **given)


@contextmanager
def _checked_once(net: nn.Module, more: dict[str, Any]) -> Iterator[None]:
    """Spare a sequence of torch's own layers the check that one like it passed: most of the time of a short run."""
    own = all(type(each).__module__.startswith("torch.nn.") and not _hooked(each) for each in net.modules())
    usual = type(net) is nn.Sequential and own and not more.keys() & {"loss", "probe", "precision"}
    real = vars(running)["check_independent"] is check_independent  # what a test put in its place says nothing
    if not usual or not real:
        yield
        return
    numbers = str([(each.dtype, each.requires_grad) for each in net.parameters()])
    alike = str(net), numbers, str(net.training), str(more.get("max_grad_norm")), _form(more.get("data"))
    with mock.patch.object(running, "check_independent") if alike in _PASSED else nullcontext():
        yield
    _PASSED.add(alike)


def _form(examples: Any) -> str:
    if isinstance(examples, tuple):
        return str([_form(each) for each in examples])
    kind = type(examples).__name__
    return f"{kind} {examples.dtype} {examples.shape[1:]}" if hasattr(examples, "dtype") else kind


def _hooked(net: nn.Module) -> bool:
    return bool(net._forward_hooks or net._forward_pre_hooks or net._backward_hooks)


def parameters(net: nn.Module) -> torch.Tensor:
    return torch.cat([each.detach().reshape(-1) for each in net.parameters()])


def named(more: object) -> str | None:
    """A name for a parametrised test that is the same in every process: which settings it has, not where they are."""
    return " ".join(more) if isinstance(more, dict) else None
