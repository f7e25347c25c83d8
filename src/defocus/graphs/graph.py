"""Graphs in memory: who is joined to whom, as sorted rows of neighbours."""

from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, whole

__all__ = ["MOST_NODES", "DirectedGraph", "Graph", "Undirected"]

MOST_NODES = 2**31 - 2
"""Nodes are numbered with 32 bits."""


class Undirected(Protocol):
    """What statistics ask of an undirected graph, wherever its edges are: in memory, or in an engine."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""

    @property
    def edges(self) -> int:
        """How many edges there are."""

    @property
    def degrees(self) -> NDArray[np.int64]:
        """How many neighbours each node has."""

    def degree_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which degrees nodes have, rising, and how many nodes have each."""

    def triangles(self) -> int:
        """How many triples of nodes are joined to each other."""

    def triangles_and_level(self) -> tuple[int, int]:
        """The same, and how far one edge can move it around this graph, or a little more."""

    def leading_pairs(self) -> list[tuple[int, int]]:
        """The pairs of degrees that decide how far one edge can move stars."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Rows:
    """The rows of a graph: where ``offsets`` of node i and of the next say, ``targets`` are its neighbours."""

    nodes: int
    offsets: NDArray[np.int64]
    targets: NDArray[np.int32]

    def __post_init__(self) -> None:
        _checked(self)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph(_Rows):
    """An undirected simple graph: no loops, no double edges. Made by :func:`~defocus.graphs.data.build`.

    The neighbours of node ``i`` are ``targets[offsets[i]:offsets[i + 1]]``, in rising order. Each edge is stored
    at both of its ends. The arrays cannot be written to.

    Everything here is private, except for ``nodes`` under edge privacy. Nothing of it is printed.

    >>> from defocus.graphs.data import build
    >>> path = build(3, [0, 1], [1, 2])
    >>> path.edges, path.degrees.tolist(), path.neighbours(1).tolist()
    (2, [1, 2, 1], [0, 2])
    """

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self.targets) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """How many neighbours each node has."""
        return np.diff(self.offsets)

    def degree_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which degrees nodes have, rising, and how many nodes have each."""
        degrees, times = np.unique(self.degrees, return_counts=True)
        return degrees, times.astype(np.int64)

    def triangles(self) -> int:
        """How many triples of nodes are joined to each other."""
        from defocus.graphs.kernels.rows import ranked, triangle_count  # noqa: PLC0415  # kernels are made for graphs

        return triangle_count(ranked(self))

    def triangles_and_level(self) -> tuple[int, int]:
        """How many triangles there are, and how far one edge can move their number around this graph."""
        from defocus.graphs.kernels.rows import most_common_neighbours, ranked, triangle_count  # noqa: PLC0415

        by_size = ranked(self)
        return triangle_count(by_size), most_common_neighbours(by_size)

    def leading_pairs(self) -> list[tuple[int, int]]:
        """The pairs that decide how far stars move: see :func:`~defocus.graphs.kernels.rows.leading_pairs`."""
        from defocus.graphs.kernels.rows import leading_pairs  # noqa: PLC0415  # likewise

        return leading_pairs(self)

    def neighbours(self, node: int) -> NDArray[np.int32]:
        """The neighbours of one node, in rising order."""
        return self.targets[self.offsets[node] : self.offsets[node + 1]]

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Every edge once: its smaller and its larger end, ordered by the smaller, then by the larger."""
        sources = np.repeat(np.arange(self.nodes, dtype=np.int32), self.degrees)
        once = sources < self.targets
        return sources[once], self.targets[once]

    def __repr__(self) -> str:
        return "<a private undirected graph>"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DirectedGraph(_Rows):
    """A directed simple graph: no loops, no arc twice, but arcs both ways count as two.

    The arcs from node ``i`` lead to ``targets[offsets[i]:offsets[i + 1]]``, in rising order.

    >>> from defocus.graphs import build_directed
    >>> arcs = build_directed(3, [0, 1, 1], [1, 0, 2])
    >>> arcs.edges, arcs.in_degrees.tolist()
    (3, [1, 1, 1])
    """

    @property
    def edges(self) -> int:
        """How many arcs there are."""
        return len(self.targets)

    @property
    def out_degrees(self) -> NDArray[np.int64]:
        """How many arcs leave each node."""
        return np.diff(self.offsets)

    @property
    def in_degrees(self) -> NDArray[np.int64]:
        """How many arcs reach each node."""
        return np.bincount(self.targets, minlength=self.nodes).astype(np.int64)

    def __repr__(self) -> str:
        return "<a private directed graph>"


def _checked(graph: Any) -> None:
    """Cheap checks of the shape, which never quote the data; sorted rows are the builder's promise."""
    nodes = whole("nodes", graph.nodes)
    offsets, targets = graph.offsets, graph.targets
    fits = (
        isinstance(offsets, np.ndarray)
        and isinstance(targets, np.ndarray)
        and offsets.dtype == np.int64
        and targets.dtype == np.int32
        and offsets.shape == (nodes + 1,)
        and targets.ndim == 1
        and nodes <= MOST_NODES
    )
    if not fits or offsets[0] != 0 or offsets[-1] != len(targets):
        raise InvalidParameterError(
            "These arrays are not the rows of a graph.", fix="make it from two lists of ends: graphs.build(nodes, …)."
        )
    offsets.setflags(write=False)
    targets.setflags(write=False)
