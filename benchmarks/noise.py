"""Exact noise against OpenDP's exact vectors and numpy's inexact generator, interleaved in one run.

Run: python benchmarks/noise.py   (needs: pip install opendp==0.16.0)
"""

import json
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp

from defocus import noise

SCALES = (1, 10, 1_000, 1_000_000)
OURS, THEIRS, ROUNDS = 1_000_000, 5_000, 40
RESULTS = Path(__file__).parent / "results" / "noise.json"

Draw = Callable[[], object]


def opendp_vector(kind: str, scale: float) -> Draw:
    """OpenDP's noise on a vector of integers, as its users call it."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "laplace":
        measurement = (domain, dp.l1_distance(T="i64")) >> dp.m.then_laplace(scale=float(scale))
    else:
        measurement = (domain, dp.l2_distance(T="f64")) >> dp.m.then_gaussian(scale=float(scale))
    zeros = [0] * THEIRS
    return lambda: measurement(zeros)


def fastest(draws: dict[str, tuple[Draw, int]]) -> dict[str, float]:
    """Samples per second of each, the best of several rounds in which all take turns."""
    best = dict.fromkeys(draws, float("inf"))
    for _ in range(ROUNDS):
        for name, (draw, count) in draws.items():
            start = time.perf_counter()
            draw()
            best[name] = min(best[name], (time.perf_counter() - start) / count)
    return {name: 1 / seconds for name, seconds in best.items()}


def laws() -> list[dict[str, Any]]:
    """One row for each law and scale."""
    generator = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    print(f"{'law':9}{'scale':>9}{'defocus M/s':>13}{'OpenDP M/s':>12}{'numpy M/s':>11}{'x OpenDP':>10}{'x numpy':>9}")
    for kind, ours, numpys in (
        ("gaussian", noise.discrete_gaussian, generator.normal),
        ("laplace", noise.discrete_laplace, generator.laplace),
    ):
        for scale in SCALES:
            speed = fastest(
                {
                    "defocus": (partial(ours, scale, OURS), OURS),
                    "opendp": (opendp_vector(kind, scale), THEIRS),
                    "numpy": (partial(numpys, 0, scale, OURS), OURS),
                }
            )
            row: dict[str, Any] = {"law": kind, "scale": scale, **{name: round(rate) for name, rate in speed.items()}}
            row["times_opendp"] = round(speed["defocus"] / speed["opendp"], 1)
            row["times_numpy"] = round(speed["defocus"] / speed["numpy"], 2)
            rows.append(row)
            millions = [speed[name] / 1e6 for name in ("defocus", "opendp", "numpy")]
            print(
                f"{kind:9}{scale:>9}{millions[0]:>13.1f}{millions[1]:>12.4f}{millions[2]:>11.1f}"
                f"{row['times_opendp']:>10}{row['times_numpy']:>9}"
            )
    return rows


def single_calls() -> dict[str, float]:
    """Microseconds of calls that matter one at a time, the best of thirty."""
    scores = np.random.default_rng(0).integers(0, 1_000_000, 1_000_000)
    fresh = iter(range(1001, 2000))
    calls: dict[str, Draw] = {
        "one Gaussian, sigma 1000": lambda: noise.discrete_gaussian(1000, 1),
        "one Laplace, scale 1000": lambda: noise.discrete_laplace(1000, 1),
        "100 Gaussians, sigma never seen before (makes its table)": lambda: noise.discrete_gaussian(next(fresh), 100),
        "100 Laplaces, scale never seen before (makes its table)": lambda: noise.discrete_laplace(next(fresh), 100),
        "exponential choice among 10": lambda: noise.exponential_choice(scores[:10], factor=Fraction(1, 10**5)),
        "exponential choice among 1 000 000": lambda: noise.exponential_choice(scores, factor=Fraction(1, 10**3)),
        "permutation of 1 000 000": lambda: noise.permutation(1_000_000),
    }
    micros = {}
    for name, call in calls.items():
        times = []
        for _ in range(30):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        micros[name] = round(min(times) * 1e6, 1)
        print(f"{name:60}{micros[name]:>12} µs")
    return micros


def main() -> None:
    """Measure, print, and write the results."""
    dp.enable_features("contrib")
    rows = laws()
    result = {
        "versions": {name: version(name) for name in ("numpy", "opendp", "cryptography")},
        "python": platform.python_version(),
        "rows": rows,
        "single_calls_us": single_calls(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    gaussian = min(row["times_opendp"] for row in rows if row["law"] == "gaussian")
    laplace = min(row["times_opendp"] for row in rows if row["law"] == "laplace")
    slowest = min(row["times_numpy"] for row in rows)
    print(f"\nat least {gaussian}x OpenDP's Gaussian, {laplace}x its Laplace, {slowest}x numpy")


if __name__ == "__main__":
    main()
