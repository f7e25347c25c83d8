"""What the workloads room claims: errors beside published ones and bounds, and times, in one run.

    .venv/bin/python benchmarks/workloads.py [folder of the discretised Adult table [python with mbi]]

Variances are in multiples of the noise's at sensitivity one unless said otherwise. Peers: the binary tree and the
(normalised) square root for prefix sums and an independent implementation of the strategy family of HDMM (p-identity,
Laplace; random start, p = n/16, 400 steps, as its paper says) for ranges. HDMM and ResidualPlanner themselves are not
on the package index. Plans take one thread whatever is set; OPENBLAS_NUM_THREADS=1 keeps the peers to one as well.
"""

import csv
import json
import math
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from defocus import Budget, rows
from defocus import workloads as w
from defocus.ledger import Ledger
from defocus.noise.testing import seeded

HERE = Path(__file__).parent
PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
ROUNDS = 3


def fastest(work: Callable[[], Any], rounds: int = ROUNDS) -> tuple[Any, float]:
    best, made = math.inf, None
    for _ in range(rounds):
        start = time.perf_counter()
        made = work()
        best = min(best, time.perf_counter() - start)
    return made, best


def tree(n: int) -> tuple[float, float]:
    height = int(math.log2(n)) + 1
    ones = np.array([i.bit_count() for i in range(1, n + 1)])
    return float(height * ones.mean()), float(height * ones.max())


def square_root(n: int, *, normalised: bool) -> tuple[float, float]:
    f = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, n))])
    matrix = np.array([np.concatenate([np.zeros(j), f[: n - j]]) for j in range(n)]).T
    norms = np.sqrt((matrix**2).sum(axis=0))
    matrix = matrix / norms if normalised else matrix / norms.max()
    spread = (np.linalg.solve(matrix.T, np.tri(n).T) ** 2).sum(axis=0)
    return float(spread.mean()), float(spread.max())


def prefix_sums(n: int = 1024) -> dict[str, Any]:
    total, seconds = fastest(lambda: w.plan(w.prefix(n), **PRICE, noise="gaussian"), 1)
    flat, flat_seconds = fastest(lambda: w.plan(w.prefix(n), **PRICE, noise="gaussian", objective="max"), 1)
    found = {
        "binary tree": tree(n),
        "square root": square_root(n, normalised=False),
        "normalised square root": square_root(n, normalised=True),
        "Defocus, least total": (total.error.mean / total.law, total.error.largest / total.law),
        "Defocus, least largest": (flat.error.mean / flat.law, flat.error.largest / flat.law),
        "bound on the mean": (total.lower_bound / n / total.law, None),
        "seconds": (seconds, flat_seconds),
    }
    for name, (mean, largest) in found.items():
        print(f"prefix sums {n}: {name:26s} {mean:10.4f} {'' if largest is None else f'{largest:10.4f}'}", flush=True)
    return found


def many_marginals() -> dict[str, Any]:
    plan, seconds = fastest(lambda: w.plan(w.marginals([10] * 100, up_to=3), **PRICE, noise="gaussian"), 5)
    off = plan.error.total / plan.lower_bound - 1
    print(
        f"marginals up to 3 of 100 attributes of 10: planned in {seconds:.3f} s, {off:.1e} above the bound", flush=True
    )
    return {"seconds": seconds, "above_bound": off, "tables": plan.workload.number}


def hdmm_family(gram: Any, steps: int = 400) -> tuple[Any, float]:
    """What HDMM optimises for Laplace noise, from a random start, by the gradient of this project, on full matrices."""
    from scipy.optimize import minimize

    from defocus.workloads.optimum import Gram
    from defocus.workloads.p_identity import _value

    n, scale = len(gram), float(np.trace(gram))
    shape, plain = (n // 16, n), Gram.of(gram)

    def objective(flat: Any) -> tuple[float, Any]:
        value, slope = _value(flat.reshape(shape), plain)
        return value / scale, slope.ravel() / scale

    start = np.random.default_rng(0).random(shape).ravel()
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size, options={"maxiter": steps}
    )
    return found.x, float(found.fun) * scale


def ranges(n: int = 1024) -> dict[str, Any]:
    gaussian, seconds = fastest(lambda: w.plan(w.ranges(n), **PRICE, noise="gaussian"), 1)
    laplace, slower = fastest(lambda: w.plan(w.ranges(n), epsilon=1, noise="laplace"), 1)
    (_, family), family_seconds = fastest(lambda: hdmm_family(w.ranges(n).gram()), 1)
    found = {
        "HDMM's family, laplace": family / laplace.workload.queries,
        "HDMM's family, seconds": family_seconds,
        "gaussian": gaussian.error.mean / gaussian.law,
        "gaussian bound": gaussian.lower_bound / gaussian.workload.queries / gaussian.law,
        "gaussian seconds": seconds,
        "laplace (per 2/eps^2)": laplace.error.mean / laplace.law,
        "laplace identity": laplace.identity_error / laplace.workload.queries / laplace.law,
        "laplace seconds": slower,
    }
    for name, value in found.items():
        print(f"all ranges {n}: {name:26s} {value:10.4f}", flush=True)
    return found


def tree_of_sixteen(n: int) -> Any:
    widths = [16**level for level in range(9) if 16 ** (level - 1) < n]
    return np.vstack([np.arange(n) // width == np.arange(-(-n // width))[:, None] for width in widths]).astype(int)


def large(n: int = 4096) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, workload in (("prefix sums", w.prefix(n)), ("all ranges", w.ranges(n))):
        for price, noise in ((PRICE, "gaussian"), ({"epsilon": 1}, "laplace")):
            before = time.process_time()
            plan, seconds = fastest(lambda w_=workload, p=price, k=noise: w.plan(w_, **p, noise=k), 1)
            each = {
                "mean": plan.error.mean / plan.law,
                "bound": plan.lower_bound / plan.workload.queries / plan.law,
                "seconds": seconds,
                "processor_seconds": time.process_time() - before,
            }
            if noise == "laplace":
                tree = w.plan(workload, **price, strategy=w.strategy(tree_of_sixteen(n)))
                each["plain tree of 16 branches"] = tree.error.mean / tree.law
            found[f"{name}, {noise}"] = each
            print(f"{name} {n}, {noise}: " + ", ".join(f"{k} {v:.4g}" for k, v in each.items()), flush=True)
    return found


def adult(folder: Path, runs: int = 200) -> dict[str, Any]:
    domain = json.loads((folder / "adult-domain.json").read_text())
    with (folder / "adult-discretised.csv").open() as file:
        reader = csv.reader(file)
        names = next(reader)
        codes = np.array([[int(x) for x in row] for row in reader])
    sizes = [int(domain[name]) for name in names]
    workload = w.marginals(sizes, ways=2)
    found: dict[str, Any] = {"attributes": len(sizes), "tables": workload.number, "queries": workload.queries}
    for price, noise in ((PRICE, "gaussian"), ({"epsilon": 1}, "laplace")):
        plan = w.plan(workload, **price, noise=noise)
        exact = plan.measurement.strategy.measure(w.records(codes))
        truth = plan.measurement.strategy.answers(workload, exact)
        bits, squares = seeded(1), []
        zeros = w.records(codes[:0])
        for _ in range(runs):
            noisy = exact + plan.measurement.sample(zeros, bits)  # the noise of a fresh measurement
            squares.append(float(((plan.measurement.strategy.answers(workload, noisy) - truth) ** 2).sum()))
        measured = float(np.mean(squares))
        found[noise] = {"predicted": plan.error.total, "measured": measured, "rmse": plan.error.rmse}
        print(f"Adult, all 2-way, {noise}: predicted {plan.error.total:.6g}, measured {measured:.6g}, "
              f"{100 * (measured / plan.error.total - 1):+.2f} %", flush=True)  # fmt: skip
    return found


SEVEN = ["workclass", "marital-status", "occupation", "relationship", "race", "sex", "income>50K"]
MBI = """
import itertools, json, math, sys, time
import jax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
import mbi, numpy as np
from mbi import estimation
full, rho, seed = np.load(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
names, rng = [f"a{i}" for i in range(full.ndim)], np.random.default_rng(seed)
sets = list(itertools.combinations(range(full.ndim), 3))
scale = math.sqrt(len(sets) / (2 * rho))
truth = [full.sum(axis=tuple(i for i in range(full.ndim) if i not in each)).ravel() for each in sets]
told = [mbi.LinearMeasurement(t + rng.normal(0, scale, t.size), tuple(names[i] for i in each), scale)
        for each, t in zip(sets, truth)]
start, before = time.perf_counter(), time.process_time()
model = estimation.MirrorDescent().estimate(mbi.Domain(names, full.shape), told)
found = [np.asarray(model.project(each.clique).datavector()) for each in told]
spent = time.perf_counter() - start, time.process_time() - before
error = float(np.mean([np.abs(f - t).sum() for f, t in zip(found, truth)]) / full.sum())
print(json.dumps({"error": error, "seconds": spent[0], "processor_seconds": spent[1]}))
"""


def consistent(folder: Path, python: str | None, runs: int = 3) -> list[dict[str, Any]]:
    """All 3-way tables of seven attributes of Adult: the L1 error of a table over the number of people, in the mean."""
    domain = json.loads((folder / "adult-domain.json").read_text())
    with (folder / "adult-discretised.csv").open() as file:
        codes = np.array([[int(row[name]) for name in SEVEN] for row in csv.DictReader(file)])
    workload = w.marginals([int(domain[name]) for name in SEVEN], ways=3)
    sets = workload.sets()
    histogram = np.zeros(workload.sizes)
    np.add.at(histogram, tuple(codes.T), 1)
    found = []
    for rho in (0.005, 0.05, 0.2, 1, 10):
        plan = w.plan(workload, rho=rho, noise="gaussian")
        truth = workload.answer(histogram)
        each: dict[str, Any] = {"rho": rho, "runs": runs}
        errors: dict[str, list[float]] = {"least squares": [], "table by table": [], "consistent": []}
        spent = []
        with tempfile.TemporaryDirectory() as home:
            terms: dict[str, Any] = {"budget": Budget(rho=100), "unit": rows(), "dataset": "table"}
            with Ledger.open(f"{home}/a.ledger", **terms) as book:
                for seed in range(1, runs + 1):
                    plain = plan.release(w.records(codes), ledger=book, purpose="tables", bits=seeded(seed))
                    start, before = time.perf_counter(), time.process_time()
                    fitted = plain.nonnegative(consistent=True)
                    spent.append((time.perf_counter() - start, time.process_time() - before))
                    for name, answers in zip(errors, (plain, plain.nonnegative(), fitted), strict=True):
                        off = float(np.abs(answers.values - truth).sum()) / len(sets) / len(codes)
                        errors[name].append(off)
            each |= {name: float(np.mean(values)) for name, values in errors.items()}
            each["seconds"], each["processor_seconds"] = np.mean(spent, axis=0).tolist()
            if python is not None and rho < 0.1:
                np.save(f"{home}/full.npy", histogram)
                peers = []
                for seed in range(1, runs + 1):
                    command = [python, "-W", "ignore", "-c", MBI, f"{home}/full.npy", str(rho), str(seed)]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 # our text
                    peers.append(json.loads(done.stdout.splitlines()[-1]))
                each["mbi"] = {name: float(np.mean([peer[name] for peer in peers])) for name in peers[0]}
        print(each, flush=True)
        found.append(each)
    return found


def reconstruction(attributes: int = 20, size: int = 10, number: int = 1_000_000) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, size, (number, attributes), dtype=np.int32)
    plan = w.plan(w.marginals([size] * attributes, ways=3), **PRICE, noise="gaussian")
    with tempfile.TemporaryDirectory() as home:
        terms: dict[str, Any] = {"budget": Budget(100, 1e-4), "unit": rows(), "dataset": "table"}
        with Ledger.open(f"{home}/a.ledger", **terms) as book:
            before = time.process_time()
            answers, seconds = fastest(
                lambda: plan.release(w.records(codes), ledger=book, purpose="all 3-way marginals"), ROUNDS
            )
            busy = (time.process_time() - before) / ROUNDS
    noisy = answers.release.value
    _, alone = fastest(lambda: plan.measurement.strategy.answers(plan.workload, noisy))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"3-way marginals of {attributes} attributes, {number} rows: counted, measured, charged and reconstructed in "
          f"{seconds:.2f} s ({busy:.2f} s of one processor), reconstruction alone "
          f"{alone:.2f} s, peak {peak:.2f} GiB", flush=True)  # fmt: skip
    return {
        "seconds": seconds,
        "processor_seconds": busy,
        "reconstruction_seconds": alone,
        "peak_gib": peak,
        "tables": plan.workload.number,
    }


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "shared" / "data" / "adult"
    found: dict[str, Any] = {"python": platform.python_version(), "numpy": np.__version__}
    found["reconstruction"] = reconstruction()
    found["many_marginals"] = many_marginals()
    if folder.exists():
        found["adult"] = adult(folder)
        found["consistent"] = consistent(folder, sys.argv[2] if len(sys.argv) > 2 else None)
    else:
        print("Adult is left out: name the folder of the discretised table.")
    found["ranges"] = ranges()
    found["prefix_sums"] = prefix_sums()
    found["large"] = large()
    (HERE / "results" / "workloads.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
