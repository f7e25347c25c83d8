"""How often tests claim falsely and truly, beside those of the bare data, and how far a ranking is off.

Writes results/inference.json. Needs nothing beyond the package and SciPy.
"""

import json
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from defocus.noise.testing import seeded
from defocus.tables.hypothesis_tests import ChiSquared, RankTest, means_tested
from defocus.tables.most_frequent import Picks
from defocus.tables.power import Law
from defocus.tables.splits import Argument, Split

Floats = npt.NDArray[np.float64]
RUNS = 400
SPLIT = Split((Argument("x", 0, 1, missing=0),), (2,))
STEPS = 16


def noise(scale: float) -> Any:
    return lambda rng, shape: rng.laplace(0.0, scale, shape)


def welch(x: Floats, y: Floats, epsilon: float, rng: np.random.Generator) -> tuple[float, float]:
    scale = 1 / epsilon
    cells = np.array([[((1 - v) ** 2).sum(), (2 * v * (1 - v)).sum(), (v * v).sum()] for v in (x, y)])
    noisy = cells + rng.laplace(0, scale, cells.shape)
    n, s, r = (noisy @ SPLIT.moment((power,)) for power in (0, 1, 2))
    law = lambda c: Law(0.0, tuple(abs(float(each)) * scale for each in c if each))  # noqa: E731
    private = means_tested((n, s, r), SPLIT, law, None).p_value
    return private, float(stats.ttest_ind(x, y, equal_var=False).pvalue)


def rank(x: Floats, y: Floats, epsilon: float, rng: np.random.Generator) -> tuple[float, float]:
    scale = 1 / epsilon
    both = np.stack([np.histogram(v, STEPS, (0, 1))[0] for v in (x, y)]) + rng.laplace(0, scale, (2, STEPS))
    private, _ = RankTest("x", ("A", "B"), "g", 0.05).tested(both, noise(scale), 2 * scale**2, runs=399)
    return private, float(stats.mannwhitneyu(x, y).pvalue)


def chi2(x: Floats, y: Floats, epsilon: float, rng: np.random.Generator) -> tuple[float, float]:
    scale = 1 / epsilon
    bare = np.stack([np.histogram(v, 3, (0, 1))[0] for v in (x, y)])
    counts = bare + rng.laplace(0, scale, bare.shape)
    private, _ = ChiSquared(("a", "b"), (2, 3), None, 0.05).tested(counts, None, noise(scale), 2 * scale**2, runs=399)
    return private, float(stats.chi2_contingency(np.maximum(bare, 1e-9), correction=False).pvalue)


TESTS: dict[str, Callable[..., tuple[float, float]]] = {"Welch": welch, "rank": rank, "chi-squared": chi2}


def rates(n: int, epsilon: float, shift: float) -> dict[str, tuple[float, float]]:
    """How often each test claims a difference at 5 %, with noise and without."""
    found: dict[str, tuple[float, float]] = {}
    for name, test in TESTS.items():
        rng = np.random.default_rng(n)
        claims = [test(np.clip(rng.beta(3, 3, n) + shift, 0, 1), rng.beta(3, 3, n), epsilon, rng) for _ in range(RUNS)]
        private, plain = (np.array(claims) <= 0.05).mean(axis=0)
        found[name] = float(private), float(plain)
    return found


def ranking(number: int, rows: int, epsilon: float = 0.5) -> dict[str, float]:
    """By how many rows what is shown falls short of the most frequent values, on average, one row in each value."""
    counts = np.round(100 / np.arange(1, 51) ** 0.5).astype(np.int64) * 1000
    best = np.sort(counts)[::-1][:number].sum()
    picks = Picks(Fraction(epsilon), number, 1000, replace=False)
    short: dict[str, list[float]] = {"choices": [], "noisy counts": []}
    rng = np.random.default_rng(number)
    for run in range(200):
        chosen = picks.ranked(counts, seeded(run))
        noisy = np.argsort(-(counts + rng.laplace(0, 1000 * rows / epsilon, len(counts))))[:number]
        for way, places in (("choices", chosen), ("noisy counts", noisy)):
            short[way].append((best - counts[places].sum()) / 1000)
    return {way: float(np.mean(each)) for way, each in short.items()}


def main() -> None:
    results: dict[str, Any] = {"tests": [], "rankings": []}
    write = sys.stdout.write
    for n, epsilon, shift in ((50, 1, 0.12), (200, 0.3, 0.07), (1000, 0.1, 0.05), (1000, 1, 0.03)):
        null, there = rates(n, epsilon, 0.0), rates(n, epsilon, shift)
        for name in TESTS:
            line = {"test": name, "n": n, "epsilon": epsilon, "shift": shift}
            line |= {"false": null[name][0], "false_bare": null[name][1]}
            line |= {"power": there[name][0], "power_bare": there[name][1]}
            results["tests"].append(line)
            write(f"{line}\n")
    for number, rows in ((1, 1), (3, 1), (10, 1), (1, 10), (3, 10), (10, 10)):
        line = {"number": number, "rows": rows, **ranking(number, rows)}
        results["rankings"].append(line)
        write(f"{line}\n")
    assert all(math.isfinite(line["power"]) for line in results["tests"])
    Path(__file__).with_name("results").joinpath("inference.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
