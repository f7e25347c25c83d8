"""Small models, data and runs for tests."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from defocus import Budget, rows
from defocus.learning import Trainer
from defocus.noise.testing import seeded

BUDGET = Budget(8, 1e-5)


def data(n: int = 64, width: int = 5, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    x = torch.randn(n, width, generator=drawn)
    return x, (x.sum(1) > 0).long()


def model(width: int = 5, seed: int = 0, *layers: nn.Module) -> nn.Module:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed)
        return nn.Sequential(nn.Linear(width, 8), *(layers or (nn.Tanh(),)), nn.Linear(8, 2))


def trainer(folder: Path, **more: Any) -> Trainer:
    """A run on 64 examples of eight steps of 16, with known noise, so that nothing is calibrated."""
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
    return Trainer(net, loss, optimizer, examples, **given)


def parameters(net: nn.Module) -> torch.Tensor:
    return torch.cat([each.detach().reshape(-1) for each in net.parameters()])


def named(more: object) -> str | None:
    """A name for a parametrised test that is the same in every process: which settings it has, not where they are."""
    return " ".join(more) if isinstance(more, dict) else None
