"""Coverage of the confidence intervals of regression coefficients, with their noise and their sampling error.

    python benchmarks/regression.py FOLDER_OF_ADULT FOLDER_OF_ACS [--draws 600] [--only WORDS]

Adult is the discretised copy (adult-discretised.csv), ACS the excerpts of 2019 (national2019.csv, tx2019.csv; rows with
an income and an education). A file is taken for the population: values are cut to the declared bounds, and the truth is
the least-squares or logistic fit to all of it. A draw takes n rows with replacement and fits them with
``intervals=True``. Printed are, for each coefficient and last the intercept: how many 95 % intervals hold the truth;
their median width, relative to the interval of the sandwich without privacy on the same rows; how many intervals of
that other width around the private estimate hold it, as whoever ignores the noise would report; and how many are
unbounded, which the answer says. Delta is 1e-6. Draws and noise are seeded. All noise of a fit is Gaussian, so a fit is
priced by the rho of Gaussian noise that is (epsilon, delta): the same noise, and quicker to account for.
"""

import argparse
import csv
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import defocus as dp
from defocus.noise.testing import seeded
from defocus.privacy import Gaussian
from defocus.privacy.calibration import calibrate

HERE = Path(__file__).parent
DELTA = 1e-6
Z = 1.959963984540054


@dataclass(frozen=True)
class Case:
    """A regression on a population of which samples are drawn."""

    name: str
    kind: str
    features: dict[str, tuple[float, float]]
    target: str
    range: tuple[float, float]
    runs: tuple[tuple[int, float], ...]
    """The number of rows and epsilon."""
    logistic_above: float | None = None


CASES = {
    "adult-discretised.csv": [
        Case(
            "Adult: hours",
            "linear",
            {"age": (0, 70), "education-num": (0, 15), "sex": (0, 1), "income>50K": (0, 1)},
            "hours-per-week",
            (0, 80),
            ((5000, 1.0), (5000, 3.0)),
        ),
        Case(
            "Adult: income",
            "logistic",
            {"age": (0, 70), "education-num": (0, 15), "hours-per-week": (0, 80), "sex": (0, 1)},
            "income>50K",
            (0, 1),
            ((10_000, 1.0), (5000, 3.0), (2000, 1.0)),
            0.5,
        ),
    ],
    "national2019.csv": [
        Case(
            "ACS: decile of income",
            "linear",
            {"AGEP": (0, 90), "EDU": (1, 12), "SEX": (1, 2)},
            "PINCP_DECILE",
            (0, 9),
            ((5000, 1.0), (5000, 3.0)),
        ),
        Case(
            "ACS: upper half of incomes",
            "logistic",
            {"AGEP": (0, 90), "EDU": (1, 12), "SEX": (1, 2)},
            "PINCP_DECILE",
            (0, 9),
            ((5000, 1.0), (5000, 3.0)),
            4.5,
        ),
    ],
    "tx2019.csv": [
        Case(
            "ACS, Texas: decile of income",
            "linear",
            {"AGEP": (0, 90), "EDU": (1, 12), "SEX": (1, 2)},
            "PINCP_DECILE",
            (0, 9),
            ((3000, 1.0), (3000, 3.0)),
        ),
    ],
}


def population(file: Path, case: Case) -> tuple[Any, Any]:
    """Bounded features and targets of all rows that have them."""
    with file.open(newline="") as lines:
        rows = [[row[name] for name in (*case.features, case.target)] for row in csv.DictReader(lines)]
    table = np.array([row for row in rows if "N" not in row], dtype=np.float64)
    low, high = zip(*case.features.values(), strict=True)
    y = table[:, -1].clip(*case.range)
    return table[:, :-1].clip(low, high), y if case.logistic_above is None else (y > case.logistic_above).astype(int)


def plain(X: Any, y: Any, kind: str) -> tuple[Any, Any]:
    """Coefficients and their sandwich errors, without privacy."""
    rows = np.column_stack([X, np.ones(len(X))])
    w = np.zeros(rows.shape[1])
    for _ in range(1 if kind == "linear" else 30):
        fitted, bend = (rows @ w, np.ones(len(X))) if kind == "linear" else _logistic(rows @ w)
        step = np.linalg.solve((rows * bend[:, None]).T @ rows, rows.T @ (y - fitted))
        w = w + step
        if np.abs(step).max() < 1e-10:
            break
    fitted, bend = (rows @ w, np.ones(len(X))) if kind == "linear" else _logistic(rows @ w)
    inverse = np.linalg.inv((rows * bend[:, None]).T @ rows)
    scores = rows * (y - fitted)[:, None]
    return w, np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


def _logistic(scores: Any) -> tuple[Any, Any]:
    chance = expit(scores)
    return chance, chance * (1 - chance)


def drawn(case: Case, data: tuple[Any, Any], n: int, epsilon: float, draws: int) -> Iterator[tuple[Any, ...]]:
    """What every draw finds: estimates, both ends of the intervals, and errors without privacy."""
    X, y = data
    low, high = zip(*case.features.values(), strict=True)
    rng = np.random.default_rng(n)
    sigma = calibrate(Gaussian, dp.Budget(epsilon, DELTA))
    price: dict[str, Any] = {"rho": 1 / (2 * sigma**2), "bounds": (low, high), "intervals": True}
    with (
        tempfile.TemporaryDirectory() as home,
        dp.Ledger.open(f"{home}/draws", budget=dp.Budget(rho=1e6), unit=dp.rows(), dataset="draws") as ledger,
    ):
        for draw in range(draws):
            chosen = rng.integers(0, len(X), n)
            price |= {"ledger": ledger, "bits": seeded(draw)}
            if case.kind == "linear":
                model: Any = dp.learning.LinearRegression(**price, target=case.range)
            else:
                model = dp.learning.LogisticRegression(**price, classes=[0, 1])
            found = model.fit(X[chosen], y[chosen]).coefficients()
            yield found.value, *found.interval(), plain(X[chosen], y[chosen], case.kind)[1]


def judged(case: Case, data: tuple[Any, Any], n: int, epsilon: float, draws: int) -> dict[str, Any]:
    """How many intervals hold, and how wide they are."""
    begun = time.perf_counter()
    truth = plain(*data, case.kind)[0]
    value, low, high, error = map(np.array, zip(*drawn(case, data, n, epsilon, draws), strict=True))

    widths = np.median((high - low) / (2 * Z * error), axis=0)

    def share(which: Any) -> list[float]:
        return [round(float(each), 3) for each in which.mean(axis=0)]

    return {
        "case": case.name,
        "features": [*case.features, "(intercept)"],
        "n": n,
        "epsilon": epsilon,
        "coverage": share((low <= truth) & (truth <= high)),
        "relative width": [round(float(each), 2) if np.isfinite(each) else None for each in widths],
        "coverage without noise": share(abs(value - truth) <= Z * error),
        "unbounded": share(np.isinf(low)),
        "seconds": round(time.perf_counter() - begun),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adult", type=Path)
    parser.add_argument("acs", type=Path)
    parser.add_argument("--draws", type=int, default=600)
    parser.add_argument("--only", default="", help="words in the name of a case")
    given = parser.parse_args()
    found = []
    for file, cases in CASES.items():
        for case in cases:
            if given.only not in case.name:
                continue
            data = population((given.adult if file.startswith("adult") else given.acs) / file, case)
            for n, epsilon in case.runs:
                found.append(judged(case, data, n, epsilon, given.draws))
                print(json.dumps(found[-1]), flush=True)
    told = {
        "command": "python benchmarks/regression.py FOLDER_OF_ADULT FOLDER_OF_ACS",
        "versions": {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "delta": DELTA,
        "draws": given.draws,
        "runs": found,
    }
    if not given.only:
        (HERE / "results" / "regression.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
