"""Estimators: one extreme row, added to few others. What is attacked is all that a fit releases."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus.learning.estimators import fit_budget
from defocus.learning.estimators.base import PrivateEstimator
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import Event

Rows = tuple[Any, Any]
FEW: Rows = np.array([[0.2, 0.1], [-0.1, 0.3], [0.1, -0.2]]), np.array([0, 1, 0])
CROWD: Rows = np.repeat([[0.95, 0.95], [-0.95, -0.95]], 100, axis=0), np.repeat([1, 0], 100)
"""Where results are quotients, a crowd keeps what they are divided by from zero."""


class Remembered:
    """Noise is calibrated once for each question: it follows from the budget and the sums alone, and takes long."""

    def __init__(self) -> None:
        self.found: dict[Any, float] = {}
        self.honest = calibrate

    def __call__(self, family: Any, budget: Any, **more: Any) -> float:
        key = (family(1.0), budget, *more.values())
        if key not in self.found:
            self.found[key] = self.honest(family, budget, **more)
        return self.found[key]


def _attack(folder: Path, model: PrivateEstimator, others: Rows, row: list[float], side: float) -> Attack:
    bits = seeded(51)
    charges: set[Event] = set()
    more = np.vstack([others[0], row]), np.append(others[1], side)
    ledger = dp.Ledger.open(folder / "fits.ledger", budget=AMPLE, unit=dp.rows(), dataset="patients")
    remembered = Remembered()

    def fitted(data: Rows, drawn: Bits) -> Any:
        found = model.set_params(bits=drawn, ledger=ledger).fit(*data)
        parts = [np.ravel(value) for name, value in found.released().items() if name != "classes_"]
        return np.concatenate(parts).astype(float)

    def repeated(data: Rows, drawn: Bits) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fit_budget, "calibrate", remembered)
            patch.setattr(fit_budget.FitBudget, "spend", lambda _self, _event, compute, **_: (compute(), None))
            return fitted(data, drawn)

    def whole(data: Rows, drawn: Bits) -> Any:
        made = fitted(data, drawn)
        charges.add(model.receipt_.event)
        return made

    repeated(others, seeded(0))
    return Attack(
        release=lambda data: repeated(data, bits), pair=(others, more), event=model.event_, charges=charges, delta=0.05,
        repeated=repeated, whole=whole,
    )  # fmt: skip


def logistic(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.LogisticRegression(epsilon=3, delta=1e-6, classes=[0, 1]), FEW, [1e308, 0.0], 1)


def linear(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.LinearRegression(epsilon=3, delta=1e-6), FEW, [1e308, 0.0], 1e308)


def naive_bayes(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.NaiveBayes(epsilon=5, delta=1e-6, classes=[0, 1]), CROWD, [1e308, 1e308], 1)


def k_means(folder: Path, _runs: int) -> Attack:
    some = CROWD[0][::10], CROWD[1][::10]
    return _attack(folder, dp.learning.KMeans(1, epsilon=5, delta=1e-6), some, [1e308, 1e308], 0)


def pca(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.PCA(1, epsilon=5, delta=1e-6), CROWD, [1e308, -1e308], 0)


def scaler(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.StandardScaler(epsilon=5, delta=1e-6, bounds=(-1, 1)), CROWD, [1e308, 1e308], 0)


def pure_logistic(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.LogisticRegression(epsilon=1, delta=0, classes=[0, 1]), FEW, [1e308, 1e308], 1)


def pure_linear(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.LinearRegression(epsilon=1, delta=0), FEW, [1e308, 1e308], 1e308)


def pure_naive_bayes(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.NaiveBayes(epsilon=1, delta=0, classes=[0, 1]), CROWD, [1e308, 1e308], 1)


def pure_scaler(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.StandardScaler(epsilon=1, delta=0, bounds=(-1, 1)), CROWD, [1e308, 1e308], 0)


TENTH, FIFTH = less_noise(Fraction(1, 10)), less_noise(Fraction(1, 5))
ROOMS = (
    Room(name="logistic regression", make=logistic, faults=(), slight=(TENTH,), few=0, many=150, again=True),
    Room(name="linear regression", make=linear, faults=(), slight=(TENTH,), few=0, many=150, again=True),
    Room(name="naive Bayes", make=naive_bayes, faults=(), slight=(FIFTH,), few=0, many=500, again=True),
    Room(name="k-means", make=k_means, faults=(), slight=(TENTH,), few=0, many=300, again=True),
    Room(name="PCA", make=pca, faults=(TENTH,), slight=(FIFTH,), few=300, many=800, again=True),
    Room(name="standard scaler", make=scaler, faults=(), slight=(FIFTH,), few=0, many=800, again=True),
    Room(name="pure logistic regression", make=pure_logistic, faults=(TENTH,), few=600, many=800, again=True),
    Room(name="pure linear regression", make=pure_linear, faults=(TENTH,), few=300, many=800, again=True),
    Room(name="pure naive Bayes", make=pure_naive_bayes, faults=(TENTH,), few=300, many=800, again=True),
    Room(name="pure standard scaler", make=pure_scaler, faults=(TENTH,), few=300, many=800, again=True),
)
