"""How exact private answers are on three public graphs, beside textbook mechanisms at the same epsilon.

    python benchmarks/graphs.py accuracy FOLDER

FOLDER holds Facebook.txt.gz, CA-HepPh.txt.gz and Enron.txt.gz, lists of edges of the graphs of these names in the SNAP
collection. Nodes are those that have an edge; duplicates and loops count once and not at all.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from defocus import Budget, edge, node
from defocus.graphs import Graph, Public, build
from defocus.graphs.data import Data
from defocus.graphs.inference import rising
from defocus.graphs.node import CapRule, capped_edges_twice
from defocus.graphs.node import caps as node_caps
from defocus.graphs.question import chosen
from defocus.graphs.questions import AskCommunities, AskHistogram, AskPageRank, AskStars, AskTop, AskTriangles
from defocus.graphs.statistics import Histogram, PageRank, Stars, Triangles
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded

NAMES = ("Facebook", "CA-HepPh", "Enron")
DELTA = 1e-6


def accuracy(folder: Path, *, quick: bool = False) -> dict[str, Any]:
    runs, searches = (20, 50) if quick else (200, 1500)
    graphs = {name: load(folder / f"{name}.txt.gz") for name in NAMES}
    found = {
        "graphs": {name: {"nodes": g.nodes, "edges": g.edges} for name, g in graphs.items()},
        "triangles, median relative error": each(graphs, lambda g: counted(g, AskTriangles(), Triangles(), runs)),
        "2-stars, median relative error": each(graphs, lambda g: counted(g, AskStars(2), Stars(2), runs)),
        "3-stars, median relative error": each(graphs, lambda g: counted(g, AskStars(3), Stars(3), runs)),
        "degree histogram, L1 error / n": each(graphs, lambda g: histogram(g, runs // 10)),
        "degrees in order, squared error of noise / after isotonic": each(graphs, sequence),
        "edges under node privacy, mean error / edges": each(graphs, lambda g: node_edges(g, searches)),
        "edges under node privacy, graphs on which nothing was chosen": each(
            held_out(), lambda g: node_edges(g, searches)
        ),
        "edges under node privacy, small graphs": {
            f"{name}, epsilon {epsilon:g}": node_edges(g, runs, epsilon)
            for name, g in small_graphs().items()
            for epsilon in (1.0, 4.0)
        },
        "degree histogram under node privacy, L1 error / n": each(graphs, lambda g: node_histogram(g, runs // 20)),
        "PageRank, precision of the top 20 at epsilon 1": each(graphs, lambda g: pagerank(g, runs // 4)),
        "top degrees, share of the largest sum": each(graphs, lambda g: top(g, runs // 20)),
        "communities, right of ten": communities(1 if quick else 10),
        "versions": {"python": python_version(), **{name: version(name) for name in ("numpy", "scipy", "numba")}},
    }
    tell(found)
    return found


def load(path: Path) -> Graph:
    ends = np.loadtxt(path, dtype=np.int64)
    _, numbers = np.unique(ends, return_inverse=True)
    numbers = numbers.reshape(ends.shape)
    return build(int(numbers.max()) + 1, numbers[:, 0].copy(), numbers[:, 1].copy())


def each(graphs: dict[str, Graph], work: Callable[[Graph], Any]) -> dict[str, Any]:
    return {name: work(graph) for name, graph in graphs.items()}


def values(method: Any, graph: Graph, runs: int, seed: int = 1) -> Iterable[Any]:
    data, bits = Data.of(graph), seeded(seed)
    return (method.run(data, bits).columns[0].values for _ in range(runs))


def counted(graph: Graph, question: Any, statistic: Any, runs: int) -> dict[str, Any]:
    """Every method, and the one that public facts choose."""
    exact, public, said = int(statistic.exact(graph)[0]), Public(edge(), graph.nodes), {}
    for epsilon in (0.1, 1.0):
        methods = question.methods(public, Budget(epsilon, DELTA))
        row = {}
        for method in methods:
            noisy = np.array([float(value[0]) for value in values(counted_once(method, graph), graph, runs, 7)])
            row[method.name] = float(np.median(np.abs(noisy - exact)) / exact)
        best = chosen(question, methods, None)
        said[f"epsilon {epsilon}"] = {**row, "chosen": best.name, "95 % intervals that hold": held(best, graph, exact)}
    return said


def held(method: Any, graph: Graph, exact: int, runs: int = 500) -> float:
    """The part of the intervals of a method that hold the truth."""
    once, data, bits = counted_once(method, graph), Data.of(graph), seeded(3)
    columns = [once.run(data, bits).columns[0] for _ in range(runs)]
    return float(np.mean([column.low[0] <= exact <= column.high[0] for column in columns]))


def counted_once(method: Any, graph: Graph) -> Any:
    """The same method with what it counts counted beforehand, so that runs differ by their noise only."""
    if hasattr(method, "measured"):
        found = method.measured(graph)
        return replace(method, measured=lambda _: found)
    exact, statistic = method.statistic.exact(graph), method.statistic
    fixed = SimpleNamespace(exact=lambda _: exact, name=statistic.name)
    return replace(method, statistic=fixed)


def histogram(graph: Graph, runs: int) -> dict[str, Any]:
    public, said = Public(edge(), graph.nodes), {}
    truth = Histogram().exact(graph)
    for epsilon in (0.1, 1.0):
        methods = {m.name: m for m in AskHistogram().methods(public, Budget(epsilon))}
        row = {
            name: float(np.mean([np.abs(v - truth).sum() for v in values(m, graph, runs)]) / graph.nodes)
            for name, m in methods.items()
        }
        cumulative, noise, bits = np.cumsum(truth)[:-1], Laplace.calibrated(epsilon=epsilon, sensitivity=2), seeded(3)
        fits = (np.clip(rising(noise.sample(cumulative, bits)), 0, graph.nodes) for _ in range(runs))
        plain = [np.abs(np.diff(np.concatenate([[0], fit, [graph.nodes]])) - truth).sum() for fit in fits]
        said[f"epsilon {epsilon}"] = {**row, "cumulative, isotonic only": float(np.mean(plain) / graph.nodes)}
    return said


def sequence(graph: Graph) -> float:
    exact, noise = np.sort(graph.degrees), Laplace.calibrated(epsilon=1, sensitivity=2)
    noisy = noise.sample(exact, seeded(5))
    return float(((noisy - exact) ** 2).mean() / ((rising(noisy) - exact) ** 2).mean())


def node_edges(graph: Graph, runs: int, epsilon: float = 1.0) -> dict[str, Any]:
    """A cap found privately, all fixed caps in steps of an eighth of an octave, and Laplace noise of n - 1.

    The search for the cap is run; given its outcome, the mean absolute error of the count is known. Capped counts are
    computed for the fixed caps and interpolated between them, so that many searches can be run: they are concave in the
    cap, as optima of a linear program are in its right side, and the caps are close.
    """
    exact, rule, bits, count = graph.edges, CapRule(), seeded(1), capped_counts(graph)
    with patch.object(node_caps, "capped_edges_twice", lambda _graph, cap: round(2 * count(cap))):
        tried = [rule.find(graph, epsilon, bits) for _ in range(runs)]
    errors = [expected(exact - count(cap), cap / epsilon / float(1 - rule.share)) / exact for cap in tried]
    found = float(np.mean(errors))
    fixed = {cap: expected(exact - count(cap), cap / epsilon) / exact for cap in grid(graph)}
    caps = list(fixed)
    octaves = {cap: fixed[cap] for cap in caps if cap.bit_count() == 1 and cap <= 512}
    best, best_octave = min(fixed, key=fixed.__getitem__), min(octaves, key=octaves.__getitem__)
    return {
        "found": found,
        "caps found, median": float(np.median(tried)),
        "best fixed": {
            "cap": best,
            "error": fixed[best],
            "found / best": found / fixed[best],
            "median found / best": float(np.median(errors)) / fixed[best],
        },
        "best power of two up to 512": {
            "cap": best_octave,
            "error": octaves[best_octave],
            "found / best": found / octaves[best_octave],
        },
        "naive": (graph.nodes - 1) / exact / epsilon,
    }


def grid(graph: Graph) -> list[int]:
    """Caps in steps of an eighth of an octave from 8 on, and all below."""
    return sorted({*range(1, 8), *(round(2 ** (i / 8)) for i in range(24, 8 * int(math.log2(graph.nodes)) + 1))})


def capped_counts(graph: Graph) -> Callable[[float], float]:
    """The number of edges under a cap, exact on the grid and from the largest degree on."""
    largest = int(graph.degrees.max())
    caps = [cap for cap in grid(graph) if cap < largest]
    known = [capped_edges_twice(graph, cap) / 2 for cap in caps]
    return lambda cap: float(np.interp(cap, [*caps, largest], [*known, float(graph.edges)]))


def held_out() -> dict[str, Graph]:
    """Graphs that had no part in the choice of constants: one that grew, one of given degrees, one of random edges."""
    draw, nodes = np.random.default_rng(11), 20_000
    degrees = np.minimum(np.floor(3 * draw.random(nodes) ** (-1 / 1.5)), 2000).astype(np.int64)
    ends = draw.permutation(np.repeat(np.arange(nodes), degrees))
    ends = ends[: len(ends) // 2 * 2].reshape(2, -1)
    return {
        "Barabási–Albert, 5 each": grown(nodes, 5, draw),
        "configuration model, exponent 2.5": build(nodes, *ends),
        "random, degree 20": build(nodes, *draw.integers(0, nodes, (2, 10 * nodes))),
    }


def grown(nodes: int, links: int, draw: np.random.Generator) -> Graph:
    """New nodes join ends of edges that are there."""
    ends = list(range(links + 1)) * 2
    left, right = list(range(links + 1)), [*range(1, links + 1), 0]
    for new in range(links + 1, nodes):
        for at in draw.integers(0, len(ends), links).tolist():
            left.append(new)
            right.append(ends[at])
        ends += [new] * links + right[-links:]
    return build(nodes, left, right)


def expected(bias: float, scale: float) -> float:
    """The mean absolute value of Laplace noise around a bias."""
    return bias + scale * math.exp(-bias / scale)


def small_graphs() -> dict[str, Graph]:
    """The school of docs/graphs.md, whose largest degree is not far above the average, and a graph of random edges."""
    draw = np.random.default_rng(7)
    left, right = draw.integers(0, 2000, 30_000), draw.integers(0, 2000, 30_000)
    same = draw.random(30_000) < 0.8
    school = build(2000, left, np.where(same, 25 * (left // 25) + right % 25, right))
    return {"school": school, "random": build(1000, *np.nonzero(np.triu(draw.random((1000, 1000)) < 0.02, 1)))}


def node_histogram(graph: Graph, runs: int) -> dict[str, Any]:
    truth, said = np.bincount(graph.degrees, minlength=graph.nodes), {}
    public = Public(node(), None)
    for name, question in {"found": AskHistogram(), **{f"at most {m}": AskHistogram(m) for m in (16, 64, 256)}}.items():
        method = min(question.methods(public, Budget(1)), key=lambda m: "cumulative" not in m.name)
        errors = []
        for value in values(method, graph, runs):
            full = np.zeros(graph.nodes)
            full[: len(value)] = value
            errors.append(np.abs(full - truth).sum() / graph.nodes)
        said[name] = float(np.mean(errors))
    return said


def pagerank(graph: Graph, runs: int) -> dict[str, float]:
    said = {}
    for damping in (0.5, 0.85):
        truth = set(np.argsort(-PageRank(damping).exact(graph))[:20].tolist())
        exact = PageRank(damping).exact(graph)
        question = AskPageRank(damping)
        method = chosen(question, question.methods(Public(edge(), graph.nodes), Budget(1)), "laplace")
        bits, hits = seeded(4), []
        for _ in range(runs):
            noisy = method.mechanism.sample(exact, bits)  # type: ignore[attr-defined]  # a VectorNoise
            hits.append(len(truth & set(np.argsort(-noisy)[:20].tolist())) / 20)
        said[f"damping {damping}"] = float(np.mean(hits))
    return said


def top(graph: Graph, runs: int) -> dict[str, Any]:
    degrees, said = graph.degrees, {}
    for k in (10, 50):
        best = int(np.sort(degrees)[-k:].sum())
        for epsilon in (0.1, 1.0):
            row = {}
            for method in AskTop(k).methods(Public(edge(), graph.nodes), Budget(epsilon)):
                data, bits = Data.of(graph), seeded(6)
                sums = [degrees[list(method.run(data, bits).keys["node"])].sum() for _ in range(runs)]
                row[method.name] = float(np.mean(sums) / best)
            said[f"k {k}, epsilon {epsilon}"] = row
    return said


def communities(times: int) -> dict[str, int]:
    """Planted communities, epsilon 1."""
    said = {}
    for nodes, groups in ((2000, 4), (3000, 6)):
        right = 0
        for seed in range(times):
            draw = np.random.default_rng(seed)
            group = np.arange(nodes) % groups
            chance = np.where(group[:, None] == group[None, :], 20.0 * groups, 4.0) / nodes
            graph = build(nodes, *np.nonzero(np.triu(draw.random((nodes, nodes)) < chance, 1)))
            (method,) = AskCommunities(10).methods(Public(edge(), nodes), Budget(1))
            right += int(next(iter(values(method, graph, 1, seed)))[0]) == groups
        said[f"{groups} groups of {nodes} nodes"] = right
    return said


def tell(found: Any, depth: int = 0) -> None:
    for name, value in found.items():
        if isinstance(value, dict):
            print("  " * depth + str(name), flush=True)
            tell(value, depth + 1)
        else:
            print(
                "  " * depth + f"{name}: {value:.4g}" if isinstance(value, float) else "  " * depth + f"{name}: {value}"
            )
