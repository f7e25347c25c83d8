"""How exact running sums are beside known strategies, and what a step of a long stream costs.

Run: python benchmarks/streams.py [longest [python]]   (about three minutes; needs nothing beyond the package)
With the interpreter of an environment that has jax-privacy, its buffered linear Toeplitz is made for 256 steps, too,
and its column-normalised banded strategy for units that take part several times.

The peers' variances are those of their matrices, computed here with numpy from their definitions: the plain square
root (Toeplitz), the binary tree, and the tree with full least squares, which looks ahead and so cannot be
released step by step. Variances are per unit of noise variance over squared sensitivity. The binned stream is run in
full, with its state measured at the end.
"""

import itertools
import json
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

from defocus import Budget, rows
from defocus.ledger import Ledger
from defocus.workloads import RunningSum
from defocus.workloads.streams.design import Participation, best_bandwidth
from defocus.workloads.streams.strategies import Factor

RESULTS = Path(__file__).parent / "results" / "streams.json"
PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
STEPS = 1024


def of_matrix(strategy: Any, sums: Any) -> tuple[float, float]:
    variances = (sums**2).sum(axis=1) * (strategy**2).sum(axis=0).max()
    return float(variances.mean()), float(variances.max())


def peers(n: int) -> dict[str, tuple[float, float]]:
    """Mean and largest variance of strategies as their papers define them."""
    summation = np.tri(n)
    f = np.cumprod(np.concatenate(([1.0], (2 * np.arange(1, n) - 1) / (2 * np.arange(1, n)))))
    root = np.array([[f[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    blocks = [
        [float(start <= i < start + size) for i in range(n)]
        for size in (2**level for level in range(n.bit_length()))
        for start in range(0, n, size)
    ]
    tree = np.array(blocks)
    ones = np.array([t.bit_count() for t in range(1, n + 1)]) * n.bit_length()
    return {
        "every sum with its own noise": of_matrix(summation, np.eye(n)),
        "every step with its own noise": of_matrix(np.eye(n), summation),
        "binary tree": (float(ones.mean()), float(ones.max())),
        "binary tree, least squares (looks ahead)": of_matrix(tree, summation @ np.linalg.pinv(tree)),
        "square root (Toeplitz)": of_matrix(root, root),
    }


def ours(n: int, **arguments: Any) -> tuple[float, float]:
    plan = RunningSum(n, **PRICE, **arguments)
    event: Any = plan.event
    unit = (float(event.sigma) / float(event.sensitivity)) ** 2
    return float(plan.variances.mean()) / unit, float(plan.variances.max()) / unit


PEER = """
import json, time
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from importlib.metadata import version
from jax_privacy.matrix_factorization import buffered_toeplitz
start = time.perf_counter()
found = buffered_toeplitz.optimize(n=256, min_sep=1, max_participations=1, max_buffers=4)
seconds = time.perf_counter() - start
matrix = np.array(found.materialize(256))
variances = ((np.tri(256) @ np.linalg.inv(matrix)) ** 2).sum(axis=1) * (matrix**2).sum(axis=0).max()
print(json.dumps({"version": version("jax-privacy"), "seconds": seconds,
                  "mean": float(variances.mean()), "max": float(variances.max())}))
"""


def buffered(python: str) -> dict[str, Any]:
    """The peer's strategy with at most four buffers, and ours, for 256 steps."""
    done = subprocess.run([python, "-c", PEER], capture_output=True, text=True, check=True)  # noqa: S603 # our own text
    start = time.perf_counter()
    mean, largest = ours(256)
    mine = {"mean": mean, "max": largest, "seconds": time.perf_counter() - start}
    return {"jax-privacy": json.loads(done.stdout.splitlines()[-1]), "defocus": mine}


BANDED_PEER = """
import json, sys, time
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from importlib.metadata import version
from jax_privacy.matrix_factorization import banded
n, times, apart = map(int, sys.argv[1:])
start, before = time.perf_counter(), time.process_time()
found = banded.optimize(n, bands=apart)
seconds, processor = time.perf_counter() - start, time.process_time() - before
matrix = np.array(found.materialize())
squared = banded.minsep_sensitivity_squared(found, apart, times)
variances = ((np.tri(n) @ np.linalg.inv(matrix)) ** 2).sum(axis=1) * squared
print(json.dumps({"version": version("jax-privacy"), "seconds": seconds, "processor_seconds": processor,
                  "mean": float(variances.mean()), "max": float(variances.max())}))
"""


def several(python: str | None) -> list[dict[str, Any]]:
    """Streams in which a unit takes part several times: the square root's band, the shaped one, and the peer's."""
    found = []
    for n, times, apart in ((256, 4, 64), (STEPS, 8, 128), (365, 12, 30)):
        unit = Participation(times, apart, 1, replace=False)
        root = Factor(n, bits=(18, 0), bandwidth=best_bandwidth(n, unit))
        plain = np.array(list(root.variances())) * float(root.squared_sensitivity(times, apart))
        start, before = time.perf_counter(), time.process_time()
        mean, largest = ours(n, participations=times, separation=apart)
        spent = {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - before}
        case: dict[str, Any] = {"steps": n, "participations": times, "separation": apart}
        case["square root, banded"] = {"mean": float(plain.mean()), "max": float(plain.max())}
        case["defocus"] = {"mean": mean, "max": largest, **spent}
        if python is not None:
            command = [python, "-c", BANDED_PEER, str(n), str(times), str(apart)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 # our own text
            case["jax-privacy"] = json.loads(done.stdout.splitlines()[-1])
        print(case, flush=True)
        found.append(case)
    return found


def measured(ledger: Ledger, entries: int = 2000) -> float:
    """The mean squared error of released sums over what was predicted: one stream of many entries."""
    plan = RunningSum(STEPS, **PRICE, entries=entries)
    stream = plan.start(ledger=ledger, purpose="measure")
    errors = [float(np.mean(np.square(stream.add([0] * entries).value))) for _ in range(STEPS)]
    return float(np.mean(errors) / plan.variances.mean())


def long_stream(ledger: Ledger, steps: int) -> dict[str, Any]:
    """Plan, run in full and save a stream of counts. Allocations are traced in the first 4000 steps only."""
    start = time.perf_counter()
    plan = RunningSum(steps, **PRICE)
    planned = time.perf_counter() - start
    stream = plan.start(ledger=ledger, purpose="long stream")
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(2000):
        stream.add(3)
    tracemalloc.reset_peak()
    for _ in range(2000):
        stream.add(3)
    kib = (tracemalloc.get_traced_memory()[1] - before) / 1024
    tracemalloc.stop()
    chunks, total = [], 0.0
    while stream.step < steps:
        many = min(10_000, steps - stream.step)
        start = time.perf_counter()
        for _ in itertools.repeat(None, many):
            stream.add(3)
        chunks.append((time.perf_counter() - start) / many)
        total += chunks[-1] * many
    last = stream.last
    return {
        "steps": steps,
        "method": plan.method,
        "plan_s": planned,
        "partial_sums": plan.memory,
        "step_us_best": min(chunks) * 1e6,
        "step_us_mean": total / (steps - 4000) * 1e6,
        "step_us_last": chunks[-1] * 1e6,
        "new_memory_kib": kib,
        "state_kib": len(json.dumps(stream.save())) / 1024,
        "error_of_last": None if last is None else float(last.value) - 3 * steps,
    }


def predicted_at_the_end(steps: int) -> dict[str, float]:
    start = time.perf_counter()
    mean, largest = ours(steps)
    best = (np.log(steps) + np.euler_gamma + np.log(16)) / np.pi
    return {
        "steps": steps,
        "mean": mean,
        "max": largest,
        "square_root_max": float(best**2),
        "seconds": time.perf_counter() - start,
    }


def main(longest: int, python: str | None) -> None:
    table = peers(STEPS) | {
        "Defocus, square root": ours(STEPS),
        "Defocus, binned": ours(STEPS, method="binned"),
        "Defocus, binned, spread 8": ours(STEPS, method="binned", spread=8),
        "Defocus, tree": ours(STEPS, method="tree"),
    }
    print(f"variance over {STEPS} steps: mean, largest")
    for name, (mean, largest) in table.items():
        print(f"  {name:42s} {mean:9.3f} {largest:9.3f}")
    with (
        tempfile.TemporaryDirectory() as home,
        Ledger.open(f"{home}/a", budget=Budget(100, 1e-3), unit=rows(), dataset="streams") as ledger,
    ):
        ratio = measured(ledger)
        print(f"measured / predicted mean variance: {ratio:.4f}")
        runs = [long_stream(ledger, steps) for steps in (10**5, 10**6) if steps <= longest]
    for run in runs:
        print(run)
    peer = None if python is None else buffered(python)
    print(peer)
    times = several(python)
    ends = [predicted_at_the_end(steps) for steps in (10**5,)]
    print(ends)
    found = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "variances": {name: {"mean": mean, "max": largest} for name, (mean, largest) in table.items()},
        "measured_over_predicted": ratio,
        "long": runs,
        "predicted": ends,
        "buffered": peer,
        "several participations": times,
    }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**6, sys.argv[2] if len(sys.argv) > 2 else None)
