r"""A graph whose edges stay in an engine.

What noise for triangles follows where edges are counted in SQL: a bound that needs the pairs of few nodes only.

The number of triangles moves by at most :math:`\ell`, the largest number of neighbours that two nodes share, which
itself moves by at most 1. To find it, all pairs of neighbours of every node would have to be counted: a node of degree
d has :math:`\binom d2` of them, and one hub of a million neighbours too many for any engine. So a slightly larger level
is used. With :math:`D_K` the K-th largest degree, for a public K,

.. math:: \ell_K(G) = \max\{\ell(G),\ \min(D_K(G),\, n - 2)\} .

*It can be computed from K nodes.* Two nodes share at most as many neighbours as the smaller of their degrees. So pairs
with a node of degree at most :math:`D_K` share at most :math:`\min(D_K, n-2)`, and :math:`\ell_K` is the maximum of
that and of what pairs of nodes of degree above :math:`D_K` share, of which there are at most K − 1. A node has at most
:math:`\binom{K-1}2` pairs of such neighbours, and these have at most 2m edges: at most :math:`mK` pairs in all,
and in graphs with hubs far less. Whenever :math:`\ell \ge D_K`, and always where :math:`n < K`, it is :math:`\ell`
itself: the same integer as in memory.

*It is large enough.* :math:`\ell_K \ge \ell`.

*It moves by at most 1.* An edge raises two degrees by 1 and no others, so the sorted degrees move by at most 1, each:
if K nodes have degree at least t after an edge is removed, they have it before; if K nodes have at least t before, they
have at least t − 1 after. The smaller of :math:`D_K` and a constant, and the larger of two numbers that move by at most
1, move by at most 1.

This is all that :class:`~defocus.mechanisms.Ramp`, :class:`~defocus.mechanisms.Ladder` and
:class:`~defocus.mechanisms.NoisyLocalSensitivity` assume of a level: that it bounds how far the statistic moves around
this graph, moves by at most 1 itself, and does not exceed the global bound n − 2. The test suite checks all three, and
the laws of the outputs, on all graphs of up to six nodes.

Reference:
    Nissim, Raskhodnikova, Smith (2007), Smooth sensitivity and sampling in private data analysis, for levels of
    local sensitivity; Karwa, Raskhodnikova, Smith, Yaroslavtsev (2011), Private analysis of graph structure, for bounds
    on it that are easier to compute.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np
from sqlglot import exp

from defocus.engines.engine import Engine, integers
from defocus.graphs.distributed import edges as statements
from defocus.graphs.kernels.rows import of_degrees
from defocus.graphs.public import IntVector

__all__ = ["HUBS", "EngineArcs", "EngineGraph", "level", "nth_degree"]


HUBS = 8192
"""K: how many nodes of largest degree are compared, pair by pair. Public, and the same for all graphs."""
_FIRST = 64
"""So many nodes are compared first: what they share leaves fewer of the others to compare."""


def nth_degree(degrees: IntVector, times: IntVector, n: int) -> int:
    """The n-th largest degree, from rising degrees and how many nodes have each; 0 where there are fewer nodes.

    >>> import numpy as np
    >>> [nth_degree(np.array([1, 5]), np.array([3, 1]), n) for n in (1, 2, 4, 5)]
    [5, 1, 1, 0]
    """
    seen = 0
    for degree, many in zip(degrees[::-1].tolist(), times[::-1].tolist(), strict=True):
        seen += many
        if seen >= n:
            return int(degree)
    return 0


def level(
    degrees: IntVector,
    times: IntVector,
    nodes: int,
    shared: Callable[[int], int],
    *,
    hubs: int = HUBS,
    first: int = _FIRST,
) -> int:
    r"""The level :math:`\ell_K` of a graph.

    A few nodes of largest degree are compared first. What two of them share is a lower bound of the level, and then
    only nodes of larger degree than that need be compared, since others cannot share more.

    Args:
        degrees: which degrees there are, rising.
        times: how many nodes have each.
        nodes: how many nodes there are.
        shared: the largest number of neighbours shared by two nodes that both have a degree above a given one.
        hubs: K.
        first: how many nodes are compared first; the level does not depend on it.
    """
    least = min(nth_degree(degrees, times, hubs), max(nodes - 2, 0))
    above = nth_degree(degrees, times, min(first, hubs))
    level = max(least, shared(above) if above < nth_degree(degrees, times, 2) else 0)
    return level if level >= min(above, nodes - 2) else max(level, shared(level))


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EngineGraph:
    """An undirected simple graph whose edges stay in an engine.

    Guarantee:
        What it counts is what a :class:`~defocus.graphs.graph.Graph` of the same edges counts, to the last digit,
        except that :meth:`local` may be larger: see :mod:`~defocus.graphs.distributed.graph`. What comes here
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
        """See :func:`~defocus.graphs.kernels.rows.leading_pairs`: the pairs that decide how far stars move.

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
        full = dict(zip(*(column.tolist() for column in joined), strict=True))
        return next(
            (degree for degree in sorted(others, reverse=True) if others[degree] and full.get(degree, 0) < tops), -1
        )

    def _all_joined(self, degree: int, times: int) -> bool:
        return times < 2 or self._number(statements.among(self.ends, degree)) == math.comb(times, 2)

    def _number(self, asked: exp.Select) -> int:
        return int(integers(self.engine.run(asked).column("n"))[0])

    def _by_degree(self, asked: exp.Select) -> tuple[IntVector, IntVector]:
        rows = self.engine.run(asked)
        degrees, times = (integers(rows.column(name)) for name in ("degree", "times"))
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
    rows = engine.run(asked)
    degrees = np.zeros(nodes, np.int64)
    degrees[integers(rows.column("node"))] = integers(rows.column("degree"))
    return degrees
