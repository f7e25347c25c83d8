"""Decoding RAPPOR: ours beside the LASSO with least squares on what it selects, as Google's paper describes it.

    python benchmarks/rappor.py [--quick]

Counts of bits are drawn from their exact law: who is in which cohort, then the noise of every bit. The peer is typed
from Erlingsson, Pihur, Korolova (2014), Section 4: a LASSO of the debiased sums on the filters of all candidates, with
non-negative coefficients as in the published R code and the penalty by cross-validation (scikit-learn), then least
squares on the candidates that it selects. Nothing of ours was chosen by these cases.
"""

import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV

from defocus.local.designs.rappor import Rappor, nearest_counts, rappor_matrix
from defocus.local.domains import Categories

CASES = [
    (100_000, 100, 64, 16, 2, "zipf 1.1"),
    (100_000, 100, 32, 8, 4, "zipf 1.3"),
    (1_000_000, 200, 32, 16, 2, "twenty"),
    (50_000, 60, 64, 8, 3, "flat"),
    (100_000, 600, 32, 16, 4, "zipf 1.5"),
    (300_000, 1000, 32, 16, 4, "twenty"),
    (300_000, 1000, 32, 16, 4, "zipf 1.3"),
    (1_000_000, 2000, 64, 16, 3, "zipf 1.1"),
]
Array = NDArray[np.float64]


def shape(name: str, size: int) -> Array:
    if name.startswith("zipf"):
        shares = np.arange(1.0, size + 1) ** -float(name.split()[1])
    else:
        shares = {"flat": np.ones(size), "twenty": np.where(np.arange(size) < 20, 22.0 - np.arange(size), 0.0)}[name]
    return np.asarray(shares / shares.sum())


def drawn_sums(design: Rappor, truth: NDArray[np.int64], draw: np.random.Generator) -> Array:
    """Debiased sums of every cohort's bits."""
    zero, one, matrix = float(design.zero), float(design.one), rappor_matrix(design)
    cohorts = draw.multinomial(truth, np.full(design.cohorts, 1 / design.cohorts))
    sums = []
    for cohort, rows in zip(cohorts.T, np.split(matrix, design.cohorts), strict=True):
        ones = (rows @ cohort).astype(np.int64)
        seen = draw.binomial(ones, one) + draw.binomial(cohort.sum() - ones, zero)
        sums.append((seen - zero * cohort.sum()) / (one - zero))
    return design.cohorts * np.concatenate(sums)


def lasso_and_least_squares(matrix: Array, sums: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a penalty on the path needs more rounds
        path = LassoCV(positive=True, fit_intercept=False, cv=5, alphas=50, max_iter=3000).fit(matrix, sums)
    chosen, counts = path.coef_ > 0, np.zeros(matrix.shape[1])
    if chosen.any():
        counts[chosen] = np.linalg.lstsq(matrix[:, chosen], sums, rcond=None)[0]
    return counts


def main() -> None:
    repetitions, draw = 2 if "--quick" in sys.argv else 10, np.random.default_rng(29)
    print("scikit-learn", version("scikit-learn"), "scipy", version("scipy"))
    print(
        "people | candidates | bits | epsilon | shape | least squares | LASSO + OLS | ours | ours / LASSO | s | s LASSO"
    )
    for people, size, width, cohorts, epsilon, name in CASES:
        design = Rappor(Categories.of(size, outside="refuse"), epsilon, width=width, cohorts=cohorts)
        matrix = rappor_matrix(design)
        errors, seconds = np.zeros(3), np.zeros(2)
        for _ in range(repetitions):
            truth = draw.multinomial(people, shape(name, size))
            sums = drawn_sums(design, truth, draw)
            began = time.perf_counter()
            ours = nearest_counts(matrix, sums, float(people))
            middle = time.perf_counter()
            theirs = lasso_and_least_squares(matrix, sums)
            seconds += middle - began, time.perf_counter() - middle
            plain = np.linalg.lstsq(matrix, sums, rcond=None)[0] if size <= len(matrix) else np.full(size, np.nan)
            errors += [((each - truth) ** 2).mean() for each in (plain, theirs, ours)]
        least, lasso, own = np.sqrt(errors / repetitions)
        told = [f"{error:.0f}" for error in (least, lasso, own)]
        times = [f"{each:.3f}" for each in seconds / repetitions]
        row = [people, size, len(matrix), epsilon, name, *told, f"{own / lasso:.2f}", *times]
        print(" | ".join(map(str, row)), flush=True)


if __name__ == "__main__":
    main()
