"""A census: a million leaves on five levels, counts that add up, state totals held exactly. Beside the top-down method.

Run: python benchmarks/hierarchy.py [directory] [leaves] [people]   (a million and ten million by default)

The geography is irregular, and three blocks in ten are empty. Time and memory are those of a process that opens the
table, asks and releases; how the people are written to disk before does not count. Top-down gets the same noisy
numbers as ours. It gives each parent's count to its children by their own noisy numbers alone, by exact non-negative
least squares and the same rounding, as the 2020 census did.
"""

import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import defocus as dp
from defocus.noise.testing import seeded
from defocus.tables.measurement import Measuring
from defocus.tables.weights import RowSampler, published
from defocus.workloads.trees import Tree, divided

LEVELS = ("state", "county", "tract", "block")
PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-9}
RUNS = 20
RESULTS = Path(__file__).parent / "results" / "hierarchy.json"


def geography(leaves: int, rng: np.random.Generator) -> pa.Table:
    """A line for each block: children are spread over parents at random, at least one each."""
    sizes = [50, max(50, leaves // 1000), max(50, leaves // 100), leaves]
    columns = {LEVELS[-1]: np.arange(leaves)}
    above = np.arange(leaves)
    for name, size in zip(reversed(LEVELS[:-1]), reversed(sizes[:-1]), strict=True):
        number = int(above.max()) + 1
        parent = np.sort(np.concatenate([np.arange(size), rng.integers(0, size, number - size)]))
        above = parent[above]
        columns[name] = above
    return pa.table({name: pa.array(columns[name], pa.int64()) for name in LEVELS})


def people(places: pa.Table, number: int, rng: np.random.Generator) -> pa.Table:
    """A line for each person: blocks of very different sizes."""
    weights = np.exp(rng.normal(0, 1.2, places.num_rows)) * (rng.random(places.num_rows) > 0.3)
    return places.take(
        pa.array(np.repeat(np.arange(places.num_rows), rng.multinomial(number, weights / weights.sum())))
    )


def opened(home: Path) -> tuple[Any, pa.Table]:
    places = pq.read_table(home / "places.parquet")
    table = dp.open(
        home / "people.parquet", unit=dp.rows(), budget=dp.Budget(10, 1e-6), ledger=home / "census.ledger",
        name="census", threads=2, invariants=dp.tables.Invariants(LEVELS, places, ["state"]),
    )  # fmt: skip
    return table, places


def once(home: Path) -> dict[str, float]:
    """One release, in a process of its own."""
    start = time.perf_counter()
    table, places = opened(home)
    with table:
        answer = table.hierarchy(*LEVELS, keys=places, invariants=["state"]).release(**PRICE)
    took, work = time.perf_counter() - start, time.process_time()
    counts = answer["count"].values
    keys = answer.keys["block"]
    leaves = np.array([key != "all" for key in keys.to_pylist()])
    assert counts[-1] == counts[leaves].sum()
    assert (counts >= 0).all()
    return {
        "seconds": took,
        "processor": work,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "rows": len(answer),
    }


def errors(home: Path, invariants: list[str]) -> dict[str, Any]:
    """Root mean squared errors by level, of both methods on the same noisy numbers."""
    table, places = opened(home)
    with table:
        query = table.hierarchy(*LEVELS, keys=places, invariants=invariants)
        plan, layout = query.plan(**PRICE), query.layout
        assert layout is not None
        with published(query.rows, query.by, query.keys, query.bound) as groups:
            (cells,) = Measuring(groups, plan.grid, RowSampler("a key")).cells(plan.arrangement.splits)
    tree, sums, held = layout.tree(), layout.sums(cells), layout.sets.exact
    truth = [level[:, 0] // plan.grid for level in sums]
    noises, bits = plan.levels[0], seeded(1)
    own = [0.0 if i < held else noise.variance / plan.grid**2 for i, noise in enumerate(noises)]  # type: ignore[union-attr]
    found: dict[str, Any] = {"ours": [], "top-down": [], "unbiased": []}
    for _ in range(RUNS):
        pairs = zip(sums, noises, strict=True)
        noisy = [(level if noise is None else noise.add(level, bits))[:, 0] / plan.grid for level, noise in pairs]
        pooled = tree.pooled(noisy, own)
        found["ours"].append(_squares(tree.whole(pooled, truth[:held]), truth))
        found["unbiased"].append(_squares(tree.estimates(pooled)[0], truth))
        found["top-down"].append(_squares(_top_down(tree, noisy, truth[:held]), truth))
    by_level = {name: np.sqrt(np.mean(each, axis=0)).tolist() for name, each in found.items()}
    return {"nodes": tree.sizes, "noise": np.sqrt(own).tolist(), **by_level}


def _top_down(tree: Tree, noisy: list[Any], exact: list[Any]) -> list[Any]:
    levels = exact or [np.rint(np.maximum(noisy[0], 0)).astype(np.int64)]
    for level in range(len(levels), len(noisy)):
        even = np.ones(len(noisy[level]))
        levels = [*levels, divided(levels[-1], noisy[level], even, tree.parents[level - 1])]
    return levels


def _squares(values: list[Any], truth: list[Any]) -> list[float]:
    return [float(np.square(a - b).mean()) for a, b in zip(values, truth, strict=True)]


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--once":
        print(json.dumps(once(Path(sys.argv[2]))))
        return
    where = sys.argv[1] if len(sys.argv) > 1 else None
    leaves = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000_000
    rng = np.random.default_rng(20)
    with tempfile.TemporaryDirectory(dir=where) as folder:
        home = Path(folder)
        places = geography(leaves, rng)
        pq.write_table(places, home / "places.parquet")
        pq.write_table(people(places, number, rng), home / "people.parquet")
        apart = [sys.executable, __file__, "--once", folder]
        taken = json.loads(subprocess.run(apart, check=True, capture_output=True, text=True).stdout)  # noqa: S603  # ourselves
        spent = f"{taken['seconds']:.1f} s, of processors {taken['processor']:.1f} s, {taken['gigabytes']:.2f} GiB"
        print(f"{spent}, {taken['rows']} rows released", flush=True)
        compared = {"state totals exact": errors(home, ["state"]), "nothing exact": errors(home, [])}
    for name, each in compared.items():
        print(name)
        for i, level in enumerate(("all", *LEVELS)):
            ours, theirs = each["ours"][i], each["top-down"][i]
            ratio = f"{ours / theirs:.6f}" if theirs else "exact"
            print(f"  {level:7s} {each['nodes'][i]:8d} noise {each['noise'][i]:6.3f} {ours:8.4f} {theirs:8.4f} {ratio}")
    about = {"python": platform.python_version(), "leaves": leaves, "people": number, "runs": RUNS}
    RESULTS.write_text(json.dumps({**about, "release": taken, "errors": compared}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
