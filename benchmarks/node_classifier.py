"""What kind of page a page is: from its own features, and with noisy sums of what the pages are that list it.

    python benchmarks/node_classifier.py FOLDER [--seeds 3]

FOLDER holds edges.csv.gz, features.json.gz and labels.csv.gz of the Facebook page-page network (Rozemberczki, Allen,
Sarkar 2019; 22 470 pages, 4 classes). Each tie stands in the lists of both ends. Pages have 128 features: random signs,
the same for all, added up over the words of a page, and rows of norm one. The labels of 70 % of the pages are private
training data, those of the others are the test. Everything a page owns is protected: its words, its label, its list.

*own*: a logistic regression of a page's own features, for the whole price. *mlp*: a perceptron with 64 hidden units of
them, by ``dp.learning.Trainer``, full batches, for the whole price. *sums*: four fifths of the price, in rho, go to
sums over neighbours of what the training labels are (``dp.graphs.neighbour_sums``; the corners of a simplex, which are
as long as one-hot rows and further apart), the rest to a logistic regression of own features and sums. *sums mlp*: the
same with a perceptron. *chosen*: both, *mlp* for .15 and *sums* for .8 of the price, each fitted to nine tenths of the
training pages, and for the rest ``dp.learning.choose`` among them on the last tenth: the accuracy of the one that it
recommends. All that is released is Gaussian but for the choice, on one ledger, whose rho is that of Gaussian noise
which is (epsilon, 1e-5). Without privacy: the same models on exact sums, and *gcn*, a graph convolutional network of
two layers (Kipf, Welling 2017) of own features. Shares and steps were chosen on a split of seed 0, which is not
reported.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import defocus as dp
from defocus.noise.testing import seeded
from defocus.privacy import Gaussian
from defocus.privacy.calibration import calibrate

HERE = Path(__file__).parent
DELTA, WIDTH, EPSILONS, STEPS = 1e-5, 128, (2, 4, 8), 150
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


def linear(X: Any, y: Any, who: Any, ledger: Any, *, rho: float, bits: Any) -> Any:
    made = dp.learning.LogisticRegression(ledger=ledger, rho=rho, classes=range(4), max_iter=100, bits=bits)
    return made.fit(X, y, users=who).predict_proba


def perceptron(X: Any, y: Any, who: Any, ledger: Any, *, rho: float, bits: Any) -> Any:
    """Of 64 hidden units, from full batches."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
    with dp.learning.Trainer(
        model,
        torch.nn.CrossEntropyLoss(),
        torch.optim.Adam(model.parameters(), lr=0.01),
        (torch.tensor(X, dtype=torch.float32), torch.tensor(y)),
        unit=ledger.unit,
        users=who,
        rho=rho,
        batch_size=len(y),
        steps=STEPS,
        ledger=ledger,
        max_grad_norm=1.0,
        metrics="nothing",
        bits=bits,
    ) as trainer:
        trainer.fit()
    return lambda rows: torch.softmax(model(torch.tensor(np.asarray(rows), dtype=torch.float32)), 1).detach().numpy()


def gcn(X: Any, y: Any, edges: Any, train: Any) -> float:
    """The accuracy of a graph network of two layers, without privacy."""
    n = len(y)
    rows, columns = (np.concatenate([own, np.arange(n)]) for own in edges)
    root = np.sqrt(np.bincount(rows, minlength=n))
    values = torch.tensor(1 / (root[rows] * root[columns]), dtype=torch.float32)
    near = torch.sparse_coo_tensor(np.stack([rows, columns]), values, (n, n)).coalesce()
    torch.manual_seed(0)
    first, second = torch.nn.Linear(X.shape[1], 64), torch.nn.Linear(64, 4)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
    own, kind = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    for _ in range(200):
        said = torch.sparse.mm(near, second(torch.relu(torch.sparse.mm(near, first(own)))))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(said[train], kind[train]).backward()
        optimizer.step()
    return float((said.argmax(1).numpy() == y)[~train].mean())


def right(model: Any, X: Any, y: Any) -> float:
    return float((model(X).argmax(1) == y).mean())


def measured(X: Any, y: Any, edges: Any, epsilon: float, seed: int) -> Iterator[tuple[str, float]]:
    n, draw = len(y), np.random.default_rng(seed)
    train = draw.random(n) < 0.7
    held = train & (draw.random(n) < 0.1)
    test, who = ~train, np.arange(n)
    rho = 1 / (2 * calibrate(Gaussian, dp.Budget(epsilon, DELTA)) ** 2)
    noise = iter([seeded(100 * seed + k) for k in range(20)])

    def sums(ledger: Any, rho: float) -> Any:
        how = {"nodes": n, "ledger": ledger, "rho": rho, "bits": next(noise)}
        return beside(X, dp.graphs.neighbour_sums(edges, SIMPLEX[y] * train[:, None], **how).value)

    def fitted(how: Any, inputs: Any, pages: Any, ledger: Any, rho: float) -> Any:
        return how(inputs[pages], y[pages], who[pages], ledger, rho=rho, bits=next(noise))

    for name, how, share in (
        ("own", linear, 1.0),
        ("mlp", perceptron, 1.0),
        ("sums", linear, 0.2),
        ("sums mlp", perceptron, 0.2),
    ):
        with book(rho) as ledger:
            inputs = sums(ledger, rho * (1 - share)) if share < 1 else X
            model = fitted(how, inputs, train, ledger, rho * share)
            yield name, right(model, inputs[test], y[test])
    with book(rho) as ledger:
        both = sums(ledger, 0.64 * rho)
        models = {
            "mlp": (fitted(perceptron, X, train & ~held, ledger, 0.15 * rho), X),
            "sums": (fitted(linear, both, train & ~held, ledger, 0.16 * rho), both),
        }
        asked = {
            name: dp.learning.evaluate(model, own[held], y[held], users=who[held], ledger=ledger, classes=range(4))
            for name, (model, own) in models.items()
        }
        best = dp.learning.choose(asked, epsilon=np.sqrt(8 * 0.05 * rho), bits=next(noise)).best
        scores = {name: right(model, own[test], y[test]) for name, (model, own) in models.items()}
        yield f"chosen: {best}, of {scores['mlp']:.3f} and {scores['sums']:.3f}", scores[best]


@contextmanager
def book(rho: float) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as home:
        terms = {"budget": dp.Budget(rho=rho * 1.0001), "unit": dp.user("page"), "dataset": "pages"}
        with dp.Ledger.open(f"{home}/pages.ledger", **terms) as ledger:
            yield ledger


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1)
    asked = parser.parse_args()
    X, y, edges = read(asked.folder)
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(asked.first, asked.first + asked.seeds):
        train = np.random.default_rng(seed).random(len(y)) < 0.7
        both = beside(X, exact(edges, SIMPLEX[y] * train[:, None]))
        for name, inputs, how in (
            ("own", X, LogisticRegression(C=100, max_iter=500)),
            ("mlp", X, MLPClassifier(64, early_stopping=True, random_state=0)),
            ("sums", both, LogisticRegression(C=100, max_iter=500)),
            ("sums mlp", both, MLPClassifier(64, early_stopping=True, random_state=0)),
        ):
            plain = how.fit(inputs[train], y[train])
            own = found.setdefault("without privacy", {}).setdefault(name, [])
            own.append(float(plain.score(inputs[~train], y[~train])))
            print(seed, "without privacy", name, f"{own[-1]:.4f}", flush=True)
        found["without privacy"].setdefault("gcn", []).append(gcn(X, y, edges, train))
        print(seed, "without privacy gcn", f"{found['without privacy']['gcn'][-1]:.4f}", flush=True)
        for epsilon in EPSILONS:
            start = time.process_time()
            for name, score in measured(X, y, edges, epsilon, seed):
                kept = found.setdefault(f"epsilon {epsilon}", {}).setdefault(name.partition(":")[0], [])
                kept.append(score)
                print(seed, epsilon, name, f"{score:.4f}", f"{time.process_time() - start:.0f} s", flush=True)
    for price, models in found.items():
        print(price, {name: f"{np.mean(all_):.4f} ± {np.std(all_):.4f}" for name, all_ in models.items()})
    about = {name: version(name) for name in ("numpy", "scikit-learn", "torch")} | {"seeds": asked.seeds}
    (HERE / "results" / "node_classifier.json").write_text(json.dumps({"about": about, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
