"""What torch draws within a step follows from the secret of the run, and the user's generator is left alone."""

from pathlib import Path

import pytest
import torch
from tests.learning.making import model, parameters, trainer
from torch import nn

from defocus.errors import StepFailedError
from defocus.learning.noise import seeded

KEY = bytes(32)
CPU = torch.device("cpu")


def drawn(key: bytes, step: int, rank: int) -> list[float]:
    with seeded(key, step, rank, CPU):
        return list(torch.rand(4).tolist())


def test_draws_follow_from_key_step_and_process() -> None:
    torch.manual_seed(1)
    first = drawn(KEY, 3, 0)
    torch.manual_seed(2)
    assert drawn(KEY, 3, 0) == first
    assert first not in (drawn(KEY, 3, 1), drawn(KEY, 4, 0), drawn(bytes([1]) * 32, 3, 0))


def test_the_users_generator_is_as_it_was_also_after_a_failure() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    drawn(KEY, 0, 0)
    with pytest.raises(ZeroDivisionError), seeded(KEY, 0, 0, CPU):
        _ = torch.rand(1) / 0, 1 // 0
    assert torch.equal(torch.get_rng_state(), before)


def test_a_step_that_failed_is_taken_again_with_the_same_dropout(tmp_path: Path) -> None:
    nets = [model(5, 0, nn.Dropout(0.5)) for _ in range(2)]
    trainer(tmp_path, model=nets[0], ledger=tmp_path / "a.ledger").fit(progress=False)
    run = trainer(tmp_path, model=nets[1])
    before = torch.get_rng_state()
    batch = next(run.batches())
    noise = run._stepper.noise
    run._stepper.noise = None  # type: ignore[assignment]  # so that it fails once its sum is there
    with pytest.raises(StepFailedError):
        run.step(batch)
    run._stepper.noise = noise
    torch.rand(3)
    run.fit(progress=False)
    assert torch.equal(parameters(nets[0]), parameters(nets[1]))
    assert not torch.equal(torch.get_rng_state(), before)  # by our own draw alone
