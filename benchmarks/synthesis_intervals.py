"""How often 95 % intervals of a regression on synthetic rows hold the truth: noise-aware draws, and naively.

A linear regression of y on two others, all of whose pairs are measured. Everything is drawn anew each time: people,
noise, synthetic rows. In one population codes are about as frequent, in the other some are rare: their cells are
smaller than the noise. ``python benchmarks/synthesis_intervals.py [repetitions]``.
"""

import itertools
import sys
import time
from typing import Any

import numpy as np

from defocus.noise.testing import seeded
from defocus.synthesis.field import counted
from defocus.synthesis.generator import codes_within
from defocus.synthesis.measurement import STEPS, Fitted, Setup, Spending, fitted
from defocus.synthesis.noise_aware import combine, redrawn

SIZES = (4, 3, 3)
TRUTH = np.array([0.16, -0.24])


SHARES = {"even": ([0.25] * 4, [1 / 3] * 3), "rare": ([0.6, 0.3, 0.08, 0.02], [0.7, 0.25, 0.05])}
"""How frequent the codes of the two causes are, in each population."""


def people(n: int, random: np.random.Generator, population: str = "even") -> np.ndarray:
    """Codes of two causes and of an outcome whose mean is linear in them."""
    one, two = SHARES[population]
    first = random.choice(4, n, p=one)
    second = np.where(random.random(n) < 0.5, first % 3, random.choice(3, n, p=two))
    y = random.binomial(2, 0.5 + (TRUTH[0] * first + TRUTH[1] * second) / 2)
    return np.stack([first, second, y], 1).astype(np.int64)


def regression(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two slopes and their robust variances."""
    x = np.column_stack([np.ones(len(codes)), codes[:, :2]])
    inverse = np.linalg.inv(x.T @ x)
    slopes = inverse @ x.T @ codes[:, 2]
    rest = codes[:, 2] - x @ slopes
    return slopes[1:], np.diag(inverse @ ((x * rest[:, None] ** 2).T @ x) @ inverse)[1:]


def decoded(made: Fitted, random: np.random.Generator) -> np.ndarray:
    """The codes of all records."""
    every = enumerate(zip(made.bins, made.within, strict=True))
    return np.stack([codes_within(bins, within, made.records[:, i], random) for i, (bins, within) in every], 1)


def trial(
    seed: int, n: int, ratio: float, draws: int, population: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends of the noise-aware and of the naive interval."""
    random = np.random.default_rng(seed)
    codes = people(n, random, population)

    def count(sets: Any, bins: Any) -> Any:
        binned = np.stack([own[codes[:, i]] for i, own in enumerate(bins)], 1)
        return [counted(binned, columns, [int(own.max()) + 1 for own in bins]) for columns in sets]

    every = ((0, 1), (0, 2), (1, 2))
    public = {"sizes": SIZES, "ordered": (False,) * 3, "missing": (False,) * 3, "weight": 1, "grid": 1}
    setup = Setup(sigma=ratio * STEPS, spending=Spending(), focus=every, **public)
    made = fitted(setup, count, seeded(seed), random)
    found = [regression(decoded(one, random)) for one in redrawn(made, draws, random)]
    low, high = combine([own[0] for own in found], [own[1] for own in found]).interval()
    plain, variance = regression(decoded(made, random))
    reach = 1.96 * np.sqrt(variance)
    return low, high, plain - reach, plain + reach


def main(repetitions: int = 200) -> None:
    """Print coverage and mean width for some numbers of people and noises."""
    print("population | noise (epsilon at delta 1e-6) | noise-aware | width | naive | width | CPU s each")
    for population, (ratio, name) in itertools.product(SHARES, ((4.22, "1"), (13.0, "0.3"))):
        start = time.process_time()
        every = [np.stack(trial(seed, 3000, ratio, 20, population)) for seed in range(1000, 1000 + repetitions)]
        low, high, plain_low, plain_high = np.stack(every, 1)
        held = ((low <= TRUTH) & (high >= TRUTH)).mean()
        naive = ((plain_low <= TRUTH) & (plain_high >= TRUTH)).mean()
        spent = (time.process_time() - start) / repetitions
        widths = [(high - low).mean(), (plain_high - plain_low).mean()]
        row = f"{population} | {name} | {held:.3f} | {widths[0]:.3f} | {naive:.3f} | {widths[1]:.3f} | {spent:.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
