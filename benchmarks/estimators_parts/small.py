"""Every estimator on small data, beside its counterpart: the same rows, bounds and epsilon, mean errors of fits.

A part of benchmarks/estimators.py, run by each tool's own interpreter: ``small.py defocus``, ``pure`` (the same for an
epsilon alone, as the peer has it), or ``diffprivlib``.
It prints JSON: for each task and epsilon the mean error of as many fits as are asked for, and seconds of one.
Bounds are taken as declared: those of the instrument for digits, the range of the file for breast cancer, round numbers
for what is made up. Labels, targets and rows are the same for both; noise is fresh in every fit.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

EPSILONS = (0.1, 1.0, 3.0)
DELTA = 1e-5
Floats: TypeAlias = NDArray[np.float64]
Maker: TypeAlias = Callable[["Task", float], Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Rows to fit, what is declared about them, and the error of a fitted model."""

    name: str
    kind: str
    X: Floats
    y: Any
    bounds: tuple[Any, Any]
    error: Callable[[Any], float]
    target: tuple[float, float] = (0.0, 1.0)
    number: int = 0

    @property
    def classes(self) -> list[int]:
        """The declared classes."""
        return sorted(map(int, set(self.y)))


def tasks() -> Iterator[Task]:
    """Everything that is compared."""
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification

    cancer = load_breast_cancer(return_X_y=True)
    yield from classified("cancer 569 x 30", *cancer, (cancer[0].min(axis=0), cancer[0].max(axis=0)))
    digits = ([0.0] * 64, [16.0] * 64)
    yield from classified("digits 1797 x 64", *load_digits(return_X_y=True), digits, kinds=("logistic", "bayes"))
    for n in (500, 5000):
        X, y = make_classification(n + 2000, 8, n_informative=4, flip_y=0.03, random_state=n)
        yield from classified(f"made up {n} x 8", X, y, ([-5.0] * 8, [5.0] * 8), fitted=n)
    for n in (500, 5000):
        yield lines(n)
        yield clusters(n)
        yield directions(n)
        yield scales(n)
    X, _ = load_digits(return_X_y=True)
    yield around("digits, 10 clusters", X, 10, (0.0, 16.0))


def classified(
    name: str,
    X: Floats,
    y: Any,
    bounds: tuple[Any, Any],
    *,
    fitted: int = 0,
    kinds: tuple[str, ...] = ("logistic", "bayes", "trees"),
) -> Iterator[Task]:
    """Classifiers; the error is the share of rows told wrong, of those that were held back."""
    from sklearn.model_selection import train_test_split

    size = {"train_size": fitted} if fitted else {"test_size": 0.3}
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y, **size)

    def wrong(model: Any) -> float:
        return float((model.predict(test) != y_test).mean())

    for kind in kinds:
        yield Task(name, kind, train, y_train, bounds, wrong)


def lines(n: int) -> Task:
    """Like ratings of wines: eleven skewed features, ratings from 0 to 10. Error: of the variance, what is left."""
    rng = np.random.default_rng(n)
    X = 10 * rng.beta(2, 5, (n + 2000, 11))
    y = np.rint(np.clip(5.5 + (X - 20 / 7) @ rng.normal(0, 0.25, 11) + rng.normal(0, 0.6, n + 2000), 0, 10))

    def left(model: Any) -> float:
        return float(((model.predict(X[n:]) - y[n:]) ** 2).mean() / y[n:].var())

    return Task(f"ratings {n} x 11", "line", X[:n], y[:n], ([0.0] * 11, [10.0] * 11), left, target=(0.0, 10.0))


def clusters(n: int) -> Task:
    """Five groups in three dimensions."""
    rng = np.random.default_rng(n)
    X = rng.uniform(15, 85, (5, 3))[rng.integers(0, 5, n)] + rng.normal(0, 4, (n, 3))
    return around(f"groups {n} x 3", X, 5, (0.0, 100.0))


def around(name: str, X: Floats, number: int, ends: tuple[float, float]) -> Task:
    """Error: squared distances to the centres, over the least there are."""
    from sklearn.cluster import KMeans

    best = KMeans(number, n_init=10, random_state=0).fit(X).inertia_

    def apart(model: Any) -> float:
        squares = ((X[:, np.newaxis] - model.cluster_centers_) ** 2).sum(axis=2)
        return float(squares.min(axis=1).sum() / best)

    width = X.shape[1]
    return Task(name, "clusters", X, None, ([ends[0]] * width, [ends[1]] * width), apart, number=number)


def directions(n: int) -> Task:
    """Six features whose variance falls. Error: of the variance along the best two directions, what is lost."""
    rng = np.random.default_rng(n)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    X = np.clip(rng.normal(0, 1, (n, 6)) * 0.6 ** np.arange(6) @ turn, -3, 3)
    most = np.linalg.eigvalsh(np.cov(X.T))[-2:].sum()

    def lost(model: Any) -> float:
        return float(1 - np.var(X @ np.asarray(model.components_).T, axis=0, ddof=1).sum() / most)

    return Task(f"variances {n} x 6", "directions", X, None, ([-3.0] * 6, [3.0] * 6), lost, number=2)


def scales(n: int) -> Task:
    """Five features. Error: of means and deviations together, in units of the deviations (root of the mean square)."""
    rng = np.random.default_rng(n)
    X = np.clip(rng.normal([20, 40, 50, 60, 80], [3, 5, 8, 5, 3], (n, 5)), 0, 100)
    mean, deviation = X.mean(axis=0), X.std(axis=0)

    def off(model: Any) -> float:
        parts = np.concatenate([(model.mean_ - mean) / deviation, (model.scale_ - deviation) / deviation])
        return float(np.sqrt((parts**2).mean()))

    return Task(f"measures {n} x 5", "scales", X, None, ([0.0] * 5, [100.0] * 5), off)


def paid(epsilon: float, delta: float) -> dict[str, Any]:
    """The price of each fit of an estimator, and a new ledger with enough for all of them."""
    from defocus import Budget

    ledger = Path(tempfile.mkdtemp()) / "rows.ledger"
    return {"epsilon": epsilon, "delta": delta, "ledger": ledger, "budget": Budget(10**6, 1e-2)}


def ours(task: Task, epsilon: float, delta: float = DELTA) -> Any:
    """Our estimator for a task, with default settings."""
    from defocus import learning

    given: dict[str, Any] = {**paid(epsilon, delta), "bounds": task.bounds}
    made: dict[str, Callable[[], Any]] = {
        "logistic": lambda: learning.LogisticRegression(classes=task.classes, **given),
        "bayes": lambda: learning.NaiveBayes(classes=task.classes, **given),
        "trees": lambda: learning.AdditiveModel(classes=task.classes, **given),
        "line": lambda: learning.LinearRegression(target=task.target, **given),
        "clusters": lambda: learning.KMeans(task.number, **given),
        "directions": lambda: learning.PCA(task.number, **given),
        "scales": lambda: learning.StandardScaler(**given),
    }
    return made[task.kind]()


def pure(task: Task, epsilon: float) -> Any:
    """The same without delta."""
    return ours(task, epsilon, 0)


def theirs(task: Task, epsilon: float) -> Any:
    """The peer's, with default settings and everything declared that it asks for."""
    from diffprivlib import models

    low, high = (np.asarray(end) for end in task.bounds)
    # It holds rows to a norm about the origin: the longest row that the bounds allow.
    norm = float(np.linalg.norm(np.maximum(abs(low), abs(high))))
    given: dict[str, Any] = {"epsilon": epsilon, "bounds": (low, high)}
    made: dict[str, Callable[[], Any]] = {
        "logistic": lambda: Moved(models.LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=300), low, high),
        "bayes": lambda: models.GaussianNB(**given),
        "trees": lambda: models.RandomForestClassifier(classes=task.classes, n_jobs=1, **given),
        "line": lambda: models.LinearRegression(epsilon=epsilon, bounds_X=(low, high), bounds_y=task.target),
        "clusters": lambda: models.KMeans(task.number, **given),
        "directions": lambda: models.PCA(task.number, data_norm=norm, **given),
        "scales": lambda: models.StandardScaler(**given),
    }
    return made[task.kind]()


@final
class Moved:
    """The peer's logistic regression on features that go from -1 to 1 over the root of their number.

    It has no bounds, and longer rows are scaled down: this is what ours does with bounds, said for the peer's sake.
    """

    def __init__(self, model: Any, low: Floats, high: Floats) -> None:
        self._model, self._low, self._high = model, low, high

    def _rows(self, X: Floats) -> Floats:
        shares = 2 * (X - self._low) / (self._high - self._low) - 1
        return np.asarray(shares.clip(-1, 1) / np.sqrt(X.shape[1]))

    def fit(self, X: Floats, y: Any) -> "Moved":
        """As usual."""
        self._model.fit(self._rows(X), y)
        return self

    def predict(self, X: Floats) -> Any:
        """As usual."""
        return self._model.predict(self._rows(X))


def plain(task: Task, _epsilon: float) -> Any:
    """Without privacy, by scikit-learn."""
    from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes, pipeline, preprocessing

    made: dict[str, Callable[[], Any]] = {
        "logistic": lambda: pipeline.make_pipeline(
            preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=1000)
        ),
        "bayes": naive_bayes.GaussianNB,
        "trees": lambda: ensemble.RandomForestClassifier(random_state=0),
        "line": linear_model.LinearRegression,
        "clusters": lambda: cluster.KMeans(task.number, n_init=10, random_state=0),
        "directions": lambda: decomposition.PCA(task.number),
        "scales": preprocessing.StandardScaler,
    }
    return made[task.kind]()


def measured(make: Maker, task: Task, epsilon: float, fits: int) -> dict[str, float]:
    """The mean error and the seconds of a fit."""
    errors, seconds = [], []
    for _ in range(fits):
        model = make(task, epsilon)
        start = time.perf_counter()
        model.fit(task.X) if task.y is None else model.fit(task.X, task.y)
        seconds.append(time.perf_counter() - start)
        errors.append(task.error(model))
    return {"error": float(np.mean(errors)), "seconds": min(seconds)}


def compared(make: Maker, fits: int, only: str = "") -> dict[str, Any]:
    """Every task, by one tool."""
    found: dict[str, Any] = {}
    for task in tasks():
        name = f"{task.kind}: {task.name}"
        if only not in name:
            continue
        if make is plain:
            found[name] = measured(plain, task, 0.0, 1)
        else:
            found[name] = {str(epsilon): measured(make, task, epsilon, fits) for epsilon in EPSILONS}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=["defocus", "pure", "diffprivlib", "plain"])
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    tools: dict[str, Maker] = {"defocus": ours, "pure": pure, "diffprivlib": theirs, "plain": plain}
    print(json.dumps(compared(tools[given.tool], given.fits, given.only)))


if __name__ == "__main__":
    main()
