"""Estimators beside diffprivlib 0.6.6: accuracy and AUC on Adult and other data, errors of the rest.

    sh benchmarks/setup.sh
    .venv/bin/python benchmarks/estimators.py [FOLDER OF ADULT] [--seeds 10] [--peer-seeds 3]

Adult is the discretised copy (48 842 rows; adult-discretised.csv and adult-domain.json), without the survey weight. For
linear models every column is one-hot and divided by the root of the number of columns, so that rows have norm one
without a look at the data; classes are declared, everything else is left at its defaults. Seed k splits off a fifth for
testing (train_test_split with random_state=k); noise is fresh. Delta is 1e-5; diffprivlib's guarantee is pure.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).parent
PEER = HERE.parent / ".bench" / "diffprivlib" / "bin" / "python"
EPSILONS = (0.1, 1.0, 3.0)
DELTA = 1e-5
Data = tuple[Any, Any]


def adult(folder: Path) -> tuple[Data, Data, tuple[list[int], list[int]]]:
    """One-hot rows and raw rows, each with the target, and the declared bounds of raw columns."""
    domain = json.loads((folder / "adult-domain.json").read_text())
    with (folder / "adult-discretised.csv").open() as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",", dtype=np.int64)
    y = table[:, names.index("income>50K")]
    kept = [name for name in names if name not in {"fnlwgt", "income>50K"}]
    raw = table[:, [names.index(name) for name in kept]].astype(float)
    blocks = [sp.csr_matrix(np.eye(int(column.max()) + 1)[column.astype(int)]) for column in raw.T]
    hot = sp.hstack(blocks, format="csr") / len(kept) ** 0.5
    used = np.flatnonzero(np.asarray(hot.sum(axis=0)).ravel())  # as a one-hot encoder over values that occur
    return (hot[:, used], y), (raw, y), ([0] * len(kept), [domain[name] for name in kept])


def categories() -> Data:
    """Made up: eight categorical columns with heavy heads, one-hot."""
    rng = np.random.default_rng(0)
    n, sizes = 30_000, [2, 5, 8, 12, 20, 40, 60, 100]
    blocks, score = [], np.full(n, -1.5)
    for size in sizes:
        weights = 1 / np.arange(1, size + 1) ** 1.2
        column = rng.choice(size, n, p=weights / weights.sum())
        score += rng.normal(0, 0.9, size)[column]
        blocks.append(sp.csr_matrix(np.eye(size)[column]))
    return sp.hstack(blocks, format="csr") / len(sizes) ** 0.5, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


def others() -> Iterator[tuple[str, Data]]:
    """Data sets that nothing was tuned on; rows are in the unit ball by declared scales."""
    from sklearn.datasets import load_breast_cancer, make_classification

    yield "categories", categories()
    X, y = make_classification(20_000, 20, n_informative=8, n_redundant=4, random_state=1, flip_y=0.05)
    yield "20 features", (np.clip(X / 4, -1, 1) / 20**0.5, y)
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", ((2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1) / 30**0.5, y)


def judged(fit: Callable[[Any, Any], Any], data: Data, seeds: int) -> dict[str, Any]:
    """Mean and standard deviation of accuracy and AUC, and seconds of a fit."""
    from sklearn.metrics import accuracy_score, roc_auc_score
    from sklearn.model_selection import train_test_split

    X, y = data
    found, seconds = [], []
    for seed in range(seeds):
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
        start = time.perf_counter()
        model = fit(train, y_train)
        seconds.append(time.perf_counter() - start)
        chance = np.nan_to_num(model.predict_proba(test)[:, 1])
        found.append((accuracy_score(y_test, chance > 0.5), roc_auc_score(y_test, chance)))
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
    return {
        "accuracy": round(float(mean[0]), 4),
        "auc": round(float(mean[1]), 4),
        "spread": [round(float(each), 4) for each in spread],
        "seconds": round(min(seconds), 2),
        "seeds": seeds,
    }


def ours(folder: Path, seeds: int) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression as Plain

    from defocus import Budget
    from defocus.learning import AdditiveModel, LogisticRegression, NaiveBayes

    hot, raw, bounds = adult(folder)
    found: dict[str, Any] = {
        "adult": {"not private": judged(lambda X, y: Plain(max_iter=500).fit(X, y), hot, min(seeds, 3))}
    }

    def linear(epsilon: float, **options: Any) -> Callable[[Any, Any], Any]:
        return lambda X, y: LogisticRegression(budget=Budget(epsilon, DELTA), classes=[0, 1], **options).fit(X, y)

    def naive(epsilon: float) -> Callable[[Any, Any], Any]:
        bayes = NaiveBayes(budget=Budget(epsilon, DELTA), classes=[0, 1], bins=100, bounds=([0] * 12, [100] * 12))
        fit: Callable[[Any, Any], Any] = bayes.fit
        return fit

    def additive(epsilon: float) -> Callable[[Any, Any], Any]:
        model = AdditiveModel(budget=Budget(epsilon, DELTA), classes=[0, 1], bounds=bounds)
        fit: Callable[[Any, Any], Any] = model.fit
        return fit

    for epsilon in EPSILONS:
        found["adult"] |= {
            f"LogisticRegression {epsilon}": judged(linear(epsilon), hot, seeds),
            f"by objective {epsilon}": judged(linear(epsilon, by="objective"), hot, seeds),
            f"by output {epsilon}": judged(linear(epsilon, by="output"), hot, seeds),
            f"AdditiveModel {epsilon}": judged(additive(epsilon), raw, min(seeds, 5)),
            f"NaiveBayes {epsilon}": judged(naive(epsilon), raw, seeds),
        }
        print(epsilon, json.dumps(found["adult"]), flush=True)
    for name, data in others():
        found[name] = {"not private": judged(lambda X, y: Plain(C=100, max_iter=2000).fit(X, y), data, 3)}
        found[name] |= {f"LogisticRegression {epsilon}": judged(linear(epsilon), data, seeds) for epsilon in EPSILONS}
        print(name, json.dumps(found[name]), flush=True)
    return found


def theirs(folder: Path, seeds: int) -> dict[str, Any]:
    """Runs in the peer's own environment, and prints JSON."""
    import warnings

    from diffprivlib import models

    warnings.simplefilter("ignore")
    hot, raw, bounds = adult(folder)
    dense = (hot[0].toarray(), hot[1])
    found: dict[str, Any] = {"adult": {}}

    def linear(epsilon: float) -> Callable[[Any, Any], Any]:
        return lambda X, y: models.LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=300).fit(X, y)

    def naive(epsilon: float) -> Callable[[Any, Any], Any]:
        return lambda X, y: models.GaussianNB(epsilon=epsilon, bounds=bounds).fit(X, y)

    def forest(epsilon: float) -> Callable[[Any, Any], Any]:
        kind = models.RandomForestClassifier
        return lambda X, y: kind(epsilon=epsilon, bounds=bounds, classes=[0, 1], n_jobs=1).fit(X, y)

    for epsilon in EPSILONS:
        found["adult"] |= {
            f"LogisticRegression {epsilon}": judged(linear(epsilon), dense, seeds),
            f"NaiveBayes {epsilon}": judged(naive(epsilon), raw, seeds),
            f"RandomForest {epsilon}": judged(forest(epsilon), raw, seeds),
        }
    for name, (X, y) in others():
        data = (X.toarray() if sp.issparse(X) else X, y)
        found[name] = {f"LogisticRegression {epsilon}": judged(linear(epsilon), data, seeds) for epsilon in EPSILONS}
    return found | {"made up, epsilon 1": their_rest()}


def lines(rows: int, features: int) -> Data:
    """Rows with a linear target in [-2, 2]; not private, its R² is about .97."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (rows, features)) / features**0.5
    return X, np.clip(X @ rng.normal(0, 1, features) + rng.normal(0, 0.1, rows), -2, 2)


def made_up() -> tuple[Any, Any]:
    """Five clusters, and rows whose variance falls from feature to feature."""
    rng = np.random.default_rng(5)
    P = rng.uniform(-0.6, 0.6, (5, 2))[rng.integers(0, 5, 20_000)] + rng.normal(0, 0.05, (20_000, 2))
    return P, rng.normal(0, 1, (20_000, 20)) * 0.8 ** np.arange(20) / 6


def rest(
    regression: Callable[[int], Any], clusters: Callable[[], Any], components: Callable[[], Any] | None
) -> dict[str, Any]:
    """Means of ten fits to made-up data: R², inertia and variance over the best there are."""
    from sklearn.cluster import KMeans

    P, Z = made_up()
    best = KMeans(5, n_init=10, random_state=0).fit(P).inertia_
    most = np.linalg.eigvalsh(np.cov(Z.T))[::-1][:3].sum()

    def apart(centres: Any) -> float:
        return float(((P[:, np.newaxis] - centres) ** 2).sum(axis=2).min(axis=1).sum() / best)

    def kept(directions: Any) -> float:
        return float(np.var(Z @ np.asarray(directions).T, axis=0).sum() / most)

    def explained(rows: int, features: int) -> float:
        X, y = lines(rows, features)
        return round(float(np.mean([regression(features).fit(X, y).score(X, y) for _ in range(10)])), 4)

    found = {
        "LinearRegression R2, 20 000 x 10": explained(20_000, 10),
        "LinearRegression R2, 5000 x 50": explained(5000, 50),
        "KMeans inertia": round(float(np.mean([apart(clusters().fit(P).cluster_centers_) for _ in range(10)])), 3),
    }
    if components is not None:
        found["PCA variance"] = round(float(np.mean([kept(components().fit(Z).components_) for _ in range(10)])), 4)
    return found


def our_rest() -> dict[str, Any]:
    from defocus import Budget
    from defocus.learning import PCA, KMeans, LinearRegression

    budget = Budget(1, DELTA)
    return rest(
        lambda _: LinearRegression(budget=budget, target=(-2, 2)),
        lambda: KMeans(5, budget=budget),
        lambda: PCA(3, budget=budget),
    )


def their_rest() -> dict[str, Any]:
    from diffprivlib import models

    def line(features: int) -> Any:
        side = 1 / features**0.5
        return models.LinearRegression(epsilon=1.0, bounds_X=(-side, side), bounds_y=(-2, 2))

    return rest(
        line,
        lambda: models.KMeans(5, epsilon=1.0, bounds=(-1, 1)),
        None,  # its sampler did not finish a fit to 20 features within a minute
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE.parent.parent / "shared" / "data" / "adult")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--peer-seeds", type=int, default=3)
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_peer:
        print(json.dumps(theirs(given.folder, given.peer_seeds)))
        return
    sys.path.insert(0, str(HERE))
    from processes import child

    mine = ours(given.folder, given.seeds) | {"made up, epsilon 1": our_rest()}
    if PEER.exists():
        peer, _ = child(Path(__file__), given.folder, "--as-peer", "--peer-seeds", given.peer_seeds, python=PEER)
    else:
        peer = "run benchmarks/setup.sh"
    found = {
        "command": "python benchmarks/estimators.py",
        "versions": {name: version(name) for name in ("numpy", "scikit-learn")} | {"diffprivlib": "0.6.6"},
        "delta": DELTA,
        "defocus": mine,
        "diffprivlib": peer,
    }
    (HERE / "results" / "estimators.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
