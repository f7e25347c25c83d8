"""How well models of graphs come back out of private answers: ranks, communities and exponential random graph models.

    python benchmarks/graphs.py models FOLDER

FOLDER is that of the accuracy; generated graphs are made here.
"""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import NAMES, load

from defocus import Budget, edge
from defocus.graphs import Graph, Public, build
from defocus.graphs.data import Data
from defocus.graphs.inference import recovery
from defocus.graphs.question import chosen
from defocus.graphs.questions import AskErgm, AskPageRank, AskPartition
from defocus.graphs.statistics import PageRank
from defocus.noise.testing import seeded


def models(folder: Path, *, quick: bool = False) -> dict[str, Any]:
    runs = 1 if quick else 3
    graphs = {name: load(folder / f"{name}.txt.gz") for name in NAMES}
    small = {"clustered power law, 200 nodes": power_law(200, 5), "Watts-Strogatz, 200 nodes": ring(200, 8, 0.1)}
    clustered = {
        "Watts-Strogatz, 300 nodes": ring(300, 8, 0.1),
        "clustered power law, 400 nodes": power_law(400, 4),
        "groups of ten, 400 nodes": blocks(400, 40, 0.7, 0.004),
        **({} if quick else {"school, 2 000 nodes": school()}),
    }
    parts: dict[str, Callable[[], Any]] = {
        "partition: share of nodes in the right community, and as foretold": lambda: dict(planted(runs)),
        "PageRank at epsilon 1: error beside 1/n, share of the top 20": lambda: {
            f"{name}, damping {damping}": ranks(graph, damping, runs)
            for name, graph in {**small, **graphs}.items()
            for damping in (0.5, 0.85)
        },
        "partition of Facebook into 8: modularity": lambda: divided(graphs["Facebook"]),
        "exponential random graph models at epsilon 2: coefficients, standard errors": lambda: {
            name: fitted(graph) for name, graph in clustered.items()
        },
    }
    found = {}
    for name, part in parts.items():
        found[name] = part()
        print(name, json.dumps(found[name], indent=2), flush=True)
    return found


def ranks(graph: Graph, damping: float, runs: int) -> dict[str, list[float]]:
    truth, data, found = PageRank(damping).shares(graph), Data.of(graph), {}
    best = set(np.argsort(-truth, kind="stable")[:20].tolist())
    for method in AskPageRank(damping).methods(Public(edge(), graph.nodes), Budget(1)):
        drawn = [method.run(data, seeded(seed)).columns[0].values for seed in range(runs)]
        error = np.mean([np.abs(values - truth).mean() * graph.nodes for values in drawn])
        hits = np.mean([len(best & set(np.argsort(-values, kind="stable")[:20].tolist())) / 20 for values in drawn])
        found[method.name] = [round(float(error), 3), round(float(hits), 2)]
    return found


def planted(runs: int) -> Any:
    for nodes, k, inside, across in (
        (200, 2, 18, 2),
        (200, 4, 12, 1.33),
        (500, 2, 18, 2),
        (1000, 4, 30, 2),
        (2000, 4, 60, 4),
    ):
        graph = blocks(nodes, k, inside * k / nodes, across * k / nodes)
        for epsilon in (1, 2, 3):
            shares = []
            for seed in range(runs):
                (method,) = AskPartition(k).methods(Public(edge(), nodes), Budget(epsilon))
                labels = method.run(Data.of(graph), seeded(seed)).columns[0].values.astype(int)
                truth = np.arange(nodes) * k // nodes
                shares.append(sum(np.bincount(labels[truth == part]).max() for part in range(k)) / nodes)
            variance = 1 / (2 * math.sinh(epsilon / 2)) ** 2
            name = f"{nodes} nodes in {k}, {inside} neighbours inside and {across} in each other, epsilon {epsilon}"
            yield name, [round(float(np.mean(shares)), 2), round(recovery(nodes, k, variance, inside - across), 2)]


def divided(graph: Graph) -> dict[str, float]:
    left, right = graph.pairs()
    said = {}
    for epsilon in (1, 2, 3, 50):
        (method,) = AskPartition(8).methods(Public(edge(), graph.nodes), Budget(epsilon))
        labels = method.run(Data.of(graph), seeded(1)).columns[0].values.astype(int)
        volumes = np.bincount(labels, weights=graph.degrees) / (2 * graph.edges)
        modularity = float((labels[left] == labels[right]).mean() - (volumes**2).sum())
        said[f"epsilon {epsilon}" if epsilon < 50 else "next to no noise"] = round(modularity, 3)
    return said


def fitted(graph: Graph) -> dict[str, Any]:
    found = {}
    for terms in (("edges", "gwesp"), ("edges", "triangles")):
        question = AskErgm(terms)
        method = chosen(question, question.methods(Public(edge(), graph.nodes), Budget(2)), None)
        start = time.process_time()
        result = method.run(Data.of(graph), seeded(1))
        column = result.columns[0]
        errors = (column.high - column.values) / 1.96
        numbers = [[round(float(x), 3) for x in part] for part in (column.values, errors)]
        arrived = "the fit converged" in result.notes[-1]
        seconds = round(time.process_time() - start, 1)
        found[", ".join(terms)] = {"fit": numbers if arrived else "degenerate", "processor seconds": seconds}
    return found


def power_law(nodes: int, links: int) -> Graph:
    """New nodes join one by degree, and then neighbours of it or others by degree, half of the time each."""
    draw, ends, beside = np.random.default_rng(2), list(range(links)), [set[int]() for _ in range(nodes)]
    for new in range(links, nodes):
        last, joined = None, set[int]()
        while len(joined) < links:
            near = sorted(beside[last] - joined) if last is not None and draw.random() < 0.5 else []
            last = int(draw.choice(near)) if near else int(ends[draw.integers(len(ends))])
            joined.add(last)
        for old in joined:
            beside[old].add(new)
            beside[new].add(old)
            ends += [old, new]
    return build(nodes, *zip(*((i, j) for i in range(nodes) for j in beside[i]), strict=True))


def ring(nodes: int, near: int, rewired: float) -> Graph:
    draw = np.random.default_rng(1)
    left = np.repeat(np.arange(nodes), near // 2)
    right = (left + np.tile(np.arange(1, near // 2 + 1), nodes)) % nodes
    return build(nodes, left, np.where(draw.random(len(left)) < rewired, draw.integers(0, nodes, len(left)), right))


def blocks(nodes: int, groups: int, inside: float, across: float) -> Graph:
    draw, group = np.random.default_rng(3), np.arange(nodes) * groups // nodes
    likely = np.where(group[:, None] == group[None, :], inside, across)
    return build(nodes, *np.nonzero(np.triu(draw.random((nodes, nodes)) < likely, 1)))


def school() -> Graph:
    """That of docs/graphs.md."""
    draw = np.random.default_rng(7)
    left, right = draw.integers(0, 2000, 30_000), draw.integers(0, 2000, 30_000)
    return build(2000, left, np.where(draw.random(30_000) < 0.8, 25 * (left // 25) + right % 25, right))
