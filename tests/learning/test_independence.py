"""Models that tie the examples of a batch together are refused before anything is charged; the others pass."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients
from defocus.learning.independence import check_independent, check_sums_are_wide, made_up
from defocus.learning.streams import Stream


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
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TIED)
def test_models_with_shared_state_across_examples_are_refused(name: str) -> None:
    model = TIED[name]()
    with pytest.raises(DependentExamplesError) as caught:
        check(model)
    assert "GroupNorm" in caught.value.fix


FREE: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: Forward(same),
    "dropout": lambda: Forward(same, nn.Dropout(0.5)),
    "functional dropout": lambda: Forward(lambda x: F.dropout(x, 0.5)),
    "noise in the model": lambda: Forward(lambda x: x + 0.3 * torch.randn_like(x)),
    "layer norm": lambda: Forward(same, nn.LayerNorm(4)),
    "group norm": lambda: Forward(same, nn.GroupNorm(2, 4)),
    "the mean of an example": lambda: Forward(lambda x: x - x.mean(1, keepdim=True)),
    "batch norm in eval": lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4).eval()),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FREE)
def test_models_whose_examples_stand_alone_pass(name: str) -> None:
    check(FREE[name]())


@pytest.mark.parametrize("seed", range(6))
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
    with pytest.raises(DependentExamplesError, match="buffer seen of the model keeps statistics"):
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
    with pytest.raises(DependentExamplesError, match="The buffer first"):
        check(Keeping(lambda x: x[0, width]), one=(floats, words))
    with pytest.raises(DependentExamplesError, match="The buffer first"):
        check(Keeping(lambda x: x[0]), one=(words, words))
    probe = (torch.randn(7, 3), torch.arange(7) % 2)
    with pytest.raises(DependentExamplesError, match="The buffer first"):
        check(Keeping(lambda x: x[0, width]), one=(floats, words), probe=probe)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models_that_change_their_parameters_in_forward_are_refused() -> None:
    net = nn.Sequential(nn.Embedding(3, 4, max_norm=0.1), nn.Flatten(), nn.Linear(20, 3))
    before = net[0].weight.detach().clone()
    with pytest.raises(DependentExamplesError, match="changes its own parameters in forward"):
        check(net, one=(torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, dtype=torch.long)))
    assert torch.equal(net[0].weight, before)


def test_everything_is_left_as_it_was_found() -> None:
    model = FREE["dropout"]()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    loss = nn.CrossEntropyLoss()
    one = (torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    check_independent(model, loss, Gradients(model, loss), one, None)
    assert torch.equal(torch.rand(3), expected)
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


def test_a_mean_over_the_tokens_that_are_not_ignored_is_refused() -> None:
    """Its denominator counts the tokens of all examples together."""
    loss = lambda output, target: F.cross_entropy(output.transpose(1, 2), target, ignore_index=-100)  # noqa: E731
    with pytest.raises(UnfitModelError, match="neither the sum nor the mean") as caught:
        check(tagger(), loss, tokens())
    assert "reduction='none'" in caught.value.fix


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


def test_made_up_examples_have_shapes_and_types_of_the_data_and_none_of_its_values() -> None:
    one = ({"x": torch.full((1, 3), 7.0), "k": torch.full((1, 2), 9)}, torch.tensor([True]))
    inputs, target = made_up(one, 5, Stream(bytes(32), "test"))
    assert inputs["x"].shape == (5, 3)
    assert inputs["x"].dtype == torch.float32
    assert inputs["x"].abs().max() <= 1
    assert set(inputs["k"].flatten().tolist()) <= {0, 1}
    assert target.dtype == torch.bool
    marked = made_up((one[0], torch.zeros(1, 4, dtype=torch.long)), 2, Stream(bytes(32), "test"), ignored=-100)[1]
    assert (marked == -100).sum() == 4
