"""Estimators: one extreme row, added to few others. What is attacked is all that a fit releases."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus.learning.estimators import spending
from defocus.learning.estimators.base import PrivateEstimator
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.calibration import calibrate

OTHERS = np.array([[0.2, 0.1], [-0.1, 0.3], [0.1, -0.2]])
SIDES = np.array([0, 1, 0])
Rows = tuple[Any, Any]


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


def _attack(folder: Path, model: PrivateEstimator, row: list[float], side: float, *, at: float = 0.05) -> Attack:
    bits, charges = seeded(51), set()
    few, more = (OTHERS, SIDES), (np.vstack([OTHERS, row]), np.append(SIDES, side))
    ledger = dp.Ledger.open(folder / "fits.ledger", budget=AMPLE, unit=dp.rows(), dataset="patients")
    remembered = Remembered()

    def fitted(data: Rows, drawn: Bits, book: Any = None) -> Any:
        found = model.set_params(bits=drawn, ledger=book).fit(*data)
        parts = [np.ravel(value) for name, value in found.released().items() if name != "classes_"]
        return np.concatenate(parts).astype(float)

    def repeated(data: Rows, drawn: Bits) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spending, "calibrate", remembered)
            return fitted(data, drawn)

    def whole(data: Rows, drawn: Bits) -> Any:
        made = fitted(data, drawn, ledger)
        charges.update(() if model.receipt_ is None else (model.receipt_.event,))
        return made

    repeated(few, seeded(0))
    return Attack(
        release=lambda data: repeated(data, bits), pair=(few, more), event=model.event_, charges=charges, delta=at,
        repeated=repeated, whole=whole,
    )  # fmt: skip


BUDGET, SMALLER = dp.Budget(5, 1e-6), dp.Budget(3, 1e-6)


def logistic(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.LogisticRegression(budget=SMALLER, classes=[0, 1]), [1e308, 0.0], 1)


def linear(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.LinearRegression(budget=SMALLER), [1e308, 0.0], 1e308)


def naive_bayes(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.NaiveBayes(budget=BUDGET, classes=[0, 1]), [1e308, -1e308], 1)


def k_means(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.KMeans(2, budget=BUDGET), [1e308, 0.0], 0)


def pca(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.PCA(1, budget=BUDGET), [1e308, 0.0], 0)


def scaler(folder: Path, _runs: int) -> Attack:
    return _attack(folder, dp.learning.StandardScaler(budget=BUDGET, bounds=(-1, 1)), [1e308, 1e308], 0)


TENTH, HALF = less_noise(Fraction(1, 10)), less_noise(Fraction(1, 2))
ROOMS = (
    Room(name="logistic regression", make=logistic, faults=(), slight=(TENTH,), few=0, many=150, again=True),
    Room(name="linear regression", make=linear, faults=(), slight=(TENTH,), few=0, many=150, again=True),
    Room(name="naive Bayes", make=naive_bayes, faults=(), slight=(HALF,), few=0, many=1500, again=True),
    Room(name="k-means", make=k_means, faults=(), slight=(TENTH,), few=0, many=600, again=True),
    Room(name="PCA", make=pca, faults=(TENTH,), slight=(HALF,), few=300, many=1500, again=True),
    Room(name="standard scaler", make=scaler, faults=(), slight=(HALF,), few=0, many=1500, again=True),
)
