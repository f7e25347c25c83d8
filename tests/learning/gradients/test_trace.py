"""What a trace sees: other lengths, parts that are computed again, and numbers of a batch that come to Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.gradients.comparing import Model, added, clip, grouped
from tests.learning.gradients.models import attending, sequences
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere
from torch.utils.checkpoint import checkpoint

from defocus.learning.gradients import Gradients
from defocus.learning.gradients.graph import CheckedGraph
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.piece import Choices
from defocus.learning.gradients.reference import Looped
from defocus.learning.gradients.trace import LookedError, UnknownUseError

slow_ways = pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")


def test_sequences_may_change_their_length_from_batch_to_batch() -> None:
    torch.manual_seed(0)
    model = attending(nn.MultiheadAttention(8, 2, batch_first=True), first=True)
    losses = Losses(nn.CrossEntropyLoss())
    way, loop = OnePass(model, losses, grouped(model, None), Choices()), Looped(model, losses, grouped(model, None))
    for length in (4, 6, 3, 4):
        batch = sequences(length=length)
        expected = added(loop, model, batch, clip(0.5))[2]
        assert torch.allclose(added(way, model, batch, clip(0.5))[2], expected, atol=1e-5)


def test_examples_that_begin_alike_do_not_mislead() -> None:
    torch.manual_seed(0)
    model = attending(nn.MultiheadAttention(8, 2, batch_first=True), first=True)
    x, y = sequences()
    x[1] = x[2] = x[0]
    losses = Losses(nn.CrossEntropyLoss())
    expected = added(Looped(model, losses, grouped(model, None)), model, (x, y), clip(0.5))[2]
    way = OnePass(model, losses, grouped(model, None), Choices())
    assert torch.allclose(added(way, model, (x, y), clip(0.5))[2], expected, atol=1e-5)


@slow_ways
@pytest.mark.parametrize("again", [False, True], ids=["saved", "reentrant"])
def test_a_part_computed_again_in_the_backward_pass_is_right(*, again: bool) -> None:
    """Without a function of its own it is one backward pass, which keeps what would be computed again, and says so."""
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh())
    model = Model(lambda m, x: m.out(checkpoint(m.a, x, use_reentrant=again).mean(1)), a=block, out=nn.Linear(6, 3))
    batch = sequences()
    batch[0].requires_grad_(again)
    expected = added(Looped(model, Losses(nn.CrossEntropyLoss()), grouped(model, None)), model, batch, clip(0.5))[2]
    model.zero_grad()
    gradients = Gradients(model, nn.CrossEntropyLoss())
    for _ in range(2):
        model.zero_grad()
        gradients.clipped_sum(batch, clip(0.5))
        assert torch.allclose(torch.cat([p.grad.flatten() for p in model.parameters()]), expected, atol=1e-5)
    assert ("Not by one backward pass" in gradients.explain()) == again
    assert again or "checkpoint would compute again is kept" in gradients.explain()


@slow_ways
def test_what_is_kept_for_the_backward_pass_may_not_be_changed_on_the_way() -> None:
    def forward(model: Any, x: torch.Tensor) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * (1 + (x.amax() - 50).relu())):
            h = model.a(x).tanh()
        return model.out(h)

    gradients = Gradients(Model(forward, a=nn.Linear(6, 4), out=nn.Linear(4, 3)), nn.CrossEntropyLoss())
    gradients.clipped_sum((torch.randn(5, 6), torch.zeros(5, dtype=torch.long)), clip(1.0))
    assert gradients.explain().startswith("Per-example gradients by one backward pass for each example.")
    assert "what is kept for the backward pass is changed in test_trace.py" in gradients.explain()


def test_places_may_not_depend_on_how_many_examples_there_are() -> None:
    def forward(model: Any, x: torch.Tensor) -> Any:
        return model.out(x.transpose(0, (len(x) == 2) - 1).transpose(0, (len(x) == 2) - 1).mean(1))

    with pytest.raises(UnknownUseError, match=r"test_trace\.py, line"):
        graph(Model(forward, out=nn.Linear(8, 3)), sequences())


WEIGHTS = torch.ones(6)
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


def graph(model: nn.Module, batch: Any) -> CheckedGraph:
    return CheckedGraph(model, Losses(nn.CrossEntropyLoss()), dict(model.named_parameters()), batch, torch.zeros(()))


def packed(x: torch.Tensor) -> Any:
    lengths = (x[:, 0] > 0).long() + 1
    return nn.utils.rnn.pack_padded_sequence(x[..., None], lengths, batch_first=True, enforce_sorted=False)


LOOKING: dict[str, Callable[[torch.Tensor], Any]] = {
    "a condition": lambda x: x / 255 if x.max() > 1 else x,
    "a condition that holds for none": lambda x: 0 if (x > 100).any() else 1,
    "item": lambda x: x.sum().item(),
    "int": lambda x: int(x[0, 0]),
    "tolist": lambda x: (2 * x).tolist(),
    "numpy": lambda x: x.numpy(),
    "an array": lambda x: np.asarray(x + 1),
    "a mask": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: x.unique(),
    "masked_select": lambda x: x.masked_select(x > 0),
    "equal": lambda x: torch.equal(x, x + 1),
    "a slice": lambda x: x[:, : (x > 0).sum(1).max()],
    "a range": lambda x: list(range((x > 0).sum())),
    "packed by lengths": packed,
    "repeated": lambda x: x.repeat_interleave((x[:, 0] > 0).long(), 0),
    "one hot of unknown width": lambda x: F.one_hot((x > 0).long()),
    "what was written to": lambda x: bool(torch.zeros(6).add_(x[0]).sum() > 0),
}
APART: dict[str, Callable[[torch.Tensor], Any]] = {
    "shapes": lambda x: x.reshape(-1).shape[0],
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "a number by a mask": lambda x: x.clone().__setitem__(x > 0, 0.0),
    "gathered": lambda x: x.gather(1, x.argmax(1, keepdim=True)),
    "indices": lambda x: x[torch.arange(len(x)), x.argmax(1)],
    "one hot": lambda x: F.one_hot((x > 0).long(), 3),
    "repeated evenly": lambda x: x.repeat_interleave(2, 0),
}


def beside(look: Callable[[torch.Tensor], Any]) -> nn.Module:
    """A model that looks at its inputs, whatever it makes of that."""

    def forward(model: Any, x: torch.Tensor) -> Any:
        look(x)
        return model.out(x)

    return Model(forward, out=nn.Linear(6, 3))


@pytest.mark.parametrize("name", LOOKING)
def test_numbers_of_a_batch_that_come_to_python_are_noticed(name: str) -> None:
    with pytest.raises(LookedError, match=r"test_trace\.py, line"):
        graph(beside(LOOKING[name]), (X, torch.zeros(4, dtype=torch.long)))


@pytest.mark.parametrize("name", APART)
def test_what_looks_at_no_number_of_the_batch_is_not_meant(name: str) -> None:
    assert not graph(beside(APART[name]), (X, torch.zeros(4, dtype=torch.long))).writes


@slow_ways
@pytest.mark.parametrize("number", [lambda: torch.rand(()), WEIGHTS.sum], ids=["draw", "constant"])
def test_a_draw_or_a_constant_that_decides_in_python_is_no_look_at_the_batch(number: Any) -> None:
    gradients = Gradients(beside(lambda x: x * 2 if number() > 0.5 else x), nn.CrossEntropyLoss())
    gradients.clipped_sum((X, torch.zeros(4, dtype=torch.long)), clip(1.0))
    assert not gradients.looks


def _masked(m: Model, x: torch.Tensor) -> torch.Tensor:
    """As transformers makes the mask of attention."""
    there = x[:, :, :1] > 0
    shown = None if not torch.compiler.is_compiling() and torch.all(there) else there
    found: torch.Tensor = m.out((x if shown is None else x * shown).mean(1))
    return found


def test_code_that_looks_at_no_number_where_it_is_compiled_is_passed_at_once() -> None:
    torch.manual_seed(0)
    model = Model(_masked, out=nn.Linear(8, 3))
    losses, batch = Losses(nn.CrossEntropyLoss()), sequences()
    expected = added(Looped(model, losses, grouped(model, None)), model, batch, clip(0.5))[2]
    way = OnePass(model, losses, grouped(model, None), Choices())
    assert torch.allclose(added(way, model, batch, clip(0.5))[2], expected, atol=1e-5)
    assert not torch.compiler.is_compiling()


def test_what_is_told_of_a_look_is_where_it_was_first() -> None:
    def always(m: Model, x: torch.Tensor) -> torch.Tensor:
        scale = 2.0 if torch.compiler.is_compiling() and bool(x.max() > 1) else 1.0
        made: torch.Tensor = m.out(x.mean(1)) * scale
        return made if made.max() > 0 else 2 * made

    with pytest.raises(LookedError, match=r"made\.max\(\)"):
        graph(Model(always, out=nn.Linear(8, 3)), sequences())
    assert not torch.compiler.is_compiling()
