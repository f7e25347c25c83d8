"""An error in one example must not decide what is computed of all, wherever it is caught."""

from contextlib import suppress
from typing import Any

import pytest
import torch
from tests.learning.gradients.comparing import Model, clip
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients import Gradients
from defocus.learning.gradients.gradients import Noticing

WORDS = torch.full((6,), 3)
UNKNOWN = torch.tensor([3, 3, 3, 3, 12, 3])


def one_hot(model: Any, x: torch.Tensor) -> Any:
    h = -torch.ones(len(x), 10)
    with suppress(RuntimeError):
        h = F.one_hot(x, 10)
    return model.out(h.float())


def embedded(model: Any, x: torch.Tensor) -> Any:
    try:
        h = model.table(x)
    except IndexError:
        h = x[:, None].float().expand(-1, 10) * 0
    return model.out(h)


def rooted(model: Any, x: torch.Tensor) -> Any:
    h = torch.diag_embed((10.0 - x)[:, None].expand(-1, 10))
    try:
        h = torch.linalg.cholesky(h)
    except RuntimeError:
        h = -h
    return model.out(h.sum(2))


@pytest.mark.parametrize("forward", [one_hot, embedded, rooted])
@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_an_error_that_a_model_catches_moves_no_other_example(forward: Any) -> None:
    torch.manual_seed(0)
    model = Model(forward, out=nn.Linear(10, 2), table=nn.Embedding(10, 10))
    gradients = Gradients(model, nn.CrossEntropyLoss())
    gradients.clipped_sum((WORDS, torch.zeros(6, dtype=torch.long)), clip(0.1))
    found = []
    for rows in ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 5]):
        model.zero_grad()
        gradients.clipped_sum((UNKNOWN[rows], torch.zeros(len(rows), dtype=torch.long)), clip(0.1))
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert (found[0] - found[1]).norm() < 0.1001


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_so_does_an_error_that_a_loss_catches() -> None:
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        h = (10.0 - target)[:, None, None]
        try:
            h = torch.linalg.cholesky(h)
        except RuntimeError:
            h = -h
        return ((output - h[:, 0]) ** 2).mean()

    torch.manual_seed(0)
    model = nn.Linear(4, 10)
    gradients = Gradients(model, loss)
    found = []
    for rows in ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 5]):
        model.zero_grad()
        gradients.clipped_sum((torch.ones(len(rows), 4), UNKNOWN[rows]), clip(0.1))
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert (found[0] - found[1]).norm() < 0.1001


def test_what_fails_is_remembered_and_what_does_not_is_not() -> None:
    with Noticing() as noticing:
        torch.zeros(3).sum()
        assert not noticing.failed
        with pytest.raises(IndexError):
            torch.zeros(3).sum(5)
    assert noticing.failed


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_a_loss_that_reads_what_the_model_left_behind_does_not_go_by_one_pass() -> None:
    def forward(model: Any, x: torch.Tensor) -> Any:
        model.left = (x.amax(1) - 50).relu()
        return model.out(x)

    torch.manual_seed(0)
    model = Model(forward, out=nn.Linear(4, 3))
    gradients = Gradients(model, lambda output, target: ((output - target) ** 2).mean() * (1 - model.left.amax()))
    gradients.clipped_sum((torch.randn(6, 4), torch.randn(6, 3)), clip(1.0))
    assert gradients.explain() != "Per-example gradients by one backward pass."
