"""How often 95 % intervals hold the truth at default settings, on tables in which few people have most of the rows.

Made up after flights by plane: 4 000 planes with 1 to 575 flights each; planes that fly often fly other routes and are
later. The truth is the statistic of all rows as they are, without any bound. Prints a table of which share of intervals
holds it between the ends that are shown, or holds it or is open where it lies, how wide half of one is and how far off
the number is, relative to the truth (medians), how many groups are shown, and what the answer says in the same place.
Writes results/intervals.json. `--only` runs the questions that hold a word.

The constants of the rules in `found_bound.py` and `bias.py` were chosen on the tables of `CHOSEN_ON`, and those of
`lower_bound.py` on the table of `tables.py`. Those of `FRESH` were written afterwards and nothing was chosen on them.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

import defocus as dp
from defocus.answers.rules import below
from defocus.noise.testing import seeded

Floats = npt.NDArray[np.float64]
PEOPLE, MOST, PLACES = 4_000, 575, 60
EPSILON, DELTA = 1, 1e-6
SHARES = ("held", "held or open", "half width", "error")


CHOSEN_ON: dict[str, Callable[[Any], Floats]] = {
    "flights": lambda rng: np.clip(rng.lognormal(np.log(15), 1.5, PEOPLE), 1, MOST),
    "log-normal": lambda rng: rng.lognormal(np.log(5), 2, PEOPLE),
    "Pareto 1.1": lambda rng: 1 + rng.pareto(1.1, PEOPLE),
    "Pareto 1.1 to 500": lambda rng: np.clip(1 + rng.pareto(1.1, PEOPLE), 1, 500),
    "Pareto 1.5": lambda rng: 1 + rng.pareto(1.5, PEOPLE),
    "Pareto 2": lambda rng: 1 + rng.pareto(2, PEOPLE),
    "Pareto 3": lambda rng: 1 + rng.pareto(3, PEOPLE),
}
"""How many rows people have, by the name of the table."""


def _rare(rng: Any) -> Floats:
    """One in two hundred has four hundred rows or so, and the others have few: a mixture without a middle."""
    rows: Floats = np.where(rng.random(PEOPLE) < 0.005, rng.poisson(400, PEOPLE), 1 + rng.poisson(1.5, PEOPLE)).astype(
        float
    )
    return rows


def _two_classes(rng: Any) -> Floats:
    """A fifth of all people come every week, the others once or twice a year."""
    rows: Floats = np.where(rng.random(PEOPLE) < 0.2, rng.poisson(52, PEOPLE), 1 + rng.poisson(0.7, PEOPLE)).astype(
        float
    )
    return rows


FRESH: dict[str, Callable[[Any], Floats]] = {
    "log-normal 1": lambda rng: rng.lognormal(np.log(3), 1, PEOPLE),
    "log-normal 2.5": lambda rng: np.minimum(rng.lognormal(0, 2.5, PEOPLE), 20_000),
    "Zipf 1.7": lambda rng: np.minimum(rng.zipf(1.7, PEOPLE), 5_000).astype(float),
    "Zipf 2.5": lambda rng: np.minimum(rng.zipf(2.5, PEOPLE), 5_000).astype(float),
    "rare heavy users": _rare,
    "two classes": _two_classes,
    "geometric 30": lambda rng: rng.geometric(1 / 30, PEOPLE).astype(float),
    "one row each": lambda rng: rng.integers(1, 2, PEOPLE).astype(float),
    "log-normal, mean 10": lambda rng: rng.lognormal(np.log(4), np.sqrt(2 * np.log(2.5)), PEOPLE),
    "seven rows each": lambda rng: rng.integers(7, 8, PEOPLE).astype(float),
    "2 % have 200": lambda rng: np.where(rng.random(PEOPLE) < 0.02, 200.0, 4.0),
    "1 to 300": lambda rng: rng.integers(1, 301, PEOPLE).astype(float),
}
"""Likewise, and no rule was chosen by looking at them."""
TABLES = {**CHOSEN_ON, **FRESH}


def flights(rows: Callable[[Any], Floats], seed: int = 0) -> pa.Table:
    """A heavy tail of flights; where a plane flies, how far and how late depends on the plane and on how often."""
    rng = np.random.default_rng(seed)
    number = np.maximum(rows(rng), 1).astype(np.int64)
    plane = np.repeat(np.arange(PEOPLE), number)
    carrier = rng.choice(12, PEOPLE, p=np.arange(12, 0, -1) / 78)
    often = np.minimum(1.0, np.log(number) / np.log(MOST))
    weights = 1 / np.arange(1, PLACES + 1) ** 1.1
    home = rng.integers(0, PLACES, (PEOPLE, 8))
    usual = home[plane, rng.integers(0, 8, len(plane))]
    anywhere = rng.choice(PLACES, len(plane), p=weights / weights.sum())
    dest = np.where(rng.random(len(plane)) < 0.5, usual, anywhere)
    late = rng.gamma(0.6, 30, len(plane)) * (0.7 + 0.6 * often[plane]) - 15 + rng.normal(0, 4, PEOPLE)[plane]
    names = np.array([f"P{i:02d}" for i in range(PLACES)])
    lines = np.array([f"C{i:02d}" for i in range(12)])
    return pa.table(
        {
            "plane": plane,
            "carrier": lines[carrier[plane]],
            "dest": names[dest],
            "delay": np.round(late).clip(-60, 1200),
            "distance": np.round(200 + 2300 * rng.beta(2, 4, PEOPLE)[plane] + 10.0 * dest),
        }
    )


Asked = tuple[str, Callable[[Any], Any], str, tuple[str, ...]]
"""What it is called, the question, the bare query, and the groups."""


def _whole(name: str, aggregate: Any, sql: str) -> Asked:
    return name, lambda t: t.agg(x=aggregate), f"SELECT {sql} FROM t", ()  # noqa: S608  # constants of this file


def _by(name: str, by: str, aggregate: Any, sql: str, **keys: Any) -> Asked:
    bare = f"SELECT {by}, {sql} FROM t GROUP BY ALL"  # noqa: S608  # likewise
    return name, lambda t: t.group_by(by, **keys).agg(x=aggregate), bare, (by,)


def _beside(name: str, by: str, keys: list[str]) -> Asked:
    """A mean that is asked with the number of rows, so that one bound is found for both."""
    bare = f"SELECT {by}, avg(distance) FROM t GROUP BY ALL"  # noqa: S608  # likewise
    return name, lambda t: t.group_by(by, keys=keys).agg(n=dp.count(), x=dp.mean("distance")), bare, (by,)


CARRIERS = [f"C{i:02d}" for i in range(12)]
DISTANCE = "quantile_disc(distance, {})"
QUESTIONS: list[Asked] = [
    _whole("count", dp.count(), "count(*)"),
    _whole("people", dp.count_units(), "count(distinct plane)"),
    _whole("count distinct", dp.count_distinct("dest"), "count(distinct dest)"),
    _whole("sum", dp.sum("distance"), "sum(distance)"),
    _whole("mean", dp.mean("distance"), "avg(distance)"),
    _whole("mean, skewed", dp.mean("delay"), "avg(delay)"),
    _whole("variance", dp.variance("distance"), "var_pop(distance)"),
    _whole("std", dp.std("distance"), "stddev_pop(distance)"),
    _whole("median", dp.median("distance"), DISTANCE.format(0.5)),
    _whole("median, interval", dp.median("distance", intervals=True), DISTANCE.format(0.5)),
    _whole("quantile 0.9, interval", dp.quantile("distance", 0.9, intervals=True), DISTANCE.format(0.9)),
    _whole("min, interval", dp.min("distance", intervals=True), DISTANCE.format(0.005)),
    _whole("max, interval", dp.max("distance", intervals=True), DISTANCE.format(0.995)),
    _whole("sum, found bounds", dp.sum("delay", bounds="find"), "sum(delay)"),
    _whole("mean, found bounds", dp.mean("delay", bounds="find"), "avg(delay)"),
    _whole("variance, found bounds", dp.variance("delay", bounds="find"), "var_pop(delay)"),
    _by("count by carrier", "carrier", dp.count(), "count(*)", keys=CARRIERS),
    _by("people by carrier", "carrier", dp.count_units(), "count(distinct plane)", keys=CARRIERS),
    _by("distinct by carrier", "carrier", dp.count_distinct("dest"), "count(distinct dest)", keys=CARRIERS),
    _by("sum by carrier", "carrier", dp.sum("distance"), "sum(distance)", keys=CARRIERS),
    _by("mean by carrier", "carrier", dp.mean("distance"), "avg(distance)", keys=CARRIERS),
    _beside("mean beside a count by carrier", "carrier", CARRIERS),
    _beside("mean beside a count by dest", "dest", [f"P{i:02d}" for i in range(PLACES)]),
    _by("mean by carrier, found bounds", "carrier", dp.mean("delay", bounds="find"), "avg(delay)", keys=CARRIERS),
    _by("variance by carrier", "carrier", dp.variance("distance"), "var_pop(distance)", keys=CARRIERS),
    _by("count by dest, found keys", "dest", dp.count(), "count(*)", keys=None),
    _by("people by dest, found keys", "dest", dp.count_units(), "count(distinct plane)", keys=None),
    _by("mean by dest, found keys", "dest", dp.mean("distance"), "avg(distance)", keys=None),
]


def covered(table: Any, asked: Asked, truth: dict[Any, float], runs: int, seed: int) -> dict[str, Any]:
    """How many intervals hold, how many are there, how wide they are, and what the answer says about them."""
    name, question, _, by = asked
    held, honest, there, shown, wide, off, told = 0, 0, 0, 0, [], [], set()
    started = time.process_time()
    for run in range(runs):
        answer = question(table).release(epsilon=EPSILON, delta=DELTA, bits=seeded(1000 * seed + run))
        keys = list(zip(*(answer.keys[k].to_pylist() for k in by), strict=True)) if by else [()]
        right = np.array([truth.get(key, 0.0) for key in keys])
        column = answer["x"]
        known = np.isfinite(column.low) & np.isfinite(column.high)
        held += int(((column.low <= right) & (right <= column.high) & known).sum())
        low, high = answer.interval(column="x")
        honest += int(((low <= right) & (right <= high) & known).sum())
        there += int(known.sum())
        shown += len(keys)
        wide += ((column.high - column.low) / 2 / np.abs(right))[known].tolist()
        off += (np.abs(column.values - right) / np.abs(right)).tolist()
        told |= set(below(answer.rules))
    seconds = time.process_time() - started
    return {"statistic": name, "held": held, "honest": honest, "there": there, "shown": shown, "runs": runs,
            "wide": wide, "off": off, "told": told, "seconds": seconds}  # fmt: skip


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """What all draws of a table say together."""
    counted = ("held", "honest", "there", "shown", "runs")
    held, honest, there, shown, runs = (sum(part[key] for part in parts) for key in counted)
    wide, off = ([number for part in parts for number in part[key]] for key in ("wide", "off"))
    return {
        "statistic": parts[0]["statistic"],
        "held": held / there if there else None,
        "held or open": honest / there if there else None,
        "intervals": there / runs,
        "groups": shown / runs,
        "half width": float(np.median(wide)) if wide else None,
        "error": float(np.median(off)) if off else None,
        "told": sorted(set().union(*(part["told"] for part in parts)))[:3],
        "seconds": sum(part["seconds"] for part in parts),
    }


def asked_of(name: str, chosen: argparse.Namespace, home: str) -> list[dict[str, Any]]:
    """All questions about one table, which is drawn anew a few times."""
    results = []
    facts = {"distance": (0, 4000), "delay": (-60, 1500)}
    terms: dict[str, Any] = {"unit": dp.user("plane"), "budget": dp.Budget(10**6, 1e-3), "columns": facts}
    draws = [flights(TABLES[name], seed) for seed in range(chosen.draws)]
    bare = duckdb.connect()
    for asked in QUESTIONS:
        if chosen.only not in asked[0]:
            continue
        parts = []
        for seed, data in enumerate(draws):
            bare.register("t", data)
            rows = bare.sql(asked[2]).fetchall()
            truth = {tuple(row[:-1]): float(row[-1]) for row in rows}
            bare.unregister("t")
            ledger = f"{home}/{name}-{seed}-{asked[0]}.ledger"
            with dp.open(data, ledger=ledger, name="flights", **terms) as table:
                parts.append(covered(table, asked, truth, max(1, chosen.runs // chosen.draws), seed))
        found = {"table": name, **merged(parts)}
        results.append(found)
        shares = ("       –" if found[k] is None else f"{100 * found[k]:8.2f}" for k in SHARES)
        line = f"{name:18s}{found['statistic']:32s}{''.join(shares)}  {found['groups']:5.1f}  {found['seconds']:5.0f} s"
        sys.stdout.write(f"{line}  {found['told'][:1]}\n")
        sys.stdout.flush()
    return results


def write(found: list[dict[str, Any]], runs: int) -> None:
    """Put what was measured in the place of what was measured before about the same table and statistic."""
    place = Path(__file__).with_name("results") / "intervals.json"
    before = [one for one in json.loads(place.read_text()) if "table" in one]
    asked = {(one["table"], one["statistic"]) for one in found}
    kept = [one for one in before if (one["table"], one["statistic"]) not in asked]
    place.write_text(json.dumps([*kept, *({**one, "releases": runs} for one in found)], indent=1) + "\n")


def main() -> None:
    """All questions, or those whose names hold a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draws", type=int, default=5, help="how often each table is drawn")
    parser.add_argument("--only", default="")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        for name in chosen.tables:
            write(asked_of(name, chosen, home), runs=chosen.runs)


if __name__ == "__main__":
    main()
