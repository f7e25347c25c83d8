"""Going on from a checkpoint, bit for bit, and not from anybody else's."""

import json
import math
import os
import stat
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learning import processes
from tests.learning.making import BUDGET, data, model, named, parameters, trainer
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere
from torch.utils.data import Dataset

from defocus import Budget, Ledger, rows, user
from defocus.errors import BranchedRunError, CheckpointError, InvalidParameterError, TrainingEndedError
from defocus.learning import AdaptiveClipping, Banded, Schedule, Trainer, resume
from defocus.learning.gradients import Gradients
from defocus.learning.resume import check_place, digest_of_data, key_in, load, save, tree_in, tree_out
from defocus.ledger import runs
from defocus.noise import system
from defocus.noise.testing import seeded

pytestmark = pytest.mark.usefixtures("unchecked")


def half(run: Trainer, path: Path, steps: int = 4) -> None:
    for batch in run.batches():
        run.step(batch)
        if run.steps_taken == steps:
            run.save(path)
            return


def dropping() -> nn.Module:
    return model(5, 0, nn.Dropout(0.5))


def adam(parameters: Any) -> Any:
    return torch.optim.Adam(parameters, lr=1e-2, amsgrad=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"optimizer": adam},
        {"max_grad_norm": AdaptiveClipping()},
        {"noise": Banded(3), "epsilon": 50, "delta": 1e-5},
        {"noise": Schedule([2, 1]), "epsilon": 8, "delta": 1e-5},
        {"sampling": "balls in bins", "epsilon": 50, "delta": 1e-5},
        {"unit": user("id"), "users": np.arange(64) // 2, "batch_size": 8},
        {"unit": rows(per_person=2), "users": [[i, i // 2] for i in range(64)], "epsilon": 50, "noise_multiplier": 4},
        {"randomness": "generator"},
    ],
    ids=named,
)
def test_a_run_resumed_is_the_run_that_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Any
) -> None:
    if not more:  # the first one is enough to see that checks of the model leave no trace
        monkeypatch.undo()
    whole, first, second = dropping(), dropping(), dropping()
    torch.manual_seed(3)
    straight = trainer(tmp_path, model=whole, ledger=tmp_path / "a.ledger", **more).fit(progress=False)
    torch.manual_seed(3)
    half(trainer(tmp_path, model=first, **more), tmp_path / "c")
    torch.manual_seed(99)
    run = trainer(tmp_path, model=second, **{**more, "bits": system()})
    run.resume(tmp_path / "c")
    assert run.steps_taken == 4
    resumed = run.fit(progress=False)
    assert torch.equal(parameters(whole), parameters(second))
    assert resumed.steps == straight.steps == 8
    assert resumed.clips == straight.clips
    assert str(resumed.metrics) == str(straight.metrics)
    with Ledger.open(tmp_path / "run.ledger") as book:
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge", "release"]


def convolving() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2))


def test_gradients_are_added_up_in_the_ways_that_were_chosen_before(tmp_path: Path) -> None:
    """Which way is faster is measured, and ways round differently."""
    more: dict[str, Any] = {"sampling": "fixed size", "epsilon": 99, "delta": 1e-5}
    whole, second = convolving(), convolving()
    straight = trainer(tmp_path, model=whole, **more)
    for batch in straight.batches():
        straight.step(batch)
        if straight.steps_taken == 4:
            straight.save(tmp_path / "c")
    assert load(tmp_path / "c")["tuning"]
    run = trainer(tmp_path, model=second, **more)
    run.resume(tmp_path / "c")
    assert run._stepper.gradients.tuning == load(tmp_path / "c")["tuning"]
    run.fit(progress=False)
    assert torch.equal(parameters(whole), parameters(second))


def test_a_run_at_its_end_takes_no_further_step_when_it_is_resumed(tmp_path: Path) -> None:
    trainer(tmp_path).fit(progress=False, checkpoint=tmp_path / "c", every=3)
    run = trainer(tmp_path)
    run.resume(tmp_path / "c")
    assert list(run.batches()) == []
    assert run.result().steps == 8
    nothing: Any = None
    with pytest.raises(TrainingEndedError):
        run.step(nothing)


def moved(run: Trainer) -> None:
    with torch.no_grad():
        next(run._stepper.model.parameters())[0, 0] += 1e-6


def faster(run: Trainer) -> None:
    run._optimizer.param_groups[0]["lr"] = 0.7


def remembering(run: Trainer) -> None:
    next(iter(run._optimizer.state.values()))["momentum_buffer"][0, 0] += 1e-6


def mirrored(run: Trainer) -> None:
    inputs, _ = run._stepper.data._tensors
    inputs[-1] *= -1  # after the digests of the data were compared


def steeper(run: Trainer) -> None:
    run._stepper.gradients = Gradients(run._stepper.model, lambda o, t: 2 * F.cross_entropy(o, t))


def skipping(run: Trainer) -> None:
    batches = run.batches()
    next(batches)
    next(batches)


def louder(run: Trainer) -> None:
    """The same sums with other noise: as another device would have it."""
    run._stepper.plan = replace(run.plan, ratio=run.plan.ratio * 1.01)


@pytest.mark.parametrize("change", [moved, faster, remembering, mirrored, steeper, skipping, louder])
def test_no_step_is_released_from_two_sums(tmp_path: Path, change: Any) -> None:
    """Fresh noise on the nearly same sum, many times, would be averaged away, for one charge."""
    more: dict[str, Any] = {"sampling": "fixed size", "batch_size": 60, "epsilon": 999, "delta": 1e-5}
    saved = trainer(tmp_path, **more)
    half(saved, tmp_path / "c", steps=2)
    saved.fit(progress=False)
    again = trainer(tmp_path, **more)
    again.resume(tmp_path / "c")
    again.fit(progress=False)  # with everything as it was, steps are repeated
    assert torch.equal(parameters(saved._stepper.model), parameters(again._stepper.model))
    run = trainer(tmp_path, **more, data=data())
    run.resume(tmp_path / "c")
    for _ in range(2):
        run.step(next(run.batches()))
    change(run)
    if change in {faster, remembering}:  # seen in the sums of the step after it
        run.step(next(run.batches()))
    before = parameters(run._stepper.model).clone()
    batch = next(run.batches())
    with pytest.raises(BranchedRunError, match="was released before, from other sums") as caught:
        run.step(batch)
    assert torch.equal(parameters(run._stepper.model), before)
    assert all(p.grad is None for p in run._stepper.model.parameters())
    assert "a checkpoint of 8 steps; or start another run, which is charged" in caught.value.fix
    with Ledger.open(tmp_path / "run.ledger") as book:
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge", "release"]


def test_a_run_may_take_another_way_from_where_it_stopped(tmp_path: Path) -> None:
    """Steps that were not yet released can be taken from any state: that is one run, and an adaptive one."""
    half(trainer(tmp_path), tmp_path / "c")
    run = trainer(tmp_path)
    run.resume(tmp_path / "c")
    faster(run)
    assert run.fit(progress=False).steps == 8


@pytest.mark.slow
def test_one_trainer_at_a_time_goes_on_with_a_run(tmp_path: Path) -> None:
    first, copy = trainer(tmp_path), trainer(tmp_path)
    half(first, tmp_path / "c")
    with pytest.raises(CheckpointError, match="is at work on this run") as caught:
        copy.resume(tmp_path / "c")
    assert "close()" in caught.value.fix
    assert copy.receipt is None
    first.step(next(first.batches()))  # unharmed
    first.close()
    with copy as run:
        run.resume(tmp_path / "c")
        run.step(next(run.batches()))
        with pytest.raises(CheckpointError, match="is at work"):
            first.step(next(first.batches()))
    third = trainer(tmp_path)
    third.resume(tmp_path / "c")
    assert third.fit(progress=False).steps == 8


def test_the_end_of_a_run_is_noted_whoever_takes_its_steps(tmp_path: Path) -> None:
    def kinds() -> list[str]:
        with Ledger.open(tmp_path / "run.ledger") as book:
            return [entry.kind for entry in book.entries()]

    run = trainer(tmp_path)
    batches = run.batches()
    for _ in range(7):
        run.step(next(batches))
    assert kinds() == ["genesis", "charge"]
    run.save(tmp_path / "c")
    last = next(batches)
    run.step(last)
    assert kinds() == ["genesis", "charge", "release"]
    run.result()
    again = trainer(tmp_path)  # nobody holds the run any more
    again.resume(tmp_path / "c")
    assert len(list(again.batches())) == 1  # passed over: that is an end, too
    assert kinds() == ["genesis", "charge", "release"]


@pytest.mark.parametrize("told", [True, False])
def test_a_log_that_is_cut_off_after_the_end_of_its_run_was_noted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """The steps that are missing could be taken again with other noise."""
    if not told:
        monkeypatch.setattr(resume, "end_of", lambda _: None)  # as where the ledger is no file
    run = trainer(tmp_path)
    half(run, tmp_path / "c", steps=3)
    run.fit(progress=False)
    (there,) = (tmp_path / "run.ledger.runs").iterdir()
    text = there.read_bytes()
    for steps in (7, 3):
        os.truncate(there, 64 * (1 + steps))
        refused(tmp_path, "lacks steps that were taken before the end of the run was noted")
    there.write_bytes(text)
    again = trainer(tmp_path)
    again.resume(tmp_path / "c")
    assert again.fit(progress=False).steps == 8


def test_a_step_that_was_passed_over_is_not_taken_after_the_end_of_its_run_was_noted(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    half(run, tmp_path / "c", steps=3)
    assert len(list(run.batches())) == 5
    again = trainer(tmp_path)
    again.resume(tmp_path / "c")
    with pytest.raises(BranchedRunError, match="passed over before the end") as caught:
        again.step(next(again.batches()))
    assert "pass it over again" in caught.value.fix
    assert len(list(again.batches())) == 5


def test_where_the_ledger_is_no_file_the_log_lies_beside_the_first_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "run_folder", lambda _: None)  # as for one in PostgreSQL
    run = trainer(tmp_path)
    half(run, tmp_path / "c", steps=2)
    (tmp_path / "later").mkdir()
    half(run, tmp_path / "later" / "c", steps=4)
    run.close()
    (there,) = tmp_path.glob("c.run-*")
    again = trainer(tmp_path)
    again.resume(tmp_path / "later" / "c")
    again.fit(progress=False)
    third = trainer(tmp_path)
    third.resume(tmp_path / "c")
    faster(third)
    third.step(next(third.batches()))
    batch = next(third.batches())
    with pytest.raises(BranchedRunError):
        third.step(batch)
    there.unlink()
    refused(tmp_path, "is missing")


@pytest.mark.slow
def test_a_checkpoint_that_was_tampered_with_takes_no_step_twice(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    half(run, tmp_path / "c")
    run.close()
    kept = load(tmp_path / "c")
    save(tmp_path / "c", {**kept, "taken": 0})
    back = trainer(tmp_path)
    back.resume(tmp_path / "c")
    with pytest.raises(BranchedRunError):
        back.step(next(back.batches()))
    back.close()
    for name, value in {"key": bytes(32), "log": ["", 9, bytes(32)]}.items():
        bad = {**kept, name: value}
        bad["data"] = digest_of_data(run._stepper, bad["key"])
        save(tmp_path / "c", bad)
        refused(tmp_path, "of another run|lacks steps")


def refused(tmp_path: Path, words: str, **more: Any) -> None:
    net = more.get("model") or model()
    before = parameters(net).clone()
    run = trainer(tmp_path, **{**more, "model": net})
    with pytest.raises(CheckpointError, match=words) as caught:
        run.resume(tmp_path / "c")
    assert caught.value.fix
    assert run.steps_taken == 0
    assert run.receipt is None
    assert torch.equal(parameters(net), before)


@pytest.mark.parametrize(
    "more",
    [
        {"max_grad_norm": 2.0},
        {"noise_multiplier": 1.5},
        {"batch_size": 17},
        {"steps": 9},
        {"epsilon": 9, "delta": 1e-5},
        {"sampling": "fixed size", "epsilon": 99, "delta": 1e-5},
        {"optimizer": adam},
        {"model": nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 2))},
        {"unit": rows(replace=True), "epsilon": 99, "delta": 1e-5, "ledger": "b.ledger"},
    ],
    ids=named,
)
def test_a_checkpoint_of_a_run_with_other_settings_is_refused(tmp_path: Path, more: Any) -> None:
    half(trainer(tmp_path), tmp_path / "c")
    if "ledger" in more:
        more = {**more, "ledger": tmp_path / more["ledger"]}
        Ledger.open(more["ledger"], dataset="b", unit=more["unit"], budget=Budget(99, 1e-5)).close()
    refused(tmp_path, "of another run", **more)


def test_a_checkpoint_of_a_run_on_other_data_is_refused(tmp_path: Path) -> None:
    half(trainer(tmp_path), tmp_path / "c")
    x, y = data()
    refused(tmp_path, "on other data", data=(x + 1e-6, y))
    refused(tmp_path, "on other data", data=(x.flip(0), y.flip(0)))
    x[3] = math.nan
    refused(tmp_path, "on other data", data=(x, y))


def test_a_checkpoint_of_a_run_charged_elsewhere_is_refused(tmp_path: Path) -> None:
    half(trainer(tmp_path), tmp_path / "c")
    refused(tmp_path, "not charged to this ledger", ledger=tmp_path / "new.ledger")
    with Ledger.open(tmp_path / "same.ledger", budget=BUDGET, unit=rows(), dataset="d") as book:
        trainer(tmp_path, ledger=book).fit(progress=False)
        refused(tmp_path, "not charged to this ledger", ledger=book)


def test_corrupted_checkpoints_are_refused(tmp_path: Path) -> None:
    half(trainer(tmp_path), tmp_path / "c")
    whole = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(whole[:-7])
    refused(tmp_path, "damaged")
    (tmp_path / "c").write_bytes(whole.replace(b"taken", b"token"))
    refused(tmp_path, "damaged")
    (tmp_path / "c").unlink()
    refused(tmp_path, "cannot be read")


def test_a_checkpoint_is_secret_and_not_overwritten_by_another_run(tmp_path: Path) -> None:
    half(trainer(tmp_path), tmp_path / "c")
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o600
    assert len(load(tmp_path / "c")["key"]) == 32
    other = trainer(tmp_path, ledger=tmp_path / "b.ledger", bits=seeded(2))
    with pytest.raises(CheckpointError, match="of another run"):
        other.fit(progress=False, checkpoint=tmp_path / "c")


def test_nothing_is_resumed_into_or_saved_from_a_run_at_the_wrong_time(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    with pytest.raises(InvalidParameterError, match="has not begun"):
        run.save(tmp_path / "c")
    half(run, tmp_path / "c", steps=1)
    with pytest.raises(InvalidParameterError, match="has begun"):
        run.resume(tmp_path / "c")


def test_a_checkpoint_keeps_what_else_a_loop_needs(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    scheduler = torch.optim.lr_scheduler.StepLR(run._optimizer, 2)
    for batch in run.batches():
        run.step(batch)
        scheduler.step()
        if run.steps_taken == 3:
            break
    run.save(tmp_path / "c", more={"scheduler": scheduler.state_dict()})
    run.close()
    again = trainer(tmp_path)
    kept = again.resume(tmp_path / "c")
    assert kept["scheduler"] == scheduler.state_dict()


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    path = f"{Path(__file__).parents[2]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(processes.__file__), str(tmp_path)]
    taken = trainer(tmp_path)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own interpreter
        assert process.stdout is not None
        while int(process.stdout.readline()) < 3:
            pass
        with pytest.raises(CheckpointError, match="is at work"):
            taken.resume(tmp_path / "c")
        process.kill()
    torch.set_num_threads(1)  # as there
    whole, rest = model(), model()
    trainer(tmp_path, model=whole, ledger=tmp_path / "a.ledger").fit(progress=False)
    run = trainer(tmp_path, model=rest)
    run.resume(tmp_path / "c")
    assert 3 <= run.steps_taken < 8
    run.fit(progress=False)
    assert torch.equal(parameters(whole), parameters(rest))
    with Ledger.open(tmp_path / "run.ledger") as book:
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge", "release"]


class Augmented(Dataset[Any]):
    """Examples that come out differently each time."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> Any:
        x, y = data()
        return x[i] + torch.randn(5), y[i]


def test_a_dataset_that_changes_its_examples_at_random_can_be_resumed(tmp_path: Path) -> None:
    half(trainer(tmp_path, data=Augmented(), example=(torch.zeros(5), 0)), tmp_path / "c", steps=1)
    run = trainer(tmp_path, data=Augmented(), example=(torch.zeros(5), 0))
    run.resume(tmp_path / "c")
    assert run.steps_taken == 1


plain = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text() | st.binary()
trees = st.recursive(
    plain,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
    max_leaves=12,
)


@given(tree=trees)
def test_trees_come_back_as_they_were(tree: Any) -> None:
    out = tree_out(tree, [])
    assert tree_in(json.loads(json.dumps(out, allow_nan=False)), []) == tree


def content() -> dict[str, Any]:
    return {
        "weights": torch.randn(3, 4),
        "half": torch.randn(5).to(torch.bfloat16),
        "step": torch.tensor(7.0),
        "mask": torch.tensor([True, False]),
        "none": torch.zeros(0, 3),
        "turned": torch.randn(2, 3).t(),
        "nan": torch.tensor([math.nan, math.inf, -0.0]),
        "groups": [{"lr": 0.1, "betas": (0.9, 0.999), "limit": math.inf}],
        "key": bytes(range(32)),
    }


def test_every_bit_comes_back(tmp_path: Path) -> None:
    given = content()
    save(tmp_path / "c", given)
    found = load(tmp_path / "c")
    assert found.keys() == given.keys()
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype
            assert found[name].shape == value.shape
            raw = [each.contiguous().reshape(-1).view(torch.uint8) for each in (value, found[name])]
            assert torch.equal(*raw)
        else:
            assert found[name] == value


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(b"")
    path.chmod(0o644)
    save(path, {"a": 1})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


def test_any_byte_altered_or_cut_off_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    save(path, {"weights": torch.arange(6.0), "lr": 0.125})
    whole = path.read_bytes()
    for i in range(0, len(whole), 3):
        if whole[i] != 0x20:  # a space in JSON may become another without meaning anything else
            path.write_bytes(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :])
            with pytest.raises(CheckpointError):
                load(path)
    for end in (0, 5, 8, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(CheckpointError, match="damaged") as caught:
            load(path)
        assert "older one" in caught.value.fix
    path.write_bytes(whole + b"x")
    with pytest.raises(CheckpointError):
        load(path)


def header(told: dict[str, Any]) -> bytes:
    text = json.dumps(told).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        header({"__metadata__": {}}),
        header({"__metadata__": {"format": "defocus training run 1", "state": "1", "digest": ""}}),
        header({"__metadata__": {"format": "other"}}),
        header([1]),  # type: ignore[arg-type]  # what a file may hold
        b"\x80\x04\x95" + b"\x00" * 64,  # a pickle
        struct.pack("<Q", 200_000) + b"[" * 200_000,
    ],
)
def test_files_that_are_something_else_are_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "c").write_bytes(raw)
    with pytest.raises(CheckpointError):
        load(tmp_path / "c")


def test_the_key_is_found_without_reading_the_rest(tmp_path: Path) -> None:
    save(tmp_path / "c", content())
    assert key_in(tmp_path / "c") == bytes(range(32))
    save(tmp_path / "d", {"a": 1})
    (tmp_path / "e").write_bytes(b"a file of someone else")
    for other in ("d", "e"):
        with pytest.raises(CheckpointError, match="damaged"):
            key_in(tmp_path / other)
    with pytest.raises(CheckpointError, match="cannot be read"):
        key_in(tmp_path / "f")


def test_places_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(tmp_path / "nowhere" / "c", {})


def test_processes_that_look_at_one_place_at_once_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def while_another_looks(path: Any, *how: Any, **more: Any) -> int:
        (tmp_path / "c.new").write_bytes(b"")
        return opened(path, *how, **more)

    monkeypatch.setattr(os, "open", while_another_looks)
    check_place(tmp_path / "c")
    assert {path.name for path in tmp_path.iterdir()} == {"c.new"}


@pytest.mark.parametrize(
    "thing", [object(), {1.5: 2}, {(1, 2): 3}, lambda: 1, 2**70, torch.zeros(2, dtype=torch.complex64)]
)
def test_what_is_no_number_text_or_tensor_is_refused(tmp_path: Path, thing: Any) -> None:
    with pytest.raises(CheckpointError, match="holds numbers, texts and tensors"):
        save(tmp_path / "c", {"a": [thing]})
    assert not (tmp_path / "c").exists()
