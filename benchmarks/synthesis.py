"""Synthetic data: how far pairs and triples of columns are from the real ones, and how well models trained on them do.

``python -m benchmarks.synthesis FOLDER --systems defocus mst aim --mechanisms MECHANISMS`` makes synthetic records of
every table in FOLDER, which ``benchmarks.synthesis_parts.tables`` writes, each in a process of its own. Records are
kept and not made again. ``benchmarks/setup.sh`` makes the environment of the peers.

Total variation is the mean over all pairs, and over all triples or 400 of them. The k-marginal score of
NIST is 1000 (1 - mean total variation) over triples. Seconds are processor time.
"""

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

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


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path)
    words.add_argument("--only", nargs="+", help="names of tables")
    words.add_argument("--systems", nargs="+", default=["defocus"], choices=["defocus", "mst", "aim"])
    words.add_argument("--mechanisms", default="-", help="the folder with mst.py of the repository of mbi")
    words.add_argument("--megabytes", default="80", help="of AIM's model")
    words.add_argument("--records", type=Path, default=Path(".bench/synthesis"), help="where records are kept")
    words.add_argument("--epsilon", nargs="+", default=["1"])
    words.add_argument("--delta", default="1e-6")
    words.add_argument("--seeds", type=int, default=3)
    given = words.parse_args()
    given.records.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for source in sorted(given.folder.glob("*.npz")):
        if given.only and source.stem not in given.only:
            continue
        table = np.load(source)
        for epsilon, system, seed in itertools.product(given.epsilon, given.systems, range(given.seeds)):
            out = given.records / f"{system}-{source.stem}-{epsilon}-{seed}.npz"
            numbers = [str(source), str(out), epsilon, given.delta]
            if system == "defocus":
                command = [sys.executable, "-m", "benchmarks.synthesis_parts.with_defocus", *numbers]
            else:
                command = [".bench/mbi/bin/python", "-W", "ignore", "-m", "benchmarks.synthesis_parts.with_mbi"]
                command += [given.mechanisms, system, *numbers, str(seed), given.megabytes]
            if not out.exists():
                subprocess.run(command, check=True)  # noqa: S603
            made = np.load(out)
            about = {"table": source.stem, "epsilon": float(epsilon), "system": system, "seed": seed}
            cost = {"seconds": round(float(made["seconds"]), 1), "megabytes": round(float(made["megabytes"]))}
            results.append(about | cost | quality(table, made["records"]))
            print(results[-1], flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
