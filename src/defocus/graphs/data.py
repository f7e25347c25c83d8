"""The data of a graph: edges as numbers of nodes, with weights and times where there are any."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from defocus.engines.engine import Engine
from defocus.errors import EngineError, InvalidParameterError, UnfitDataError, whole
from defocus.graphs.distributed.graph import EngineArcs, EngineGraph
from defocus.graphs.graph import MOST_NODES, DirectedGraph, Graph
from defocus.graphs.kernels.rows import directed_rows, undirected_rows
from defocus.graphs.node_names import node_numbers

__all__ = ["MISSING_TIME", "RULES", "Data", "Ends", "Pairs", "build", "build_directed", "checked_nodes"]


MISSING_TIME = -(2**63)
"""Stands for a time that is missing."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """One entry for each line of the data. Ends that are no node are -1; all rules about them are held later.

    ``weights`` are as they were given, as floats; ``times`` are whole microseconds since 1970, or whatever whole
    numbers the data counts time in, or :data:`MISSING_TIME`.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    times: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        kinds: dict[str, tuple[Any, Any]] = {
            "left": (self.left, np.int64),
            "right": (self.right, np.int64),
            "weights": (self.weights, np.float64),
            "times": (self.times, np.int64),
        }
        for name, (array, kind) in kinds.items():
            if array is None and name in {"weights", "times"}:
                continue
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.shape != (len(self.left),):
                raise UnfitDataError(
                    f"The {name} of a list of edges do not fit the edges.", fix="give one for each edge."
                )
            array.setflags(write=False)

    def first_of_each(self, *, directed: bool) -> NDArray[np.bool_]:
        """Which lines are the first about their edge; those with an end that is no node, or with two equal, are not.

        Depends on the ends alone. Where edges have no direction, (a, b) and (b, a) are one edge.

        >>> two = Pairs(np.array([0, 1, 0, -1]), np.array([1, 0, 1, 2]))
        >>> two.first_of_each(directed=False).tolist(), two.first_of_each(directed=True).tolist()
        ([True, False, False, False], [True, True, False, False])
        """
        between = np.flatnonzero((self.left >= 0) & (self.right >= 0) & (self.left != self.right))
        ends = np.stack([self.left[between], self.right[between]])
        if not directed:
            ends.sort(axis=0)
        order = np.lexsort((between, ends[1], ends[0]))
        ends = ends[:, order]
        new = np.ones(len(between), np.bool_)
        new[1:] = (ends[:, 1:] != ends[:, :-1]).any(axis=0)
        first = np.zeros(len(self), np.bool_)
        first[between[order[new]]] = True
        return first

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        return "<a private list of edges>"


Ends: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]

RULES = (
    "an edge that is listed more than once counts once",
    "an edge from a node to itself is left out",
    "an edge with an end that is missing, or is not one of the nodes, is left out",
)
"""What happens to pairs that a simple graph on the given nodes cannot hold."""


def build(nodes: int, left: Ends, right: Ends) -> Graph:
    """The undirected graph on nodes 0, 1, … ``nodes`` - 1 with an edge for each pair of ends.

    Guarantee:
        A pair adds at most the one edge it names: adding or removing all copies of one edge in the list adds or
        removes that edge and changes nothing else. The order of pairs, and of the ends in a pair, does not matter.

    >>> build(4, [0, 1, 1, 2, 9], [1, 0, 1, 3, 0]).pairs()
    (array([0, 2], dtype=int32), array([1, 3], dtype=int32))
    """
    count = checked_nodes(nodes)
    offsets, targets = undirected_rows(count, *_ends(left, right))
    return Graph(count, offsets, targets)


def build_directed(nodes: int, left: Ends, right: Ends) -> DirectedGraph:
    """The directed graph with an arc from ``left`` to ``right`` for each pair.

    >>> build_directed(3, [0, 1, 1], [1, 0, 2]).out_degrees.tolist()
    [1, 2, 0]
    """
    count = checked_nodes(nodes)
    offsets, targets = directed_rows(count, *_ends(left, right))
    return DirectedGraph(count, offsets, targets)


def checked_nodes(value: object) -> int:
    """A number of nodes that fits; none at all is fine."""
    count = whole("nodes", value)
    if count > MOST_NODES:
        raise InvalidParameterError(
            f"A graph has at most {MOST_NODES} nodes here, but nodes is "
            + (f"{count}." if count < 10**30 else "far more."),
            fix="number the nodes 0, 1, 2, … without gaps, or list their names: nodes=[…].",
        )
    return count


def _ends(left: Any, right: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ends = [node_numbers(side) for side in (left, right)]
    if len(ends[0]) != len(ends[1]):
        raise UnfitDataError(
            "The two lists of ends differ in length.", fix="give one left and one right end for each edge."
        )
    return ends[0], ends[1]


@final
class Data:
    """Edges as a list, as an undirected graph and as a directed one. Methods take what they need.

    Graphs are made once; a list that has neither weights nor times is forgotten then, and read again if need be.
    ``nodes`` is how many nodes there are, and ``labels`` what they are called: both are public under edge privacy, and
    private under node privacy. Where edges stay in an engine, there is no list, and graphs are counted there.
    """

    __slots__ = ("_directed", "_engine", "_graph", "_labels", "_pairs", "_read")

    def __init__(self, read: Callable[[], tuple[Pairs, Sequence[Any]]]) -> None:
        self._read = read
        self._pairs: Pairs | None = None
        self._labels: Sequence[Any] | None = None
        self._graph: Graph | EngineGraph | None = None
        self._directed: DirectedGraph | EngineArcs | None = None
        self._engine: Engine | None = None

    @classmethod
    def of(cls, graph: Graph) -> "Data":
        """The data of a graph that is there already; for tests and experiments."""

        def read() -> tuple[Pairs, Sequence[Any]]:
            left, right = graph.pairs()
            return Pairs(left.astype("int64"), right.astype("int64")), range(graph.nodes)

        data = cls(read)
        data._graph = graph  # its own constructor
        return data

    @classmethod
    def elsewhere(cls, graph: EngineGraph | EngineArcs, labels: Sequence[Any], engine: Engine) -> "Data":
        """The data of a graph whose edges stay in an engine, which is closed with it."""
        data = cls(_unread)
        data._labels, data._engine = labels, engine
        if isinstance(graph, EngineGraph):
            data._graph = graph
        else:
            data._directed = graph
        return data

    @property
    def pairs(self) -> Pairs:
        """The list of edges as it was given, ends numbered."""
        if self._pairs is None:
            self._pairs, self._labels = self._read()
        return self._pairs

    @property
    def labels(self) -> Sequence[Any]:
        """What the nodes are called, in the order of their numbers."""
        if self._labels is None:
            _ = self.pairs
        return self._labels or ()

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.labels)

    @property
    def graph(self) -> Any:
        """The undirected simple graph."""
        if self._graph is None:
            self._graph = build(self.nodes, self.pairs.left, self.pairs.right)
            self._forget()
        return self._graph

    @property
    def directed(self) -> Any:
        """The directed simple graph."""
        if self._directed is None:
            self._directed = build_directed(self.nodes, self.pairs.left, self.pairs.right)
            self._forget()
        return self._directed

    @contextmanager
    def steady(self) -> "Iterator[Data]":
        """The same data, of which all that is counted is counted of the same edges while this lasts."""
        there = self._graph if self._directed is None else self._directed
        if self._engine is None or not isinstance(there, EngineGraph | EngineArcs):
            yield self
            return
        with there.steady() as kept:
            yield Data.elsewhere(kept, self.labels, self._engine)

    def check(self) -> None:
        """Refuse, before a charge, where an engine is known to answer nothing more."""
        if self._engine is not None:
            self._engine.written(exp.select(exp.Literal.number(1)))

    def close(self) -> None:
        """Close the engine, if there is one."""
        if self._engine is not None:
            self._engine.close()

    def _forget(self) -> None:
        if self._pairs is not None and self._pairs.weights is None and self._pairs.times is None:
            self._pairs = None

    def __repr__(self) -> str:
        return "<private edges>"


def _unread() -> tuple[Pairs, Sequence[Any]]:
    raise EngineError("Edges that are in an engine are not read.", fix="report the question that was asked.")
