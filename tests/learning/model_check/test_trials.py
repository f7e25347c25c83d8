"""A model that is tried out is left as it was found, also where the trial fails."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from defocus.learning.model_check.trials import left_alone


class BrokenError(Exception):
    """What a trial raises."""


class Changing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.count = nn.Parameter(torch.zeros(3)), 0
        self.register_buffer("seen", torch.zeros(()))


def spoilt(model: Changing) -> None:
    with left_alone(model):
        model.count, model.later = 5, 1
        model.get_buffer("seen").add_(1)
        torch.rand(3), random.random(), np.random.rand()  # noqa: NPY002
        raise BrokenError


def test_everything_is_as_it_was_after_a_failure() -> None:
    model = Changing()
    model.gate.grad = kept = torch.ones(3)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state(legacy=False)["state"]["key"].tolist()  # noqa: NPY002
    with pytest.raises(BrokenError):
        spoilt(model)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == before[2]  # noqa: NPY002
    assert model.gate.tolist() == [0, 0, 0]
    assert model.gate.grad is kept
    assert float(model.seen) == model.count == 0
    assert not hasattr(model, "later")


def test_a_small_model_is_tried_on_one_thread() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with left_alone(nn.Linear(1000, 2000)):
            assert torch.get_num_threads() == 3
        with left_alone(Changing()):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_passes_begin_alike_and_gates_are_open() -> None:
    model = Changing()
    with left_alone(model) as again:
        found = []
        for seed in (1, 1, 2):
            again(seed)
            found.append((float(model.seen), model.count, torch.rand(1).item(), random.random(), np.random.rand()))  # noqa: NPY002
            model.get_buffer("seen").add_(1)
            model.count += 1
        assert bool((model.gate != 0).all())
    assert found[0] == found[1]
    assert all(one != other for one, other in zip(found[0][2:], found[2][2:], strict=True))
    assert found[2][:2] == (0, 0)
