"""Processes for tests: with a rank, a world and a folder one of several; with a folder one until it is killed."""

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from tests.learning.making import model, parameters, trainer
from torch import distributed, nn

from defocus import Budget
from defocus.errors import DefocusError
from defocus.noise.testing import seeded


def main(rank: int, world: int, folder: Path) -> None:
    torch.set_num_threads(1)
    there = f"file://{folder}/meeting"
    distributed.init_process_group("gloo", there, timeout=timedelta(seconds=60), rank=rank, world_size=world)
    told: dict[str, Any] = {}
    loud = {"noise": 0.02, "budget": Budget(10**6, 0.01), "steps": 3, "batch": 32}
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
    try:
        trainer(folder, model=model(5, rank), ledger=folder / "other.ledger")
    except DefocusError as error:
        told["refused"] = error.what
    try:
        trainer(folder, model=model(), ledger=folder / "noisy.ledger").fit(progress=False)
    except DefocusError as error:
        told["spent"] = error.what
    (folder / f"told-{rank}.json").write_text(json.dumps(told))
    distributed.destroy_process_group()


def until_killed(folder: Path) -> None:
    """Save after each step and say so; nobody lets it come to its end."""
    torch.set_num_threads(1)
    run = trainer(folder)
    for batch in run.batches():
        run.step(batch)
        run.save(folder / "c")
        print(run.steps_taken, flush=True)  # noqa: T201 -- to the test
        time.sleep(0.05)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        until_killed(Path(sys.argv[1]))
    else:
        main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
