"""Several processes train one model: one sample, one noise, one charge."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.learning import processes
from tests.learning.making import model, parameters, trainer
from tests.waiting import HANGS

from defocus import Ledger
from defocus.learning.distributed import Ranks, plain

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("ranks")
    path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, str(processes.__file__), str(rank), "2", str(folder)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=HANGS)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, -signal.SIGKILL], errors
    return folder, [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.slow
def test_two_processes_draw_one_sample_and_charge_once(told: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    folder, (first, second) = told
    assert first["seen"] == second["seen"]
    net = model()
    run = trainer(tmp_path, model=net, noise_multiplier=0.02, epsilon=10**6, delta=0.01, steps=3, batch_size=32)
    alone = []
    for batch in run.batches():
        alone.append(batch.units.tolist())
        run.step(batch)
    assert alone == first["seen"]  # the very sample that one process draws with this key
    assert torch.allclose(torch.tensor(first["quiet"]), parameters(net), atol=0.01)
    with Ledger.open(folder / "run.ledger") as book:
        assert [entry.kind for entry in book.entries()].count("charge") == 1


@pytest.mark.slow
def test_noise_is_added_once_and_all_processes_end_with_the_same_model(
    told: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder, (first, second) = told
    assert first["noisy"] == second["noisy"]
    assert (first["charged"], second["charged"]) == (True, False)
    assert (folder / "c").exists()
    with Ledger.open(folder / "noisy.ledger") as book:
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge", "release"]


@pytest.mark.slow
def test_processes_that_disagree_are_refused_and_fail_together(told: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, both = told
    for each in both:
        assert "not given the same parameters to begin with" in each["parameters"]
        assert "not given the same settings" in each["settings"]
        for what in ("order", "shards", "lengths"):
            assert "not given the same data, in the same order" in each[what]
    assert not (folder / "other.ledger").exists()
    assert "budget" in both[0]["spent"].lower()
    assert "could not charge" in both[1]["spent"]


@pytest.mark.slow
def test_processes_go_on_together_and_drop_what_they_would_have_dropped(
    told: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder, (first, second) = told
    whole, again = first["resumed"]
    assert whole == again == second["resumed"][0] == second["resumed"][1]
    assert "is at work on this run" in first["in use"]
    assert "could not resume the run" in second["in use"]
    assert "not given the same checkpoint" in first["another"]
    assert "not given the same checkpoint" in second["another"]
    with Ledger.open(folder / "whole.ledger") as book:
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge", "release"]


@pytest.mark.slow
def test_a_step_is_taken_by_all_or_by_none(told: tuple[Path, list[dict[str, Any]]]) -> None:
    _, (first, second) = told
    assert "could not compute its part" in first["failed"]
    assert "withheld" in second["failed"]
    assert "not at the same step" in first["apart"]
    assert "not at the same step" in second["apart"]


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_others_and_leaves_the_charge(
    told: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder, (first, second) = told
    assert "is gone, or did not answer" in first["lost"]
    assert all(first["grad"])
    assert "lost" not in second
    with Ledger.open(folder / "lost.ledger") as book:
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge"]


def test_one_process_is_alone() -> None:
    ranks = Ranks()
    assert ranks.first
    assert ranks.world == 1
    assert ranks.shared(b"key") == b"key"
    assert ranks.together(lambda: 3, "count") == 3
    ranks.agree(bytes(32), "settings")
    net = model()
    assert plain(net) is net
