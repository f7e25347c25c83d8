"""Training: one step of a trainer in which each example pulls, as hard as it can, at a weight of its own."""

from pathlib import Path
from typing import Any

import torch
from tests.audit.attacks.attack import Attack, Fault, Room
from torch import nn

import defocus as dp
from defocus.audit import batched
from defocus.learning import Trainer
from defocus.learning.noise import Cryptographic
from defocus.noise.testing import seeded
from defocus.privacy.events import Approximate, Event


class Weights(nn.Module):  # type: ignore[misc]  # torch's classes are Any to the checker
    """A weight for each example, whose gradient is the target."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.each = nn.Embedding(number, 1)
        nn.init.zeros_(self.each.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.each(x)


def _pulled(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output * target).sum(1)


def step(folder: Path, runs: int) -> Attack:
    """Each weight is a world: its example is drawn or not, its gradient clipped, noise added, the step taken."""
    bits = seeded(41)
    charges: set[Event] = set()

    def trained(examples: torch.Tensor) -> tuple[Trainer, nn.Module]:
        model = Weights(runs + 1)
        pulls = torch.full((len(examples), 1), 1e6)
        run = Trainer(
            model, _pulled, torch.optim.SGD(model.parameters(), lr=1.0), (examples, pulls),
            unit=dp.rows(), epsilon=8, delta=1e-5, size=2 * runs, batch_size=runs, steps=1, bits=bits,
            ledger=folder / f"{len(list(folder.iterdir()))}.ledger",
        )  # fmt: skip
        return run, model

    def release(examples: torch.Tensor, n: int) -> Any:
        run, model = trained(examples)
        result = run.fit(progress=False)
        charges.update(() if result.receipt is None else (result.receipt.event,))
        return model.each.weight.detach().numpy()[:n, 0].astype(float) * runs

    nobody, everybody = torch.tensor([runs]), torch.arange(runs + 1)
    return Attack(
        release=batched(release), pair=(nobody, everybody), event=trained(nobody)[0].plan.event, charges=charges,
        paid=Approximate(8, 1e-5), delta=0.05,
    )  # fmt: skip


def less(part: float) -> Fault:
    """Noise of a smaller scale than was planned."""
    honest = Cryptographic.add

    def add(self: Any, sums: Any, scales: Any, secret: bytes, **more: Any) -> None:
        honest(self, sums, [scale * part for scale in scales], secret, **more)

    return lambda patch: patch.setattr(Cryptographic, "add", add)


ROOMS = (Room(name="one step", make=step, faults=(less(0.5),), slight=(less(0.75),), few=6000, near=0.5),)
