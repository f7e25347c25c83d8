"""Two states of Defocus side by side: a release of a table and steps of a training run, in processor time.

``python benchmarks/versions.py OLD NEW TABLE.parquet [ROUNDS]`` with two checkouts and a table that
``tables_parts/data.py`` wrote. Each state works in a process of its own, and they take turns.
"""

import importlib
import inspect
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

TURNS = {"release": 1, "steps": 20}


def release(path: str) -> Callable[[], Any]:
    """The main query of the benchmark of tables, on an open table."""
    with_defocus = importlib.import_module("with_defocus")  # of the checkout that is measured

    ready = with_defocus.begin(path)
    return lambda: with_defocus.release(ready)


def steps(_: str) -> Callable[[], Any]:
    """A perceptron of 203 530 parameters, batches of 512."""
    import torch
    from torch import nn

    import defocus as dp  # of the checkout that is measured

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = (torch.randn(20_000, 784), torch.randint(0, 10, (20_000,)))
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    names = inspect.signature(dp.learning.Trainer).parameters
    usual = {"max_grad_norm": 1.0, "batch_size": 512, "epochs": 128, "metrics": "nothing", "epsilon": 50, "delta": 1e-5}
    earlier = {"clip": 1.0, "batch": 512, "epochs": 128, "watch": "nothing"}  # names of November 2026
    how: dict[str, Any] = usual if "batch_size" in names else earlier
    home = tempfile.mkdtemp()
    how |= {"unit": dp.rows(), "budget": dp.Budget(60, 1e-5), "ledger": f"{home}/run.ledger"}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = dp.learning.Trainer(model, nn.CrossEntropyLoss(), optimizer, data, **how)
    batches = iter(run.batches())
    return lambda: run.step(next(batches))


def child(what: str, root: str, path: str) -> None:
    sys.path[:0] = [f"{root}/src", f"{root}/benchmarks/tables_parts"]
    turn = {"release": release, "steps": steps}[what](path)
    for _ in range(TURNS[what]):
        turn()
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.process_time()
        for _ in range(TURNS[what]):
            turn()
        print((time.process_time() - begun) / TURNS[what], flush=True)


def main() -> None:
    old, new, path, *rounds = sys.argv[1:]
    for what in TURNS:
        states = []
        for root in (old, new):
            command = [sys.executable, "-W", "ignore", __file__, "--child", what, root, path]
            states.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))  # noqa: S603
        for state in states:
            state.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
        seconds: list[list[float]] = [[], []]
        for i in range(int(rounds[0]) if rounds else 20):
            for which in (0, 1) if i % 2 else (1, 0):
                state = states[which]
                state.stdin.write("go\n")  # type: ignore[union-attr]
                state.stdin.flush()  # type: ignore[union-attr]
                seconds[which].append(float(state.stdout.readline()))  # type: ignore[union-attr]
        for state in states:
            state.communicate()
        least, middle = ([f(each) for each in seconds] for f in (min, lambda each: sorted(each)[len(each) // 2]))
        print(f"{what}: {least[0]:.4f} s, now {least[1]:.4f} s; ratio {least[1] / least[0]:.2f}, of medians", end=" ")
        print(f"{middle[1] / middle[0]:.2f}", flush=True)


if __name__ == "__main__":
    child(*sys.argv[2:]) if sys.argv[1:2] == ["--child"] else main()
