"""Sensitivities checked by brute force, on all labelled graphs that are small enough."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, in_range
from defocus.graphs.graph import DirectedGraph, Graph
from defocus.graphs.lists import event_steps, weight_steps
from defocus.graphs.public import Public
from defocus.privacy.units import Adjacency, Unit

__all__ = ["Certificate", "Finding", "all_directed", "all_graphs", "neighbours", "without_node"]

_LARGEST = {"edge": 6, "node": 5, "weight": 3, "event": 3}
"""Up to how many nodes all graphs are looked at: 32 768 graphs of 6 nodes, 1 024 of 5; or all lists of two lines.

Directed graphs are looked at up to 4 nodes, of which there are 4 096; of 5 there are a million.
"""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """What brute force found on all graphs of one size: the largest movement, beside what the statistic says."""

    statistic: str
    unit: Unit
    nodes: int
    l1: int
    l2_squared: int
    said_l1: int
    said_l2_squared: int

    @property
    def holds(self) -> bool:
        """Whether no pair of neighbours moved the statistic further than it says."""
        return self.l1 <= self.said_l1 and self.l2_squared <= self.said_l2_squared

    @property
    def tight(self) -> bool:
        """Whether some pair moved it as far, in either norm."""
        return self.l1 == self.said_l1 and self.l2_squared == self.said_l2_squared

    def __str__(self) -> str:
        return (
            f"{self.statistic}, {self.unit}, all graphs of {self.nodes} nodes: L1 {self.l1} of {self.said_l1},"
            f" squared L2 {self.l2_squared} of {self.said_l2_squared}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What is checked about a statistic, on every labelled graph of up to six nodes (five under node privacy).

    Where weights or events are protected, on every list of up to two lines between up to three nodes.

    Args:
        statistics: the statistic, with all the parameters it is checked with.
        units: for which units.
        smallest: from how many nodes on.
        slack: why the bound is not attained; None where it is, which is then checked, too.
        directed: whether directed graphs are looked at, of up to four nodes.
        tight_from: from how many nodes on the bound is attained.
        largest: up to how many nodes, where a statistic takes too long for the usual number.
    """

    statistics: Sequence[Any]
    units: Sequence[Unit]
    smallest: int = 2
    slack: str | None = None
    directed: bool = False
    tight_from: int | None = None
    largest: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistics", tuple(self.statistics))
        object.__setattr__(self, "units", tuple(self.units))
        in_range("smallest", self.smallest, 0, 5)
        if not self.statistics or not self.units or any(unit.kind not in _LARGEST for unit in self.units):
            raise InvalidParameterError(
                "A certificate needs a statistic and a unit of edges, nodes, weights or events.",
                fix="write for example Certificate(statistics=(Edges(),), units=(edge(),)).",
            )

    def findings(self, *, largest: int | None = None) -> Iterator[Finding]:
        """Run it: one finding for each statistic, unit and number of nodes. Takes seconds, not minutes."""
        for unit in self.units:
            usual = 4 if self.directed else _LARGEST[unit.kind]
            most = min(usual, self.largest or usual, largest or usual)
            for nodes in range(self.smallest, most + 1):
                for statistic in self.statistics:
                    yield _finding(statistic, unit, nodes, directed=self.directed)

    def expects_tight(self, finding: Finding) -> bool:
        """Whether the bound must be attained in this finding."""
        return self.slack is None and finding.nodes >= (self.tight_from or 0)


@cache
def all_graphs(nodes: int) -> tuple[Graph, ...]:
    """Every labelled graph of so many nodes: graph number g has the k-th pair of nodes joined if bit k of g is set."""
    pairs = [(i, j) for i in range(nodes) for j in range(i + 1, nodes)]
    joined = _adjacencies(nodes, [(pair, (pair[1], pair[0])) for pair in pairs])
    return tuple(Graph(nodes, *rows) for rows in _rows(joined))


@cache
def all_directed(nodes: int) -> tuple[DirectedGraph, ...]:
    """Every labelled directed graph, numbered in the same way by ordered pairs."""
    pairs = [(i, j) for i in range(nodes) for j in range(nodes) if i != j]
    joined = _adjacencies(nodes, [(pair,) for pair in pairs])
    return tuple(DirectedGraph(nodes, *rows) for rows in _rows(joined))


def neighbours(nodes: int, *, directed: bool = False) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of graphs, as numbers, that differ in one edge: all those without it, and the same with it."""
    pairs = nodes * (nodes - 1) // (1 if directed else 2)
    every = np.arange(1 << pairs)
    for bit in range(pairs):
        without = every[(every >> bit) & 1 == 0]
        yield without, without | (1 << bit)


def without_node(graph: Graph, node: int) -> Graph:
    """The graph with one node and its edges removed; the others keep their order."""
    left, right = graph.pairs()
    kept = (left != node) & (right != node)
    joined = np.zeros((1, graph.nodes - 1, graph.nodes - 1), bool)
    a, b = (side[kept] - (side[kept] > node) for side in (left, right))
    joined[0, a, b] = joined[0, b, a] = True
    return Graph(graph.nodes - 1, *next(_rows(joined)))


def _finding(statistic: Any, unit: Unit, nodes: int, *, directed: bool) -> Finding:
    public = Public(unit, None if unit.kind == "node" else nodes, directed=directed)
    said = statistic.reach(public)
    if unit.kind == "node":
        steps = (_node_steps if unit.adjacency is Adjacency.ADD_REMOVE else _swapped_nodes)(statistic, nodes)
    elif unit.kind in {"weight", "event"}:
        steps = (weight_steps if unit.kind == "weight" else event_steps)(statistic, nodes, unit)
    else:
        values = np.stack([statistic.exact(g) for g in (all_directed(nodes) if directed else all_graphs(nodes))])
        steps = _edge_steps(values, nodes, unit, directed=directed)
    l1 = l2 = 0
    for step in steps:
        if step.size:
            l1 = max(l1, int(np.abs(step).sum(axis=1).max()))
            l2 = max(l2, int((step * step).sum(axis=1).max()))
    return Finding(statistic.name, unit, nodes, l1, l2, said.l1, said.l2_squared)


def _edge_steps(values: NDArray[np.int64], nodes: int, unit: Unit, *, directed: bool) -> Iterator[NDArray[np.int64]]:
    """By how much the vectors of neighbours differ."""
    if unit.adjacency is Adjacency.ADD_REMOVE:
        for without, with_it in neighbours(nodes, directed=directed):
            yield values[with_it] - values[without]
        return
    pairs = nodes * (nodes - 1) // (1 if directed else 2)
    every = np.arange(1 << pairs)
    for one in range(pairs):
        for other in range(one):
            swapped = every[((every >> one) & 1 == 1) & ((every >> other) & 1 == 0)]
            yield values[swapped] - values[swapped ^ (1 << one) ^ (1 << other)]


def _node_steps(statistic: Any, nodes: int) -> Iterator[NDArray[np.int64]]:
    for graph in all_graphs(nodes):
        value = statistic.exact(graph)
        others = [statistic.exact(without_node(graph, node)) for node in range(nodes)]
        yield value[None, :] - np.stack(others)


def _swapped_nodes(statistic: Any, nodes: int) -> Iterator[NDArray[np.int64]]:
    """One node with its edges is replaced by another one: what is left is the same, whatever place either has."""
    sharing: dict[tuple[bytes, bytes], list[NDArray[np.int64]]] = {}
    for graph in all_graphs(nodes):
        value = statistic.exact(graph)
        for node in range(nodes):
            rest = without_node(graph, node)
            sharing.setdefault((rest.offsets.tobytes(), rest.targets.tobytes()), []).append(value)
    for values in sharing.values():
        every = np.unique(np.stack(values), axis=0)
        for one in every:
            yield every - one


def _adjacencies(nodes: int, cells: Sequence[Sequence[tuple[int, int]]]) -> NDArray[np.bool_]:
    numbers = np.arange(1 << len(cells))
    joined = np.zeros((len(numbers), nodes, nodes), bool)
    for bit, places in enumerate(cells):
        for i, j in places:
            joined[:, i, j] = (numbers >> bit) & 1
    return joined


def _rows(joined: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """The rows of many graphs at once."""
    graphs, nodes, _ = joined.shape
    targets = np.nonzero(joined)[2].astype(np.int32)
    degrees = joined.sum(axis=2, dtype=np.int64)
    offsets = np.zeros((graphs, nodes + 1), np.int64)
    np.cumsum(degrees, axis=1, out=offsets[:, 1:])
    ends = np.cumsum(offsets[:, -1])
    for g in range(graphs):
        yield offsets[g].copy(), targets[ends[g] - offsets[g, -1] : ends[g]].copy()
