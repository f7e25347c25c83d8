"""The private data of an open graph, read and arranged when it is first needed: after a charge."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

from sqlglot import exp

from defocus.engines.engine import Engine
from defocus.errors import EngineError
from defocus.graphs.building import build, build_directed
from defocus.graphs.distributed.graph import EngineArcs, EngineGraph
from defocus.graphs.graph import DirectedGraph, Graph
from defocus.graphs.pairs import Pairs

__all__ = ["Data"]


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

        made = cls(read)
        made._graph = graph  # its own constructor
        return made

    @classmethod
    def elsewhere(cls, graph: EngineGraph | EngineArcs, labels: Sequence[Any], engine: Engine) -> "Data":
        """The data of a graph whose edges stay in an engine, which is closed with it."""
        made = cls(_unread)
        made._labels, made._engine = labels, engine
        if isinstance(graph, EngineGraph):
            made._graph = graph
        else:
            made._directed = graph
        return made

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
