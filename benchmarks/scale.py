"""The same plan where the data is: three engines, their integers, what privacy costs on Spark, and how cost grows.

    sh benchmarks/setup.sh                                once: an environment for Tumult, whose pins conflict
    python benchmarks/scale.py [PART …] [--quick]

Parts: `integers` (10 million rows on DuckDB, PostgreSQL and Spark: every integer before noise), `spark` (a whole
release beside the same bounded aggregation in plain Spark SQL, in one session, taking turns), `tumult` (its release and
ours, each in a process of its own, ours before and after), `growth` (from 10⁵ to 10⁸ rows on DuckDB, to 10⁷ on the
others, with the memory of the process that asks); all parts if none is named. Results go into results/scale.json and
leave those of other parts in place. `--quick` asks about a tenth of the rows and writes nothing.

The question is that of tables.py: count, sum and mean by 100 public keys, user level, 5 rows of each user, ε = 1. The
rows (see scale_parts/grown.py) are made in the engine, in .bench/data; they are in the page cache when time is taken.
"""

import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PARTS, PEERS = HERE / "scale_parts", HERE / "tables_parts"
sys.path[:0] = [str(HERE), str(PARTS)]

from grown import ensure  # noqa: E402 -- beside this file
from processes import child  # noqa: E402

BENCH = HERE.parent / ".bench"
RESULTS = HERE / "results" / "scale.json"
QUICK = "--quick" in sys.argv
LARGE = 1_000_000 if QUICK else 10_000_000
ENGINES = ("duckdb", "postgresql", "spark")


def rows(number: int) -> Path:
    return ensure(BENCH / "data" / f"grown-{number}.parquet", number)


def integers() -> dict[str, Any]:
    """Every integer before noise, on all engines."""
    found = {}
    for engine in ENGINES:
        found[engine], _ = child(PARTS / "same_integers.py", engine, rows(LARGE))
    alike = []
    for question, first in found["duckdb"].items():
        same = all(found[engine][question]["sha256"] == first["sha256"] for engine in ENGINES)
        times = ", ".join(f"{engine} {found[engine][question]['seconds']:.1f} s" for engine in ENGINES)
        print(
            f"{question:40s} {first['integers']:6d} integers {'the same' if same else 'DIFFERENT'}; {times}", flush=True
        )
        alike.append(same)
    if not all(alike):
        raise SystemExit("The engines do not agree.")
    return {"rows": LARGE, **found}


def beside_spark() -> dict[str, Any]:
    found, peak = child(PARTS / "beside_spark.py", rows(LARGE), 3 if QUICK else 7)
    least = {name: min(found[name]["seconds"]) for name in ("raw", "bounded", "release")}
    ratio = least["release"] / least["bounded"]
    print(", ".join(f"{name} {value:.2f} s" for name, value in least.items())
          + f"; release / bounded {ratio:.3f}; Java and Python {peak:.0f} MiB", flush=True)  # fmt: skip
    return {"rows": LARGE, "ratio": ratio, "peak_mib": peak, **found}


def beside_tumult() -> dict[str, Any]:
    peer = BENCH / "tumult" / "bin" / "python"
    if not peer.exists():
        raise SystemExit("Tumult is not installed: sh benchmarks/setup.sh")
    before, _ = child(PARTS / "with_spark.py", rows(LARGE), "--runs", 3)
    tumult, _ = child(PEERS / "with_tumult.py", rows(LARGE), "--runs", 1 if QUICK else 2, python=peer)
    after, _ = child(PARTS / "with_spark.py", rows(LARGE), "--runs", 3)
    ours = before["seconds"] + after["seconds"]
    ratio = min(tumult["seconds"]) / min(ours)
    first = tumult["seconds"][0] / min(before["seconds"][0], after["seconds"][0])
    print(f"Tumult {min(tumult['seconds']):.1f} s, ours on Spark {min(ours):.2f} s: {ratio:.1f} times;"
          f" the first release of a session: {first:.1f} times", flush=True)  # fmt: skip
    for each in (before, tumult, after):
        each.pop("means")
    return {"rows": LARGE, "ratio": ratio, "ratio_of_first": first, "tumult": tumult, "ours": [before, after]}


def growth() -> dict[str, Any]:
    """Seconds and memory of the process that asks, by size and engine; DuckDB is allowed 2 GB."""
    found: dict[str, Any] = {}
    for engine, largest in (("duckdb", 10 * LARGE), ("postgresql", LARGE), ("spark", LARGE)):
        found[engine] = {}
        number = 100_000
        while number <= largest:
            limit = ("2GB",) if engine == "duckdb" else ()
            one, peak = child(PARTS / "one_release.py", engine, rows(number), 3, *limit)
            each = min(one["seconds"])
            print(f"{engine:10s} {number:11,d} rows: {each:8.3f} s, {1e9 * each / number:7.1f} ns a row;"
                  f" {one['peak_mib']:.0f} MiB here, {peak:.0f} MiB with its children", flush=True)  # fmt: skip
            found[engine][str(number)] = {**one, "peak_with_children_mib": peak}
            number *= 10
    return found


def main() -> None:
    parts = {"integers": integers, "spark": beside_spark, "tumult": beside_tumult, "growth": growth}
    chosen = [name for name in parts if name in sys.argv[1:]] or list(parts)
    for name in chosen:
        made = parts[name]()
        packages = {each: version(each) for each in ("duckdb", "pyspark", "psycopg")}
        about = {"python": platform.python_version(), **packages, "load": os.getloadavg()[0]}
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known[name] = made | {"machine": about, "when": time.strftime("%Y-%m-%d")}
        if not QUICK:
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
