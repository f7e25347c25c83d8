"""Graphs: how fast triangles are counted and released beside networkit, and how exact answers are on real graphs.

    python benchmarks/graphs.py [speed [power-law] [uniform]] [engines [power-law] [uniform] [spark]] [accuracy FOLDER]
                                [models FOLDER] [intervals FOLDER] [--quick] [--turns=3]

`speed` counts the triangles of two graphs of 1 million nodes and 10 million edges, with hubs and without: each in a
process of its own, taking turns, with as many threads as there are cores. Times are the least of all rounds; memory is
the peak of resident memory, imports and input included. Needs networkit (`pip install 'defocus[bench]'`).

`engines` counts the same graphs from a Parquet file, in memory and by DuckDB with `memory="2GB"`, and one of a million
edges by Spark on two cores; the integers must be equal, and the load of the machine is written down.

`accuracy` needs a folder with the public graphs Facebook, CA-HepPh and Enron as lists of edges; see
graphs_parts/accuracy.py. `models` needs the same: ranks, communities and random graph models. Results go into
results/graphs.json and leave those of the other parts in place.
"""

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PARTS = HERE / "graphs_parts"
sys.path[:0] = [str(HERE), str(PARTS)]

from data import ensure  # noqa: E402 -- beside this file
from processes import child  # noqa: E402

RESULTS = HERE / "results" / "graphs.json"
QUICK = "--quick" in sys.argv
NODES, DRAWS = (100_000, 1_000_000) if QUICK else (1_000_000, 10_350_000)
TURNS, ROUNDS = (1, 1) if QUICK else (next((int(a[8:]) for a in sys.argv if a.startswith("--turns=")), 3), 2)
NAMED = tuple(kind for kind in ("power-law", "uniform") if kind in sys.argv)
KINDS = NAMED or ("power-law", "uniform")


def speed() -> dict[str, Any]:
    found = {}
    for kind in KINDS:
        place = ensure(HERE.parent / ".bench" / "data", kind, NODES, DRAWS)
        parts: dict[str, list[Any]] = {"defocus": [], "networkit": []}
        for _ in range(TURNS):
            for tool, runs in parts.items():
                runs.append(child(PARTS / f"with_{tool}.py", place, ROUNDS))
        found[kind] = {**json.loads((place / "about.json").read_text()), **summary(parts)}
        tell(kind, found[kind])
    return found


def engines() -> dict[str, Any]:
    """The same graphs in memory and in engines: seconds, peaks of memory, and whether the integers are equal."""
    small = (("power-law", 100_000, 1_000_000, "spark"),) if "spark" in sys.argv or not NAMED else ()
    wanted = [(kind, NODES, DRAWS, "duckdb") for kind in (NAMED if "spark" in sys.argv else KINDS)]
    found: dict[str, Any] = {}
    for kind, nodes, draws, engine in [*wanted, *small]:
        place = ensure(HERE.parent / ".bench" / "data", kind, nodes, draws)
        runs: dict[str, list[Any]] = {"memory": [], engine: []}
        before = os.getloadavg()
        for _ in range(min(TURNS, 2)):
            for tool, each in runs.items():
                each.append(child(PARTS / "with_engine.py", place, tool, 1))
        found[f"{engine}, {kind}"] = made = {**json.loads((place / "about.json").read_text())}
        made["load"] = {"before": before, "after": os.getloadavg()}
        made["found"] = {tool: each[0][0]["found"] for tool, each in runs.items()}
        here, there = made["found"]["memory"], made["found"][engine]
        assert {**here, "level": 0} == {**there, "level": 0}, (here, there)
        assert there["level"] >= here["level"]
        for tool, each in runs.items():
            steps = each[0][0]["seconds"]
            made[tool] = {
                sort: {step: round(min(run[sort][step] for run, _ in each), 2) for step in steps}
                for sort in ("seconds", "processor")
            }
            made[tool]["peak_mib"] = min(peak for _, peak in each)
            shown = ", ".join(
                f"{step} {time:.2f} s ({made[tool]['processor'][step]:.2f})"
                for step, time in made[tool]["seconds"].items()
            )
            print(f"{kind}, {made['edges']} edges, {tool}: {shown}, {made[tool]['peak_mib']:.0f} MiB", flush=True)
        print(
            f"  levels {here['level']} and {there['level']}, all other integers equal; load {made['load']}", flush=True
        )
    return found


def summary(parts: dict[str, list[Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for tool, runs in parts.items():
        steps = runs[0][0]["seconds"]
        said[tool] = {
            kind: {step: min(time for run, _ in runs for time in run[kind][step]) for step in steps}
            for kind in ("seconds", "processor")
        }
        said[tool]["peak_mib"] = max(peak for _, peak in runs)
        said[tool]["count_peak_mib"] = max(run.get("count_peak_mib", peak) for run, peak in runs)
    ours, theirs = parts["defocus"][0][0], parts["networkit"][0][0]
    assert ours["triangles"] == theirs["triangles"], (ours["triangles"], theirs["triangles"])
    mine, peer = said["defocus"]["seconds"], said["networkit"]["seconds"]
    return {
        "triangles": ours["triangles"],
        "most_common_neighbours": ours["most"],
        **said,
        "count_over_networkit": mine["count"] / peer["count"],
        "build_and_count_over_networkit": (mine["build"] + mine["count"]) / (peer["build"] + peer["count"]),
        "count_processor_time_over_networkit": (
            said["defocus"]["processor"]["count"] / said["networkit"]["processor"]["count"]
        ),
        "count_memory_over_networkit": said["defocus"]["count_peak_mib"] / said["networkit"]["count_peak_mib"],
        "release_memory_over_networkit": said["defocus"]["peak_mib"] / said["networkit"]["peak_mib"],
        "release_over_count": (mine["release"] - mine["build"]) / mine["count"],
        "release_over_build_and_count": mine["release"] / (mine["build"] + mine["count"]),
    }


def tell(kind: str, found: dict[str, Any]) -> None:
    print(f"{kind}: {found['nodes']} nodes, {found['edges']} edges, {found['triangles']} triangles")
    for tool in ("defocus", "networkit"):
        steps = ", ".join(f"{step} {time:.2f} s" for step, time in found[tool]["seconds"].items())
        print(f"  {tool}: {steps}, {found[tool]['peak_mib']:.0f} MiB")
    for name in [name for name in found if "_over_" in name]:
        print(f"  {name.replace('_', ' ')}: {found[name]:.2f}", flush=True)


def main() -> None:
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if "engines" in sys.argv:
        kept["engines"] = {
            **kept.get("engines", {}),
            **{name: version(name) for name in ("duckdb", "pyspark")},
            **engines(),
        }
    if "speed" in sys.argv or not {"accuracy", "caps", "engines", "intervals", "models"} & set(sys.argv):
        kept["speed"] = {
            **kept.get("speed", {}),
            "networkit": version("networkit"),
            "numba": version("numba"),
            **speed(),
        }
    if "accuracy" in sys.argv:
        from accuracy import accuracy

        kept["accuracy"] = accuracy(Path(sys.argv[sys.argv.index("accuracy") + 1]), quick=QUICK)
    if "caps" in sys.argv:
        from caps import caps

        kept["caps"] = caps(Path(sys.argv[sys.argv.index("caps") + 1]), quick=QUICK)
    if "intervals" in sys.argv:
        from node_intervals import intervals

        kept["intervals"] = intervals(Path(sys.argv[sys.argv.index("intervals") + 1]), quick=QUICK)
    if "models" in sys.argv:
        from models import models

        kept["models"] = models(Path(sys.argv[sys.argv.index("models") + 1]), quick=QUICK)
    kept["machine"] = {"python": platform.python_version(), "cores": os.cpu_count(), "platform": platform.machine()}
    if not QUICK:
        RESULTS.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
