"""Our trainer with a fault in computing examples' gradients, which canaries of gradients cannot see: examples can.

Each planted example pulls, as hard as it can, at a weight of its own, and the weights are what everybody sees.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.audit.attacks.training import Weights, _pulled, less

import defocus as dp
from defocus import audit
from defocus.audit import OneRun
from defocus.learning import trainer
from defocus.learning.clipping import FixedClipping
from defocus.noise.testing import seeded
from defocus.privacy.events import Event

MANY = 300
Norms = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the model takes most of the time, and is attacked elsewhere."""
    monkeypatch.setattr(trainer, "check_independent", lambda *_, **__: None)


def audited(folder: Path, seed: int) -> OneRun:
    charged: list[Event] = []

    def release(planted: list[int]) -> Any:
        model = Weights(MANY + 1)
        x = torch.tensor([*planted, MANY])
        run = dp.learning.Trainer(
            model, _pulled, torch.optim.SGD(model.parameters(), lr=1.0), (x, torch.full((len(x), 1), 1e6)),
            unit=dp.rows(), epsilon=4, delta=1e-5, size=MANY, batch_size=MANY, steps=1, bits=seeded(seed),
            ledger=folder / f"{seed}.ledger",
        )  # fmt: skip
        charged.append(run.plan.event)
        run.fit(progress=False)
        return -model.each.weight.detach().numpy()[:MANY, 0]

    canaries, coins = range(MANY), np.random.default_rng(seed).integers(0, 2, MANY)
    scores = release([i for i in canaries if coins[i]])
    return audit.one_run(scores, coins, event=charged[0], delta=1e-5, confidence=0.99, independent=True)


def ruled(rule: Callable[[float], Norms]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(FixedClipping, "rule", lambda _, clips: rule(clips[0]))


FAULTS = {
    "not clipped": ruled(lambda _: torch.ones_like),
    "clipped after averaging": ruled(lambda clip: lambda norms: norms * 0 + clip * len(norms) / norms.norm()),
    "clipped in micro-batches": ruled(
        lambda clip: lambda norms: clip * torch.cat([len(part) / part.norm() + 0 * part for part in norms.split(8)])
    ),
    "clipped by the largest entry of three": ruled(lambda clip: lambda norms: 3**0.5 * clip / norms),
    "noise divided by the batch twice": less(1 / MANY),
    "noise of another ratio": less(0.5),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_gradients_of_examples_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    FAULTS[fault](monkeypatch)
    found = audited(tmp_path, 1)
    assert found.violation, found


def test_without_one_the_trainer_is_not(tmp_path: Path) -> None:
    found = audited(tmp_path, 1)
    assert not found.violation, found
    assert found.epsilon_lower > 0.5 * float(found.claimed or 0)


@pytest.mark.long
@pytest.mark.statistical
def test_in_two_hundred_runs_the_right_trainer_is_called_as_seldom_as_it_may(tmp_path: Path) -> None:
    called = sum(audited(tmp_path, seed).violation for seed in range(200))
    print(f"\nthe right trainer is called in {called} of 200 runs")  # noqa: T201  # for whoever looks: pytest -m long -s
    assert called <= 7  # Bin(200, .01) is above with probability .1 %
