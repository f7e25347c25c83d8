"""Graphs in an engine: they give the same integers as graphs in memory, and nothing else."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np
from sqlglot import exp

from defocus.engines.engine import Engine, integers
from defocus.graphs.distributed import statements
from defocus.graphs.distributed.levels import level
from defocus.graphs.kernels.stars import of_degrees
from defocus.graphs.statistic import IntVector

__all__ = ["EngineArcs", "EngineGraph"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EngineGraph:
    """An undirected simple graph whose edges stay in an engine.

    Guarantee:
        What it counts is what a :class:`~defocus.graphs.graph.Graph` of the same edges counts, to the last digit,
        except that :meth:`local` may be larger: see :mod:`~defocus.graphs.distributed.levels`. What comes here
        are counts, by degree or by public node; an edge does not.
        Noise follows what several statements count, so all of them are asked of the edges that :meth:`steady` keeps.

    Args:
        nodes: how many nodes there are; public.
        engine: where the edges are.
        ends: a query with the numbers of both nodes of every line, in ``a`` and ``b``; NULL where it names none.
    """

    nodes: int
    engine: Engine
    ends: exp.Query

    @contextmanager
    def steady(self) -> "Iterator[EngineGraph]":
        """The same graph as it is now, whatever is written meanwhile."""
        with self.engine.kept(statements.simple(self.ends)) as ends:
            yield EngineGraph(self.nodes, self.engine, ends)

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return self._number(statements.edge_count(self.ends))

    @property
    def degrees(self) -> IntVector:
        """How many neighbours each node has."""
        return _by_node(self.nodes, self.engine, statements.degrees(self.ends))

    def degree_counts(self) -> tuple[IntVector, IntVector]:
        """Which degrees nodes have, rising, and how many nodes have each."""
        degrees, times = self._by_degree(statements.histogram(self.ends))
        alone = self.nodes - int(times.sum())
        if not alone:
            return degrees, times
        return np.concatenate([[0], degrees]), np.concatenate([[alone], times])

    def triangles(self) -> int:
        """How many triples of nodes are joined to each other."""
        return self._number(statements.triangles(self.ends))

    def local(self) -> int:
        """How far one edge can move the number of triangles around this graph, or a little more."""
        degrees, times = self.degree_counts()
        return level(degrees, times, self.nodes, lambda above: self._number(statements.shared(self.ends, above)))

    def triangles_and_level(self) -> tuple[int, int]:
        """How many triangles there are, and :meth:`local`."""
        return self.triangles(), self.local()

    def leading_pairs(self) -> list[tuple[int, int]]:
        """See :func:`~defocus.graphs.kernels.stars.leading_pairs`: the pairs that decide how far stars move.

        The largest stranger of a node of degree :math:`D_1` is found without looking at strangers. At the degree δ
        there is one unless every node of degree :math:`D_1` is joined to all others of degree δ, and that is counted
        among neighbours.
        """
        degrees, times = self.degree_counts()
        if self.nodes < 2:
            return []
        first = int(degrees[-1])
        second = first if times[-1] > 1 else int(degrees[-2])
        twins = first > second and not self._all_joined(second, int(times[-2]))
        return of_degrees(first, second, self._stranger(degrees, times), twins=twins)

    def _stranger(self, degrees: IntVector, times: IntVector) -> int:
        """The largest degree of a node that some node of the largest degree is not joined to; -1 if there is none."""
        first, tops = int(degrees[-1]), int(times[-1])
        if not first:
            return 0
        others = dict(zip(degrees.tolist(), times.tolist(), strict=True))
        others[first] -= 1
        joined = self._by_degree(statements.joined_to_all(self.ends, first))
        full = dict(zip(*(each.tolist() for each in joined), strict=True))
        return next(
            (degree for degree in sorted(others, reverse=True) if others[degree] and full.get(degree, 0) < tops), -1
        )

    def _all_joined(self, degree: int, times: int) -> bool:
        return times < 2 or self._number(statements.among(self.ends, degree)) == math.comb(times, 2)

    def _number(self, asked: exp.Select) -> int:
        return int(integers(self.engine.run(asked).column("n"))[0])

    def _by_degree(self, asked: exp.Select) -> tuple[IntVector, IntVector]:
        found = self.engine.run(asked)
        degrees, times = (integers(found.column(name)) for name in ("degree", "times"))
        order = np.argsort(degrees, kind="stable")
        return degrees[order], times[order]

    def __repr__(self) -> str:
        return "<a private undirected graph>"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EngineArcs:
    """A directed simple graph whose arcs stay in an engine; see :class:`EngineGraph`."""

    nodes: int
    engine: Engine
    ends: exp.Query

    @contextmanager
    def steady(self) -> "Iterator[EngineArcs]":
        """The same graph as it is now, whatever is written meanwhile."""
        with self.engine.kept(statements.simple(self.ends, directed=True)) as ends:
            yield EngineArcs(self.nodes, self.engine, ends)

    @property
    def edges(self) -> int:
        """How many arcs there are."""
        asked = statements.edge_count(self.ends, directed=True)
        return int(integers(self.engine.run(asked).column("n"))[0])

    @property
    def out_degrees(self) -> IntVector:
        """How many arcs leave each node."""
        return _by_node(self.nodes, self.engine, statements.arc_degrees(self.ends, "out"))

    @property
    def in_degrees(self) -> IntVector:
        """How many arcs reach each node."""
        return _by_node(self.nodes, self.engine, statements.arc_degrees(self.ends, "in"))

    def __repr__(self) -> str:
        return "<a private directed graph>"


def _by_node(nodes: int, engine: Engine, asked: exp.Select) -> IntVector:
    found = engine.run(asked)
    degrees = np.zeros(nodes, np.int64)
    degrees[integers(found.column("node"))] = integers(found.column("degree"))
    return degrees
