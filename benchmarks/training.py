"""What training costs beside the gradients: noise, sampling and accounting, each beside what others do, in one run.

Minimum of several interleaved rounds on one thread. Writes ``results/training.json``.
"""

import json
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch

from defocus.learning.noise import Cryptographic, bound_to
from defocus.learning.noise_schedule import Schedule
from defocus.learning.sampling import BallsInBins, Poisson, Sampling, planned
from defocus.privacy import Budget, calibrate, tightest

ROUNDS = 80
PARAMETERS = 1 << 22
UNITS = 1_000_000


def interleaved(work: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    best = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, do in work.items():
            start = time.perf_counter()
            do()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def noise() -> dict[str, float]:
    total, source = torch.zeros(PARAMETERS), Cryptographic()

    def ours() -> None:
        source.add([total], [1.0], bound_to(bytes(32), 0, [total]))

    found = interleaved(
        {
            "AES-256, bound to the sum": ours,
            "torch generator": lambda: total.add_(torch.randn(PARAMETERS)),
            "numpy generator": lambda: total.add_(
                torch.from_numpy(np.random.default_rng().standard_normal(PARAMETERS))
            ),
        }
    )
    return {name: seconds / PARAMETERS * 1e9 for name, seconds in found.items()}


def sampling() -> dict[str, float]:
    ours = Poisson(UNITS, Fraction(1, 1000), 1)
    found = interleaved(
        {
            "exact coins, AES-256": lambda: ours.draw(0, UNITS, bytes(32)),
            "torch.rand, compared and listed": lambda: torch.nonzero(torch.rand(UNITS) < 0.001),
        }
    )
    return {name: seconds * 1e3 for name, seconds in found.items()}


def accounting() -> dict[str, float]:
    run = Poisson(60_000, Fraction(1024, 60_000), 1172)
    falling = Schedule.geometric(2, 1).at(1172)
    many = Schedule([2 - step / 300 for step in range(300)]).at(300)
    found = interleaved(
        {
            "one level, 1172 steps": lambda: tightest(run.event([1.0] * 1172)).epsilon(1e-5),
            "8 levels, 1172 steps": lambda: tightest(run.event(falling)).epsilon(1e-5),
            "300 different levels, kept to 16": lambda: tightest(run.event(many)).epsilon(1e-5),
        },
        rounds=15,
    )
    return {name: seconds * 1e3 for name, seconds in found.items()}


def ratio_of(run: Sampling) -> float:
    return calibrate(lambda z: run.event([z] * run.steps), Budget(3, 1e-5), low=1e-3)


def balls() -> list[list[float]]:
    rows = []
    for bins, epochs in ((59, 20), (200, 10), (1000, 5)):
        steps = bins * epochs
        plans = (
            Poisson(100 * bins, Fraction(1, bins), steps),
            planned("balls in bins", size=100 * bins, batch=100, steps=steps, replace=False, delta=1e-5),
            BallsInBins(100 * bins, bins, steps),
        )
        rows.append([bins, epochs, *(round(ratio_of(run), 3) for run in plans)])
    return rows


def main() -> None:
    torch.set_num_threads(1)
    results = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "noise, ns for each parameter": noise(),
        "a Poisson sample of 1000 in a million, ms": sampling(),
        "accounting, ms": accounting(),
        "noise ratio at epsilon 3 (steps of an epoch, epochs, Poisson, balls in bins, one release)": balls(),
    }
    text = json.dumps(results, indent=2)
    (Path(__file__).parent / "results" / "training.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
