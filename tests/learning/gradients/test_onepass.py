"""One backward pass gives what the loop over examples gives, for every kind of layer, both ways."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learning.gradients.comparing import Model, added, assert_right, clip, grouped, parameter, trained
from tests.learning.gradients.models import EXAMPLES, MODELS, images, pooled, sequences, tokens
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import UnfitModelError
from defocus.learning.gradients import Gradients, graph, onepass, uses
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces.piece import Choices
from defocus.learning.gradients.trace import UnknownUseError
from defocus.learning.gradients.uses import ChangedError

GHOST, WRITTEN = ("ghost",), ("instantiated",)
LAST = ("instantiated, channels last", "instantiated")
TURNED = ("instantiated, outputs last", "instantiated")
COLUMNS = ("instantiated, columns first", "instantiated")
CASES = [
    (name, forced)
    for name in MODELS
    for forced in (GHOST, WRITTEN, LAST, TURNED, COLUMNS)
    if len(forced) == 1 or "onvol" in name
]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize(("name", "forced"), CASES, ids=[f"{name}, {forced[0]}" for name, forced in CASES])
def test_norms_and_clipped_sums_are_those_of_the_loop(name: str, forced: tuple[str, ...]) -> None:
    torch.manual_seed(3)
    model, batch = MODELS[name]()
    assert_right(model, batch, forced=forced)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    examples=st.integers(2, 5), length=st.integers(1, 6), rows=st.integers(1, 6), columns=st.integers(1, 6),
    forced=st.sampled_from([GHOST, WRITTEN]), bias=st.booleans(),
)  # fmt: skip
def test_linear_layers_of_any_shape(
    examples: int, length: int, rows: int, columns: int, forced: tuple[str, ...], *, bias: bool
) -> None:
    model = Model(lambda m, x: m.a(x).tanh().mean(1), a=nn.Linear(columns, rows, bias=bias))
    batch = (torch.randn(examples, length, columns), torch.randn(examples, rows))
    assert_right(model, batch, nn.MSELoss(), forced=forced)


@pytest.mark.parametrize(("groups", "times"), [(2, 2), (4, 2), (3, 5)])
def test_a_weight_beside_examples_of_several_rows_in_a_later_axis(groups: int, times: int) -> None:
    """Rows of an example lie in the second axis, and a weight has an axis before it: it may be as long as they are."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(0, 1).transpose(0, 1) * m.w
        return rows.transpose(0, 1).reshape(x.shape).flatten(1).pow(2).sum(1, keepdim=True)

    torch.manual_seed(4)
    model = Model(forward, w=nn.Parameter(torch.randn(groups, 1, 3)))
    assert_right(model, (torch.randn(6, times, groups, 3), torch.zeros(6, 1)), nn.MSELoss())


def test_every_shape_of_a_batch_is_compared_with_the_loop() -> None:
    torch.manual_seed(5)
    model = Model(lambda m, x: m.a(x).mean(1), a=nn.Linear(3, 2))
    way = OnePass(model, Losses(nn.MSELoss()), grouped(model, None), Choices())
    short, long = ((torch.randn(4, length, 3), torch.randn(4, 2)) for length in (1, 5))
    added(way, model, short, clip(1.0))
    way.graph(long)
    assert way.follows(short)
    assert not way.follows(long)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    examples=st.integers(2, 4), size=st.integers(5, 8), kernel=st.integers(1, 3), stride=st.integers(1, 3),
    padding=st.integers(0, 2), dilation=st.integers(1, 2), groups=st.sampled_from([1, 2]),
    forced=st.sampled_from([GHOST, WRITTEN, LAST, TURNED]),
)  # fmt: skip
def test_convolutions_of_any_shape(  # noqa: PLR0917 -- drawn by name
    examples: int,
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    forced: tuple[str, ...],
) -> None:
    layer = nn.Conv1d(4, 2, kernel, stride, padding, dilation, groups)
    model = Model(lambda m, x: m.a(x).tanh().mean(2), a=layer)
    assert_right(model, (torch.randn(examples, 4, size), torch.randn(examples, 2)), nn.MSELoss(), forced=forced)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    examples=st.integers(2, 4), high=st.integers(6, 9), wide=st.integers(6, 9),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)), stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)), dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    library=st.sampled_from(["torch", "numpy"]), last=st.booleans(),
)  # fmt: skip
def test_convolutions_of_images_of_any_shape_by_columns(  # noqa: PLR0917 -- drawn by name
    examples: int,
    high: int,
    wide: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    library: str,
    *,
    last: bool,
) -> None:
    model = Model(lambda m, x: m.a(x).tanh().mean((2, 3)), a=nn.Conv2d(3, 2, kernel, stride, padding, dilation))
    x = torch.randn(examples, 3, high, wide)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    assert_right(model, (x, torch.randn(examples, 2)), nn.MSELoss(), forced=(*COLUMNS, library))


def test_groups_are_clipped_apart() -> None:
    model, batch = MODELS["tied weights"]()
    assert_right(model, batch, groups=[["e.weight", "n.bias"], ["n.weight"]])


def test_one_example_is_the_loop_itself() -> None:
    model, (x, y) = MODELS["lstm"]()
    assert_right(model, (x[:1], y[:1]))


@pytest.mark.parametrize(
    "name", ["linear of sequences", "convolution of two dimensions", "embedding", "attention", "tied weights"]
)
@pytest.mark.parametrize("forced", [GHOST, WRITTEN, (*LAST, "numpy")])
@pytest.mark.parametrize("poison", [float("inf"), float("nan"), 1e30])
def test_an_example_that_is_not_finite_adds_nothing_and_the_others_do(
    name: str, forced: tuple[str, ...], poison: float
) -> None:
    """Zero times infinity is no number: the example must be out of every product before they are summed."""
    torch.manual_seed(0)
    model, (x, _) = MODELS[name]()
    inner = model.function

    def poisoned(m: Any, x: torch.Tensor, bad: torch.Tensor) -> Any:
        return inner(m, x) * torch.where(bad, poison, 1.0)[:, None] ** 2

    model.function = poisoned
    bad = torch.zeros(EXAMPLES, dtype=torch.bool)
    bad[2] = True
    way = OnePass(model, Losses(nn.MSELoss()), grouped(model, None), Choices(forced=forced))
    target = torch.randn(EXAMPLES, inner(model, x).shape[1])
    clean = torch.arange(EXAMPLES) != 2
    _, norms, total = added(way, model, ((x, bad), target), clip(0.1))
    assert bool(torch.isinf(norms[0, 2]))
    assert bool(torch.isfinite(norms[0, clean]).all())
    rest = ((x[clean], bad[clean]), target[clean])
    assert torch.allclose(total, added(way, model, rest, clip(0.1))[2], atol=1e-6)


def test_a_parameter_in_a_use_that_is_not_known_is_noticed() -> None:
    """Whatever operator meets a parameter, the pass refuses rather than leave it out."""
    for use in (
        lambda m, x: torch.einsum("bd,cd->bc", x, m.w),
        lambda m, x: F.bilinear(x, x, m.w.unsqueeze(1).expand(3, 8, 8)),
        lambda m, x: torch.vmap(lambda row: F.linear(row, m.w))(x),
        lambda m, x: _Custom.apply(x, m.w),
    ):
        model = Model(use, w=parameter(3, 8))
        way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
        batch = (torch.randn(EXAMPLES, 8), torch.randint(0, 3, (EXAMPLES,)))
        with pytest.raises(UnknownUseError):
            added(way, model, batch, clip(1.0))
        assert not bool(model.w.grad.any()), "nothing may be added before the refusal"


class _Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, w = ctx.saved_tensors
        return g @ w, g.t() @ x


def test_taking_away_any_use_is_noticed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: without what takes it apart, no kind of layer may lose its gradient in silence."""
    operators = {
        "linear": "linear", "convolution of two dimensions": "conv2d", "embedding": "embedding",
        "layer norm": "layer_norm", "group norm": "group_norm", "lstm": "lstm", "rms norm": "rms_norm",
    }  # fmt: skip
    for name, operator in operators.items():
        monkeypatch.delitem(uses._MAKERS, operator)
        model, batch = MODELS[name]()
        way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
        with pytest.raises(UnknownUseError):
            added(way, model, batch, clip(1.0))
        monkeypatch.undo()
    monkeypatch.setattr(graph, "meetings", lambda _: [])
    model, batch = MODELS["linear"]()
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    with pytest.raises(UnknownUseError, match="not seen"):
        added(way, model, batch, clip(1.0))


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (nn.Embedding(7, 8, max_norm=1.0), "max_norm"),
        (nn.Embedding.from_pretrained(torch.ones(7, 8), max_norm=1.0), "max_norm"),
        (nn.Embedding(7, 8, scale_grad_by_freq=True), "scale_grad_by_freq"),
    ],
)
def test_embeddings_that_change_with_the_batch_are_refused(layer: nn.Module, said: str) -> None:
    model = Model(lambda m, x: m.out(m.e(x).mean(1)), e=layer, out=nn.Linear(8, 3))
    with pytest.raises(UnfitModelError, match=said):
        assert_right(model, tokens())


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (nn.BatchNorm1d(4), "the operator batch_norm in training mode takes means"),
        (nn.InstanceNorm1d(4, affine=True, track_running_stats=True), "running"),
    ],
)
def test_norms_that_keep_data_of_the_batch_are_refused(layer: nn.Module, said: str) -> None:
    model = pooled(layer, 4)
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    with pytest.raises(UnfitModelError, match=said):
        added(way, model, images(4, 7), clip(1.0))


def test_the_model_and_its_random_numbers_are_left_as_they_were() -> None:
    model = Model(
        lambda m, x: m.a(F.dropout(x, 0.5, m.training)).mean(1), a=nn.Linear(8, 3), b=nn.Buffer(torch.zeros(2))
    )
    before = {name: value.clone() for name, value in model.state_dict().items()}
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    batch = sequences()
    torch.manual_seed(5)
    first = added(way, model, batch, clip(1.0))
    torch.manual_seed(5)
    second = added(way, model, batch, clip(1.0))
    assert torch.equal(first[2], second[2]), "trial runs must not use up random numbers"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_that_changes_its_mind_is_looked_at_again() -> None:
    model = Model(
        lambda m, x: (m.a(x) if m.first else m.b(m.c(x))).mean(1),
        a=nn.Linear(8, 3),
        b=nn.Linear(4, 3),
        c=nn.Linear(8, 4),
    )
    model.first = True
    batch, found = sequences(), []
    gradients = Gradients(model, nn.CrossEntropyLoss())
    for first in (True, False, False):
        model.first = first
        for way in (gradients, Gradients(model, nn.CrossEntropyLoss())):
            model.zero_grad()
            way.clipped_sum(batch, clip(1.0))
            found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        assert torch.equal(found[-2], found[-1])
    assert not torch.allclose(found[0], found[2])


def test_an_input_changed_in_place_after_its_use_is_noticed() -> None:
    def forward(m: Any, x: torch.Tensor) -> Any:
        hidden = m.a(x).tanh()
        out = m.b(hidden)
        hidden.mul_(2)
        return out.mean(1)

    model = Model(forward, a=nn.Linear(8, 4), b=nn.Linear(4, 3))
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    with pytest.raises(RuntimeError):  # the loop of the trial meets autograd's own complaint
        added(way, model, sequences(), clip(1.0))


def test_the_backward_pass_notices_by_itself_what_it_should_not_have_reached() -> None:
    model = Model(
        lambda m, x: m.a(x).mean(1) + torch.einsum("bd,cd->bc", x[:, 0], m.w), a=nn.Linear(8, 3), w=parameter(3, 8)
    )
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    batch = sequences()
    way._trusted.add(onepass._key(batch))  # without the trial, which would notice too
    with pytest.raises(UnknownUseError):
        added(way, model, batch, clip(1.0))
    assert not any(bool(p.grad.any()) for p in model.parameters())


def test_an_input_changed_in_place_is_noticed_even_where_autograd_does_not_care() -> None:
    def forward(m: Any, x: torch.Tensor) -> Any:
        hidden = x * 2
        out = m.b(hidden)
        hidden.mul_(2)
        return out.mean(1)

    model = Model(forward, b=nn.Linear(8, 3))
    way = OnePass(model, Losses(nn.CrossEntropyLoss()), grouped(model, None), Choices())
    batch = sequences()
    way._trusted.add(onepass._key(batch))
    with pytest.raises(ChangedError):
        added(way, model, batch, clip(1.0))


def test_double_precision() -> None:
    model, (x, y) = MODELS["transformer layer"]()
    assert_right(model.double(), (x.double(), y))


@pytest.mark.parametrize("forced", [GHOST, WRITTEN])
@pytest.mark.parametrize("name", ["transformer layer", "convolution of two dimensions", "group norm", "tied weights"])
def test_mixed_precision_has_norms_in_float32(name: str, forced: tuple[str, ...]) -> None:
    torch.manual_seed(1)
    model, batch = MODELS[name]()
    losses, parts = Losses(nn.CrossEntropyLoss()), grouped(model, None)
    exact = added(OnePass(model, losses, parts, Choices()), model, batch, clip(1.0))
    with torch.autocast("cpu", dtype=torch.bfloat16):  # around the sums too, as the trainer has it
        rounded = added(OnePass(model, losses, parts, Choices(forced=forced)), model, batch, clip(1.0))
    assert rounded[1].dtype == torch.float32
    assert torch.allclose(rounded[1], exact[1], rtol=0.05)
    assert not torch.equal(rounded[1], rounded[1].bfloat16().float())
    assert float((rounded[2] - exact[2]).norm()) < 0.05 * float(exact[2].norm())
    assert all(p.grad.dtype == torch.float32 for p in trained(model).values())
    narrow = [name for name, p in trained(model).items() if torch.equal(p.grad, p.grad.bfloat16().float())]
    assert not narrow, "a sum of examples that is rounded to 8 bits moves by more than one example does"


def test_a_penalty_in_the_loss_belongs_to_every_example() -> None:
    model = nn.Linear(8, 3)
    batch = images(8)

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output, target) + 0.1 * model.weight.square().sum()

    assert_right(model, batch, loss)
