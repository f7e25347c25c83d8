"""Defocus on one graph: rows, triangles, largest number of common neighbours, and a whole private release."""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import itertools

import numpy as np
from data import load

import defocus as dp
from defocus.graphs.data import build
from defocus.graphs.kernels.rows import most_common_neighbours, ranked, triangle_count


def release(nodes: int, left: object, right: object, home: str, number: int) -> None:
    place = f"{home}/{number}.ledger"
    with dp.open_graph((left, right), unit=dp.edge(), budget=dp.Budget(2), nodes=nodes, ledger=place) as graph:
        graph.triangles().release(epsilon=1, method="ramp")


def main() -> None:
    nodes, left, right = load(Path(sys.argv[1]))
    tiny = np.arange(3)
    found: dict[str, list[float]] = {"build": [], "count": [], "local": [], "release": []}
    processor: dict[str, list[float]] = {name: [] for name in found}
    triangles = most = 0
    with tempfile.TemporaryDirectory() as home:
        release(3, tiny, np.roll(tiny, 1), home, -1)  # what is compiled is compiled
        for _ in range(int(sys.argv[2])):
            marks = [(time.perf_counter(), time.process_time())]
            graph = build(nodes, left, right)
            marks.append((time.perf_counter(), time.process_time()))
            by_size = ranked(graph)
            triangles = triangle_count(by_size)
            marks.append((time.perf_counter(), time.process_time()))
            most = most_common_neighbours(by_size)
            marks.append((time.perf_counter(), time.process_time()))
            del graph, by_size
            note(("build", "count", "local"), marks, found, processor)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # so far, of counting alone
        for number in range(int(sys.argv[2])):
            marks = [(time.perf_counter(), time.process_time())]
            release(nodes, left, right, home, number)
            marks.append((time.perf_counter(), time.process_time()))
            note(("release",), marks, found, processor)
    said = {"triangles": triangles, "most": most, "count_peak_mib": peak}
    print(json.dumps({"seconds": found, "processor": processor, **said}))


def note(
    names: tuple[str, ...],
    marks: list[tuple[float, float]],
    found: dict[str, list[float]],
    processor: dict[str, list[float]],
) -> None:
    for name, (start, end) in zip(names, itertools.pairwise(marks), strict=True):
        found[name].append(end[0] - start[0])
        processor[name].append(end[1] - start[1])


main()
