"""What privacy costs a risk score: AUC against epsilon for a logistic regression that a hospital publishes.

A made-up hospital learns who will be readmitted. It adds calibrated Gaussian noise to the coefficients and publishes
them; the AUC falls from about 0.95 to about 0.91 at epsilon 1. The noise must cover how far one patient can move the
coefficients, which the ridge decides. Two better ways spend the same budget: noise in the objective, and noise in
the gradients, on half as steep a loss.

Run it with ``.venv/bin/python examples/hospital_auc.py [plot.svg]``; it takes a minute, and everything is made up. It
needs scikit-learn, and the plot matplotlib: pip install 'defocus[learn,plot]'.
References: Chaudhuri, Monteleoni, Sarwate (2011), Differentially private empirical risk minimization.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.metrics import roc_auc_score

import defocus as dp

PATIENTS, TESTED = 2000, 20_000
DELTA = 1e-5
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
C = 1.0
"""Scikit-learn's default. A smaller one lets one patient move coefficients less, and needs less noise."""
MEASUREMENTS = 12
WAYS: dict[str, dict[str, Any]] = {
    "coefficients + Gaussian noise": {"solver": "output", "C": C},
    "objective perturbation": {"solver": "objective"},
    "noisy descent (default)": {},
}


def hospital(patients: int, seed: int = 0) -> tuple[Any, Any]:
    """Measurements in [-1, 1], of which the first matter most, and who is readmitted."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0, 0.5, (patients, MEASUREMENTS)), -1, 1)
    risk = X @ (6 * 0.7 ** np.arange(MEASUREMENTS)) - 1
    return X, (rng.random(patients) < 1 / (1 + np.exp(-risk))).astype(int)


def plain_auc(train: tuple[Any, Any], test: tuple[Any, Any]) -> float:
    """Without privacy."""
    return float(roc_auc_score(test[1], Plain(C=10).fit(*train).decision_function(test[0])))


def private_auc(
    way: str, epsilon: float, train: tuple[Any, Any], test: tuple[Any, Any], *, runs: int, bits: Any = None
) -> float:
    """The mean AUC of ``runs`` releases, each for the whole budget of a ledger of its own."""
    found = []
    for _ in range(runs):
        with TemporaryDirectory() as home:
            given = {"ledger": f"{home}/hospital.ledger", "budget": dp.Budget(epsilon, DELTA), "epsilon": epsilon}
            model = dp.learning.LogisticRegression(bounds=(-1, 1), classes=[0, 1], bits=bits, **given, **WAYS[way])
            found.append(roc_auc_score(test[1], model.fit(*train).decision_function(test[0])))
    return float(np.mean(found))


def curves(
    epsilons: Sequence[float] = EPSILONS, runs: int = 10, bits: Any = None
) -> tuple[float, dict[str, list[float]]]:
    """The AUC without privacy, and that of each way at each epsilon."""
    train, test = hospital(PATIENTS), hospital(TESTED, seed=1)
    found = {
        way: [private_auc(way, epsilon, train, test, runs=runs, bits=bits) for epsilon in epsilons] for way in WAYS
    }
    return plain_auc(train, test), found


def figure(plain: float, found: dict[str, list[float]]) -> Any:
    """AUC against epsilon."""
    from matplotlib.figure import Figure  # noqa: PLC0415 # an optional extra

    canvas = Figure(figsize=(7, 4.2), layout="constrained")
    axes = canvas.add_subplot()
    axes.axhline(plain, color="0.5", linestyle=":", label=f"not private, {plain:.3f}")
    for way, values in found.items():
        axes.plot(EPSILONS, values, "o-", markersize=4, label=way)
    axes.set(xscale="log", xlabel=f"epsilon, at delta {DELTA:g}", ylabel="AUC", title="What privacy costs a risk score")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.legend(frameon=False)
    return canvas


def main(where: str | None = None) -> None:
    """Print the table, and draw the plot if told where."""
    plain, found = curves()
    table = Table(title=f"AUC of {PATIENTS} patients' risk score; not private {plain:.3f}", box=box.SIMPLE_HEAD)
    table.add_column("epsilon", justify="right")
    for way in WAYS:
        table.add_column(way, justify="right")
    for k, epsilon in enumerate(EPSILONS):
        table.add_row(f"{epsilon:g}", *(f"{values[k]:.3f}" for values in found.values()))
    Console().print(table)
    if where is not None:
        figure(plain, found).savefig(Path(where))


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("plot", nargs="?", help="the file to draw the plot to")
    main(given.parse_args().plot)
