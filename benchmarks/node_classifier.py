"""What kind of page a page is: from its own features, and with noisy sums of what the pages are that list it.

    python benchmarks/node_classifier.py FOLDER [--seeds 3]

FOLDER holds edges.csv.gz, features.json.gz and labels.csv.gz of the Facebook page-page network (Rozemberczki, Allen,
Sarkar 2019; 22 470 pages, 4 classes). Each tie stands in the lists of both ends. Pages have 128 features: random signs,
the same for all, added up over the words of a page, and rows of norm one. The labels of 70 % of the pages are private
training data, those of the others are the test. Everything a page owns is protected: its words, its label, its list.

Each model is a logistic regression. *own*: of a page's own features, for the whole price. *sums*: four fifths of the
price, in rho, go to sums over neighbours of what the training labels are (``dp.graphs.neighbour_sums``; the corners
of a simplex, which are as long as one-hot rows and further apart), the rest to a model of own features and sums. All
that is released is Gaussian, on one ledger, whose rho is that of Gaussian noise which is (epsilon, 1e-5). Without
privacy: the same models by scikit-learn on exact sums. Four fifths were chosen on a split of seed 0, which is not
reported.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import defocus as dp
from defocus.noise.testing import seeded
from defocus.privacy import Gaussian
from defocus.privacy.calibration import calibrate

HERE = Path(__file__).parent
DELTA, WIDTH, EPSILONS = 1e-5, 128, (2, 4, 8)
SIMPLEX = (np.eye(4) - 1 / 4) / np.sqrt(3 / 4)
"""Four corners of length one."""


def read(folder: Path) -> tuple[Any, Any, tuple[Any, Any]]:
    """Features, classes and lists of pages."""

    def opened(name: str) -> str:
        return gzip.decompress((folder / name).read_bytes()).decode()

    lines = opened("labels.csv.gz").split()[1:]
    kinds = [line.split(",")[1] for line in lines]
    y = np.searchsorted(sorted(set(kinds)), kinds)
    ties = np.array([line.split(",") for line in opened("edges.csv.gz").split()[1:]], np.int64)
    words = json.loads(opened("features.json.gz"))
    pages = np.repeat(np.arange(len(y)), [len(words[str(page)]) for page in range(len(y))])
    columns = np.concatenate([np.array(words[str(page)], np.int64) for page in range(len(y))])
    bag = sparse.csr_matrix((np.ones(len(columns)), (pages, columns)), shape=(len(y), 5000))
    X = bag @ np.random.default_rng(0).choice([-1.0, 1.0], size=(5000, WIDTH))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return X, y, (np.concatenate(ties.T), np.concatenate(ties.T[::-1]))


def beside(X: Any, sums: Any) -> Any:
    """Own features, and sums cut to four: half of the length each."""
    return np.hstack([X / 2, np.clip(sums, -4, 4) / 8])


def exact(edges: tuple[Any, Any], values: Any) -> Any:
    degree = np.bincount(edges[0], minlength=len(values))
    weights = 1 / np.sqrt(degree[edges[0]])
    return sparse.csr_matrix((weights, edges[::-1]), shape=(len(values),) * 2) @ values


def measured(X: Any, y: Any, edges: Any, epsilon: float, seed: int) -> Iterator[tuple[str, float]]:
    n, train = len(y), np.random.default_rng(seed).random(len(y)) < 0.7
    test = ~train
    rho = 1 / (2 * calibrate(Gaussian, dp.Budget(epsilon, DELTA)) ** 2)
    noise = iter([seeded(100 * seed + k) for k in range(20)])
    for name, share in (("own", 1.0), ("sums", 0.2)):
        with tempfile.TemporaryDirectory() as home:
            ledger = dp.Ledger.open(
                f"{home}/pages.ledger", budget=dp.Budget(rho=rho * 1.0001), unit=dp.user("page"), dataset="pages"
            )
            inputs = X
            if name == "sums":
                how = {"nodes": n, "ledger": ledger, "rho": rho * (1 - share), "bits": next(noise)}
                inputs = beside(X, dp.graphs.neighbour_sums(edges, SIMPLEX[y] * train[:, None], **how).value)
            model = dp.learning.LogisticRegression(
                ledger=ledger, rho=rho * share, classes=range(4), max_iter=100, bits=next(noise)
            )
            model.fit(inputs[train], y[train], users=np.flatnonzero(train))
            yield name, float(model.score(inputs[test], y[test]))
            ledger.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    X, y, edges = read(asked.folder)
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(1, asked.seeds + 1):
        train = np.random.default_rng(seed).random(len(y)) < 0.7
        labels = SIMPLEX[y] * train[:, None]
        for name, inputs in (("own", X), ("sums", beside(X, exact(edges, labels)))):
            plain = LogisticRegression(C=100, max_iter=500).fit(inputs[train], y[train])
            own = found.setdefault("without privacy", {}).setdefault(name, [])
            own.append(float(plain.score(inputs[~train], y[~train])))
        for epsilon in EPSILONS:
            start = time.process_time()
            for name, score in measured(X, y, edges, epsilon, seed):
                found.setdefault(f"epsilon {epsilon}", {}).setdefault(name, []).append(score)
                print(seed, epsilon, name, f"{score:.4f}", f"{time.process_time() - start:.0f} s", flush=True)
    for price, models in found.items():
        print(price, {name: f"{np.mean(all_):.4f} ± {np.std(all_):.4f}" for name, all_ in models.items()})
    about = {"numpy": version("numpy"), "scikit-learn": version("scikit-learn"), "seeds": asked.seeds}
    (HERE / "results" / "node_classifier.json").write_text(json.dumps({"about": about, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
