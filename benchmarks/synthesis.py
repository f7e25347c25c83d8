"""Synthetic data: how far pairs and triples of columns are from the real ones, and how well models trained on them do.

``python -m benchmarks.synthesis FOLDER`` makes synthetic data of every table in FOLDER: files ``NAME.npz`` with
``codes`` (one row for each record, integers from 0), ``sizes`` (how many codes each column has), ``ordered`` and,
where a model is to predict the last column, ``test``.

Total variation is the mean over all pairs, and over all triples or 400 of them. The k-marginal score of
NIST is 1000 (1 - mean total variation) over triples. Seconds are processor time.
"""

import argparse
import itertools
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import defocus as dp

RESULTS = Path(__file__).parent / "results" / "synthesis.json"
TRIPLES = 400


def distance(real: Any, made: Any, sizes: Any, ways: int) -> float:
    """The mean total variation distance of marginals of so many columns."""
    sets = list(itertools.combinations(range(len(sizes)), ways))
    if len(sets) > TRIPLES and ways == 3:
        sets = [sets[i] for i in np.random.default_rng(0).choice(len(sets), TRIPLES, replace=False)]
    found = []
    for chosen in sets:
        keys = [np.zeros(len(rows), np.int64) for rows in (real, made)]
        for i in chosen:
            keys = [key * int(sizes[i]) + rows[:, i] for key, rows in zip(keys, (real, made), strict=True)]
        _, places = np.unique(np.concatenate(keys), return_inverse=True)
        cells = int(places.max()) + 1
        mine, theirs = (
            np.bincount(places[: len(real)], minlength=cells),
            np.bincount(places[len(real) :], minlength=cells),
        )
        found.append(np.abs(mine / len(real) - theirs / len(made)).sum() / 2)
    return float(np.mean(found))


def area(made: Any, test: Any) -> float:
    """The area under the curve of a boosted model, trained on synthetic records and tested on real ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    model = HistGradientBoostingClassifier(random_state=0).fit(made[:, :-1], made[:, -1])
    return float(roc_auc_score(test[:, -1], model.predict_proba(test[:, :-1])[:, 1]))


def quality(table: Any, made: Any) -> dict[str, float]:
    triples = distance(table["codes"], made, table["sizes"], 3)
    found = {
        "tv1": distance(table["codes"], made, table["sizes"], 1),
        "tv2": distance(table["codes"], made, table["sizes"], 2),
        "tv3": triples,
        "k_marginal": 1000 * (1 - triples),
    }
    if "test" in table:
        found["auc"] = area(made, table["test"])
    return {name: round(value, 4) for name, value in found.items()}


def ours(table: Any, epsilon: float, delta: float) -> tuple[Any, float]:
    """Our records, through the front door: a table of integers with declared values."""
    names = [f"c{i}" for i in range(len(table["sizes"]))]
    data = pa.table({name: pa.array(table["codes"][:, i], pa.int64()) for i, name in enumerate(names)})
    facts: dict[str, Any] = {}
    for name, size, ordered in zip(names, table["sizes"].tolist(), table["ordered"].tolist(), strict=True):
        values = list(range(size))
        facts[name] = values if ordered else [*values[1:], 0]  # an order that does not rise is none
    with tempfile.TemporaryDirectory() as home:
        opened = dp.open(
            data, unit=dp.rows(), budget=dp.Budget(epsilon + 1, 2 * delta), ledger=f"{home}/l", name="v", columns=facts
        )
        begun = time.process_time()
        rows = dp.synthesise(opened, epsilon=epsilon, delta=delta).sample()
        seconds = time.process_time() - begun
        opened.close()
    return np.stack([rows[name].fill_null(0).to_numpy() for name in names], 1), seconds


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path)
    words.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    words.add_argument("--delta", type=float, default=1e-6)
    words.add_argument("--seeds", type=int, default=3)
    given = words.parse_args()
    results: list[dict[str, Any]] = []
    for source in sorted(given.folder.glob("*.npz")):
        table = np.load(source)
        for epsilon, seed in itertools.product(given.epsilon, range(given.seeds)):
            about = {"table": source.stem, "epsilon": epsilon, "seed": seed}
            made, seconds = ours(table, epsilon, given.delta)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            results.append({**about, "system": "defocus", "seconds": round(seconds, 2), "megabytes": round(peak)})
            results[-1] |= quality(table, made)
            print(results[-1], flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
