"""Degree distributions of public graphs, true and private: what survives at which epsilon.

Run it with ``.venv/bin/python examples/degree_distribution.py [plot.svg]``; it takes seconds and needs no data: both
graphs are generated, so that their true shape may be shown. Needs 'defocus[graph]', and for the plot 'defocus[plot]'.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

import defocus as dp
from defocus.graphs import Graph, build
from defocus.noise import Bits

NODES = 10_000
EPSILONS = (0.1, 1.0)
PROTECTED = {"edges": dp.edge(), "nodes": dp.node()}


def power_law(nodes: int, links: int = 5, seed: int = 1) -> Graph:
    """Every new node joins ``links`` ends of edges that are there: Barabási, Albert (1999), Emergence of scaling."""
    draw = np.random.default_rng(seed)
    left = np.repeat(np.arange(links + 1, nodes), links)
    ends = np.empty(2 * (len(left) + links * (links + 1) // 2), np.int64)
    first = np.array([(i, j) for i in range(links + 1) for j in range(i)])
    size = first.size
    ends[:size] = first.ravel()
    for node in range(links + 1, nodes):
        joined = ends[draw.integers(0, size, links)]
        ends[size : size + 2 * links : 2], ends[size + 1 : size + 2 * links : 2] = node, joined
        size += 2 * links
    return build(nodes, ends[:size:2], ends[1:size:2])


def random_graph(nodes: int, mean: int = 10, seed: int = 1) -> Graph:
    """Every pair of nodes is joined with the same chance."""
    draw = np.random.default_rng(seed)
    return build(nodes, *draw.integers(0, nodes, (2, nodes * mean // 2)))


def at_least(counts: NDArray[Any]) -> NDArray[np.float64]:
    """How many nodes have each degree or more."""
    found: NDArray[np.float64] = np.cumsum(counts[::-1])[::-1].astype(float)
    return found


def private(graph: Graph, unit: Any, epsilon: float, bits: Bits | None = None) -> NDArray[np.float64]:
    """A released degree histogram; under node privacy the largest degree is found as well."""
    nodes: Any = graph.nodes if unit.kind == "edge" else list(range(graph.nodes))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "public.ledger"
        with dp.open_graph(graph.pairs(), unit=unit, budget=dp.Budget(epsilon), nodes=nodes, ledger=ledger) as opened:
            released: NDArray[np.float64] = opened.degree_histogram().release(epsilon=epsilon, bits=bits).value
    return released


def distance(graph: Graph, counts: NDArray[np.float64]) -> float:
    """The sum of all differences between true and private counts, for each node."""
    true = np.bincount(graph.degrees, minlength=len(counts)).astype(float)
    return float(np.abs(true - np.pad(counts, (0, len(true) - len(counts)))).sum() / graph.nodes)


def main(plot: str | None = None, nodes: int = NODES) -> None:
    """Print how far off each histogram is, and draw them all."""
    graphs = {"power law": power_law(nodes), "random": random_graph(nodes)}
    found = {
        (name, protected, epsilon): private(graph, unit, epsilon)
        for name, graph in graphs.items()
        for protected, unit in PROTECTED.items()
        for epsilon in EPSILONS
    }
    table = Table(title=f"degree histograms of {nodes:,} nodes: L1 distance for each node", box=box.SIMPLE_HEAD)
    for title in ("graph", "protects", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)):
        table.add_column(title, justify="right")
    for name, graph in graphs.items():
        for protected in PROTECTED:
            off = [distance(graph, found[name, protected, epsilon]) for epsilon in EPSILONS]
            table.add_row(name, protected, *(f"{value:.3f}" for value in off))
    Console().print(table)
    if plot:
        draw(plot, graphs, found)


def draw(file: str, graphs: dict[str, Graph], found: dict[tuple[str, str, float], NDArray[np.float64]]) -> None:
    """One picture for each graph and unit: how many nodes have each degree or more."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # only where a plot is wanted

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(len(graphs), len(PROTECTED), sharey=True, sharex="row")
    for row, (name, graph) in zip(axes, graphs.items(), strict=True):
        for axis, protected in zip(row, PROTECTED, strict=True):
            true = at_least(np.bincount(graph.degrees))
            axis.plot(np.arange(len(true)), true, color="black", linewidth=3, alpha=0.35, label="true")
            for epsilon in EPSILONS:
                counts = at_least(found[name, protected, epsilon])
                shown = counts >= 0.5
                axis.plot(np.arange(len(counts))[shown], counts[shown], label=f"private, ε = {epsilon:g}")
            axis.set(xscale="log", yscale="log", title=f"{name}, {protected} protected", ylim=(0.5, None))
            axis.set(xlim=(1, 2 * len(true)), xlabel="degree", ylabel="nodes of this degree or more")
    axes[0][0].legend()
    figure.savefig(file)


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("plot", nargs="?", help="the file to draw the plot to")
    main(given.parse_args().plot)
