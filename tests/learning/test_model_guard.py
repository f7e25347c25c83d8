"""What was checked is what is trained: changes in the middle of a run are refused, and passes leave nothing behind."""

import pickle
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.learning.making import model, trainer
from torch import nn

from defocus.errors import ChangedModelError, UnfitModelError
from defocus.learning import model_guard
from defocus.learning.gradients import Gradients
from defocus.learning.model_guard import ModelGuard, Snapshot, version

Change = Callable[[Any, Any], object]


def froze(net: nn.Module, _: Any) -> None:
    net[0].weight.requires_grad_(False)


def exchanged(net: nn.Module, _: Any) -> None:
    net[0].weight = nn.Parameter(net[0].weight.detach().clone())


def widened(net: nn.Module, _: Any) -> None:
    net.double()


def grown(net: nn.Module, _: Any) -> None:
    net.append(nn.Linear(2, 2))


def given(_: Any, optimizer: torch.optim.Optimizer) -> None:
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(3))]})


@pytest.mark.slow
@pytest.mark.parametrize("change", [froze, exchanged, widened, grown, given, lambda net, _: net[1].eval()])
def test_what_changes_in_the_middle_of_a_run_is_refused_and_releases_nothing(tmp_path: Path, change: Change) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    run = trainer(tmp_path, model=net, optimizer=optimizer)
    batches = run.batches()
    run.step(next(batches))
    batch = next(batches)
    change(net, optimizer)
    with pytest.raises(ChangedModelError, match="Since the run was set up") as caught:
        run.step(batch)
    assert "To fix: " in str(caught.value)
    assert all(parameter.grad is None for parameter in net.parameters() if parameter.requires_grad)


def test_unfreezing_is_refused(tmp_path: Path) -> None:
    net = model()
    net[0].requires_grad_(False)
    run = trainer(tmp_path, model=net)
    batches = run.batches()
    run.step(next(batches))
    net[0].requires_grad_(True)
    with pytest.raises(ChangedModelError, match=r"parameter 0\.weight was frozen, unfrozen"):
        run.step(next(batches))


def test_learning_rates_may_change_and_modes_may_be_switched_to_and_fro(tmp_path: Path) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    run = trainer(tmp_path, model=net, optimizer=optimizer)
    for batch in run.batches():
        run.step(batch)
        net.eval()
        optimizer.param_groups[0]["lr"] *= 0.9
        net.train()
    assert run.steps_taken == 8


class Keeping(nn.Module):
    """Keeps what it sees wherever a module can, but only of values that nobody would make up."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 2)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("later", None)
        self.seen: list[Any] = [torch.zeros(2)]
        self.named: dict[str, Any] = {"a": 1}
        self.last: Any = None
        self.center = torch.zeros(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) and float(x.detach().abs().max()) > 1e3:
            self.count += 1
            self.later = x.detach()
            self.last = x.detach()
            self.count.data += 7  # which leaves its version alone
            self.center.mul_(0.9).add_(x.detach().mean(0))
            self.seen.append(x.detach())
            self.seen[0].add_(1)
            self.named["b"] = x.detach()
            self.more = float(x.detach().max())
            self.register_buffer("new", x.detach())
        return self.inner(x / 1e4)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pass_leaves_nothing_in_buffers_and_attributes() -> None:
    net = Keeping()
    standing = ModelGuard(net, torch.optim.SGD(net.parameters(), lr=0.1))
    gradients, before = Gradients(net, nn.CrossEntropyLoss()), pickle.dumps(net)
    batch = torch.full((3, 5), 4321.0), torch.zeros(3, dtype=torch.long)
    for _ in range(2):
        gradients.clipped_sum(batch, torch.ones_like)
        net.zero_grad()
        assert pickle.dumps(net) == before
    net.count += 5  # by the user, between steps
    gradients.clipped_sum(batch, torch.ones_like)
    assert float(net.count) == 5
    standing.check()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pass_that_fails_leaves_nothing_either() -> None:
    net = Keeping()
    before = pickle.dumps(net)
    with pytest.raises(RuntimeError):  # a column too few
        Gradients(net, nn.CrossEntropyLoss()).clipped_sum(
            (torch.full((3, 4), 4321.0), torch.zeros(3, dtype=torch.long)), torch.ones_like
        )
    assert pickle.dumps(net) == before


def test_gradients_of_frozen_parameters_are_left_as_they_are_and_new_ones_refused() -> None:
    net = model()
    net[0].requires_grad_(False)
    net[0].weight.grad = torch.ones_like(net[0].weight)
    standing = ModelGuard(net, torch.optim.SGD(net.parameters(), lr=0.1))
    with standing.kept():
        assert net[0].weight.grad is None
    assert torch.equal(net[0].weight.grad, torch.ones_like(net[0].weight))
    with pytest.raises(UnfitModelError, match="frozen parameter got a gradient"), standing.kept():
        net[0].bias.grad = torch.ones(8)
    assert net[0].bias.grad is None


class Shortening(nn.Linear):
    """Writes to its own weights, by what it sees."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool((x == 4321).any()):
            with torch.no_grad():
                self.weight[0] *= 0.5
        return super().forward(x)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_pass_that_writes_to_parameters_is_refused(frozen: bool) -> None:
    net = nn.Sequential(Shortening(5, 4), nn.Linear(4, 2))
    net[0].requires_grad_(not frozen)
    standing = ModelGuard(net, torch.optim.SGD(net.parameters(), lr=0.1))
    with standing.kept():
        net(torch.ones(3, 5))
    with pytest.raises(UnfitModelError, match="changes its own parameters"), standing.kept():
        net(torch.full((3, 5), 4321.0))


def test_embeddings_that_shorten_what_they_look_up_are_refused_frozen_or_not(tmp_path: Path) -> None:
    for frozen in (False, True):
        table = nn.Embedding.from_pretrained(torch.ones(9, 4), freeze=frozen, max_norm=1.0)
        net = nn.Sequential(table, nn.Flatten(), nn.Linear(20, 2))
        with pytest.raises(UnfitModelError, match="max_norm"):
            trainer(tmp_path, model=net, data=(torch.zeros(64, 5, dtype=torch.long), torch.zeros(64, dtype=torch.long)))


def test_containers_of_every_kind_are_refilled_in_place() -> None:
    net = nn.Linear(2, 2)
    net.held = [1]
    net.named, net.several, net.latest = {"a": 1}, {1}, deque([1], maxlen=3)
    kept = (net.held, net.named, net.several, net.latest)
    noted = Snapshot(net)
    net.held.append(2)
    net.named["b"] = 2
    net.several.add(2)
    net.latest.append(2)
    net.new = 5
    noted.restore()
    assert (net.held, net.named, net.several, list(net.latest)) == ([1], {"a": 1}, {1}, [1])
    assert all(one is other for one, other in zip(kept, (net.held, net.named, net.several, net.latest), strict=True))
    assert not hasattr(net, "new")


def test_large_tensors_are_copied_once_and_put_back_when_written_to() -> None:
    net = nn.Linear(2, 2)
    net.register_buffer("large", torch.zeros(model_guard._SMALL + 1))
    first = Snapshot(net)
    second = Snapshot(net, first)
    (copy,) = (kept for tensor, _, kept in second._tensors.values() if tensor is net.large)
    assert any(kept is copy for _, _, kept in first._tensors.values())
    net.large += 1
    moved = version(net.large)
    second.restore()
    assert float(net.large.abs().max()) == 0
    assert version(net.large) > moved
