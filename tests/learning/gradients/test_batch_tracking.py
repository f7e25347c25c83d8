"""What rearranges, selects or mixes examples is never trusted, whatever it does to the examples that were looked at."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.gradients.comparing import Model, added, assert_right, clip, grouped
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere
from torch.overrides import TorchFunctionMode

from defocus.learning.gradients import Gradients, SlowGradientsWarning
from defocus.learning.gradients.batch_rules import LOST, Place, reshaped
from defocus.learning.gradients.batch_tracking import Expected, Follower, expected, leaves
from defocus.learning.gradients.hooks import UnknownUseError
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.piece import Choices
from defocus.learning.gradients.reference import Looped

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


def hooked_before(x: torch.Tensor) -> torch.Tensor:
    if x.grad_fn is not None:
        x.grad_fn.register_prehook(lambda gradients: (gradients[0].flip(0),))
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
    "an operator of a library": torch.ops.aten.tanh,
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


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", UNTRUSTED)
def test_what_may_rearrange_examples_is_left_to_a_plainer_way(name: str, *, first: bool) -> None:
    model = model_of(UNTRUSTED[name], first=first)
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    way._trusted = True  # the trial on two examples would be misled
    batch = (torch.ones(EXAMPLES, 4, 8), torch.randint(0, 3, (EXAMPLES,)))
    with pytest.raises(UnknownUseError):
        added(way, model, batch, clip(1.0))


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", TRUSTED)
def test_what_keeps_examples_apart_stays_on_the_fast_way(name: str, *, first: bool) -> None:
    torch.manual_seed(0)
    assert_right(model_of(TRUSTED[name], first=first), (torch.randn(5, 4, 8), torch.randint(0, 3, (5,))))


@pytest.mark.parametrize("use", [Through.apply, hooked, hooked_before], ids=["function", "hook", "prehook"])
def test_a_backward_pass_that_is_not_known_is_left_to_a_plainer_way(use: Use) -> None:
    model = model_of(use, first=False)
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    way._trusted = True
    with pytest.raises(UnknownUseError):
        added(way, model, (torch.ones(EXAMPLES, 4, 8), torch.randint(0, 3, (EXAMPLES,))), clip(1.0))


def test_a_pass_that_calls_another_function_than_the_one_looked_at_is_not_trusted() -> None:
    """Which functions are called may depend on the number of examples; two and three of them were looked at."""
    model = model_of(lambda x: x.flip(0) if len(x) > 3 else x.tanh(), first=False)
    gradients = Gradients(model, nn.CrossEntropyLoss())
    batch = (torch.randn(EXAMPLES, 4, 8), torch.randint(0, 3, (EXAMPLES,)))
    with pytest.warns(SlowGradientsWarning):
        gradients.clipped_sum(batch, clip(0.1))


def test_sorting_by_length_moves_no_example_into_the_clip_of_another() -> None:
    """Examples that are looked at have one length, and those that are trained have many."""

    def forward(m: Any, tokens: torch.Tensor) -> Any:
        lengths = (tokens != 9).sum(1)
        by = torch.argsort(lengths, descending=True, stable=True)
        found, _ = m.recurrent(m.table(tokens)[by])
        last = found[torch.arange(len(tokens)), (lengths[by] - 1).clamp(min=0)]
        return m.out(last[torch.argsort(by)])

    torch.manual_seed(0)
    model = Model(forward, table=nn.Embedding(10, 4), recurrent=nn.GRU(4, 6, batch_first=True), out=nn.Linear(6, 2))
    gradients = Gradients(model, nn.CrossEntropyLoss())
    tokens, labels = torch.randint(0, 9, (16, 6)), torch.randint(0, 2, (16,))
    with pytest.warns(SlowGradientsWarning):
        gradients.clipped_sum((tokens, labels), clip(0.01))
    for row, length in zip(tokens, torch.randint(1, 7, (16,)), strict=True):
        row[length:] = 9
    expected = added(
        Looped(model, Losses(nn.CrossEntropyLoss()), grouped(model, None)), model, (tokens, labels), clip(0.01)
    )
    for each in model.parameters():
        each.grad = None
    norms = gradients.clipped_sum((tokens, labels), clip(0.01)).norms
    assert torch.allclose(norms, expected[1][0], rtol=1e-4)
    assert torch.allclose(torch.cat([p.grad.flatten() for p in model.parameters()]), expected[2], atol=1e-6)


def test_places_in_another_shape() -> None:
    assert reshaped(Place(0), (5, 4, 8), (20, 8)) == Place(0, 1, 4)
    assert reshaped(Place(0, 1, 4), (20, 8), (5, 4, 8)) == Place(0)
    assert reshaped(Place(1), (4, 5, 8), (20, 8)) == Place(0, 4, 1)
    assert reshaped(Place(0, 4, 1), (20, 8), (4, 5, 8)) == Place(1)
    assert reshaped(Place(0, 4, 1), (20, 8), (5, 4, 8)) is LOST
    assert reshaped(Place(1), (4, 5, 8), (1, 4, 40)) == Place(2, 1, 8)
    assert reshaped(Place(1), (4, 5, 8), (160,)) == Place(0, 4, 8)
    assert reshaped(Place(0), (5, 4), (2, 10)) is LOST


def course(use: Use, examples: int) -> list[tuple[Place | None, ...]]:
    batch = torch.ones(examples, 6)
    follower = Follower(batch)
    with Following(follower):
        use(batch)
    return follower.course


class Following(TorchFunctionMode):
    """Lets a follower see every call."""

    def __init__(self, follower: Follower) -> None:
        super().__init__()
        self.follower = follower

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        self.follower.saw(func, args, kwargs or {}, result, inside=False)
        return result


def test_the_course_of_a_pass_tells_a_place_that_fits_a_number_of_examples_by_chance() -> None:
    def folded(w: torch.Tensor) -> torch.Tensor:
        return w.reshape(6, -1).amax(-1)

    def apart(w: torch.Tensor) -> torch.Tensor:
        return w.unsqueeze(1).amax(-1) + torch.ones(1)

    assert course(apart, 2) == course(apart, 3) == [(Place(0),), (Place(0),), (None,), (Place(0),)]
    assert course(folded, 2) == [(Place(0, 1, 3),), (Place(0, 1, 3),)]
    assert course(folded, 3) == [(Place(0, 1, 2),), (Place(0, 1, 2),)]


@pytest.mark.parametrize("dims", [2, 3])
def test_masks_of_attention_have_a_place_where_they_are_of_each_example_alone(dims: int) -> None:
    def attended(w: torch.Tensor) -> torch.Tensor:
        times = torch.zeros(4 if dims == 3 else 2 * len(w), len(w), 8) + w[:, :1]
        mask = w[:, None, :1].expand(-1, 2, len(times)).flatten(0, 1)
        mask = mask[:, None].expand(-1, len(times), -1) if dims == 3 else mask
        return F.multi_head_attention_forward(
            times, times, times, 8, 2, torch.ones(24, 8), None, None, None,
            add_zero_attn=False, dropout_p=0.0, out_proj_weight=torch.ones(8, 8), out_proj_bias=None, attn_mask=mask,
        )[0]  # fmt: skip

    assert course(attended, 3)[-1][0] == (Place(1) if dims == 3 else LOST)


NAN = float("nan")


def test_leaves_are_numbers_and_names_with_a_mark_for_tensors() -> None:
    t = torch.zeros(1)
    assert leaves((t, t, [1, (2.5, t)], slice(None, 3)), {"dim": -1, "dtype": torch.float32}) == (
        torch.Tensor, 1, 2.5, torch.Tensor, None, 3, None, "dim", -1, "dtype", torch.float32,
    )  # fmt: skip
    assert leaves((NAN, np.int64(3), print, {"a": True}), {}) == (float, 3, type(print), "a", True)


def fits(two: Any, three: Any, examples: int, now: Any) -> bool | None:
    found = expected([(torch.sum, leaves(two, {}))], [(torch.sum, leaves(three, {}))])
    return None if found is None else found[0].fits(now, {}, examples)


def test_whole_numbers_may_grow_with_the_examples_in_a_line() -> None:
    assert fits((2, 4), (3, 4), 10, (10, 4))
    assert fits((11,), (16,), 10, (51,))
    assert not fits((2, 4), (3, 4), 10, (10, 5))
    assert not fits((2, 4), (3, 4), 10, (9, 4))
    assert not fits((2, 4), (3, 4), 10, (10, 4, 1))
    assert not fits((1,), (1,), 10, (0,))


@pytest.mark.parametrize(("two", "three"), [((0.0,), (1.0,)), ((True,), (False,)), (("a",), ("b",)), ((1,), (1, 1))])
def test_nothing_else_may_change_with_the_examples(two: Any, three: Any) -> None:
    assert fits(two, three, 4, two) is None


def test_the_functions_must_be_the_same() -> None:
    assert expected([(torch.sum, ())], [(torch.mean, ())]) is None
    assert expected([(torch.sum, ())], []) is None
    assert expected([(torch.sum, (1,))], [(torch.sum, (1,))]) == (Expected(torch.sum, (1,), (1,), fixed=True),)


def moved(model: nn.Module, between: Callable[[Any], None]) -> float:
    """How far the sum moves if an example that is unlike the others is left out, after a batch and a change."""
    torch.manual_seed(0)
    x = torch.cat([100 * torch.ones(1, 6), torch.ones(9, 6) + 0.01 * torch.randn(9, 6)])
    gradients, found = Gradients(model, nn.MSELoss()), []
    gradients.clipped_sum((x, torch.zeros(10, 4)), clip(1.0))
    between(model)
    for rows in (slice(0, 10), slice(1, 10)):
        model.zero_grad()
        gradients.clipped_sum((x[rows], torch.zeros(10, 4)[rows]), clip(1.0))
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    return float((found[0] - found[1]).norm())


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: m.a(x) - m.a(x).mean(m.axis, keepdim=True),
        lambda m, x: m.a(x.cumsum(1 if len(x) < 4 else 0)),
    ],
    ids=["an axis that is changed", "an axis chosen by the size"],
)
def test_an_axis_that_changes_later_moves_no_other_example(forward: Any) -> None:
    assert moved(Model(forward, a=nn.Linear(6, 4), axis=1), lambda m: setattr(m, "axis", 0)) < 1.001


def test_a_model_that_names_the_number_of_examples_goes_by_one_backward_pass() -> None:
    model = Model(lambda m, x: m.a(x.view(len(x) * 2, 3)).view(len(x), -1), a=nn.Linear(3, 2))
    gradients = Gradients(model, nn.MSELoss())
    for size in (4, 7):
        gradients.clipped_sum((torch.randn(size, 6), torch.zeros(size, 4)), clip(1.0))
    assert gradients.explain() == "Per-example gradients by one backward pass."
