"""How often intervals of graphs hold, and how wide they are: counts under node privacy, degree histograms.

    python benchmarks/graphs.py intervals FOLDER

FOLDER is that of accuracy.py; the other graphs are those of caps.py. Capped counts are computed once for each cap, so
that many releases can be drawn. Beside our intervals stand those of the noise alone, which is what they were before.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any
from unittest.mock import patch

import numpy as np
from accuracy import NAMES, load
from caps import zoo

from defocus import Budget, edge, node
from defocus.graphs import Graph, Public
from defocus.graphs.data import Data
from defocus.graphs.node import caps as node_caps
from defocus.graphs.questions import AskEdges, AskHistogram, AskTriangles, node_counts
from defocus.graphs.statistics import Histogram, Triangles, node_level
from defocus.noise.testing import seeded

EPSILONS = (0.5, 1.0, 4.0)
MANY = 30_000
"""Of graphs with more triangles, the program takes long; they are left out."""


def intervals(folder: Path, *, quick: bool = False) -> dict[str, Any]:
    runs = 20 if quick else 200
    public = {name: load(folder / f"{name}.txt.gz") for name in NAMES}
    graphs = {**zoo(), **({} if quick else public)}
    few = {name: graph for name, graph in graphs.items() if 0 < int(Triangles().exact(graph)[0]) <= MANY}
    found = {
        "edges, cap found": {
            name: node_private(graph, AskEdges(), graph.edges, runs) for name, graph in graphs.items()
        },
        "edges, cap 8": {
            name: node_private(graph, AskEdges(cap=8), graph.edges, runs) for name, graph in graphs.items()
        },
        "triangles, cap found": {
            name: node_private(graph, AskTriangles(), int(Triangles().exact(graph)[0]), runs // 2)
            for name, graph in few.items()
        },
        "degree histogram": {name: by_degree(graph, runs // 20) for name, graph in public.items()},
    }
    for question, rows in found.items():
        print(question)
        for name, row in rows.items():
            print(" ", name, *(f"{epsilon}: {told}" for epsilon, told in row.items()), sep=" | ", flush=True)
    summary: dict[str, Any] = {}
    for question in list(found)[:3]:
        for epsilon in EPSILONS:
            every = [row[f"epsilon {epsilon:g}"] for row in found[question].values()]
            made = summary[f"{question}, epsilon {epsilon:g}"] = {
                kind: [round(min(each[kind] for each in every), 3), round(mean(each[kind] for each in every), 3)]
                for kind in ("holds", "noise alone holds")
            }
            made["median lower end / truth"] = round(median(each["lower end / truth"] for each in every), 3)
            print(question, epsilon, made)
    return {"least and mean": summary, "degree histogram": found["degree histogram"]}


def node_private(graph: Graph, question: Any, truth: int, runs: int) -> dict[str, Any]:
    """How many lower ends hold, and how many intervals of the noise alone; the median lower end over the truth."""
    said: dict[str, Any] = {}
    data, counted = Data.of(graph), remembered(graph)
    with (
        patch.object(node_caps, "capped_edges_twice", counted[0]),
        patch.object(node_counts, "capped_edges_twice", counted[0]),
        patch.object(node_level, "capped_edges_twice", counted[0]),
        patch.object(node_level, "capped_triangles", counted[1]),
    ):
        for epsilon in EPSILONS:
            method, bits = question.methods(Public(node(), None), Budget(epsilon))[0], seeded(9)
            columns = [method.run(data, bits).columns[0] for _ in range(runs)]
            values, low = (np.array([getattr(column, part)[0] for column in columns]) for part in ("values", "low"))
            half = (values - low) * math.log(20) / math.log(10)
            said[f"epsilon {epsilon:g}"] = {
                "holds": float(np.mean(low <= truth)),
                "noise alone holds": float(np.mean(np.abs(values - truth) <= half)),
                "lower end / truth": float(np.median(low) / truth),
            }
    return said


def remembered(graph: Graph) -> tuple[Callable[..., int], Callable[..., int]]:
    edges, triangles = node_caps.capped_edges_twice, node_level.capped_triangles
    one, other = cache(lambda cap: edges(graph, cap)), cache(lambda cap: triangles(graph, cap))
    return (lambda _, cap: one(cap)), (lambda _, cap: other(cap))


def by_degree(graph: Graph, runs: int) -> dict[str, Any]:
    """Mean half-widths over mean errors, and how many intervals hold: of all entries, and of degrees that some have."""
    said, truth = {}, Histogram().exact(graph)
    for epsilon in (0.1, 1.0):
        (method,) = [m for m in AskHistogram().methods(Public(edge(), graph.nodes), Budget(epsilon)) if "cum" in m.name]
        data, bits, sums = Data.of(graph), seeded(3), []
        exact = method.statistic.exact(graph)  # type: ignore[attr-defined]  # a cumulative histogram
        for _ in range(max(runs, 2)):
            column = method.run(data, bits).columns[0]
            # as it was: two numbers' noise around their difference
            noisy = method.mechanism.sample(exact, bits)  # type: ignore[attr-defined]
            raw = np.diff(np.concatenate([[0.0], noisy, [float(graph.nodes)]]))
            reach = node_counts.difference(method.mechanism)  # type: ignore[attr-defined]
            before = (np.maximum(raw + reach, 0) - np.maximum(raw - reach, 0)) / 2
            held = (column.low <= truth) & (truth <= column.high)
            error = np.abs(column.values - truth).mean()
            sums.append([held.mean(), held[truth > 0].mean(), column.half.mean() / error, before.mean() / error])
        names = ("holds", "holds, degrees that occur", "half-width / error", "of two numbers alone")
        said[f"epsilon {epsilon:g}"] = {
            name: round(float(x), 3) for name, x in zip(names, np.mean(sums, axis=0), strict=True)
        }
    return said
