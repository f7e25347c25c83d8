"""The auditor attacks a tiny run: the declared noise holds, half of it is caught."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from torch import nn

from defocus import audit, rows
from defocus.learning import Trainer
from defocus.learning.noise import Cryptographic, Noise, new_key
from defocus.noise.testing import seeded
from defocus.privacy import account


class Sum(nn.Module):
    """One parameter whose gradient is the example itself."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Linear(1, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight(x)


class Halved(Noise):
    """Half the noise that was charged."""

    def add(
        self, sums: Sequence[torch.Tensor], scales: Sequence[float], secret: bytes, *, rounded: bool = True
    ) -> None:
        Cryptographic().add(sums, [scale / 2 for scale in scales], secret, rounded=rounded)


def attacked(folder: Path, *, honest: bool) -> audit.Finding:
    """Two worlds, with and without one example of the largest gradient; each trial draws a sample and noise anew."""
    worlds = {}
    for n in (1, 2):
        net = Sum()
        run = Trainer(
            net, lambda output, target: (output * target).sum(1), torch.optim.SGD(net.parameters()),
            (torch.tensor([[0.0], [50.0]][:n]), torch.ones(n, 1)), unit=rows(), epsilon=100, delta=1e-5,
            max_grad_norm=1.0, size=2, batch_size=1, steps=1, noise_multiplier=0.6, ledger=folder / f"{n}.ledger",
            metrics="nothing",
        )  # fmt: skip
        worlds[n] = (net, run)
    plan = worlds[2][1].plan
    if not honest:
        for _, run in worlds.values():
            run._stepper.noise = Halved()

    bits = seeded(5)

    def released(examples: list[int]) -> float:
        net, run = worlds[len(examples)]
        key = new_key(bits)
        run._stepper.make(0, plan.sampling.draw(0, len(examples), key), key, lambda *_: None)
        return float(net.weight.weight.grad)

    claimed = account(plan.event).epsilon(0.05)
    assert plan.sampling.rate == Fraction(1, 2)  # type: ignore[attr-defined]  # Poisson
    return audit.lower_bound(released, ([0], [0, 1]), trials=1200, claimed=claimed, delta=0.05)


@pytest.mark.slow
def test_the_declared_noise_holds_and_half_of_it_is_caught(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    honest = attacked(tmp_path, honest=True)
    assert honest.verdict != "violation"
    assert honest.epsilon_lower > 0.3 * float(honest.claimed or 0)  # the attack is no weak one
    assert attacked(tmp_path, honest=False).verdict == "violation"
