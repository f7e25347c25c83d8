"""Intervals of formulas over released numbers: as they are, and as quantiles of the formula over draws of the noise.

A formula of the released numbers less fresh draws of their noise has quantiles too, and would need no rule for any kind
of formula. This script counts how often each of both holds the truth, of 100 groups with normal noise in 12 releases.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa

import defocus as dp
from defocus.answers import AnswerColumn, Released
from defocus.answers.noise_sources import Noise
from defocus.ledger import Receipt

GROUPS, RUNS, DRAWS, SIGMA = 100, 12, 2_000, 7.0
FORMULAS = {
    "apart": [
        "n / SUM(n) OVER ()", "n - p", "n - LAG(n) OVER (ORDER BY place)", "n * p", "MAX(n) OVER ()",
        "RANK() OVER (ORDER BY n)",
    ],
    "tied": ["n * p", "GREATEST(n, p)", "ABS(n - p)", "POWER(n - p, 2)", "MAX(n) OVER ()", "RANK() OVER (ORDER BY n)"],
}  # fmt: skip


def computed(formula: str, n: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The formula of each line of numbers, by plain DuckDB."""
    runs = len(n)
    numbers = {"run": np.repeat(np.arange(runs), GROUPS), "place": np.tile(np.arange(GROUPS), runs)}
    database = duckdb.connect(":memory:", config={"threads": "1"})
    database.register("t", pa.table(numbers | {"n": n.ravel(), "p": p.ravel()}))
    within = formula.replace("OVER (", "OVER (PARTITION BY run ")
    found = database.sql(f"SELECT ({within})::DOUBLE AS x FROM t ORDER BY run, place").to_arrow_table()  # noqa: S608
    return np.asarray(found.column("x").to_numpy(), float).reshape(runs, GROUPS)


def released(values: dict[str, np.ndarray], receipt: Receipt) -> Released:
    """An answer that knows its noise."""
    half = np.full(GROUPS, 1.96 * SIGMA)
    columns = [
        AnswerColumn(
            name, x, half / 1.96, x - half, x + half, integral=False, how="normal noise",
            noise=Noise({name: np.array([[SIGMA]])}, 1.96, linear=True),
        )
        for name, x in values.items()
    ]  # fmt: skip
    return Released({"place": pa.array(np.arange(GROUPS))}, tuple(columns), "q", receipt)


def compared(kind: str, formula: str, receipt: Receipt) -> dict[str, object]:
    """How often both hold the truth, their widths, and what they take."""
    chance = np.random.default_rng(3)
    n = chance.integers(100, 400, GROUPS).astype(float) if kind == "apart" else np.full(GROUPS, 200.0)
    p = np.round(n / 2) if kind == "apart" else n
    truth = computed(formula, n[None], p[None])[0]
    known = np.isfinite(truth)
    held, width, seconds = np.zeros((2, RUNS)), np.zeros((2, RUNS)), np.zeros((2, RUNS))
    for run in range(RUNS):
        x, y = (each + SIGMA * chance.normal(size=GROUPS) for each in (n, p))
        start = process_time()
        column = released({"n": x, "p": y}, receipt).derive(y=formula)["y"]
        middle = process_time()
        draws = (each - SIGMA * chance.normal(size=(DRAWS, GROUPS)) for each in (x, y))
        simulated = np.quantile(computed(formula, *draws), [0.025, 0.975], axis=0)
        seconds[:, run] = middle - start, process_time() - middle
        for way, (low, high) in enumerate([(column.low, column.high), simulated]):
            held[way, run] = np.mean(((low - 1e-9 <= truth) & (truth <= high + 1e-9))[known])
            width[way, run] = np.nanmean(high - low)
    shares, sizes, times = held.mean(axis=1), width.mean(axis=1), 1000 * seconds.min(axis=1)
    return {
        "groups": kind, "formula": formula,
        "held": round(100 * shares[0], 1), "held_simulated": round(100 * shares[1], 1),
        "width_ratio": round(float(sizes[1] / max(sizes[0], 1e-9)), 2),
        "ms": round(times[0]), "ms_simulated": round(times[1]),
    }  # fmt: skip


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        rows = pa.table({"person": range(10)})
        table = dp.open(rows, unit=dp.user("person"), budget=dp.Budget(1), ledger=f"{home}/ledger", name="rows")
        receipt = table.agg(n=dp.count_units()).release(epsilon=1).receipt
        results = [compared(kind, formula, receipt) for kind in FORMULAS for formula in FORMULAS[kind]]
        table.close()
    for result in results:
        print(*result.values(), sep=" | ")
    (Path(__file__).parent / "results" / "derived_intervals.json").write_text(json.dumps(results, indent=2) + "\n")
