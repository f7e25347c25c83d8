"""Models that tie the examples of a batch together are refused before anything is charged; the others pass."""
# ruff: noqa: NPY002 -- what models may draw from

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.making import trainer
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients, SlowGradientsWarning
from defocus.learning.gradients.reference import Steady
from defocus.learning.model_check import check_independent, check_sums_are_wide


class Forward(nn.Module):
    """A linear layer with something around it."""

    def __init__(self, around: Callable[[torch.Tensor], torch.Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.linear, self.around, self.inside = nn.Linear(6, 4), around, nn.ModuleList(modules)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(self.around(x))
        for each in self.inside:
            x = each(x)
        return x


def check(model: nn.Module, loss: Any = None, one: Any = None, probe: Any = None) -> None:
    torch.manual_seed(0)
    loss = nn.CrossEntropyLoss() if loss is None else loss
    one = (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long)) if one is None else one
    check_independent(model, loss, Gradients(model, loss), one, probe)


same = lambda x: x  # noqa: E731


class Training(nn.Module):
    """Something that happens in training only."""

    def __init__(self, what: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.linear, self.what = nn.Linear(6, 4), what

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h: torch.Tensor = self.linear(x)
        return self.what(h) if self.training else h


class Recalling(nn.Module):
    """Takes something of the batch before: kept in an attribute, in a list, or only the first time."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.linear, self.how = nn.Linear(6, 4), how
        self.kept: torch.Tensor | None = None
        self.past: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "list":
            before = self.past[-1] if self.past else torch.zeros(6)
            self.past.append(x.detach().mean(0))
        else:
            before = torch.zeros(6) if self.kept is None else self.kept
            if self.how == "attribute" or self.kept is None:
                self.kept = x.detach().mean(0)
        return self.linear(x + before)


class Gated(nn.Module):
    """Two closed gates before something that mixes: neither losses nor gradients show it while they are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(2, 4)
        self.gates = nn.Parameter(torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h: torch.Tensor = self.table(x).mean(1)
        return h + self.gates[0] * self.gates[1] * (h - h.mean(0))


class Attending(nn.Module):
    """Attention whose sequence is the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.linear = nn.MultiheadAttention(6, 2), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = x.unsqueeze(1)  # (positions, batch of one, width)
        return self.linear(self.attention(turned, turned, turned)[0].squeeze(1))


def first_to_all(h: torch.Tensor) -> torch.Tensor:
    return h + torch.cat([torch.zeros_like(h[:1]), h[:1].expand(len(h) - 1, -1)])


def in_the_gradient_only(h: torch.Tensor) -> torch.Tensor:
    mean = h.mean(0)
    return h + (mean - mean.detach())


TIED: dict[str, Callable[[], nn.Module]] = {
    "batch norm": lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)),
    "batch norm without statistics": lambda: nn.Sequential(
        nn.Linear(6, 4), nn.BatchNorm1d(4, track_running_stats=False)
    ),
    "the mean of the batch": lambda: Forward(lambda x: x - x.mean(0)),
    "functional batch norm": lambda: Forward(lambda x: F.batch_norm(x, None, None, training=True)),
    "a neighbour": lambda: Forward(lambda x: x + 0.1 * x.roll(1, 0)),
    "the largest of the batch": lambda: Forward(lambda x: x / x.abs().max()),
    "softmax over the batch": lambda: Forward(lambda x: x.softmax(0)),
    "the size of the batch": lambda: Forward(lambda x: x * len(x)),
    "mixup in training": lambda: Training(lambda h: 0.5 * h + 0.5 * h[torch.randperm(len(h))]),
    "mixup by numpy": lambda: Training(lambda h: h + h[torch.from_numpy(np.random.permutation(len(h)))]),
    "the first added to the others": lambda: Training(first_to_all),
    "the first input added to the others": lambda: Forward(first_to_all),
    "the last added to the others": lambda: Training(lambda h: first_to_all(h.flip(0)).flip(0)),
    "running sums": lambda: Training(lambda h: h.cumsum(0)),
    "running sums of inputs": lambda: Forward(lambda x: x.cumsum(0)),
    "running sums from the end": lambda: Forward(lambda x: x.flip(0).cumsum(0).flip(0)),
    "the gradient only": lambda: Training(in_the_gradient_only),
    "sorting": lambda: Forward(lambda x: x.sort(0).values),
    "ranking": lambda: Forward(lambda x: x + 0.1 * x[:, :1].argsort(0).argsort(0)),
    "gathering the strongest": lambda: Training(lambda h: h + h[h[:, :1].argmax(0)]),
    "the position in the batch": lambda: Forward(lambda x: x + torch.arange(len(x))[:, None]),
    "reversing": lambda: Training(lambda h: h.flip(0)),
    "attention over the batch": Attending,
    "a hundred-millionth of the mean": lambda: Forward(lambda x: x + 1e-8 * x.mean(0)),
    "nothing of the sum": lambda: Forward(lambda x: x + 0 * x.sum()),
    "the mean of pairs only": lambda: Training(lambda h: h - h.mean(0) if len(h) == 2 else h),
    "the mean of large batches": lambda: Training(lambda h: h - h.mean(0) if len(h) > 60 else h),
    "rarely, by torch": lambda: Training(lambda h: h - h.mean(0) if torch.rand(()) < 0.002 else h),
    "rarely, by a large number": lambda: Training(lambda h: h - h.mean(0) if torch.randn(()) > 3 else h),
    "rarely, by Python": lambda: Training(lambda h: first_to_all(h) if 0.6 < random.random() < 0.7 else h),
    "at times, in the gradient": lambda: Training(lambda h: in_the_gradient_only(h) if random.random() < 0.5 else h),
    "at times, by Python": lambda: Training(lambda h: h - h.mean(0) if random.random() < 0.5 else h),
    "masks that look at the batch": lambda: Training(lambda h: h * (h > h.median(0).values)),
    "two examples at a time": lambda: Training(
        lambda h: torch.cat([h[: len(h) // 2 * 2].view(-1, 2, 4).sum(1).repeat_interleave(2, 0), h[len(h) // 2 * 2 :]])
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TIED)
def test_models_with_shared_state_across_examples_are_refused(name: str) -> None:
    model = TIED[name]()
    with pytest.raises(DependentExamplesError) as caught:
        check(model)
    assert "GroupNorm" in caught.value.fix


LOOKING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "pixels": lambda x: x / 255 if x.max() > 10 else x,
    "centred when wide": lambda x: x - x.mean(0) if x.std(correction=0) > 1 else x,
    "outliers one by one": lambda x: torch.stack([row / 10 if row.abs().max() > 5 else row for row in x]),
    "a mask": lambda x: torch.zeros_like(x).masked_scatter(x > 0, 2 * x[x > 0]),
}


DECIDING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "turned": lambda x: x if x.sum() > 0 else -x,
    "the strongest": lambda x: x + x[x[:, 0].argmax()],
    "through numpy": lambda x: x * float(np.median(x.numpy())),
    "drawing now and then": lambda x: F.dropout(x) if x[0, 0] > 0 else x,
}


@pytest.mark.parametrize("name", DECIDING)
def test_models_in_which_numbers_of_a_batch_decide_for_all_are_refused_with_their_line(name: str) -> None:
    with pytest.raises(DependentExamplesError, match=r"numbers of the batch come to Python by \w+ in \w+\.py, line"):
        check(Forward(DECIDING[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKING)
def test_models_that_look_at_numbers_of_a_batch_see_one_example_at_a_time(name: str) -> None:
    """What they do with it is the business of the one example then, and the sums are those of examples alone."""
    model, loss = Forward(LOOKING[name]), nn.CrossEntropyLoss()
    gradients = Gradients(model, loss)
    one = (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    with pytest.warns(SlowGradientsWarning, match="numbers of the batch"):
        check_independent(model, loss, gradients, one, None)
    assert "by one backward pass for each example" in gradients.explain()
    assert gradients.tuning  # so that a run that is resumed does the same
    resumed = Gradients(model, loss, tuning=gradients.tuning)
    assert resumed.explain() == gradients.explain()
    x, y = 300 * torch.randn(5, 6), torch.arange(5) % 4
    sums = []
    for some in ([0, 1, 2, 3, 4], [0, 1, 3, 4], [2]):
        model.zero_grad()
        with Steady():
            resumed.clipped_sum((x[some], y[some]), torch.ones_like)
        sums.append(torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None]))
    torch.testing.assert_close(sums[0], sums[1] + sums[2])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_losses_that_take_one_example_at_a_time_only_get_that() -> None:
    """A mean over targets that are there, of the whole batch or of an example."""

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        there = target != -1
        return F.cross_entropy(output[there], target[there])

    model = Forward(same)
    gradients, one = Gradients(model, loss), (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    check_independent(model, loss, gradients, one, None)
    assert "a shape depends on numbers of the batch" in gradients.explain()


class Leaving(nn.Module):
    """Looks at a number, and leaves something for the next example."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.kept = nn.Linear(6, 4), torch.zeros(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, self.kept = x + self.kept, (x[-1] if x.max() > 0 else x[0]).detach()
        found: torch.Tensor = self.linear(x)
        return found


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_at_a_time_nothing_is_left_for_the_next() -> None:
    with pytest.raises(DependentExamplesError, match="changes with"):
        check(Leaving())


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.linear = nn.LSTM(6, 6, batch_first=True), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.clamp(1, x.shape[1]).cpu(), batch_first=True, enforce_sorted=False
        )
        found: torch.Tensor = self.linear(self.layer(packed)[1][0][-1])
        return found


class Started(nn.Module):
    """A cell whose first state is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.linear, self.start = nn.GRUCell(6, 5), nn.Linear(5, 4), nn.Parameter(torch.ones(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(self.cell(x, self.start.expand(len(x), -1)))
        return found


class Routed(nn.Module):
    """Each example goes to the expert that its numbers choose."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(6, 2), nn.ModuleList([nn.Linear(6, 4), nn.Linear(6, 4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.gate(x).softmax(1)
        made = x.new_zeros(len(x), 4)
        for number, expert in enumerate(self.experts):
            chosen = (scores.argmax(1) == number).nonzero()[:, 0]
            made = made.index_add(0, chosen, expert(x[chosen]) * scores[chosen, number : number + 1])
        return made


SLOW: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "packed": (Packed, (torch.zeros(1, 5, 6), torch.zeros(1, dtype=torch.long))),
    "a learned first state": (Started, torch.zeros(1, 6)),
    "routed experts": (Routed, torch.zeros(1, 6)),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SLOW)
def test_models_that_need_a_slower_way_pass(name: str) -> None:
    made, inputs = SLOW[name]
    check(made(), one=(inputs, torch.zeros(1, dtype=torch.long)))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_loss_that_reaches_weights_past_the_model_gets_their_gradient() -> None:
    model = nn.Linear(6, 4)

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(output, target, reduction="none") + model.weight.square().sum()

    gradients, one = Gradients(model, loss), (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    check_independent(model, loss, gradients, one, None)
    gradients.clipped_sum((torch.zeros(3, 6), torch.zeros(3, dtype=torch.long)), torch.ones_like)
    torch.testing.assert_close(model.weight.grad, 6 * model.weight.detach())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "layer", [nn.LSTM(2, 4), *(pytest.param(layer(2, 4), marks=pytest.mark.slow) for layer in (nn.GRU, nn.RNN))],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_the_remedy_names_an_order_of_dimensions_that_was_forgotten(layer: nn.Module) -> None:
    with pytest.raises(DependentExamplesError) as caught:
        check(Recurrent(layer))
    assert "batch_first=True" in caught.value.fix


@pytest.mark.parametrize(("kind", "name"), [(torch.float64, "float64"), (torch.uint8, "uint8")])
def test_inputs_of_another_type_than_the_model_are_to_be_converted(kind: torch.dtype, name: str) -> None:
    with pytest.raises(UnfitModelError) as caught:
        check(Forward(same), one=(torch.zeros(1, 6, dtype=kind), torch.zeros(1, dtype=torch.long)))
    assert f"convert inputs from {name} to float32" in caught.value.fix


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(x.view(len(x), 3, 2))[0][:, -1]
        return found


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3, batch_first=True)
        self.up = nn.Linear(2, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(self.up(x.view(len(x), 3, 2))).mean(1)
        return found


def zeros(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    return layer


FREE: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: Forward(same),
    "dropout": lambda: Forward(same, nn.Dropout(0.5)),
    "functional dropout": lambda: Forward(lambda x: F.dropout(x, 0.5)),
    "noise in the model": lambda: Forward(lambda x: x + 0.3 * torch.randn_like(x)),
    "layer norm": lambda: Forward(same, nn.LayerNorm(4)),
    "group norm": lambda: Forward(same, nn.GroupNorm(2, 4)),
    "the mean of an example": lambda: Forward(lambda x: x - x.mean(1, keepdim=True)),
    "dropout of whole channels": lambda: Forward(same, nn.Unflatten(1, (2, 2)), nn.Dropout1d(0.5), nn.Flatten()),
    "one mask for the whole batch": lambda: Training(lambda h: h * torch.empty(4).bernoulli_(0.5)),
    "paths dropped by example": lambda: Training(lambda h: h * torch.empty(len(h), 1).bernoulli_(0.8)),
    "noise by numpy": lambda: Training(lambda h: h + np.random.normal()),
    "features in another order": lambda: Training(lambda h: h[:, torch.randperm(4)]),
    "recurrent with dropout": lambda: Recurrent(nn.GRU(2, 4, 2, dropout=0.5, batch_first=True)),
    "attention with dropout": Transformer,
    "a last layer of zeros": lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), zeros(nn.Linear(4, 4))),
    "batch norm in eval": lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4).eval()),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FREE)
def test_models_whose_examples_stand_alone_pass(name: str) -> None:
    check(FREE[name]())


@pytest.mark.parametrize("seed", range(1))
def test_a_bias_that_a_norm_takes_away_ties_no_examples(seed: int) -> None:
    """Its gradient is rounding alone, which differs from batch to batch."""
    torch.manual_seed(seed)
    layers = (nn.Conv2d(1, 4, 3), nn.GroupNorm(4, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    check(nn.Sequential(*layers), one=(torch.zeros(1, 1, 8, 8), torch.zeros(1, dtype=torch.long)))


class Remembering(nn.Module):
    def __init__(self, *, data: bool) -> None:
        super().__init__()
        self.linear, self.data = nn.Linear(6, 4), data
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += x.detach().sum() if self.data else 1
        return self.linear(x)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_buffers_that_keep_statistics_are_refused_and_counters_are_not() -> None:
    with pytest.raises(DependentExamplesError, match="the operator sum goes over the examples"):
        check(Remembering(data=True))
    model = Remembering(data=False)
    check(model)
    assert float(model.seen) == 0  # left as it was found


class Keeping(nn.Module):
    """Keeps something of the first example in a buffer."""

    def __init__(self, what: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.table, self.linear, self.what = nn.Embedding(2, 3), nn.Linear(3, 4), what
        self.register_buffer("first", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.get_buffer("first").copy_(self.what(x).detach())
        return self.linear(x if x.is_floating_point() else self.table(x))


@pytest.mark.parametrize("width", range(3))
def test_a_buffer_of_the_first_example_is_refused(width: int) -> None:
    floats, words = torch.zeros(1, 3), torch.zeros(1, dtype=torch.long)
    with pytest.raises(DependentExamplesError, match="the operator select takes some examples"):
        check(Keeping(lambda x: x[0, width]), one=(floats, words))
    with pytest.raises(DependentExamplesError, match="the operator select takes some examples"):
        check(Keeping(lambda x: x[0]), one=(words, words))
    probe = (torch.randn(8, 3), torch.arange(8) % 2)
    with pytest.raises(DependentExamplesError, match="the operator select takes some examples"):
        check(Keeping(lambda x: x[0, width]), one=(floats, words), probe=probe)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models_that_change_their_parameters_in_forward_are_refused() -> None:
    net = nn.Sequential(nn.Embedding(3, 4, max_norm=0.1), nn.Flatten(), nn.Linear(20, 3))
    before = net[0].weight.detach().clone()
    with pytest.raises(DependentExamplesError, match="changes its own parameters in forward"):
        check(net, one=(torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, dtype=torch.long)))
    assert torch.equal(net[0].weight, before)


@pytest.mark.parametrize("how", ["attribute", "list", "first time"])
def test_models_that_recall_earlier_batches_are_refused(how: str) -> None:
    model = Recalling(how)
    with pytest.raises(DependentExamplesError, match="the operator mean goes over the examples"):
        check(model)
    assert model.kept is None
    assert not model.past


def test_a_generator_that_cannot_be_started_anew_is_refused() -> None:
    own = torch.Generator()
    with pytest.raises(DependentExamplesError, match="each time") as caught:
        check(Training(lambda h: h * torch.rand(len(h), 1, generator=own)))
    assert "generators" in caught.value.fix


@pytest.mark.parametrize("seed", range(4))
def test_shuffles_are_found_whatever_they_come_to(seed: int) -> None:
    for name in ("mixup in training", "at times, by Python"):
        torch.manual_seed(seed)
        random.seed(seed)
        model, loss = TIED[name](), nn.CrossEntropyLoss()
        one = (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
        with pytest.raises(DependentExamplesError, match="batch"):
            check_independent(model, loss, Gradients(model, loss), one, None)


def test_losses_that_are_not_finite_cannot_be_judged() -> None:
    model = Forward(torch.log)
    with pytest.raises(UnfitModelError, match="not finite") as caught:
        check(model)
    assert "probe=" in caught.value.fix
    check(model, probe=(torch.rand(8, 6) + 0.1, torch.arange(8) % 4))


def test_made_up_masks_that_leave_nothing_are_drawn_anew() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(1, 4)

        def forward(self, x: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.linear((x * there).sum(1, keepdim=True) / there.sum(1, keepdim=True))
            return found

    check(Masked(), one=((torch.zeros(1, 6), torch.zeros(1, 6, dtype=torch.bool)), torch.zeros(1, dtype=torch.long)))


@pytest.mark.parametrize(
    "what", [lambda x: x.mul_(2), lambda x: x.view(-1, 2).sub_(1).view(x.shape), lambda x: F.relu(x, inplace=True)]
)
def test_models_that_change_their_inputs_are_refused(what: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(UnfitModelError, match="changes what it is given") as caught:
        check(Forward(what))
    assert "copy" in caught.value.fix


def test_mixing_is_found_where_losses_show_nothing() -> None:
    with pytest.raises(DependentExamplesError, match="the operator mean goes over the examples"):
        check(TIED["the gradient only"]())


def test_closed_gates_hide_nothing() -> None:
    words = torch.zeros(1, 3, dtype=torch.long)
    with pytest.raises(DependentExamplesError):
        check(Gated(), one=(words, words[:, 0]))


def test_probes_that_are_alike_show_nothing_and_are_refused() -> None:
    with pytest.raises(UnfitModelError, match="alike"):
        check(Forward(same), probe=(torch.ones(8, 6), torch.zeros(8, dtype=torch.long)))


class Lying:
    """Gradients that are not what they are said to be."""

    def __init__(self, net: nn.Module, *, norms: float = 1.0, sums: float = 1.0, mixed: bool = False) -> None:
        self.net, self.norms, self.sums, self.mixed = net, norms, sums, mixed
        self.honest = Gradients(net, nn.CrossEntropyLoss())
        self.check, self.tell, self.checked, self.why = self.honest.check, self.honest.tell, True, ""

    def clipped_sum(self, batch: Any, rule: Any) -> Any:
        if self.mixed:
            batch = (batch[0] + 0.01 * batch[0].roll(1, 0), batch[1])
        made = self.honest.clipped_sum(batch, rule)
        for parameter in self.net.parameters():
            if parameter.grad is not None:
                parameter.grad *= self.sums
        return dataclasses.replace(made, norms=made.norms * self.norms)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"norms": 0.997}, "longer than its norm says"),
        ({"sums": 1.003}, "the gradient of an example changes"),
        ({"sums": 0.9}, "the gradient of an example changes"),
        ({"mixed": True}, "."),
    ],
)
def test_gradients_that_are_not_those_of_the_examples_are_refused(how: dict[str, Any], words: str) -> None:
    one = (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    torch.manual_seed(0)
    model = Forward(same)
    lying: Any = Lying(model, **how)
    with pytest.raises(UnfitModelError, match=words):
        check_independent(model, nn.CrossEntropyLoss(), lying, one, None)
    honest: Any = Lying(model, norms=0.9995)
    check_independent(model, nn.CrossEntropyLoss(), honest, one, None)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_batches_are_as_large_as_will_be_trained() -> None:
    model = Training(lambda h: h - h.mean(0) if len(h) > 300 else h)
    loss, one = nn.CrossEntropyLoss(), (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    check_independent(model, loss, Gradients(model, loss), one, None, batch=200)
    with pytest.raises(DependentExamplesError, match="number"):
        check_independent(model, loss, Gradients(model, loss), one, None, batch=256)


def mixing_above(rows: int) -> nn.Module:
    return Training(lambda h: h - h.mean(0) if len(h) > rows else h)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_run_is_checked_at_the_size_of_its_batches(tmp_path: Path) -> None:
    given: dict[str, Any] = {"data": (torch.randn(64, 6), torch.arange(64) % 4), "noise_multiplier": 9.0}
    trainer(tmp_path, model=mixing_above(45), batch_size=16, **given)
    trainer(tmp_path, model=mixing_above(45), batch_size=32, chunk=16, **given)
    with pytest.raises(DependentExamplesError, match="number"):
        trainer(tmp_path, model=mixing_above(45), batch_size=32, **given)


def drawn() -> tuple[list[float], float, float]:
    """What generators will draw next."""
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)
    found = torch.rand(3).tolist(), random.random(), np.random.rand()
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)
    return found


def test_everything_is_left_as_it_was_found() -> None:
    model = FREE["a last layer of zeros"]().append(nn.Dropout(0.5))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    expected = drawn()
    loss = nn.CrossEntropyLoss()
    one = (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    check_independent(model, loss, Gradients(model, loss), one, None)
    assert (torch.rand(3).tolist(), random.random(), np.random.rand()) == expected
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert all(torch.equal(each.grad, torch.ones_like(each)) for each in model.parameters() if each.grad is not None)
    assert model.training


def tokens() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 5, dtype=torch.long)


def tagger() -> nn.Module:
    return nn.Sequential(nn.Embedding(3, 4), nn.Linear(4, 3))


def each_token(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="none").view(target.shape).mean(1)


def over_the_batch(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """One loss for each example, but each over the tokens of the whole batch that are not ignored."""
    apart = F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="none").view(target.shape)
    return apart.sum(1) / (target != -100).sum()


def test_losses_averaged_over_the_tokens_of_a_batch_are_refused() -> None:
    check(tagger(), each_token, tokens())
    with pytest.raises(UnfitModelError):
        check(tagger(), over_the_batch, tokens())


def test_means_over_the_tokens_of_a_batch_are_refused_where_some_made_up_examples_have_none() -> None:
    """Batches in which an example has no loss, or that come to the same by chance, do not make the others pass."""

    def masked(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        every = F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="none")
        return (every * (target.flatten() != 0)).sum() / (target != 0).sum()

    for seed in range(3):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9))
        one = torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)
        with pytest.raises(UnfitModelError, match="neither the sum nor the mean"):
            check_independent(model, masked, Gradients(model, masked), one, None)


class Own(nn.Module):
    """Tells its loss or flattened scores, as models of transformers do, and whatever their rows belong to."""

    def __init__(self, *, scores: bool) -> None:
        super().__init__()
        self.table, self.out, self.scores = nn.Embedding(9, 6), nn.Linear(6, 9), scores

    def forward(self, words: torch.Tensor, wanted: torch.Tensor) -> Any:
        found = self.out(self.table(words)).flatten(0, 1)
        return {"found": found if self.scores else F.cross_entropy(found, wanted.flatten())}


@pytest.mark.parametrize("scores", [False, True])
def test_models_of_which_no_output_can_be_told_by_example_are_judged_one_by_one(scores: bool) -> None:
    model = Own(scores=scores)

    def loss(output: Any, target: Any) -> torch.Tensor:
        found: torch.Tensor = output["found"]
        return F.cross_entropy(found, target.flatten()) if scores else found

    words = torch.zeros(1, 4, dtype=torch.long)
    gradients = Gradients(model, loss)
    check_independent(model, loss, gradients, ((words, words), words if scores else None), None)
    assert gradients.checked


def test_a_mean_over_the_tokens_that_are_not_ignored_is_taken_by_example_and_said() -> None:
    """Its denominator would count the tokens of all examples together."""

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(output.transpose(1, 2), target, ignore_index=-100)

    model = tagger()
    gradients = Gradients(model, loss)
    check_independent(model, loss, gradients, tokens(), None)
    assert "each example's own mean over its targets" in gradients.explain()
    words = torch.tensor([[0, 1, 2, 0, 1], [2, 2, 1, 0, 0]])
    ignored = torch.tensor([[0, -100, -100, -100, -100], [2, 1, 0, 1, 2]])
    found = gradients.clipped_sum((words, ignored), torch.ones_like)
    alone = [loss(model(words[i : i + 1]), ignored[i : i + 1]).item() for i in range(2)]
    assert found.losses.tolist() == pytest.approx(alone, rel=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        lambda output, target: F.cross_entropy(output, target, reduction="none").view(2, 2).mean(1),  # micro-batches
        lambda output, target: (output.argmax(1) == target).sum(),  # whole numbers
        lambda output, target: F.cross_entropy(output, target) / len(output),  # averaged twice
        lambda output, target: F.cross_entropy(output, target) ** 2,  # neither a sum nor a mean
        lambda output, target: 1.0,  # noqa: ARG005
        lambda output, target: (output.argmax(1) == target).float(),  # no gradient
    ],
    ids=["micro-batches", "whole numbers", "averaged twice", "a square", "no tensor", "no gradient"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_losses_that_are_no_sum_of_examples_are_refused(loss: Any) -> None:
    with pytest.raises(UnfitModelError) as caught:
        check(Forward(same), loss)
    assert caught.value.fix


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_that_accepts_no_made_up_examples_is_told_and_can_be_given_some() -> None:
    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if (x < 0).any():
                raise ValueError("lengths cannot be negative")
            return self.linear(x)

    with pytest.raises(UnfitModelError, match="lengths cannot be negative") as caught:
        check(Picky())
    assert "probe=" in caught.value.fix
    probe = (torch.rand(8, 6), torch.arange(8) % 4)
    check(Picky(), probe=probe)
    with pytest.raises(UnfitModelError, match="too few"):
        check(Picky(), probe=(probe[0][:3], probe[1][:3]))


class Summing:
    """Sums of gradients that are rounded to a type, or not."""

    def __init__(self, net: nn.Module, dtype: torch.dtype | None) -> None:
        self.net, self.dtype = net, dtype

    def clipped_sum(self, batch: Any, rule: Any) -> None:
        assert rule(torch.zeros(3)).tolist() == [1.0] * 3
        assert len(batch[1]) == 16
        for parameter in self.net.parameters():
            wide = torch.linspace(0.1, 1, parameter.numel()).view(parameter.shape)
            parameter.grad = wide if self.dtype is None else wide.to(self.dtype).float()


def test_sums_of_gradients_must_be_wider_than_what_is_multiplied() -> None:
    net = Forward(same)
    one = (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    wide: Any = Summing(net, None)
    check_sums_are_wide(net, wide, one, torch.bfloat16)
    assert all(parameter.grad is None for parameter in net.parameters())
    narrow: Any = Summing(net, torch.bfloat16)
    with pytest.raises(UnfitModelError, match=r"linear\.weight is itself rounded to few bits") as caught:
        check_sums_are_wide(net, narrow, one, torch.bfloat16)
    assert "float32" in caught.value.fix


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_one_number_that_cancel_are_no_sign_of_company(seed: int) -> None:
    """Of one weight, clipped gradients are plus or minus one, and their sum is what rounding leaves of nothing."""
    generator = torch.Generator().manual_seed(seed)
    probe = (torch.randn(24, 1, generator=generator), torch.randn(24, 1, generator=generator))
    one = (torch.zeros(1, 1), torch.zeros(1, 1))
    check(nn.Linear(1, 1, bias=False), lambda output, target: (output * target).sum(1), one, probe)
    check(nn.Linear(1, 1, bias=False), lambda output, target: (output * target).sum(1), one)
