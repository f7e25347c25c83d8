"""Degrees of a graph, released directly or added up from released edges: the same promise, not the same error.

Run it with ``.venv/bin/python examples/direct_and_indirect.py [plot.svg]``; it takes seconds and needs no data.
The plot needs matplotlib: pip install 'defocus[plot]'.
"""

import argparse
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from defocus.noise import Bits, discrete_gaussian, discrete_laplace

SIZES = (5, 10, 20, 50, 100, 200)
EPSILON = Fraction(1, 100)
"""Small, so that discrete noise is as wide as the formulas of continuous noise say."""
RHO = Fraction(1, 20_000)


def degrees_from_edges(n: int) -> NDArray[np.int64]:
    """The matrix from the vector of all possible edges to the vector of degrees: two ones in each column."""
    pairs = list(itertools.combinations(range(n), 2))
    matrix = np.zeros((n, len(pairs)), dtype=np.int64)
    for column, (u, v) in enumerate(pairs):
        matrix[u, column] = matrix[v, column] = 1
    return matrix


def brute_force_sensitivities(n: int) -> tuple[int, int]:
    """The largest L1 and squared L2 change of the degrees over all graphs on n nodes and all edges."""
    matrix = degrees_from_edges(n)
    l1 = l2 = 0
    for graph in itertools.product((0, 1), repeat=matrix.shape[1]):
        x = np.array(graph)
        for edge in range(len(x)):
            neighbour = x.copy()
            neighbour[edge] ^= 1
            change = matrix @ x - matrix @ neighbour
            l1, l2 = max(l1, int(np.abs(change).sum())), max(l2, int(change @ change))
    return l1, l2


def ratios(n: int) -> tuple[Fraction, Fraction]:
    """Variance of a degree added up from noisy edges over that of one released directly: Laplace, Gaussian.

    Laplace noise for L1 sensitivity D has variance 2D²/ε². Directly, D = 2: 8/ε². Each edge, D = 1, gets
    2/ε², and a degree adds up n−1 of them. Gaussian noise for squared L2 sensitivity S has
    variance S/2ρ: directly, S = 2; each edge, S = 1, and n−1 are added up.
    """
    edges = n - 1
    return Fraction(2 * edges, 2 * 2**2), Fraction(edges * 1, 2)


def least_total_variance(n: int) -> float:
    """The SVD bound on the total variance of all degrees, at Gaussian noise 1 for sensitivity 1.

    No strategy is below (sum of singular values)² over the number of edges; the matrix has n−1 singular values
    √(n−2) and one √(2n−2). Reference: Li, Miklau (2013), Optimal error of query sets under the differentially
    private matrix mechanism.
    """
    return ((n - 1) * math.sqrt(n - 2) + math.sqrt(2 * n - 2)) ** 2 / (n * (n - 1) / 2)


def measured(n: int, runs: int, bits: Bits | None = None) -> tuple[float, float]:
    """The same ratios from exact noise on an empty graph: Laplace, Gaussian."""
    found = []
    for draw, direct, edge in (
        (discrete_laplace, 2 / EPSILON, 1 / EPSILON),
        (discrete_gaussian, math.sqrt(2 / (2 * RHO)), math.sqrt(1 / (2 * RHO))),
    ):
        released = draw(direct, runs, bits).astype(float)
        added_up = draw(edge, runs * (n - 1), bits).reshape(runs, n - 1).sum(axis=1).astype(float)
        found.append(float(np.mean(added_up**2) / np.mean(released**2)))
    return found[0], found[1]


def figure(sizes: tuple[int, ...] = SIZES, runs: int = 20_000, bits: Bits | None = None) -> Any:
    """Both ratios against the number of nodes, as lines by formula and as points by measurement."""
    from matplotlib.figure import Figure  # noqa: PLC0415 # an optional extra

    canvas = Figure(figsize=(7, 4), layout="constrained")
    axes = canvas.add_subplot()
    points = [measured(n, runs, bits) for n in sizes]
    for index, (name, colour) in enumerate((("Laplace, (n−1)/4", "tab:blue"), ("Gaussian, (n−1)/2", "tab:orange"))):
        axes.plot(sizes, [float(ratios(n)[index]) for n in sizes], color=colour, label=name)
        axes.plot(sizes, [point[index] for point in points], "o", color=colour, markerfacecolor="none")
    axes.axhline(1, color="gray", linewidth=0.8, linestyle="--")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="nodes",
        ylabel="variance, through edges / direct",
        title="A degree through noisy edges against a degree with its own noise",
    )
    axes.legend(title="lines: formula, circles: measured")
    return canvas


def main(where: str | None = None) -> None:
    """Print the table, and draw the plot if told where."""
    table = Table(title="variance of one degree, through edges / direct", box=box.SIMPLE_HEAD)
    for heading in ("nodes", "Laplace", "measured", "Gaussian", "measured", "direct / SVD bound"):
        table.add_column(heading, justify="right")
    for n in SIZES:
        (laplace, gaussian), (seen, seen_too) = ratios(n), measured(n, 20_000)
        above = 2 * n / least_total_variance(n)
        cells = (f"{float(laplace):g}", f"{seen:.2f}", f"{float(gaussian):g}", f"{seen_too:.2f}", f"{above:.4f}")
        table.add_row(str(n), *cells)
    console = Console()
    console.print(table)
    console.print(
        "One edge moves two degrees by one each, however many nodes there are: so give each degree its own noise."
    )
    if where is not None:
        figure().savefig(Path(where))


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("plot", nargs="?", help="the file to draw the plot to")
    main(given.parse_args().plot)
