"""What rearranges, selects or mixes examples is refused by name, or never goes through a graph."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learning.gradients.comparing import Model, assert_right
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients
from defocus.learning.gradients.graph import CheckedGraph
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.places import Place, reshaped
from defocus.learning.gradients.trace import LookedError, UnknownUseError

Use = Callable[[torch.Tensor], Any]
EXAMPLES = 5


def mix(x: torch.Tensor) -> torch.Tensor:
    return x.mul_(x.amax(0)).clone()


LIBRARY = torch.library.Library("tests_following", "DEF")
LIBRARY.define("mix(Tensor(a!) x) -> Tensor")
LIBRARY.impl("mix", mix, "CPU")


class Through(torch.autograd.Function):
    """A function with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        del ctx
        return x * 1

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        del ctx
        return gradients[0]


def order(x: torch.Tensor) -> torch.Tensor:
    """An order by data, which is the identity for data that are all alike."""
    return torch.argsort((x[..., 0] > 9).flatten(1).sum(1), stable=True)


def into(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros(len(x), 4, 8)
    row = made[0]
    made.copy_(x)
    return made + row


def assigned(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[x > 1] = 0
    x[:, 0] = 1
    return x


def viewed(x: torch.Tensor) -> torch.Tensor:
    x = x * 1
    view, flat = x[:, 0], x.flatten(1)
    view += 1
    flat.mul_(2).clamp_(max=3)
    F.relu(x, inplace=True)
    return x + view.unsqueeze(1) + flat.view(x.shape)


def hooked(x: torch.Tensor) -> torch.Tensor:
    x.register_hook(lambda gradient: gradient.flip(0))
    return x


def written_count(x: torch.Tensor) -> torch.Tensor:
    count = torch.arange(len(x))
    count.mul_(0)
    return x[count]


def mixed_unseen(x: torch.Tensor) -> torch.Tensor:
    x = x * 1
    with torch._C.DisableTorchFunction():
        x.mul_(x.detach().amax(0))
    return x


def mixed_unseen_and_written(x: torch.Tensor) -> torch.Tensor:
    return mixed_unseen(x).add_(1)


def mixed_by_an_operator(x: torch.Tensor) -> torch.Tensor:
    x = x * 1
    torch.ops.tests_following.mix(x)
    return x


def swapped(x: torch.Tensor) -> torch.Tensor:
    x, other = x.detach() * 1, x.detach().flip(0)
    torch.utils.swap_tensors(x, other)
    return x


UNTRUSTED: dict[str, Use] = {
    "indexing by an order": lambda x: x[order(x)],
    "indexing by all, in their order": lambda x: x[list(range(len(x)))],
    "selecting": lambda x: x.index_select(0, order(x)),
    "gathering": lambda x: x.gather(0, order(x)[:, None, None].expand(-1, 4, 8)),
    "taking along": lambda x: x.take_along_dim(order(x)[:, None, None], 0),
    "scattering": lambda x: torch.zeros_like(x).scatter(0, order(x)[:, None, None].expand(-1, 4, 8), x),
    "a mask of all": lambda x: x[x[:, 0, 0] < 9],
    "a mask of all, by function": lambda x: x.masked_select(x < 9).view(x.shape),
    "places that are not zero": lambda x: x[torch.where(x[:, 0, 0] < 9)[0]],
    "sorting": lambda x: x * 0 + x.sort(0).values,
    "the largest": lambda x: x.topk(len(x), 0).values,
    "flipping": lambda x: x.flip(0),
    "flipping twice": lambda x: x.flip(0).flip(0),
    "rolling": lambda x: x.roll(len(x), 0),
    "rolling all": lambda x: x.roll(0),
    "rolling along no dimension": lambda x: x.roll(32, ()),
    "rows of the batch as a table": lambda x: torch.embedding(x.flatten(1), order(x)).view(x.shape),
    "a table that is looked up first": lambda x: torch.embedding(x.flatten(1), torch.arange(len(x))).view(x.shape),
    "patches of one image": lambda x: F.unfold(x, (1, 1)).view(x.shape),
    "a count that was written to": written_count,
    "a count that ends early": lambda x: x[torch.arange(len(x)).to(torch.int8).to(torch.int64)],
    "written to unseen": mixed_unseen,
    "written to unseen, then seen": mixed_unseen_and_written,
    "written to by an operator": mixed_by_an_operator,
    "swapped": swapped,
    "joining parts": lambda x: torch.cat([x[:1], x[1:]]),
    "joining": lambda x: torch.cat([x, x])[: len(x)],
    "stacking": lambda x: torch.stack(list(x)),
    "stacking what was unbound": lambda x: torch.stack(x.unbind()),
    "splitting": lambda x: torch.cat(x.split(1)),
    "padding": lambda x: F.pad(x, (0, 0, 0, 0, 0, 1))[:-1],
    "repeating": lambda x: x.repeat(2, 1, 1)[: len(x)],
    "interleaving": lambda x: x.repeat_interleave(torch.ones(len(x), dtype=torch.long), 0),
    "folding into another order": lambda x: x.transpose(0, 1).reshape(len(x), 4, 8),
    "folding the wrong way back": lambda x: x.reshape(-1, 8).view(4, len(x), 8).transpose(0, 1),
    "unique rows": lambda x: x.unique(dim=0)[: len(x)],
    "the mean over examples": lambda x: x - x.mean(0),
    "the mean over all": lambda x: x / x.abs().mean(),
    "running sums": lambda x: x.cumsum(0),
    "softmax over examples": lambda x: x.softmax(0),
    "a product over examples": lambda x: torch.einsum("btd,cte->cte", x, x),
    "a matrix of examples": lambda x: (x.flatten(1) @ x.flatten(1).t() @ x.flatten(1)).view(x.shape),
    "a branch": lambda x: x / 255 if x.max() > 9 else x,
    "a length": lambda x: x[:, : int((x < 9).flatten(1).sum(1).max())],
    "a length by a tensor": lambda x: x[:, : (x < 9).flatten(1).sum(1).max()],
    "a list": lambda x: torch.tensor(x.tolist()),
    "numpy": lambda x: torch.from_numpy(x.detach().numpy().copy()),
    "writing into a tensor that is seen elsewhere": into,
    "vectors of constants, flipped": lambda x: x + torch.arange(len(x)).flip(0)[:, None, None] * x.flip(0),
    "batches as channels": lambda x: F.max_pool1d(x.permute(1, 2, 0), 1).permute(2, 0, 1),
    "classes that are counted": lambda x: F.one_hot((x[..., 0] > 9).long()).sum(-1, keepdim=True) * x,
}
TRUSTED: dict[str, Use] = {
    "an operator by its name": torch.ops.aten.tanh,
    "folding and back": lambda x: x.reshape(-1, 8).tanh().view(len(x), -1, 8),
    "turning and back": lambda x: x.transpose(0, 1).tanh().transpose(0, 1),
    "folding turned": lambda x: x.transpose(0, 1).reshape(-1, 8).tanh().view(4, -1, 8).transpose(0, 1),
    "flipping time": lambda x: x.flip(1),
    "sorting time": lambda x: x.sort(1).values,
    "joining time": lambda x: torch.cat([x, x.roll(1, 1)], 1),
    "choosing time by numbers": lambda x: x[:, torch.tensor([2, 0])],
    "each its own time": lambda x: x[torch.arange(len(x)), (x[..., 0] > 0).sum(1).clamp(max=3)].unsqueeze(1),
    "gathering times": lambda x: x.gather(1, x.argsort(1)),
    "times one by one": lambda x: torch.stack(list(x.transpose(0, 1)), 1),
    "patches": lambda x: F.unfold(x.unsqueeze(1), (1, 1)).view(x.shape),
    "windows": lambda x: x.unfold(1, 2, 1).amax(-1),
    "padding time": lambda x: F.pad(x, (0, 0, 1, 0)),
    "a mask that is written": lambda x: x.clone().masked_fill_(x > 1, 0.0),
    "a mask that is assigned": assigned,
    "written into new memory": lambda x: torch.zeros(len(x), 4, 8).copy_(x),
    "written to, seen through a view": viewed,
    "products of times": lambda x: (x @ x.mT).softmax(-1) @ x,
    "by letters": lambda x: torch.einsum("btd,bsd->bts", x, x) @ x,
}


def model_of(use: Use, *, first: bool) -> nn.Module:
    if first:
        return Model(lambda m, x: m.out(use(x).tanh().mean(1)), out=nn.Linear(8, 3))
    return Model(lambda m, x: m.out(use(m.a(x)).mean(1)), a=nn.Linear(8, 8), out=nn.Linear(8, 3))


def looked_at(model: nn.Module, loss: Any = None, batch: Any = None) -> CheckedGraph:
    batch = (torch.randn(EXAMPLES, 4, 8), torch.zeros(EXAMPLES, dtype=torch.long)) if batch is None else batch
    losses = Losses(nn.CrossEntropyLoss() if loss is None else loss)
    return CheckedGraph(model, losses, dict(model.named_parameters()), batch, torch.zeros((), requires_grad=True))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", UNTRUSTED)
def test_what_is_not_known_to_keep_examples_apart_is_no_graph(name: str, *, first: bool) -> None:
    with pytest.raises((DependentExamplesError, UnfitModelError, UnknownUseError)):
        looked_at(model_of(UNTRUSTED[name], first=first))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", TRUSTED)
def test_what_keeps_examples_apart_is_right(name: str, *, first: bool) -> None:
    torch.manual_seed(0)
    batch = (torch.randn(EXAMPLES, 4, 8), torch.randint(0, 3, (EXAMPLES,)))
    assert_right(model_of(TRUSTED[name], first=first), batch)


def contrastive(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    del target
    normal = F.normalize(output, dim=1)
    return F.cross_entropy(normal @ normal.t(), torch.arange(len(output)), reduction="none")


def over_all(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output, target, reduction="none") / (target != -100).sum()


def pooled(x: torch.Tensor) -> torch.Tensor:
    return F.avg_pool1d(x.transpose(0, 1), 1).transpose(0, 1)


def attending(x: torch.Tensor) -> torch.Tensor:
    turned = x.transpose(0, 1)
    return F.scaled_dot_product_attention(turned, turned, turned).transpose(0, 1)


NAMED: dict[str, tuple[Callable[[], nn.Module], Any, str]] = {
    "batch norm": (lambda: model_of(nn.BatchNorm1d(4), first=False), None, "batch_norm"),
    "means": (lambda: model_of(lambda x: x - x.mean(0), first=False), None, "mean"),
    "sorting": (lambda: model_of(lambda x: x.sort(0).values, first=False), None, "sort"),
    "the largest of all": (lambda: model_of(lambda x: x / x.amax(), first=False), None, "amax"),
    "positions": (lambda: model_of(lambda x: x + torch.arange(len(x))[:, None, None], first=True), None, "add"),
    "sizes": (lambda: model_of(lambda x: x * len(x), first=True), None, "mul"),
    "neighbours": (lambda: model_of(lambda x: x + x.roll(1, 0), first=True), None, "roll"),
    "attention": (lambda: model_of(attending, first=True), None, "scaled_dot_product_attention"),
    "examples as times": (lambda: model_of(lambda x: nn.LSTM(8, 8)(x)[0], first=True), None, "lstm"),
    "examples as channels": (lambda: model_of(pooled, first=True), None, "avg_pool1d"),
    "a contrastive loss": (lambda: model_of(torch.tanh, first=True), contrastive, "mm|matmul"),
    "the tokens of all": (lambda: model_of(torch.tanh, first=True), over_all, "sum"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_what_mixes_examples_is_named_with_its_line(name: str) -> None:
    make, loss, operator = NAMED[name]
    with pytest.raises(DependentExamplesError, match=rf"the operator ({operator}) .* in \w+\.py, line \d+") as caught:
        looked_at(make(), loss)
    assert "GroupNorm" in caught.value.fix


def test_layers_of_torch_are_named_by_their_place_in_the_model() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(32, 4), nn.BatchNorm1d(4)))
    with pytest.raises(DependentExamplesError, match=r"in 1\.1 \(BatchNorm1d\):"):
        looked_at(model)


def test_what_is_not_known_is_named_with_its_line() -> None:
    with pytest.raises(UnknownUseError, match=r"the operator cholesky|the operator linalg_cholesky.* line \d+"):
        looked_at(model_of(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4)) @ x, first=True))
    with pytest.raises(UnknownUseError, match=r"Through has a gradient of its own in \w+\.py, line \d+"):
        looked_at(model_of(Through.apply, first=True))
    with pytest.raises(UnknownUseError, match="register_hook changes gradients"):
        looked_at(model_of(hooked, first=False))
    with pytest.raises(LookedError, match=r"numbers of the batch come to Python by __bool__ in \w+\.py, line \d+"):
        looked_at(model_of(lambda x: x if x.sum() > 0 else -x, first=False))


def test_what_a_batch_is_counted_by_in_a_buffer_is_named() -> None:
    def forward(m: Any, x: torch.Tensor) -> Any:
        m.seen.add_(x.detach().sum())
        return m.out(x.mean(1))

    with pytest.raises(DependentExamplesError, match="the operator sum goes over the examples"):
        looked_at(Model(forward, out=nn.Linear(8, 3), seen=nn.Buffer(torch.zeros(()))))
    with pytest.raises(UnknownUseError, match="the operator sum"):  # where the loss is one number
        looked_at(Model(forward, out=nn.Linear(8, 3), seen=nn.Buffer(torch.zeros(()))), SCALARS["two losses"])


@pytest.mark.parametrize("what", [lambda x: x, lambda x: x[:, 0], lambda x: x.mean(0)])
def test_what_is_kept_of_a_batch_is_refused_and_constants_are_not(what: Use) -> None:
    def forward(m: Any, x: torch.Tensor) -> Any:
        m.kept = torch.arange(4) * 2 if m.public else what(x)
        return m.out(x.mean(1))

    model = Model(forward, out=nn.Linear(8, 3))
    model.public = False
    with pytest.raises(DependentExamplesError):
        looked_at(model)
    model.public = True
    looked_at(model)
    assert not hasattr(model, "kept")


SCALARS: dict[str, Any] = {
    "mean": F.cross_entropy,
    "sum": nn.CrossEntropyLoss(reduction="sum"),
    "twice a mean": lambda output, target: 2 * F.cross_entropy(output, target) + 1,
    "two losses": lambda output, target: F.cross_entropy(output, target) + 0.1 * output.square().mean(),
    "a sum by its size": lambda output, target: F.cross_entropy(output, target, reduction="sum") / len(output),
    "written out": lambda output, target: -(output.log_softmax(1).gather(1, target[:, None])).mean(),
}


@pytest.mark.parametrize("name", SCALARS)
def test_losses_of_one_number_are_taken_apart(name: str) -> None:
    torch.manual_seed(0)
    batch = (torch.randn(EXAMPLES, 4, 8), torch.randint(0, 3, (EXAMPLES,)))
    assert_right(model_of(torch.tanh, first=False), batch, SCALARS[name])


@pytest.mark.parametrize(
    "loss",
    [
        lambda output, target: F.cross_entropy(output, target).sqrt(),
        lambda output, target: F.cross_entropy(output, target) * output.mean(),
        lambda output, target: F.cross_entropy(output, target, weight=torch.tensor([1.0, 2.0, 3.0])),
        lambda output, target: F.cross_entropy(output, target) / len(output),
        lambda output, target: F.cross_entropy(output, target) + output.sum(),
    ],
)
def test_numbers_that_are_no_sum_over_examples_are_no_graph(loss: Any) -> None:
    with pytest.raises(UnknownUseError):
        looked_at(model_of(torch.tanh, first=False), loss)


WEIGHTS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "twice": lambda m, x: x @ (2 * m.w).t(),
    "exponentials": lambda m, x: F.linear(x, m.w.exp()),
    "sums": lambda m, x: x[..., :3] + m.w.sum(1),
    "normalised": lambda m, x: F.linear(x, F.normalize(m.w)),
    "on the left": lambda m, x: (m.w @ x.mT).mT,
    "repeated": lambda m, x: x[..., :3] + m.w[:, :3].mean(0).repeat(len(x), 1, 1),
    "a temperature": lambda m, x: F.linear(x, m.w) * (m.w.norm() / 9).exp(),
    "chosen": lambda m, x: x[..., :3] * m.w[torch.tensor([0, 2, 1]), 0],
    "moved about": lambda m, x: x[..., :3] + m.w.t()[m.places.view(-1)].view(4, 2, 3).permute(1, 0, 2)[1].contiguous(),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_computed_of_parameters_are_right(name: str) -> None:
    torch.manual_seed(0)
    model = Model(lambda m, x: WEIGHTS[name](m, x).tanh().mean(1), w=nn.Parameter(torch.randn(3, 8)))
    model.register_buffer("places", torch.tensor([[0, 7, 1, 1], [1, 3, 0, 1]]))
    assert_right(model, (torch.randn(EXAMPLES, 4, 8), torch.randint(0, 3, (EXAMPLES,))))


def test_an_index_that_is_written_to_between_batches_is_looked_at_again() -> None:
    torch.manual_seed(0)
    model = Model(lambda m, x: (x + m.w[m.places]).tanh(), w=nn.Parameter(torch.randn(3)))
    model.register_buffer("places", torch.tensor([0, 2, 2]))
    gradients, batch = Gradients(model, nn.CrossEntropyLoss()), (torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))
    for places in ([0, 2, 2], [0, 2, 2], [1, 1, 0]):
        model.places.copy_(torch.tensor(places))
        model.zero_grad()
        gradients.clipped_sum(batch, torch.ones_like)
        found = model.w.grad.clone()
        model.zero_grad()
        nn.CrossEntropyLoss(reduction="sum")(model(batch[0]), batch[1]).backward()
        assert torch.allclose(found, model.w.grad, atol=1e-6)


def test_places_in_another_shape() -> None:
    assert reshaped(Place(0), (5, 4, 8), (20, 8)) == Place(0, 1, 4)
    assert reshaped(Place(0, 1, 4), (20, 8), (5, 4, 8)) == Place(0)
    assert reshaped(Place(1), (4, 5, 8), (20, 8)) == Place(0, 4, 1)
    assert reshaped(Place(0, 4, 1), (20, 8), (4, 5, 8)) == Place(1)
    assert reshaped(Place(0, 4, 1), (20, 8), (5, 4, 8)) is None
    assert reshaped(Place(1), (4, 5, 8), (1, 4, 40)) == Place(2, 1, 8)
    assert reshaped(Place(1), (4, 5, 8), (160,)) == Place(0, 4, 8)
    assert reshaped(Place(0), (5, 4), (2, 10)) is None


@given(st.lists(st.integers(1, 3), min_size=0, max_size=3), st.integers(0, 3), st.integers(1, 3))
def test_a_place_follows_the_examples_through_a_flat_tensor_and_back(rest: list[int], axis: int, size: int) -> None:
    shape = [*rest[:axis], 7 * size, *rest[axis:]]
    axis = min(axis, len(rest))
    place = Place(axis, 1, size)
    flat = reshaped(place, shape, (7 * size * torch.Size(rest).numel(),))
    assert flat is not None
    assert reshaped(flat, (7 * size * torch.Size(rest).numel(),), shape) == place
