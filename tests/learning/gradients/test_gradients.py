"""The door: the fastest way that is right, what it says, and what it refuses."""

import logging
import pickle
from typing import Any

import pytest
import torch
from tests.learning.gradients.comparing import Model, clip, parameter
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import DefocusError, InvalidParameterError, UnfitDataError, UnfitModelError
from defocus.learning.gradients import Clipped, Gradients, SlowGradientsWarning
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.trace import UnknownUseError, trace


def classes(examples: int = 6, width: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(examples)
    x = torch.randn(examples, width, generator=drawn)
    return x, torch.randint(0, 3, (examples,), generator=drawn)


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))


def sums(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def by_hand(model: nn.Module, batch: Any, bound: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Norms and the clipped sum, written down without anything of ours."""
    norms, total = [], torch.zeros(sum(p.numel() for p in model.parameters()))
    for x, y in zip(*batch, strict=True):
        loss = F.cross_entropy(model(x[None]), y[None])
        flat = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
        norms.append(flat.norm())
        total += flat * min(1.0, bound / float(flat.norm()))
    return torch.stack(norms), total


def test_the_sum_of_clipped_gradients_is_added_and_norms_are_told() -> None:
    model, batch = small(), classes()
    norms, total = by_hand(model, batch, 0.7)
    made = Gradients(model, nn.CrossEntropyLoss()).clipped_sum(batch, clip(0.7))
    assert torch.allclose(made.norms, norms, rtol=1e-5)
    assert torch.allclose(sums(model), total, rtol=1e-4, atol=1e-6)
    assert made.unusable == 0
    assert made.losses.shape == (6,)
    assert made.norms.dtype == torch.float32


def test_virtual_batches_add_up_to_the_whole_one() -> None:
    model, (x, y) = small(), classes(8)
    gradients = Gradients(model, nn.CrossEntropyLoss())
    gradients.clipped_sum((x, y), clip(0.5))
    whole = sums(model).clone()
    model.zero_grad()
    for part in (slice(0, 3), slice(3, 4), slice(4, 4), slice(4, 8)):
        gradients.clipped_sum((x[part], y[part]), clip(0.5))
    assert torch.allclose(sums(model), whole, atol=1e-6)


def test_an_empty_batch_adds_nothing_and_gives_every_parameter_a_gradient() -> None:
    model, (x, y) = small(), classes()
    made = Gradients(model, nn.CrossEntropyLoss()).clipped_sum((x[:0], y[:0]), clip(1.0))
    assert isinstance(made, Clipped)
    assert (len(made.losses), made.norms.shape, made.unusable) == (0, (0,), 0)
    assert not bool(sums(model).any())


def test_a_parameter_that_is_not_used_gets_a_gradient_of_zero() -> None:
    model = Model(lambda m, x: m.used(x), used=nn.Linear(5, 3), unused=parameter(2))
    Gradients(model, nn.CrossEntropyLoss()).clipped_sum(classes(), clip(1.0))
    assert model.unused.grad.tolist() == [0.0, 0.0]


def test_frozen_parameters_are_left_alone() -> None:
    model = small()
    model[0].requires_grad_(False)
    Gradients(model, nn.CrossEntropyLoss()).clipped_sum(classes(), clip(1.0))
    assert [p.grad is None for p in model.parameters()] == [True, True, False, False]


def test_groups_have_norms_of_their_own() -> None:
    model, batch = small(), classes()
    groups = [["0.weight", "0.bias"], ["2.weight", "2.bias"]]
    made = Gradients(model, nn.CrossEntropyLoss(), groups=groups).clipped_sum(batch, clip(0.2))
    assert made.norms.shape == (2, 6)
    together = by_hand(model, batch, 1.0)[0]
    assert torch.allclose(made.norms.square().sum(0).sqrt(), together, rtol=1e-5)
    assert float(model[0].weight.grad.norm()) <= 6 * 0.2 + 1e-6


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_poisoned_example_is_counted_and_makes_no_parameter_nan(value: float) -> None:
    model, (x, y) = small(), classes()
    gradients = Gradients(model, nn.CrossEntropyLoss())
    others = torch.arange(6) != 2
    gradients.clipped_sum((x[others], y[others]), clip(0.5))
    expected = sums(model).clone()
    model.zero_grad()
    x[2, 1] = value
    made = gradients.clipped_sum((x, y), clip(0.5))
    assert made.unusable == 1
    assert torch.allclose(sums(model), expected, atol=1e-6)
    assert bool(torch.isinf(made.norms[2]))


def test_a_rule_that_makes_no_number_of_infinity_does_no_harm() -> None:
    model, (x, y) = small(), classes()
    x[2] = torch.inf
    made = Gradients(model, nn.CrossEntropyLoss()).clipped_sum((x, y), lambda norms: norms / norms)
    assert made.unusable == 1
    assert bool(torch.isfinite(sums(model)).all())


def test_a_batch_of_only_poisoned_examples_adds_nothing() -> None:
    model, (x, y) = small(), classes()
    made = Gradients(model, nn.CrossEntropyLoss()).clipped_sum((x * float("nan"), y), clip(0.5))
    assert made.unusable == 6
    assert not bool(sums(model).any())


def test_an_unknown_use_steps_down_to_vmap_and_says_so() -> None:
    torch.manual_seed(0)
    model = Model(lambda m, x: torch.einsum("bd,cd->bc", x, m.w.exp()) + m.b, w=parameter(3, 5), b=parameter(3))
    gradients, batch = Gradients(model, nn.CrossEntropyLoss()), classes()
    with pytest.warns(SlowGradientsWarning, match="the operator einsum is not known to take parameters"):
        made = gradients.clipped_sum(batch, clip(0.5))
    norms, total = by_hand(model, batch, 0.5)
    assert torch.allclose(made.norms, norms, rtol=1e-5)
    assert torch.allclose(sums(model), total, atol=1e-5)
    assert gradients.explain().splitlines()[0] == "Per-example gradients by vmap over the examples."
    model.zero_grad()
    gradients.clipped_sum(batch, clip(0.5))  # said once


def test_what_vmap_cannot_do_is_done_one_by_one() -> None:
    def forward(m: Any, x: torch.Tensor) -> Any:
        scale = 2.0 if float(x.abs().sum()) >= 0 else 1.0  # a branch on data, which vmap refuses
        return torch.einsum("bd,cd->bc", x, m.w) * scale

    torch.manual_seed(0)
    model = Model(forward, w=parameter(3, 5))
    gradients, batch = Gradients(model, nn.CrossEntropyLoss()), classes()
    with pytest.warns(SlowGradientsWarning):
        made = gradients.clipped_sum(batch, clip(0.5))
    norms, total = by_hand(model, batch, 0.5)
    assert torch.allclose(made.norms, norms, rtol=1e-5)
    assert torch.allclose(sums(model), total, atol=1e-5)
    assert "for each example" in gradients.explain()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_packed_sequences_take_a_slower_way() -> None:
    def forward(m: Any, x: torch.Tensor) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, [x.shape[1]] * len(x), batch_first=True)
        return m.out(m.layer(packed)[1][0][0])

    torch.manual_seed(0)
    model = Model(forward, layer=nn.LSTM(5, 4, batch_first=True), out=nn.Linear(4, 3))
    batch = (torch.randn(4, 3, 5), torch.tensor([0, 1, 2, 0]))
    with pytest.warns(SlowGradientsWarning):
        made = Gradients(model, nn.CrossEntropyLoss()).clipped_sum(batch, clip(0.5))
    assert torch.allclose(made.norms, by_hand(model, batch, 0.5)[0], rtol=1e-5)


def test_what_is_remembered_about_speed_can_be_stored_and_used_again() -> None:
    torch.manual_seed(0)
    model = Model(lambda m, x: m.a(x).tanh().mean(1), a=nn.Linear(5, 3))
    batch = (torch.randn(6, 4, 5), torch.randint(0, 3, (6,)))
    first = Gradients(model, nn.CrossEntropyLoss())
    first.clipped_sum(batch, clip(0.5))
    assert first.tuning
    again = Gradients(model, nn.CrossEntropyLoss(), tuning=first.tuning)
    model.zero_grad()
    first.clipped_sum(batch, clip(0.5))
    expected = sums(model).clone()
    model.zero_grad()
    again.clipped_sum(batch, clip(0.5))
    assert torch.equal(sums(model), expected)
    assert again.tuning == first.tuning


def test_inputs_may_be_several_or_named() -> None:
    torch.manual_seed(0)
    model = Model(lambda m, left, right: m.a(left * right), a=nn.Linear(5, 3))
    (x, y), z = classes(), torch.randn(6, 5)
    gradients = Gradients(model, nn.CrossEntropyLoss())
    positional = gradients.clipped_sum(((x, z), y), clip(1.0)).norms
    named = gradients.clipped_sum(({"left": x, "right": z}, y), clip(1.0)).norms
    assert torch.allclose(positional, named)


def test_a_loss_may_be_a_sum_a_mean_or_a_vector() -> None:
    batch = classes()
    found = []
    for loss in (
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(reduction="sum"),
        nn.CrossEntropyLoss(reduction="none"),
        F.cross_entropy,
        lambda out, y: 2 * F.cross_entropy(out, y) / 2,
        lambda out, y: -F.log_softmax(out, 1).gather(1, y[:, None])[:, 0],
    ):
        model = small()
        made = Gradients(model, loss).clipped_sum(batch, clip(0.5))
        found.append(torch.cat([made.norms, made.losses, sums(model)]))
    for other in found[1:]:
        assert torch.allclose(other, found[0], atol=1e-6)


def test_refusals_say_what_to_do() -> None:
    model, (x, y) = small(), classes()
    with pytest.raises(UnfitModelError, match="no trainable parameter"):
        Gradients(nn.ReLU(), nn.MSELoss())
    with pytest.raises(InvalidParameterError, match="exactly once"):
        Gradients(model, nn.MSELoss(), groups=[["0.weight"]])
    gradients = Gradients(model, nn.CrossEntropyLoss())
    for batch in ((x, y[:3]), (x,), x, (None, y), (torch.tensor(1.0), y)):
        with pytest.raises(UnfitDataError, match="To fix"):
            gradients.clipped_sum(batch, clip(1.0))  # type: ignore[arg-type]
    with pytest.raises(UnfitModelError, match="the operator cross_entropy_loss adds up"):
        Gradients(model, nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 9.0]))).clipped_sum((x, y), clip(1.0))
    with pytest.raises(UnfitModelError, match="shape"):
        Gradients(model, nn.MSELoss(reduction="none")).clipped_sum((x, torch.randn(6, 3)), clip(1.0))
    assert all(p.grad is None for p in model.parameters())


def test_a_model_of_another_shape_leaves_no_traceback_in_the_log_of_torch(caplog: pytest.LogCaptureFixture) -> None:
    model, log = nn.Linear(99, 3), logging.getLogger("torch._subclasses.fake_tensor")
    log.addHandler(caplog.handler)
    try:
        with pytest.raises(UnknownUseError, match="RuntimeError"):
            trace(model, Losses(nn.CrossEntropyLoss()), dict(model.named_parameters()), classes())
    finally:
        log.removeHandler(caplog.handler)
    assert log.name not in {record.name for record in caplog.records}
    assert not log.disabled


def test_errors_survive_being_sent_between_processes() -> None:
    error = UnfitModelError("what", fix="do")
    assert isinstance(pickle.loads(pickle.dumps(error)), DefocusError)  # noqa: S301 -- our own


class Failing:
    """A way that adds to the first parameter, and then fails."""

    def __init__(self, model: nn.Module, error: Exception) -> None:
        self.first, self.error = next(iter(model.parameters())), error

    def add(self, *_: Any) -> tuple[torch.Tensor, torch.Tensor, int]:
        found = torch.ones_like(self.first)
        self.first.grad = found if self.first.grad is None else self.first.grad.add_(found)
        raise self.error


def test_what_a_way_had_added_before_it_failed_does_not_count_twice() -> None:
    model = small()
    gradients = Gradients(model, nn.CrossEntropyLoss())
    gradients._ways[0] = Failing(model, RuntimeError("midway"))
    with pytest.warns(SlowGradientsWarning):
        gradients.clipped_sum(classes(), clip(0.5))
    torch.testing.assert_close(sums(model), by_hand(model, classes(), 0.5)[1])


def test_a_way_that_failed_upon_sums_of_earlier_batches_ends_the_step() -> None:
    model = small()
    gradients = Gradients(model, nn.CrossEntropyLoss())
    gradients.clipped_sum(classes(), clip(0.5))
    gradients._ways[0] = Failing(model, RuntimeError("midway"))
    with pytest.raises(RuntimeError, match="midway"):
        gradients.clipped_sum(classes(), clip(0.5))


def test_want_of_memory_is_no_reason_to_go_slower() -> None:
    """Who asked can ask for fewer examples at once."""
    model = small()
    gradients = Gradients(model, nn.CrossEntropyLoss())
    gradients._ways[0] = Failing(model, torch.OutOfMemoryError("no room"))
    with pytest.raises(torch.OutOfMemoryError):
        gradients.clipped_sum(classes(), clip(0.5))
    assert len(gradients._ways) == 3
