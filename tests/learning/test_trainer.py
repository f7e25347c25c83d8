"""Whole runs: charged once, stopped at the budget, and the user's objects left alone."""

import copy
import dataclasses
import math
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.making import BUDGET, data, model, named, parameters, trainer
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler

from defocus import Budget, Ledger, rows, user
from defocus.errors import (
    BudgetExceededError,
    CheckpointError,
    DependentExamplesError,
    InvalidParameterError,
    LedgerMismatchError,
    NotDeclaredError,
    StepFailedError,
    TrainingEndedError,
    UnaccountedSamplingError,
    UnfitDataError,
    UnfitModelError,
)
from defocus.learning import (
    AdaptiveClipping,
    AutomaticClipping,
    Banded,
    BufferedToeplitz,
    PerLayerClipping,
    Schedule,
    Trainer,
    suggest,
)
from defocus.learning.metrics import PrivateMetrics
from defocus.learning.noise import Cryptographic
from defocus.learning.result import _exact
from defocus.noise.testing import seeded
from defocus.privacy import Approximate, Gaussian, Sampled, account


def entries(folder: Path) -> list[Any]:
    with Ledger.open(folder / "run.ledger") as book:
        return [entry for entry in book.entries() if entry.kind == "charge"]


def test_a_run_is_charged_once_and_before_the_first_batch(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    assert not (tmp_path / "run.ledger").exists()
    run.explain()
    batches = run.batches()
    assert not (tmp_path / "run.ledger").exists()
    first = next(batches)
    assert len(entries(tmp_path)) == 1
    run.step(first)
    assert run.receipt is not None
    assert run.receipt.event == 8 * Sampled(Gaussian(1.0), Fraction(1, 4))
    for batch in batches:
        run.step(batch)
    run.fit(progress=False)
    assert len(entries(tmp_path)) == 1
    assert "size 64 taken as public" in entries(tmp_path)[0].content["question"]


def test_a_run_learns_and_says_what_it_did(tmp_path: Path) -> None:
    net = model()
    result = trainer(tmp_path, model=net, data=data(2000), batch_size=400, steps=60, epsilon=20, delta=1e-5).fit(
        progress=False
    )
    x, y = data(2000)
    assert float((net(x).argmax(1) == y).float().mean()) > 0.85
    assert result.steps == 60
    assert 0 < result.epsilon <= 20
    assert result.metrics is not None
    assert result.metrics.loss()[0] == pytest.approx(float(F.cross_entropy(net(x), y).detach()), abs=0.3)
    text = str(result)
    assert "60 of 60" in text
    assert "epsilon" in text
    assert "<table>" in result._repr_html_()
    with Ledger.open(tmp_path / "run.ledger") as book:
        assert book.verify().ok
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge", "release"]


def test_the_same_secret_gives_the_same_run_in_one_go_or_in_a_loop(tmp_path: Path) -> None:
    nets = [model() for _ in range(3)]
    trainer(tmp_path, model=nets[0]).fit(progress=False)
    run = trainer(tmp_path, model=nets[1], ledger=tmp_path / "b.ledger")
    for batch in run.batches():
        run.step(batch)
    trainer(tmp_path, model=nets[2], ledger=tmp_path / "c.ledger", bits=seeded(2)).fit(progress=False)
    assert torch.equal(parameters(nets[0]), parameters(nets[1]))
    assert not torch.equal(parameters(nets[0]), parameters(nets[2]))


def test_no_step_is_taken_that_was_not_paid_for(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    taken = []
    for batch in run.batches():
        run.step(batch)
        taken.append(batch)
        with pytest.raises(TrainingEndedError):
            run.step(batch)
    assert len(taken) == 8 == run.steps_taken
    assert list(run.batches()) == []
    with pytest.raises(TrainingEndedError, match="all of the 8 steps") as caught:
        run.step(taken[-1])
    assert "another run" in caught.value.fix


def test_a_batch_passed_over_is_gone_and_one_of_another_run_is_refused(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    other = trainer(tmp_path, ledger=tmp_path / "b.ledger")
    seen = 0
    for batch in run.batches():
        seen += 1
        if seen == 1:
            with pytest.raises(TrainingEndedError, match="not the batch whose turn it is"):
                other.step(batch)
        if seen == 8:
            run.step(batch)
    assert seen == 8
    assert run.steps_taken == 1


def test_a_budget_already_spent_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "run.ledger", budget=BUDGET, unit=rows(), dataset="d") as book:
        book.charge(Approximate(7.9, 9e-6), purpose="everything else")
        net = model()
        before = parameters(net).clone()
        run = trainer(tmp_path, model=net, ledger=book)
        with pytest.raises(BudgetExceededError):
            run.fit(progress=False)
        assert torch.equal(parameters(net), before)
        assert len([entry for entry in book.entries() if entry.kind == "charge"]) == 1


def test_a_run_of_the_whole_budget_fits_in_a_new_ledger(tmp_path: Path) -> None:
    """The ledger's filter is looser than the account of one run; then the pair that the run keeps is charged."""
    run = trainer(tmp_path, noise_multiplier=None, epsilon=1, delta=1e-5)
    run.fit(progress=False)
    assert run.receipt is not None
    assert run.receipt.event == Approximate(1, 1e-5)
    assert "charged the epsilon and delta" in run.explain()
    with pytest.raises(BudgetExceededError) as caught:
        trainer(tmp_path, noise_multiplier=None, epsilon=0.5, delta=1e-5).fit(progress=False)
    assert "costs Budget(epsilon=0.5, delta=1e-05)" in caught.value.fix
    assert "total of the ledger is Budget(epsilon=1, delta=1e-05)" in caught.value.fix
    assert "pass their total as budget= with the first one" in caught.value.fix


def test_the_ledger_must_protect_the_same_unit(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", budget=BUDGET, unit=user("id"), dataset="d") as book:
        with pytest.raises(InvalidParameterError, match="nothing was charged") as caught:
            trainer(tmp_path, ledger=book)
        assert "unit=ledger.unit" in caught.value.fix
    with pytest.raises(InvalidParameterError, match="charged to a Ledger"):
        trainer(tmp_path, ledger=3)
    with pytest.raises(NotDeclaredError, match="in memory"):
        trainer(tmp_path, ledger=None)


@pytest.mark.usefixtures("unchecked")
def test_a_run_charges_the_ledger_beside_its_data_by_default(tmp_path: Path) -> None:
    x, y = (each.numpy() for each in data())
    np.save(tmp_path / "people.npy", x)
    mapped = np.load(tmp_path / "people.npy", mmap_mode="r")
    first = trainer(tmp_path, data=(mapped, y), ledger=None, steps=1)
    first.fit(progress=False)
    with Ledger.open(tmp_path / "people.ledger") as book:
        assert first.receipt is not None
        assert book.dataset == "people"
        assert book.budget == BUDGET
        assert len([entry for entry in book.entries() if entry.kind == "charge"]) == 1


@pytest.mark.usefixtures("unchecked")
def test_a_new_ledger_has_the_total_that_is_given_and_its_delta_is_that_of_runs(tmp_path: Path) -> None:
    total = Budget(20, 1e-4)
    run = trainer(tmp_path, budget=total, delta=None, epsilon=8, noise_multiplier=None, steps=1)
    assert run.plan.price == Budget(8, 1e-4)
    run.fit(progress=False)
    with Ledger.open(tmp_path / "run.ledger") as book:
        assert book.budget == total
    assert trainer(tmp_path, delta=None).plan.price == Budget(8, 1e-4)
    assert trainer(tmp_path, delta=None, ledger=tmp_path / "b.ledger").plan.price == Budget(8, 1e-6)
    with pytest.raises(LedgerMismatchError, match="budget"):
        trainer(tmp_path, budget=Budget(21, 1e-4))


@pytest.mark.usefixtures("unchecked")
def test_a_run_of_given_noise_is_charged_what_that_costs(tmp_path: Path) -> None:
    run = trainer(tmp_path, epsilon=None, noise_multiplier=1.0)
    event = 8 * Sampled(Gaussian(1.0), Fraction(1, 4))
    assert run.plan.event == event
    cost = account(event).epsilon(1e-5)
    assert run.plan.price.delta == 1e-5
    assert cost <= float(run.plan.price.epsilon or 0) <= cost * (1 + 1e-6)
    run.fit(progress=False)
    assert run.receipt is not None
    again = trainer(tmp_path, epsilon=None, noise_multiplier=1.0, noise=Schedule([2, 1]), ledger=tmp_path / "b.ledger")
    assert [again.plan.ratio_of(0, step) for step in (0, 7)] == pytest.approx([2 / 0.99**0.5, 1 / 0.99**0.5])
    with pytest.raises(InvalidParameterError, match="nor how much noise") as caught:
        trainer(tmp_path, epsilon=None, noise_multiplier=None)
    assert "epsilon=" in caught.value.fix
    with pytest.raises(InvalidParameterError, match="one of them is missing"):
        trainer(tmp_path, epsilon=None, batch_size=None)


@pytest.mark.usefixtures("unchecked")
def test_the_usual_call_needs_no_more_than_a_price(tmp_path: Path) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    run = Trainer(net, nn.CrossEntropyLoss(), optimizer, data(), unit=rows(), epsilon=8, ledger=tmp_path / "a.ledger")
    found = suggest(size=64, epsilon=8, model=net)
    assert (run.plan.batch_size, run.plan.steps, run.plan.price) == (found.batch_size, found.steps, Budget(8, 1e-6))


@pytest.mark.usefixtures("unchecked")
def test_of_a_plain_loader_the_dataset_and_the_batch_size_are_taken(tmp_path: Path) -> None:
    examples = TensorDataset(*data())
    with pytest.warns(UserWarning, match="drawn by the trainer"):
        run = trainer(tmp_path, data=DataLoader(examples, batch_size=8, shuffle=True), batch_size=None)
    assert run.plan == trainer(tmp_path, data=examples, batch_size=8).plan
    with pytest.warns(UserWarning, match="drawn by the trainer"):
        assert trainer(tmp_path, data=DataLoader(examples, batch_size=8), batch_size=16).plan.batch_size == 16
    for loader in (
        DataLoader(examples, batch_sampler=[[0, 1], [2]]),
        DataLoader(examples, batch_size=None),
    ):
        with pytest.raises(UnaccountedSamplingError, match="rule of its own"):
            trainer(tmp_path, data=loader)


def test_loops_of_others_can_carry_batches(tmp_path: Path) -> None:
    """Lightning copies dataclasses and moves their fields to a device, and Accelerate calls ``to``."""
    run = trainer(tmp_path)
    for batch in run.batches():
        assert not dataclasses.is_dataclass(batch)
        assert not hasattr(batch, "to")
        run.step(batch)
    assert run.steps_taken == run.plan.steps


def test_the_users_objects_stay_theirs(tmp_path: Path) -> None:
    net = model()
    kind, names, forward = type(net), list(net.state_dict()), net.forward
    frozen = net[0].bias
    frozen.requires_grad_(False)
    kept = frozen.detach().clone()
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-2)
    trainer(tmp_path, model=net, optimizer=optimizer).fit(progress=False)
    assert type(net) is kind
    assert list(net.state_dict()) == names
    assert net.forward == forward
    assert torch.equal(frozen, kept)
    assert frozen.grad is None
    assert not net._forward_hooks
    assert not net._backward_hooks
    assert optimizer.state[net[2].weight]["step"] == 8


@pytest.mark.statistical
def test_the_gradient_of_an_empty_batch_is_noise_of_the_declared_scale(tmp_path: Path) -> None:
    """Nobody is drawn at this rate, so ``grad`` is the noise over the expected number, and nothing else."""
    net = model(60)
    run = trainer(
        tmp_path, model=net, data=data(64, 60), size=10**9, batch_size=1, steps=40, max_grad_norm=3.0,
        noise_multiplier=2.0, metrics="nothing", epsilon=8, delta=1e-10,
    )  # fmt: skip
    found = []
    for batch in run.batches():
        assert len(batch.units) == 0
        run.step(batch)
        found.append(torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None]))
    noise = torch.cat(found).double().numpy()
    assert abs(noise.std() / 6.0 - 1) < 5 / math.sqrt(2 * len(noise))  # 2.0 times the clip 3.0
    assert len(noise) > 5000


def one_sum(folder: Path, examples: Any, name: str, **more: Any) -> torch.Tensor:
    """The sum of clipped gradients of everybody, without noise."""
    net = model()
    run = trainer(
        folder, model=net, data=examples, size=64, batch_size=64, steps=1, noise_multiplier=1e-3, epsilon=10**8,
        delta=0.01, ledger=folder / f"{name}.ledger", metrics="nothing", **more,
    )  # fmt: skip
    run.fit(progress=False)
    return torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None]) * 64


@pytest.mark.parametrize("extreme", [1e6, math.nan, math.inf, -1e30, 0.0])
def test_one_example_moves_the_sum_by_no_more_than_the_clip(tmp_path: Path, extreme: float) -> None:
    x, y = data(64)
    x[63] = extreme
    everybody = one_sum(tmp_path, (x, y), "a")
    without = one_sum(tmp_path, (x[:63], y[:63]), "b")
    assert torch.isfinite(everybody).all()
    assert float((everybody - without).norm()) <= 1.0 + 0.05  # and the noise of 0.001


def test_one_user_moves_the_sum_by_no_more_than_the_clip(tmp_path: Path) -> None:
    x, y = data(64)
    x[40:], y[40:] = 100 * x[40], 1 - y[40]
    users = np.array([*range(40), *[99] * 24])
    everybody = one_sum(tmp_path, (x, y), "a", unit=user("id"), users=users)
    without = one_sum(tmp_path, (x[:40], y[:40]), "b", unit=user("id"), users=users[:40])
    assert 0.5 < float((everybody - without).norm()) <= 1.0 + 0.05
    assert "averaged" in trainer(tmp_path, unit=user("id"), users=users, ledger=tmp_path / "c.ledger").explain()


def test_examples_that_are_computed_together_are_not_clipped_together(tmp_path: Path) -> None:
    """The trap: one more example may turn the clipped sum of its micro-batch around, which is twice the clip."""
    x, y = data(64)
    together, alone = (one_sum(tmp_path, (100 * x, y), str(chunk), chunk=chunk) for chunk in (64, 1))
    assert float(alone.norm()) > 2
    assert float((together - alone).norm()) < 0.05  # the noise of 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"max_grad_norm": AutomaticClipping()},
        {"max_grad_norm": AdaptiveClipping(initial=0.1)},
        {"max_grad_norm": PerLayerClipping(1.0)},
        {"max_grad_norm": PerLayerClipping({"0": 1.0, "2": 0.5})},
        {"noise": Schedule.linear(2, 1, levels=2)},
        {"noise": Banded(2), "epsilon": 50, "delta": 1e-5},
        {"noise": Banded(2, groups=3), "epsilon": 50, "delta": 1e-5},
        {"noise": BufferedToeplitz(2), "epsilon": 50, "delta": 1e-5},
        {"sampling": "balls in bins", "epsilon": 50, "delta": 1e-5},
        {"sampling": "fixed size", "epsilon": 50, "delta": 1e-5},
        {"sampling": "shuffled", "unit": rows(replace=True), "epsilon": 50, "delta": 1e-5},
        {"unit": rows(replace=True), "epsilon": 50, "delta": 1e-5},
        {"chunk": 3},
        {"randomness": "generator"},
        {"metrics": "private"},
        {"optimizer": lambda ps: torch.optim.AdamW(ps, lr=1e-3)},
        {"size": 70},
        {"loss": lambda o, t: F.cross_entropy(o, t, reduction="none")},
        {"loss": nn.CrossEntropyLoss(reduction="sum")},
        {"data": TensorDataset(*data())},
        {"data": (data()[0].numpy(), data()[1].numpy())},
    ],
    ids=named,
)
def test_every_setting_trains(tmp_path: Path, more: Any) -> None:
    net = model()
    before = parameters(net).clone()
    run = trainer(tmp_path, model=net, **more)
    assert len(run.explain()) > 500
    assert "Trainer(Sequential" in repr(run)
    result = run.fit(progress=False)
    assert not torch.equal(parameters(net), before)
    assert torch.isfinite(parameters(net)).all()
    assert result.epsilon <= float(run.plan.price.epsilon or 0)


def test_mixed_precision_trains_or_is_refused_for_sums_that_are_rounded(tmp_path: Path) -> None:
    net = model()
    try:
        run = trainer(tmp_path, model=net, precision="bfloat16", metrics="nothing")
    except UnfitModelError as problem:
        assert "rounded to few bits" in problem.what  # noqa: PT017 -- both outcomes are right
        return
    run.fit(progress=False)
    assert torch.isfinite(parameters(net)).all()


def test_in_mixed_precision_noise_is_made_for_gradients_a_little_longer_than_the_clip(tmp_path: Path) -> None:
    stepper = trainer(tmp_path, metrics="nothing")._stepper
    before = stepper._scales(0, list(stepper.parameters))
    stepper.precision = torch.bfloat16
    after = stepper._scales(0, list(stepper.parameters))
    assert after[0] / before[0] > (1 + 2**-9) ** 3


def test_virtual_batches_change_nothing_but_rounding(tmp_path: Path) -> None:
    nets = [model() for _ in range(2)]
    sums = []
    for net, chunk in zip(nets, (None, 3), strict=True):
        run = trainer(
            tmp_path,
            model=net,
            steps=1,
            batch_size=40,
            chunk=chunk,
            noise_multiplier=1e-3,
            epsilon=10**8,
            delta=0.01,
            max_grad_norm=0.1,
        )
        run.fit(progress=False)
        sums.append(torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None]))
    assert float((sums[0] - sums[1]).norm()) < 1e-3


def test_adaptive_clipping_finds_the_scale_of_the_norms(tmp_path: Path) -> None:
    run = trainer(
        tmp_path, data=data(3000), batch_size=1000, steps=60, max_grad_norm=AdaptiveClipping(initial=30.0, rate=0.3),
        metrics="private", optimizer=lambda ps: torch.optim.SGD(ps, lr=1e-6), epsilon=1000, delta=1e-5,
    )  # fmt: skip
    run.fit(progress=False)
    assert run.private is not None
    assert run.max_grad_norm == pytest.approx(run.private.quantiles[-1][1], rel=0.3)


def test_examples_that_are_not_finite_count_as_nothing_and_are_counted_for_the_owner(tmp_path: Path) -> None:
    x, y = data(64)
    x[5] = math.inf
    x[6] = math.nan
    net = model()
    run = trainer(tmp_path, model=net, data=(x, y), metrics="private", batch_size=64, steps=3, epsilon=1000, delta=1e-5)
    run.fit(progress=False)
    assert torch.isfinite(parameters(net)).all()
    assert run.private is not None
    assert run.private.unusable == 6
    assert "unusable" not in str(run.result())


def test_a_step_that_fails_leaves_no_sum_without_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = model()
    run = trainer(tmp_path, model=net)
    batch = next(run.batches())
    run.step(batch)
    batch = next(run.batches())
    monkeypatch.setattr(Cryptographic, "add", lambda *_: 1 / 0)
    with pytest.raises(StepFailedError, match="withheld"):
        run.step(batch)
    assert all(p.grad is None for p in net.parameters())


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([])


LOADER = DataLoader(TensorDataset(*data()), sampler=WeightedRandomSampler([1.0] * 64, 64))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        (
            {"model": nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))},
            DependentExamplesError,
            "clipping",
        ),
        ({"model": nn.Linear(5, 2).to(torch.bfloat16)}, UnfitModelError, "rounded by more"),
        ({"model": nn.Linear(5, 2).requires_grad_(False)}, UnfitModelError, "no trainable"),
        ({"model": nn.DataParallel(nn.Linear(5, 2))}, UnfitModelError, "DataParallel"),
        ({"model": nn.Linear(6, 2)}, UnfitModelError, "failed on synthetic examples"),
        ({"loss": lambda o, t: (o.argmax(1) == t).sum()}, UnfitModelError, "made of integers"),
        ({"loss": lambda o, t: F.cross_entropy(o, t) / len(o)}, UnfitModelError, "neither the sum nor the mean"),
        ({"data": Endless()}, UnfitDataError, "no known size"),
        ({"data": LOADER}, UnaccountedSamplingError, "WeightedRandomSampler"),
        ({"sampling": WeightedRandomSampler([1.0], 1)}, UnaccountedSamplingError, "drawn by Defocus"),
        ({"sampling": "fixed size", "size": 70}, InvalidParameterError, "not the size declared"),
        ({"optimizer": "sgd"}, UnfitModelError, "torch.optim.Optimizer"),
        ({"optimizer": torch.optim.LBFGS}, UnfitModelError, "LBFGS"),
        ({"optimizer": torch.optim.SGD(nn.Linear(2, 2).parameters())}, UnfitModelError, "does not have"),
        ({"optimizer": lambda ps: torch.optim.SGD(list(ps)[:2])}, UnfitModelError, "does not move"),
        ({"users": [1] * 64}, InvalidParameterError, "only with it"),
        ({"unit": user("id")}, InvalidParameterError, "only with it"),
        ({"unit": "rows"}, InvalidParameterError, "rows or users"),
        ({"precision": "float16"}, InvalidParameterError, "no precision"),
        ({"randomness": "numpy"}, InvalidParameterError, "no randomness"),
        ({"metrics": "everything"}, InvalidParameterError, "no metrics called"),
        ({"chunk": 0}, InvalidParameterError, "chunk"),
        ({"max_grad_norm": 0}, InvalidParameterError, "max_grad_norm"),
        ({"bits": 42}, InvalidParameterError, "cryptographic random bits"),
    ],
    ids=named,
)
def test_bad_input_is_refused_with_a_remedy_and_costs_nothing(
    tmp_path: Path, more: Any, kind: type[InvalidParameterError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        trainer(tmp_path, **copy.copy(more))
    assert caught.value.fix
    assert not (tmp_path / "run.ledger").exists() or not entries(tmp_path)


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_shapes_may_differ_from_step_to_step(tmp_path: Path) -> None:
    """Dynamic shapes: batches of any size, and models that branch on shapes."""

    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) if x.shape[0] > 10 else self.linear(x.unsqueeze(1)).squeeze(1)

    trainer(tmp_path, model=Branching(), steps=12, batch_size=10).fit(progress=False)


def test_models_may_return_whatever_the_loss_takes(tmp_path: Path) -> None:
    class Answering(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(5, 2)

        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": self.linear(x) * scale[:, None], "x": x}

    def loss(output: dict[str, torch.Tensor], target: dict[str, torch.Tensor]) -> torch.Tensor:
        return F.cross_entropy(output["logits"], target["y"], reduction="none") + 0 * output["x"].sum(1)

    x, y = data()
    trainer(tmp_path, model=Answering(), loss=loss, data=((x, torch.ones(64)), {"y": y})).fit(progress=False)
    trainer(
        tmp_path,
        model=Answering(),
        loss=loss,
        data=({"x": x, "scale": torch.ones(64)}, {"y": y}),
        ledger=tmp_path / "b",
    ).fit(progress=False)


def test_exact_progress_says_that_it_is_private(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trainer(tmp_path, metrics="private", steps=3)
    run.fit()
    assert "PRIVATE, for the data's owner only" in run.explain()
    assert _exact(run.private or PrivateMetrics()).startswith("PRIVATE: loss")
    assert _exact(PrivateMetrics()) == ""
    assert capsys.readouterr().out


def test_progress_shows_nothing_private_unless_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trainer(tmp_path, epsilon=None, noise_multiplier=1.1)
    run.fit()
    shown = capsys.readouterr().out
    assert f"of {run.plan.price.epsilon:.4g} " in shown
    assert "±" in shown
    assert "owner only" not in shown
    trainer(tmp_path, ledger=tmp_path / "b.ledger", metrics="nothing").fit()
    assert "loss" not in capsys.readouterr().out


def test_two_threads_do_not_take_one_step_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trainer(tmp_path)
    batch, make, working = next(run.batches()), type(run._stepper).make, threading.Event()

    def slow(*given: Any) -> None:
        working.set()
        time.sleep(0.2)
        make(*given)

    monkeypatch.setattr(type(run._stepper), "make", slow)
    first = threading.Thread(target=run.step, args=(batch,))
    first.start()
    working.wait()
    with pytest.raises(TrainingEndedError, match="not the batch"):
        run.step(batch)
    first.join()
    assert run.steps_taken == 1


def test_looking_at_a_run_or_being_refused_makes_no_ledger(tmp_path: Path) -> None:
    normed = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with pytest.raises(DependentExamplesError):
        trainer(tmp_path, model=normed)
    run = trainer(tmp_path)
    assert run.plan.steps == 8
    assert "Protected" in run.explain()
    assert not list(tmp_path.iterdir())
    run.fit(progress=False)
    assert (tmp_path / "run.ledger").exists()


def test_a_place_where_no_checkpoint_can_be_written_costs_nothing(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere" / "run.checkpoint", tmp_path):
        with pytest.raises(CheckpointError, match="cannot be written"):
            trainer(tmp_path).fit(checkpoint=place, progress=False)
    assert not (tmp_path / "run.ledger").exists()


def test_a_checkpoint_is_there_as_soon_as_the_run_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trainer(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(type(run._stepper), "_summed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.fit(checkpoint=tmp_path / "run.checkpoint", progress=False)
    again = trainer(tmp_path)
    again.resume(tmp_path / "run.checkpoint")
    assert again.fit(progress=False).steps == 8


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


class Switching(nn.Module):
    """Takes another path, for which gradients must be made otherwise, where a value is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool((x > 1e5).any()):
            return x.clamp(max=1) @ (self.inner.weight / self.inner.weight.norm()).t()
        return self.inner(x)


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_no_example_decides_what_a_run_says_of_its_gradients(tmp_path: Path) -> None:
    x, y = data()
    run = trainer(tmp_path, model=Switching(), data=(torch.full_like(x, 1e6), y))
    before = run.explain().splitlines()
    run.fit(progress=False)
    assert run.explain().splitlines()[:-2] == before[:-2]  # but for the charge


def test_a_run_says_whether_its_ledger_covers_it(tmp_path: Path) -> None:
    assert "covers it" not in trainer(tmp_path).explain()
    first, second = trainer(tmp_path), trainer(tmp_path)
    first.fit(progress=False)
    assert "covers it" not in first.explain()
    assert "NOT cover it" not in second.explain()
    assert "The ledger does NOT cover it; what is left: " in trainer(tmp_path).explain()
    wide = Ledger.open(tmp_path / "wide.ledger", dataset="wide", unit=rows(), budget=Budget(99, 1e-5))
    assert "The ledger covers it." in trainer(tmp_path, ledger=wide).explain()


def test_lazy_layers_are_refused_by_name(tmp_path: Path) -> None:
    lazy = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2))
    with pytest.raises(UnfitModelError, match=r"0\.weight has no shape yet.*\n?.*To fix: pass a synthetic example"):
        trainer(tmp_path, model=lazy)
    lazy(torch.zeros(1, 5))
    trainer(tmp_path, model=lazy)


def test_autocast_around_a_run_is_refused_and_the_batch_can_still_be_taken(tmp_path: Path) -> None:
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(InvalidParameterError, match='precision="bfloat16"'),
    ):
        trainer(tmp_path)
    run = trainer(tmp_path)
    batch = next(run.batches())
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(InvalidParameterError, match=r"torch\.autocast is on"),
    ):
        run.step(batch)
    run.step(batch)
    assert run.steps_taken == 1


def test_a_loop_that_forgets_to_step_is_told_so_and_counts_no_steps(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    before = parameters(run._stepper.model)
    with pytest.warns(UserWarning, match=r"no step was taken.*run\.step\(batch\)"):
        for _ in run.batches():
            pass
    assert all(torch.equal(*pair) for pair in zip(before, parameters(run._stepper.model), strict=True))
    assert "0 of 8," in str(run.result())
    assert "8 batches were passed over without run.step" in str(run.result())
    assert "0 of 8 steps" in repr(run)


def test_steps_that_were_passed_over_are_remembered_by_a_checkpoint(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    batches = run.batches()
    next(batches)
    run.step(next(batches))
    run.save(tmp_path / "kept")
    run.close()
    again = trainer(tmp_path)
    again.resume(tmp_path / "kept")
    assert again.steps_taken == run.steps_taken == 1


class Remembering(nn.Module):
    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("rows", rows)
        self.out = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.out(x + (x @ self.rows.T).softmax(1) @ self.rows)


@pytest.mark.filterwarnings("ignore:Of a DataLoader")
def test_a_model_that_holds_the_private_rows_is_refused(tmp_path: Path) -> None:
    x, y = data()
    for given in ((x, y), (x.numpy(), y.numpy()), TensorDataset(x, y), DataLoader(TensorDataset(x, y), 16)):
        with pytest.raises(UnfitModelError, match="holds the training data itself, in the tensor rows"):
            trainer(tmp_path, model=Remembering(x[:10]), data=given)
    assert "(buffers, constants, frozen weights) is taken as public" in trainer(tmp_path).explain()


def test_a_tensor_of_as_many_rows_as_there_are_examples_is_warned_of(tmp_path: Path) -> None:
    x, y = data(128)
    with pytest.warns(UserWarning, match="The tensor rows has as many rows as there are examples"):
        trainer(tmp_path, model=Remembering(x.clone()), data=(x, y))


def test_an_example_whose_target_is_ignored_adds_nothing_and_spoils_nothing(tmp_path: Path) -> None:
    x, y = data()
    run = trainer(tmp_path, data=(x, torch.where(x[:, 0] > 0, y, -100)), metrics="private")
    run.fit(progress=False)
    assert run.private is not None
    assert run.private.unusable == 0
    assert all(bool(torch.isfinite(each).all()) for each in parameters(run._stepper.model))


class Rooted(torch.utils.data.TensorDataset):
    """Examples that say in which folder they lie, as those of torchvision do."""

    def __init__(self, parts: Any, root: Path) -> None:
        super().__init__(*parts)
        root.mkdir()
        (root / "data").write_bytes(b"1")
        self.root = root


def test_a_scratch_run_charges_nothing_that_lasts_and_says_so(tmp_path: Path) -> None:
    def run(**more: Any) -> Trainer:
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        given: dict[str, Any] = {"unit": rows(), "epsilon": 8, "steps": 2, "batch_size": 8}
        return Trainer(net, nn.CrossEntropyLoss(), optimizer, more.pop("data", data()), **given, **more)

    for _ in range(2):  # as often as one likes
        tried = run(scratch="random numbers")
        assert "made up (random numbers)" in tried.explain()
        assert repr(tried).endswith("scratch)")
        result = tried.fit(progress=False)
        assert result.steps == 2
        assert "nothing is promised" in result.explanation
        assert "protected:  nobody: a scratch run" in str(result)
        assert "charged:" not in str(result)
        assert "Charged as entry" not in result.explanation
    with pytest.raises(InvalidParameterError, match="no ledger that lasts"):
        run(scratch="public", ledger=tmp_path / "a.ledger")
    with pytest.raises(InvalidParameterError, match="says why"):
        run(scratch=" ")
    path = tmp_path / "x.npy"
    np.save(path, data()[0].numpy())
    mapped = (np.load(path, mmap_mode="r"), data()[1].numpy())
    run(data=mapped).fit(progress=False)
    with pytest.raises(InvalidParameterError, match="has a ledger, so it is private"):
        run(data=mapped, scratch="surely public")
    folders = [Rooted(data(), tmp_path / name) for name in ("a", "b")]
    two = torch.utils.data.ConcatDataset(folders)
    with pytest.raises(NotDeclaredError, match="lies in several places"):
        run(data=two, example=(torch.zeros(5), 0))
    run(data=folders[1], example=(torch.zeros(5), 0)).fit(progress=False)
    for wrapped in (two, torch.utils.data.Subset(two, range(4))):
        with pytest.raises(InvalidParameterError, match="has a ledger, so it is private"):
            run(data=wrapped, example=(torch.zeros(5), 0), scratch="surely public")


def test_a_second_run_that_does_not_fit_is_told_how_to_try_things_out(tmp_path: Path) -> None:
    run = trainer(tmp_path, epsilon=BUDGET.epsilon, delta=BUDGET.delta)
    run.fit(progress=False)
    with pytest.raises(BudgetExceededError) as caught:
        trainer(tmp_path).fit(progress=False)
    assert "scratch=" in caught.value.fix
