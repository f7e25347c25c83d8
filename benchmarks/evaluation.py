"""Evaluations on Adult: how far noise moves accuracy and AUC, and how often 95 % intervals hold.

    .venv/bin/python benchmarks/evaluation.py [FOLDER OF ADULT] [--draws 500]

Adult is the discretised copy (48 842 rows; adult-discretised.csv and adult-domain.json), or made-up rows where there is
no such folder. scikit-learn's logistic regression is fitted to one half; the other half is what rows are drawn from.
*error* is the root of the mean squared distance between noisy measures and the exact ones of the same rows.
*rows held* is how often the interval of the noise alone (1.96 or 2.12 standard errors, and what buckets hide) holds
the exact measure of the rows; *others held* how often the whole interval holds that of the half that the rows are from.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from estimators import adult, there
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import defocus as dp

EPSILONS, SIZES, MEASURES = (0.1, 1.0), (1000, 5000), ("accuracy", "auc")


def made_up() -> tuple[Any, Any]:
    """Rows like any others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48_842, 8))
    return X, (rng.random(len(X)) < 1 / (1 + np.exp(1.5 - X @ np.linspace(1, -1, 8)))).astype(int)


def function(model: Any) -> Any:
    """The scores of a logistic regression, without the checks that scikit-learn makes for each row that goes alone."""
    coefficients, intercept = model.coef_[0], model.intercept_[0]
    return lambda rows: 1 / (1 + np.exp(-(rows @ coefficients + intercept)))


def exact(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Accuracy and AUC without noise."""
    chances = model.predict_proba(X)[:, 1]
    return {"accuracy": float(((chances >= 0.5) == y).mean()), "auc": float(roc_auc_score(y, chances))}


def measured(model: Any, X: Any, y: Any, *, size: int, epsilon: float, draws: int) -> dict[str, list[float]]:
    """Error, shares held and the width of intervals, of each measure."""
    rng, truth = np.random.default_rng(size), exact(model, X, y)
    found: dict[str, list[list[float]]] = {name: [] for name in MEASURES}
    with tempfile.TemporaryDirectory() as home:
        terms: Any = {"budget": dp.Budget(10**6), "unit": dp.rows(), "dataset": "adult"}
        with dp.Ledger.open(f"{home}/adult.ledger", **terms) as ledger:
            for _ in range(draws):
                some = rng.integers(0, X.shape[0], size)
                asked = dp.learning.evaluate(
                    function(model), X[some], y[some], classes=[0, 1], ledger=ledger, expected_rows=size
                )
                answer, here = asked.release(epsilon=epsilon), exact(model, X[some], y[some])
                parts = dp.learning.evaluation.answer.measured(answer)
                for name in MEASURES:
                    column, part = answer[name], parts[name]
                    value, low, high = (float(each[0]) for each in (column.values, column.low, column.high))
                    off = value - here[name]
                    within = abs(off) <= answer.noise.width * part.noise + part.slack
                    found[name].append([off**2, within, low <= truth[name] <= high, (high - low) / 2])
    rows = {name: np.array(each, dtype=float) for name, each in found.items()}
    return {
        name: [float(np.sqrt(np.nanmean(each[:, 0]))), *np.nanmean(each[:, 1:], axis=0)] for name, each in rows.items()
    }


def main() -> None:
    """Print the table of benchmarks/README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(".bench/adult"))
    parser.add_argument("--draws", type=int, default=500)
    given = parser.parse_args()
    if there(given.folder):
        (X, y), _, _ = adult(given.folder)
    else:
        print("Adult is left out: made-up rows instead.")
        X, y = made_up()
    half = X.shape[0] // 2
    order = np.random.default_rng(0).permutation(X.shape[0])
    X, y = X[order], y[order]
    model = LogisticRegression(max_iter=200).fit(X[:half], y[:half])
    print("exact:", {name: round(value, 4) for name, value in exact(model, X[half:], y[half:]).items()})
    print("epsilon  rows   measure   error   rows held  others held  ± of the interval  s a release")
    for epsilon in EPSILONS:
        for size in SIZES:
            start = time.perf_counter()
            found = measured(model, X[half:], y[half:], size=size, epsilon=epsilon, draws=given.draws)
            took = (time.perf_counter() - start) / given.draws
            for name, (error, rows, others, reach) in found.items():
                held = f"{rows:9.3f}  {others:11.3f}  {reach:17.4f}"
                print(f"{epsilon:7g}  {size:5d}  {name:8s}  {error:.4f}  {held}  {took:.3f}", flush=True)


if __name__ == "__main__":
    main()
