"""Estimators beside diffprivlib 0.6.6: accuracy and AUC on Adult and other large data, errors of all on small data.

    sh benchmarks/setup.sh
    .venv/bin/python benchmarks/estimators.py [FOLDER OF ADULT] [--seeds 10] [--peer-seeds 3] [--fits 20]

Adult is the discretised copy (48 842 rows; adult-discretised.csv and adult-domain.json), without the survey weight. For
linear models every column is one-hot and divided by the root of the number of columns, so that rows have norm one
without a look at the data; classes are declared, everything else is left at its defaults. Seed k splits off a fifth for
testing (train_test_split with random_state=k); noise is fresh. Delta is 1e-5, and 0 where it says pure, as
diffprivlib's guarantee is; there, one-hot rows also declare their L1 norm, the root of the number of columns. Where
there is no folder of Adult (.bench/adult unless told) that part is left out. For small data see
estimators_parts/small.py.
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


def there(folder: Path) -> bool:
    """Whether Adult is."""
    return (folder / "adult-discretised.csv").exists()


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
    from sklearn.datasets import make_classification

    yield "categories", categories()
    X, y = make_classification(20_000, 20, n_informative=8, n_redundant=4, random_state=1, flip_y=0.05)
    yield "20 features", (np.clip(X / 4, -1, 1) / 20**0.5, y)


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
    from estimators_parts.small import paid
    from sklearn.linear_model import LogisticRegression as Plain

    from defocus.learning import AdditiveModel, LogisticRegression, NaiveBayes

    def linear(epsilon: float, delta: float = DELTA, **options: Any) -> Callable[[Any, Any], Any]:
        return lambda X, y: LogisticRegression(**paid(epsilon, delta), classes=[0, 1], **options).fit(X, y)

    def naive(epsilon: float, delta: float = DELTA) -> Callable[[Any, Any], Any]:
        bayes = NaiveBayes(**paid(epsilon, delta), classes=[0, 1], n_bins=100, bounds=([0] * 12, [100] * 12))
        fit: Callable[[Any, Any], Any] = bayes.fit
        return fit

    def additive(epsilon: float, bounds: Any, delta: float = DELTA) -> Callable[[Any, Any], Any]:
        model = AdditiveModel(**paid(epsilon, delta), classes=[0, 1], bounds=bounds)
        fit: Callable[[Any, Any], Any] = model.fit
        return fit

    def on_adult() -> dict[str, Any]:
        hot, raw, bounds = adult(folder)
        judgement = {"not private": judged(lambda X, y: Plain(max_iter=500).fit(X, y), hot, min(seeds, 3))}
        for epsilon in EPSILONS:
            judgement |= {
                f"LogisticRegression {epsilon}": judged(linear(epsilon), hot, seeds),
                f"by objective {epsilon}": judged(linear(epsilon, solver="objective"), hot, seeds),
                f"by output {epsilon}": judged(linear(epsilon, solver="output"), hot, seeds),
                f"AdditiveModel {epsilon}": judged(additive(epsilon, bounds), raw, min(seeds, 5)),
                f"NaiveBayes {epsilon}": judged(naive(epsilon), raw, seeds),
                f"pure LogisticRegression {epsilon}": judged(linear(epsilon, 0, l1_norm=12**0.5), hot, seeds),
                f"pure LogisticRegression, L2 norm alone {epsilon}": judged(linear(epsilon, 0), hot, seeds),
                f"pure AdditiveModel {epsilon}": judged(additive(epsilon, bounds, 0), raw, min(seeds, 5)),
                f"pure NaiveBayes {epsilon}": judged(naive(epsilon, 0), raw, seeds),
            }
            print(epsilon, json.dumps(judgement), flush=True)
        return judgement

    found = {"adult": on_adult()} if there(folder) else {}
    for name, data in others():
        found[name] = {"not private": judged(lambda X, y: Plain(C=100, max_iter=2000).fit(X, y), data, 3)}
        found[name] |= {f"LogisticRegression {epsilon}": judged(linear(epsilon), data, seeds) for epsilon in EPSILONS}
        known = {"l1_norm": 8**0.5} if name == "categories" else {}
        found[name] |= {
            f"pure LogisticRegression {epsilon}": judged(linear(epsilon, 0, **known), data, seeds)
            for epsilon in EPSILONS
        }
        print(name, json.dumps(found[name]), flush=True)
    return found


def theirs(folder: Path, seeds: int) -> dict[str, Any]:
    """Runs in the peer's own environment, and prints JSON."""
    import warnings

    from diffprivlib import models

    warnings.simplefilter("ignore")

    def linear(epsilon: float) -> Callable[[Any, Any], Any]:
        return lambda X, y: models.LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=300).fit(X, y)

    def naive(epsilon: float, bounds: Any) -> Callable[[Any, Any], Any]:
        return lambda X, y: models.GaussianNB(epsilon=epsilon, bounds=bounds).fit(X, y)

    def forest(epsilon: float, bounds: Any) -> Callable[[Any, Any], Any]:
        kind = models.RandomForestClassifier
        return lambda X, y: kind(epsilon=epsilon, bounds=bounds, classes=[0, 1], n_jobs=1).fit(X, y)

    def on_adult() -> dict[str, Any]:
        hot, raw, bounds = adult(folder)
        dense = (hot[0].toarray(), hot[1])
        judgement: dict[str, Any] = {}
        for epsilon in EPSILONS:
            judgement |= {
                f"LogisticRegression {epsilon}": judged(linear(epsilon), dense, seeds),
                f"NaiveBayes {epsilon}": judged(naive(epsilon, bounds), raw, seeds),
                f"RandomForest {epsilon}": judged(forest(epsilon, bounds), raw, seeds),
            }
        return judgement

    found = {"adult": on_adult()} if there(folder) else {}
    for name, (X, y) in others():
        data = (X.toarray() if sp.issparse(X) else X, y)
        found[name] = {f"LogisticRegression {epsilon}": judged(linear(epsilon), data, seeds) for epsilon in EPSILONS}
    return found


def small(fits: int) -> dict[str, Any]:
    """Mean errors of all estimators on small data, and their ratio to the peer's."""
    from processes import child

    script = HERE / "estimators_parts" / "small.py"
    plain, _ = child(script, "plain")
    mine, _ = child(script, "defocus", "--fits", fits)
    pure, _ = child(script, "pure", "--fits", fits)
    peer = child(script, "diffprivlib", "--fits", fits, python=PEER)[0] if PEER.exists() else {}
    found: dict[str, Any] = {}
    for name, errors in mine.items():
        found[name] = {"not private": plain[name]["error"], "fits": fits}
        for epsilon, each in errors.items():
            row = {"error": each["error"], "seconds": each["seconds"], "pure": pure[name][epsilon]["error"]}
            if peer:
                other = peer[name][epsilon]
                row |= {"peer": other["error"], "peer seconds": other["seconds"]}
                row["ratio"] = each["error"] / other["error"]
                row["pure ratio"] = pure[name][epsilon]["error"] / other["error"]
            found[name][epsilon] = {key: float(f"{value:.4g}") for key, value in row.items()}
        print(name, json.dumps(found[name]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE.parent / ".bench" / "adult")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--peer-seeds", type=int, default=3)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_peer:
        print(json.dumps(theirs(given.folder, given.peer_seeds)))
        return
    sys.path.insert(0, str(HERE))
    from processes import child

    if not there(given.folder):
        print(f"Adult is left out: there is no {given.folder / 'adult-discretised.csv'}.")
    begun = time.perf_counter()
    on_small = small(given.fits)
    mine = ours(given.folder, given.seeds)
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
        "small": on_small,
        "seconds": round(time.perf_counter() - begun),
    }
    (HERE / "results" / "estimators.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
