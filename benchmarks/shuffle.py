"""Shuffled collection: amplification, its time, and measured errors of central, shuffled and local estimates.

    .venv/bin/python benchmarks/shuffle.py
    .venv/bin/python benchmarks/shuffle.py central      # one part; the others' results are kept

*Amplification*: central epsilon of shuffled reports by exact accounting, by the bound for any randomiser, and by the
published formulas, with the seconds of a first evaluation. *Error*: the root mean squared error of a count of yes among
n users, half of whom say yes, measured on the same data for Laplace noise, shuffled randomised response, shuffled
several-message counts and local randomised response, at epsilon 1 and delta 1e-6; beside it the predicted error. The
last column divides the local by the central error, which grows with the root of n.
"""

import json
import math
import platform
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from defocus import mechanisms, privacy
from defocus.errors import DefocusError
from defocus.local import mean, oracle
from defocus.local.designs import design, numeric
from defocus.local.domains import Categories, Interval
from defocus.local.levels import LARGEST_NUMERIC_EPSILON
from defocus.local.shuffling import MultiMessageHistogram, MultiMessageSum, amplified, local_epsilon
from defocus.noise.testing import seeded
from defocus.privacy import Pure, RandomizedResponse, Shuffled, account, shuffled_epsilon

HERE = Path(__file__).parent
EPSILON, DELTA = 1.0, 1e-6
RUNS = {10**2: 4000, 10**3: 4000, 10**4: 2000, 10**5: 1000, 10**6: 200}
CENTRAL_RUNS = 4000
"""One draw each, however many users there are."""


def amplification() -> list[dict[str, Any]]:
    rows = []
    for users, local in ((10_000, 1), (10_000, 3), (100_000, 3), (1_000_000, 3)):
        row: dict[str, Any] = {"users": users, "local": local}
        cases = {
            "binary": Shuffled(RandomizedResponse(local), users),
            "16-ary": Shuffled(RandomizedResponse(local, 16), users),
            "hadamard": amplified(design("hadamard", 1000, local, outside="refuse"), users),
            "any": Shuffled(Pure(local), users),
        }
        for name, event in cases.items():
            start = time.perf_counter()
            row[name] = account(event, adjacency="replace").epsilon(DELTA)
            row[f"{name} s"] = time.perf_counter() - start
        row["100 shuffles"] = account(100 * cases["binary"], adjacency="replace").epsilon(DELTA)
        for method in ("feldman-2023", "feldman-2021"):
            try:
                row[method] = shuffled_epsilon(local, users, DELTA, method=method)
            except DefocusError:
                row[method] = None
        rows.append(row)
    return rows


def errors() -> list[dict[str, Any]]:
    rows = []
    bits = seeded(2024)
    for exponent in range(2, 7):
        n = 10**exponent
        values = np.arange(n) % 2
        truth = int(values.sum())
        strength = local_epsilon(lambda e: design("k-rr", 2, e, outside="refuse"), n, EPSILON, DELTA)
        single, alone = (oracle("k-rr", 2, e, outside="refuse") for e in (strength, EPSILON))
        several = MultiMessageSum(Interval(0, 1), n, EPSILON, DELTA, 8)
        runs = RUNS[n]
        found: dict[str, list[float]] = {"shuffle, one message": [], "shuffle, several": [], "local": []}
        for _ in range(runs):
            found["shuffle, one message"].append(single.estimate(single.encode(values, bits)).counts[1] - truth)
            found["shuffle, several"].append(several.sum(several.encode(values, bits)) - truth)
            found["local"].append(alone.estimate(alone.encode(values, bits)).counts[1] - truth)
        predicted = {
            "shuffle, one message": math.sqrt(single.variance(n, truth)),
            "shuffle, several": several.noise,
            "local": math.sqrt(alone.variance(n, truth)),
        }
        measured = {name: float(np.sqrt(np.mean(np.square(off)))) for name, off in found.items()}
        rows.append({"users": n, "local epsilon": strength, "runs": runs, "measured": measured, "predicted": predicted})
    return rows


def central() -> list[dict[str, Any]]:
    """Laplace noise of a trusted collector."""
    rows, bits = [], seeded(2025)
    laplace = mechanisms.Laplace(scale=1 / EPSILON, sensitivity=1)
    for exponent in range(2, 7):
        truth = 10**exponent // 2
        off = laplace.sample(np.full(CENTRAL_RUNS, truth), bits) - truth
        measured = float(np.sqrt(np.mean(np.square(off.astype(float)))))
        rows.append(
            {
                "users": 10**exponent,
                "runs": CENTRAL_RUNS,
                "measured": measured,
                "predicted": math.sqrt(laplace.variance),
            }
        )
    return rows


def protocols() -> list[dict[str, Any]]:
    """Single- and multi-message histograms (the mean over all categories) and means of 10 000 users."""
    n, size, runs, bits = 10_000, 16, 1000, seeded(7)
    values = np.arange(n) % 4
    truth = np.bincount(values, minlength=size)
    strength = local_epsilon(lambda e: design("k-rr", size, e, outside="refuse"), n, EPSILON, DELTA)
    single = oracle("k-rr", size, strength, outside="refuse")
    several = MultiMessageHistogram(Categories.of(size, outside="refuse"), n, EPSILON, DELTA)
    numbers = np.linspace(0, 1, n)
    most = LARGEST_NUMERIC_EPSILON
    bit = mean("duchi", 0, 1, local_epsilon(lambda e: numeric("duchi", 0, 1, e), n, EPSILON, DELTA, at_most=most))
    marks = MultiMessageSum(Interval(0, 1), n, EPSILON, DELTA)

    def measured(run: Callable[[], Any]) -> float:
        return float(np.sqrt(np.mean(np.square([run() for _ in range(runs)]))))

    variances = single.variance(n, n // 4) * 4 / size + single.variance(n) * (1 - 4 / size)
    rounding = np.modf(numbers * marks.levels)[0]
    exact = math.sqrt(marks.noise**2 + float((rounding * (1 - rounding)).sum()) / marks.levels**2)
    bits_variance = sum(bit.design.variance(Fraction(i, 100)) for i in range(101)) / 101 * n
    return [
        {
            "protocol": "histogram, one message",
            "measured": measured(lambda: single.estimate(single.encode(values, bits)).counts - truth),
            "predicted": math.sqrt(variances),
        },
        {
            "protocol": "histogram, several",
            "measured": measured(lambda: several.estimate(several.encode(values, bits)).counts - truth),
            "predicted": several.error,
        },
        {
            "protocol": "sum of numbers, one message",
            "measured": measured(lambda: n * (bit.estimate(bit.encode(numbers, bits)).mean - numbers.mean())),
            "predicted": math.sqrt(bits_variance),
        },
        {
            "protocol": "sum of numbers, several",
            "measured": measured(lambda: marks.sum(marks.encode(numbers, bits)) - numbers.sum()),
            "predicted": exact,
        },
    ]


def show(results: dict[str, Any]) -> None:
    print("central epsilon at delta 1e-6, and seconds")
    for row in results["amplification"]:
        print("  " + "  ".join(f"{k} {v if v is None else format(v, '.4g')}" for k, v in row.items()))
    print("10 000 users, 16 categories, epsilon 1, delta 1e-6")
    for row in results["protocols"]:
        print(f"  {row['protocol']}: {row['measured']:.4g} ({row['predicted']:.4g})")
    print("root mean squared error of a count (predicted)")
    for trusted, row in zip(results["central"], results["errors"], strict=True):
        pairs = (f"{k} {m:.4g} ({row['predicted'][k]:.4g})" for k, m in row["measured"].items())
        print(
            f"  n={row['users']:>8} central {trusted['measured']:.4g} ({trusted['predicted']:.4g})  {'  '.join(pairs)}",
            end="",
        )
        print(f"  local/central {row['measured']['local'] / trusted['measured']:.1f}")


def main() -> None:
    known = {"amplification": amplification, "protocols": protocols, "central": central, "errors": errors}
    where = HERE / "results" / "shuffle.json"
    results = json.loads(where.read_text(encoding="utf-8")) if where.exists() else {}
    results["versions"] = {"python": platform.python_version()} | {name: version(name) for name in ("defocus", "numpy")}
    privacy.account(Pure(1)).epsilon(0)
    for name in sys.argv[1:] or known:
        results[name] = known[name]()
    show(results)
    where.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
