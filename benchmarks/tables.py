"""A whole private release beside plain DuckDB and beside the other libraries: time, memory, error, growth, latency.

    sh benchmarks/setup.sh                          once: an environment for each peer, whose pins conflict
    python benchmarks/tables.py [PART …] [TOOL …] [--quick] [--seconds=600] [--rows=1000000]

Parts: `duckdb` (in one process, taking turns), `peers` (each in a process of its own, ours before and after each),
`accuracy` (up to 100 releases of each, begun within so many seconds; of both sizes or this one), `growth`, `small`; all
parts and tools if none is named. Results go into results/tables.json and leave those of other parts and tools in place.
The data (see tables_parts/data.py) is made once, in .bench/data. `--quick` asks about 1 million rows instead of 10,
repeats less and writes nothing.

The question is the same for all: count, sum and mean by 100 public keys, user level, 5 rows of each user, ε = 1 without
δ; `default`, in `accuracy` alone, is Defocus where nobody says how many rows of a user count. Times go from the file to
the means. Not counted are imports and, given apart, what happens once before the first
question (starting Spark, loading SQLite, opening the ledger). Memory is the peak of resident memory of the process and
its children, imports and all. Errors are against the exact means of all rows, so they contain what bounding costs.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PARTS = HERE / "tables_parts"
sys.path[:0] = [str(HERE), str(PARTS)]

import bare  # noqa: E402 -- beside this file
from data import ensure  # noqa: E402
from processes import child  # noqa: E402

BENCH = HERE.parent / ".bench"
RESULTS = HERE / "results" / "tables.json"
QUICK = "--quick" in sys.argv
LARGE, MIDDLE, SMALL = 1_000_000 if QUICK else 10_000_000, 1_000_000, 10_000
OURS = ("defocus", "default")
PEERS = ("opendp", "smartnoise", "diffprivlib", "pipelinedp", "tumult")
RUNS = {"defocus": 3, "opendp": 3, "smartnoise": 3, "diffprivlib": 3, "pipelinedp": 1, "tumult": 1}
RELEASES = 100
SECONDS = next((float(each[10:]) for each in sys.argv if each.startswith("--seconds=")), 60.0 if QUICK else 600.0)
SIZES = [int(each[7:]) for each in sys.argv if each.startswith("--rows=")] or sorted({MIDDLE, LARGE})


def interpreter(name: str) -> Path:
    return Path(sys.executable) if name in OURS else BENCH / name / "bin" / "python"


def rows(number: int) -> Path:
    return ensure(BENCH / "data" / f"rows-{number}.parquet", number)


def beside_duckdb() -> dict[str, Any]:
    found, _ = child(PARTS / "beside_duckdb.py", rows(LARGE), 3 if QUICK else 9)
    for kind in ("seconds", "processor_seconds"):
        least = {name: min(found[name][kind]) for name in ("raw", "bounded", "release")}
        print(f"{kind}: " + ", ".join(f"{name} {value:.3f}" for name, value in least.items())
              + f"; release / bounded {least['release'] / least['bounded']:.3f},"
              f" release / raw {least['release'] / least['raw']:.1f}", flush=True)  # fmt: skip
        found[f"ratio_{kind}"] = least["release"] / least["bounded"]
    print(f"errors of the means without noise: {found['limits']}", flush=True)
    return {"rows": LARGE, **found}


def beside_peers() -> dict[str, Any]:
    """Each peer in its process, and ours before and after it; the ratio is that of the least times."""
    truth = bare.exact(bare.connect(), str(rows(LARGE)))

    def one(name: str) -> dict[str, Any]:
        each, peak = child(PARTS / f"with_{name}.py", rows(LARGE), "--runs", RUNS[name], python=interpreter(name))
        each["peak_mib"] = max(peak, each["peak_mib"])
        each["rmse"] = bare.error(each.pop("means"), truth)
        return each

    found: dict[str, Any] = {}
    before = one("defocus")
    for name in named(PEERS):
        peer, after = one(name), one("defocus")
        for kind in ("seconds", "processor_seconds"):
            peer[f"ours_{kind}"] = before[kind] + after[kind]
            peer[f"ratio_{kind}"] = min(peer[f"ours_{kind}"]) / min(peer[kind])
        peer["load"] = os.getloadavg()[0]
        found[name], before = peer, after
        for kind in ("seconds", "processor_seconds"):
            print(f"{name:12s} {min(peer[kind]):8.2f} {kind}, ours {min(peer[f'ours_{kind}']):.2f},"
                  f" 1/{1 / peer[f'ratio_{kind}']:.1f}", flush=True)  # fmt: skip
        print(f"{'':12s} loaded in {peer['load_seconds']:.1f} s; {peer['peak_mib']:.0f} MiB,"
              f" ours {after['peak_mib']:.0f} MiB", flush=True)  # fmt: skip
    return found | {"defocus": before}


def named(tools: Sequence[str]) -> list[str]:
    """The tools that were asked for, or all of them, as far as they are installed."""
    wanted = [name for name in tools if name in sys.argv[1:]] or tools
    for name in wanted:
        if not interpreter(name).exists():
            print(f"{name} is left out: sh benchmarks/setup.sh", flush=True)
    return [name for name in wanted if interpreter(name).exists()]


def accuracy() -> dict[str, Any]:
    """Root mean squared errors of the group means over as many releases as there is time for, at two sizes."""
    found: dict[str, Any] = {}
    for number in SIZES:
        truth = bare.exact(bare.connect(), str(rows(number)))
        found[str(number)] = {"limits": bare.limits(bare.connect(), str(rows(number)))}
        for name in named((*OURS, *PEERS)):
            found[str(number)][name] = errors(name, number, truth)
    return found


def errors(name: str, number: int, truth: Any) -> dict[str, Any]:
    how = ("--runs", 0, "--releases", RELEASES, "--seconds", SECONDS)
    each, _ = child(PARTS / f"with_{name}.py", rows(number), *how, python=interpreter(name))
    single = [bare.error(means, truth) for means in each["means"]]
    found = {
        "rmse": bare.error(each["means"], truth),
        "releases": len(single),
        "of_each": [round(x, 4) for x in single],
    }
    print(f"{number:9d} rows, {name:12s}: RMSE {found['rmse']:.4f} over {len(single)} releases", flush=True)
    return found


def growth() -> Any:
    file = ensure(BENCH / "data" / f"wide-{LARGE}.parquet", LARGE, many=True)
    cases, _ = child(PARTS / "beside_duckdb.py", file, 2 if QUICK else 3, "grow")
    for case in cases:
        raw, bounded, release = (min(case[name]["seconds"]) for name in ("raw", "bounded", "release"))
        busy = min(case["release"]["processor_seconds"]) / min(case["bounded"]["processor_seconds"])
        print(f"{case['groups']:5d} groups, {case['columns']:3d} columns: raw {raw:.2f} s, bounded {bounded:.2f} s,"
              f" release {release:.2f} s; release / bounded {release / bounded:.2f} (processor {busy:.2f}),"
              f" release / raw {release / raw:.1f}", flush=True)  # fmt: skip
    return {"rows": LARGE, "cases": cases}


def small() -> Any:
    found, peak = child(PARTS / "small.py", rows(SMALL), 60)
    later = sorted(found["seconds"][1:])
    typical = {name: 1e3 * sorted(found[name])[len(found[name]) // 2] for name in ("flushes", "charges")}
    print(f"{SMALL} rows: first {1e3 * found['seconds'][0]:.1f} ms, then least {1e3 * later[0]:.1f} and median"
          f" {1e3 * later[len(later) // 2]:.1f} ms; open {1e3 * found['open']:.1f} ms; one charge"
          f" {typical['charges']:.1f} ms, one flush {typical['flushes']:.1f} ms; {peak:.0f} MiB",
          flush=True)  # fmt: skip
    return {"rows": SMALL, "peak_mib": peak, **found}


def main() -> None:
    parts = {"duckdb": beside_duckdb, "peers": beside_peers, "accuracy": accuracy, "growth": growth, "small": small}
    chosen = [name for name in parts if name in sys.argv[1:]] or list(parts)
    for name in chosen:
        made = parts[name]()
        about = {"python": platform.python_version(), "duckdb": version("duckdb"), "load": os.getloadavg()[0]}
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        if name == "accuracy":
            made = merged(known.get(name, {}), made)
        if name == "peers":
            made = {**known.get(name, {}), **made}
        known[name] = made | {"machine": about, "when": time.strftime("%Y-%m-%d")}
        if not QUICK:
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Results of the tools that did not run this time stay."""
    return {**old, **{size: {**old.get(size, {}), **found} for size, found in new.items()}}


if __name__ == "__main__":
    main()
