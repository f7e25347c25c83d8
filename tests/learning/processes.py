"""Processes for tests: with a rank, a world and a folder one of several; with a folder one until it is killed."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tests.learning.making import data, model, parameters, trainer
from tests.waiting import HANGS
from torch import distributed, nn

from defocus.errors import DefocusError
from defocus.noise.testing import seeded


def main(rank: int, world: int, folder: Path) -> None:
    torch.set_num_threads(1)
    there = f"file://{folder}/meeting"
    distributed.init_process_group("gloo", there, timeout=timedelta(seconds=HANGS), rank=rank, world_size=world)
    told: dict[str, Any] = {}
    loud = {"noise_multiplier": 0.02, "epsilon": 10**6, "delta": 0.01, "steps": 3, "batch_size": 32}
    net = model()
    run = trainer(folder, model=nn.parallel.DistributedDataParallel(net), bits=seeded(1 + rank), **loud)
    seen = []
    for batch in run.batches():
        seen.append(batch.units.tolist())
        run.step(batch)
    told["seen"], told["quiet"] = seen, parameters(net).tolist()
    net = model()
    noisy = trainer(folder, model=net, ledger=folder / "noisy.ledger" if not rank else None)
    noisy.fit(progress=False, checkpoint=folder / "c")
    told["noisy"] = parameters(net).tolist()
    told["charged"] = noisy.receipt is not None
    x, y = data()
    for what, more in {
        "parameters": {"model": model(5, rank)},
        "order": {"data": (x.roll(rank, 0), y.roll(rank, 0))},
        "shards": {"data": (x[rank::2], y[rank::2]), "size": 64},
        "lengths": {"data": (x[rank:], y[rank:]), "size": 64},
        "settings": {"max_grad_norm": 1.0 + rank},
    }.items():
        told[what] = refusal(partial(trainer, folder, ledger=folder / "other.ledger", **more))
    told["spent"] = refusal(lambda: trainer(folder, model=model(), ledger=folder / "noisy.ledger").fit(progress=False))
    resumed(rank, folder, told)
    apart(rank, folder, told)
    (folder / f"told-{rank}.json").write_text(json.dumps(told))
    lost(rank, folder, told)


def refusal(tried: Callable[[], Any]) -> str:
    try:
        tried()
    except DefocusError as error:
        return error.what
    return ""


def resumed(rank: int, folder: Path, told: dict[str, Any]) -> None:
    """Drop at random on both, whatever state their own generators are in, and go on from the middle."""
    nets = [model(5, 0, nn.Dropout(0.5)) for _ in range(2)]
    torch.manual_seed(rank)
    run = trainer(folder, model=nets[0], ledger=folder / "whole.ledger")
    for batch in run.batches():
        run.step(batch)
        if run.steps_taken == 4:
            run.save(folder / "half")
            told["in use"] = refusal(lambda: trainer(folder, ledger=folder / "whole.ledger").resume(folder / "half"))
    torch.manual_seed(9 - rank)
    again = trainer(folder, model=nets[1], ledger=folder / "whole.ledger")
    there = folder / ("c" if rank else "half")
    told["another"] = refusal(lambda: trainer(folder, ledger=folder / "whole.ledger").resume(there))
    again.resume(folder / "half")
    again.fit(progress=False)
    told["resumed"] = [parameters(net).tolist() for net in nets]


def apart(rank: int, folder: Path, told: dict[str, Any]) -> None:
    """One process fails, or passes over a batch, and the other does not."""
    run = trainer(folder, ledger=folder / "apart.ledger")
    batches = run.batches()
    batch, units = next(batches), run._stepper.units
    if rank:
        run._stepper.units = None  # type: ignore[assignment]  # so that it fails
    try:
        run.step(batch)
    except (AttributeError, DefocusError) as error:
        told["failed"] = str(error)
    run._stepper.units = units
    run.step(batch)
    batch = next(batches)
    told["apart"] = refusal(lambda: run.step(next(batches) if rank else batch))


def lost(rank: int, folder: Path, told: dict[str, Any]) -> None:
    """One process is killed in the middle of a run."""
    run = trainer(folder, ledger=folder / "lost.ledger")
    run.step(next(run.batches()))
    if rank:
        os.kill(os.getpid(), signal.SIGKILL)
    told["lost"] = refusal(lambda: run.fit(progress=False))
    told["grad"] = [each.grad is None for each in run._stepper.model.parameters()]
    (folder / f"told-{rank}.json").write_text(json.dumps(told))
    os._exit(0)  # with the other process gone, threads of gloo abort an ordinary end now and then


def until_killed(folder: Path) -> None:
    """Save after each step and say so; nobody lets it come to its end."""
    torch.set_num_threads(1)
    run = trainer(folder)
    for batch in run.batches():
        run.step(batch)
        run.save(folder / "c")
        print(run.steps_taken, flush=True)  # noqa: T201 -- to the test
        time.sleep(0 if run.steps_taken < 3 else HANGS)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        until_killed(Path(sys.argv[1]))
    else:
        main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
