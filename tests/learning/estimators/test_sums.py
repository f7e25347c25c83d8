"""Estimators made of sums: how far neighbours move each sum, how much noise it gets, and that no more is released.

One law for all of them: whatever a fit hands to a mechanism moves by at most the declared sensitivity when a row comes
or goes, however extreme it is, and the noise that it gets has the scale that was charged.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from defocus import Budget
from defocus.learning import (
    PCA,
    AdditiveModel,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    StandardScaler,
)
from defocus.privacy.accounting import account
from defocus.privacy.events import DiscreteGaussian, parts_of

BUDGET = Budget(1, 1e-6)
EXTREME = [
    [0.0, 0.0, 0.0],
    [1e9, -1e9, 1e9],
    [np.inf, -np.inf, np.nan],
    [1.0, 0.0, 0.0],
    [0.57, 0.57, 0.57],
    [-1.0, 1.0, 1.0],
]

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(budget=BUDGET, classes=[0, 1], steps=1),
    "three classes": lambda: LogisticRegression(budget=BUDGET, classes=[0, 1, 2], steps=1),
    "logistic in bounds": lambda: LogisticRegression(budget=BUDGET, classes=[0, 1], steps=1, bounds=(-1, 1)),
    "additive": lambda: AdditiveModel(budget=BUDGET, classes=[0, 1], steps=1, depth=3),
    "linear": lambda: LinearRegression(budget=BUDGET, steps=1),
    "linear by moments": lambda: LinearRegression(budget=BUDGET, by="moments"),
    "bayes": lambda: NaiveBayes(budget=BUDGET, classes=[0, 1], bins=4),
    "k-means": lambda: KMeans(2, budget=BUDGET, iterations=1),
    "pca": lambda: PCA(budget=BUDGET),
    "scaler": lambda: StandardScaler(budget=BUDGET, bounds=(-1, 1)),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_row_moves_a_sum_by_more_than_was_charged_for(name: str, watched: Any) -> None:
    rng = np.random.default_rng(1)
    base, y = rng.uniform(-1, 1, (9, 3)), np.arange(10) % 2
    MODELS[name]().fit(base, y[:9])
    reference = list(watched.exact)
    # Gradients are added to noise that was drawn ahead: their scale stands in the event.
    charged = [part for part, _ in parts_of(MODELS[name]().fit(base, y[:9]).event_)]
    bounds = [float(part.sensitivity) for part in charged if isinstance(part, DiscreteGaussian)]
    largest = [0.0] * len(reference)
    for row in EXTREME:
        watched.exact.clear()
        model = MODELS[name]().fit(np.vstack([base, row]), y)
        assert len(watched.exact) == len(reference)
        for k, (here, there) in enumerate(zip(reference, watched.exact, strict=True)):
            largest[k] = max(largest[k], float(np.sqrt(((here - there).astype(object) ** 2).sum())))
        assert BUDGET.covers(account(model.event_))
    allowed = sorted(bounds)
    assert all(moved <= bound for moved, bound in zip(sorted(largest), allowed, strict=True))
    assert all(moved > 0.4 * bound for moved, bound in zip(sorted(largest), allowed, strict=True))  # and no slack


def test_a_row_replaced_moves_sums_by_at_most_twice_as_much(watched: Any) -> None:
    base = np.zeros((5, 2))
    PCA(budget=BUDGET).fit(np.vstack([base, [1, 0]]))
    PCA(budget=BUDGET).fit(np.vstack([base, [0, -1]]))
    moved = [float(np.linalg.norm(a - b)) for a, b in zip(watched.exact[:3], watched.exact[3:], strict=True)]
    assert all(step <= 2 * scale for step, (_, scale) in zip(moved, watched.scales[:3], strict=True))


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["linear", "bayes", "pca", "scaler", "k-means"])
def test_noise_has_the_scale_that_was_charged_and_no_other(name: str, watched: Any, fits: Callable[..., float]) -> None:
    made: dict[str, Callable[[], Any]] = {
        "linear": lambda: LinearRegression(budget=BUDGET, by="moments").fit(np.zeros((5, 80)), np.zeros(5)),
        "bayes": lambda: NaiveBayes(budget=BUDGET, classes=[0, 1]).fit(np.zeros((5, 200)), np.zeros(5)),
        "pca": lambda: PCA(budget=BUDGET).fit(np.zeros((5, 80))),
        "scaler": lambda: StandardScaler(budget=BUDGET, bounds=(0, 1)).fit(np.zeros((5, 1600))),
        "k-means": lambda: KMeans(10, budget=BUDGET).fit(np.zeros((5, 60))),
    }
    model = made[name]()
    scales = {float(part.sigma) for part, _ in parts_of(model.event_) if isinstance(part, DiscreteGaussian)}
    assert {sigma for sigma, _ in watched.scales} == scales
    standard = watched.standardised()
    assert len(standard) > 3000
    assert fits(standard) > 1e-6
    assert fits(standard, 1.1) < 1e-6
    assert fits(standard, 0.9) < 1e-6
