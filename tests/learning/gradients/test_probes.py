"""Where examples are is found by looking, whatever the first batch happens to be."""

from typing import Any

import pytest
import torch
from tests.learning.gradients.comparing import Model, added, clip, grouped, trained
from tests.learning.gradients.models import attending, sequences
from torch import nn
from torch.utils.checkpoint import checkpoint

from defocus.learning.gradients import Gradients
from defocus.learning.gradients.hooks import UnknownUseError
from defocus.learning.gradients.layouts import Layout, Regions
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.piece import Choices
from defocus.learning.gradients.reference import Looped, plan, undisturbed


def seats(model: nn.Module, batch: Any) -> list[tuple[str, Layout]]:
    found = plan(model, Losses(nn.CrossEntropyLoss()), Regions(trained(model)), batch, torch.zeros(()))
    return [(seat.what, seat.layout) for seat in found.seats]


def test_attention_merges_examples_with_time_and_is_seen_through() -> None:
    model = attending(nn.MultiheadAttention(8, 2, batch_first=True), first=True)
    assert seats(model, sequences()) == [
        ("linear", Layout(1)),
        ("linear", Layout(0, 4, major=False)),
        ("linear", Layout(0)),
    ]


def test_examples_that_begin_alike_do_not_mislead() -> None:
    model = attending(nn.MultiheadAttention(8, 2, batch_first=True), first=True)
    x, y = sequences()
    x[1] = x[2] = x[0]
    assert seats(model, (x, y))[1] == ("linear", Layout(0, 4, major=False))


def test_sequences_may_change_their_length_from_batch_to_batch() -> None:
    torch.manual_seed(0)
    model = attending(nn.MultiheadAttention(8, 2, batch_first=True), first=True)
    losses = Losses(nn.CrossEntropyLoss())
    way, loop = OnePass(model, losses, grouped(model, None), Choices()), Looped(model, losses, grouped(model, None))
    for length in (4, 6, 3):
        batch = sequences(length=length)
        expected = added(loop, model, batch, clip(0.5))[2]
        assert torch.allclose(added(way, model, batch, clip(0.5))[2], expected, atol=1e-5)


def test_buffers_and_random_numbers_are_put_back() -> None:
    model = nn.BatchNorm1d(3)
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    with undisturbed(model):
        model(torch.randn(5, 3))
    assert torch.equal(torch.rand(2), expected)
    assert not bool(model.running_mean.any())


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_a_part_computed_again_in_the_backward_pass_is_right() -> None:
    """Recomputed outside of the watch, its parameters are attached: noticed by PyTorch, and done in a slower way."""
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh())
    model = Model(lambda m, x: m.out(checkpoint(m.a, x, use_reentrant=False).mean(1)), a=block, out=nn.Linear(6, 3))
    batch = sequences()
    expected = added(Looped(model, Losses(nn.CrossEntropyLoss()), grouped(model, None)), model, batch, clip(0.5))[2]
    model.zero_grad()
    gradients = Gradients(model, nn.CrossEntropyLoss())
    gradients.clipped_sum(batch, clip(0.5))
    found = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert torch.allclose(found, expected, atol=1e-5)
    assert "Not by one backward pass" in gradients.explain()


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_what_is_kept_for_the_backward_pass_may_not_be_changed_on_the_way() -> None:
    def forward(model: Any, x: torch.Tensor) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * (1 + (x.amax() - 50).relu())):
            h = model.a(x).tanh()
        return model.out(h)

    gradients = Gradients(Model(forward, a=nn.Linear(6, 4), out=nn.Linear(4, 3)), nn.CrossEntropyLoss())
    gradients.clipped_sum((torch.randn(5, 6), torch.zeros(5, dtype=torch.long)), clip(1.0))
    assert gradients.explain().startswith("Per-example gradients by one backward pass for each example.")


def test_places_may_not_depend_on_how_many_examples_there_are() -> None:
    def forward(model: Any, x: torch.Tensor) -> Any:
        x.transpose(0, len(x) - 1)
        return model.out(x.mean(1))

    with pytest.raises(UnknownUseError):
        seats(Model(forward, out=nn.Linear(8, 3)), sequences())
