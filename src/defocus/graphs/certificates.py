"""Certificates of sensitivity, checked on all small graphs."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, in_range
from defocus.graphs.data import MISSING_TIME, Data, Pairs
from defocus.graphs.graph import DirectedGraph, Graph
from defocus.graphs.public import Public, Statistic
from defocus.privacy.units import Adjacency, Unit

__all__ = [
    "MOMENTS",
    "Certificate",
    "Entry",
    "Finding",
    "all_directed",
    "all_graphs",
    "event_steps",
    "neighbours",
    "weight_steps",
    "without_node",
]


MOMENTS = (MISSING_TIME, -7, 0, 5, 10)
"""When an interaction may have been: not known, before the start, in the first step, in the second, after the end."""


def weight_steps(statistic: Any, nodes: int, unit: Unit) -> Iterator[NDArray[np.int64]]:
    """How far the vectors of two lists differ of which one weight is replaced, for all lists of two lines.

    Ends are all pairs of nodes, or nobody; weights are zero, half the bound, the bound, above it, and no number. Where
    one person has several weights, both are replaced.
    """
    bound = float(unit.bound or 0)
    weights = (0.0, 0.5 * bound, bound, 9 * bound, float("nan"))
    for ends in itertools.product(_ends(nodes), repeat=2):
        every = np.array([[statistic.exact(_data(nodes, ends, weights=(a, b))) for b in weights] for a in weights])
        if (unit.per_person or 1) > 1:
            both = every.reshape(len(weights) ** 2, -1)
            for vector in both:
                yield both - vector
            continue
        for one, other in itertools.combinations(range(len(weights)), 2):
            yield every[one] - every[other]
            yield every[:, one] - every[:, other]


def event_steps(statistic: Any, nodes: int, unit: Unit) -> Iterator[NDArray[np.int64]]:
    """How far the vectors of two lists differ of which one has one line more, or another line; of up to two lines."""
    lines = list(itertools.product(_ends(nodes), MOMENTS))

    def vector(*listed: tuple[tuple[int, int], int]) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = statistic.exact(
            _data(nodes, [ends for ends, _ in listed], times=[moment for _, moment in listed])
        )
        return counts

    alone = np.array([vector(one) for one in lines])
    if unit.adjacency is Adjacency.REPLACE:
        for event in alone:
            yield alone - event
        return
    yield alone - vector()
    for place, one in enumerate(lines):
        both = np.array([vector(one, other) for other in lines[:: max(1, nodes)]])
        yield both - alone[place]
        yield both - alone[:: max(1, nodes)]


@cache
def _ends(nodes: int) -> tuple[tuple[int, int], ...]:
    """All pairs of nodes, the same one twice too; -1 is nobody."""
    return tuple(itertools.product(range(-1, nodes), range(-1, nodes)))


def _data(
    nodes: int,
    ends: Sequence[tuple[int, int]],
    *,
    weights: Sequence[float] | None = None,
    times: Sequence[int] | None = None,
) -> Data:
    left, right = (np.array([pair[side] for pair in ends], np.int64) for side in (0, 1))
    pairs = Pairs(
        left,
        right,
        None if weights is None else np.array(weights, np.float64),
        None if times is None else np.array(times, np.int64),
    )
    return Data(lambda: (pairs, range(nodes)))


_LARGEST = {"edge": 6, "node": 5, "weight": 3, "event": 3}
"""Up to how many nodes all graphs are looked at: 32 768 graphs of 6 nodes, 1 024 of 5; or all lists of two lines.

Directed graphs are looked at up to 4 nodes, of which there are 4 096; of 5 there are a million.
"""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """What brute force found on all graphs of one size: the largest movement, beside what the statistic says.

    >>> from defocus import edge
    >>> Finding("edges", edge(), 4, l1=1, l2_squared=1, said_l1=1, said_l2_squared=1).holds
    True
    """

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

    >>> from defocus import edge
    >>> from defocus.graphs import Edges
    >>> all(found.tight for found in Certificate(statistics=(Edges(),), units=(edge(),)).findings(largest=3))
    True
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
    said = statistic.sensitivity(public)
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


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A kind of statistic and the certificate of its sensitivity. The list of all is ``statistics.ENTRIES``.

    >>> Entry("guesswork", object, None)
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: The statistic 'guesswork' has no certificate.
    To fix: pass Certificate(statistics=…, units=…), which says what is checked on all small graphs.
    """

    name: str
    make: Callable[..., Any]
    certificate: Certificate

    def __post_init__(self) -> None:
        certificate: object = self.certificate
        if not isinstance(certificate, Certificate):
            raise InvalidParameterError(
                f"The statistic {self.name!r:.60} has no certificate.",
                fix="pass Certificate(statistics=…, units=…), which says what is checked on all small graphs.",
            )
        for statistic in certificate.statistics:
            if not isinstance(statistic, Statistic):
                raise InvalidParameterError(
                    f"{type(statistic).__name__} is not a statistic of a graph.",
                    fix="give it name, exact(graph), length(public) and sensitivity(public).",
                )
