"""Degrees and their histograms, of undirected and directed graphs."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, count
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.public import IntVector, Public, edge_sensitivity
from defocus.graphs.statistics.subgraphs import Edges
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = [
    "ARCS_ENTRY",
    "DEGREES_ENTRY",
    "HISTOGRAM_ENTRY",
    "ArcDegrees",
    "ArcHistogram",
    "Degrees",
    "Histogram",
    "checked_side",
]


@final
@dataclass(frozen=True, slots=True)
class Degrees:
    r"""How many neighbours each node has; ``ranked`` in order of size, smallest first.

    Guarantee:
        Edge privacy: an edge raises the degrees of its two ends by one each, so :math:`\Delta_1 = 2` and
        :math:`\Delta_2 = \sqrt 2`. Sorting moves no two vectors further apart, in either norm (the sum over
        sorted pairs is the least over all pairings), and the bound is attained.
    Reference:
        Hay, Li, Miklau, Jensen (2009), Accurate estimation of the degree distribution of private networks.

    >>> from defocus import edge
    >>> Degrees().sensitivity(Public(edge(), 100))
    Sensitivity(l1=2, l2_squared=2)
    """

    ranked: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return "degrees in order of size" if self.ranked else "degrees"

    def exact(self, graph: Any) -> IntVector:
        """One degree for each node."""
        return np.repeat(*graph.degree_counts()) if self.ranked else graph.degrees

    def length(self, public: Public) -> int:
        """As many as there are nodes."""
        return _some(public.n)

    def sensitivity(self, public: Public) -> Sensitivity:
        """The two ends of one edge."""
        _some(public.n)
        return edge_sensitivity(public, Sensitivity(2, 2), name=self.name)


def _some(nodes: int) -> int:
    if nodes < 1:
        raise InvalidParameterError("A graph without nodes has no degrees.", fix="list its nodes: nodes=….")
    return nodes


DEGREES_ENTRY = Entry("degrees", Degrees, Certificate(statistics=(Degrees(), Degrees(ranked=True)), units=(edge(),)))


class _ByDegree:
    """A place for each degree up to the last, or, ``cumulative``, for each but the last, which is n and public."""

    __slots__ = ()
    at_most: int | None
    cumulative: bool

    def last(self, public: Public) -> int:
        """The last degree that has a place of its own, or stands for all larger ones."""
        return self._top(_several(public.n))

    def length(self, public: Public) -> int:
        """One entry for each degree."""
        return self.last(public) + (not self.cumulative)

    def _top(self, nodes: int) -> int:
        return nodes - 1 if self.at_most is None else min(self.at_most, nodes - 1)


@final
@dataclass(frozen=True, slots=True)
class Histogram(_ByDegree):
    r"""The number of nodes of degree 0, 1, …; or, ``cumulative``, the number of degree at most 0, 1, ….

    Degrees of ``at_most`` and more share the last place; without it there is one place for every degree below n.
    The cumulative vector leaves its last entry out, which is n and public.

    Guarantee:
        Edge privacy: an edge moves its two ends, of degrees a and b, one place up. In the histogram a node that
        moves leaves one place and enters the next: :math:`\Delta_1 = 4`, attained unless the moves cancel, and
        :math:`\Delta_2^2 = 8`, attained for a = b, where one place loses two nodes and the next gains two. In the
        cumulative vector it changes entry a only: :math:`\Delta_1 = 2`, and :math:`\Delta_2^2 = 4` for a = b.
        Sharing the last place is a linear map that takes moves away and adds none. All bounds are attained by the
        first edge of a graph.

    >>> from defocus import edge
    >>> public = Public(edge(), 100)
    >>> Histogram().sensitivity(public).l1, Histogram(cumulative=True).sensitivity(public).l1
    (4, 2)
    """

    at_most: int | None = None
    cumulative: bool = False

    def __post_init__(self) -> None:
        if self.at_most is not None:
            object.__setattr__(self, "at_most", count("at_most", self.at_most))

    @property
    def name(self) -> str:
        """What it is called."""
        return "cumulative degree histogram" if self.cumulative else "degree histogram"

    def exact(self, graph: Any) -> IntVector:
        """The counts."""
        top = self._top(graph.nodes)
        counts = np.zeros(top + 1, np.int64)
        degrees, times = graph.degree_counts()
        np.add.at(counts, np.minimum(degrees, top), times)
        return np.cumsum(counts)[:-1] if self.cumulative else counts

    def sensitivity(self, public: Public) -> Sensitivity:
        """Two nodes move up by one."""
        self.last(public)
        return edge_sensitivity(public, Sensitivity(2, 4) if self.cumulative else Sensitivity(4, 8), name=self.name)


HISTOGRAM_ENTRY = Entry(
    "degree_histogram",
    Histogram,
    Certificate(
        statistics=tuple(Histogram(top, cumulative) for top in (None, 1, 3) for cumulative in (False, True)),
        units=(edge(),),
    ),
)


def checked_side(side: object) -> str:
    """Return ``side`` if it is "out" or "in"."""
    if side not in {"out", "in"}:
        raise InvalidParameterError(
            f"The arcs of a node are those that go out or come in, but side is {side!r:.60}.",
            fix='pass side="out" or side="in".',
        )
    return str(side)


@final
@dataclass(frozen=True, slots=True)
class ArcDegrees:
    r"""How many arcs leave each node, or reach it; ``ranked`` in order of size, smallest first.

    Guarantee:
        Edge privacy, one arc: it leaves one node and reaches one, so :math:`\Delta_1 = \Delta_2 = 1`; sorting moves
        no two vectors further apart.

    >>> from defocus import edge
    >>> ArcDegrees("in").sensitivity(Public(edge(), 100, directed=True))
    Sensitivity(l1=1, l2_squared=1)
    """

    side: str = "out"
    ranked: bool = False

    def __post_init__(self) -> None:
        checked_side(self.side)

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.side}-degrees" + (" in order of size" if self.ranked else "")

    def exact(self, graph: Any) -> IntVector:
        """One degree for each node."""
        degrees: IntVector = graph.out_degrees if self.side == "out" else graph.in_degrees
        return np.sort(degrees) if self.ranked else degrees

    def length(self, public: Public) -> int:
        """As many as there are nodes."""
        return _several(public.n)

    def sensitivity(self, public: Public) -> Sensitivity:
        """One end of one arc."""
        _several(public.n)
        return edge_sensitivity(public, Sensitivity(1, 1), name=self.name)


@final
@dataclass(frozen=True, slots=True)
class ArcHistogram(_ByDegree):
    r"""The number of nodes that so many arcs leave, or reach; or, ``cumulative``, that at most so many do.

    Guarantee:
        Edge privacy, one arc: one node moves one place up. :math:`\Delta_1 = \Delta_2^2 = 2` for the histogram, and 1
        for the cumulative vector, which leaves out its last entry, n.
    """

    side: str = "out"
    at_most: int | None = None
    cumulative: bool = False

    def __post_init__(self) -> None:
        checked_side(self.side)
        if self.at_most is not None:
            object.__setattr__(self, "at_most", count("at_most", self.at_most))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{'cumulative ' * self.cumulative}{self.side}-degree histogram"

    def exact(self, graph: Any) -> IntVector:
        """The counts."""
        top = self._top(graph.nodes)
        degrees = graph.out_degrees if self.side == "out" else graph.in_degrees
        counts = np.bincount(np.minimum(degrees, top), minlength=top + 1).astype(np.int64)
        return np.cumsum(counts)[:-1] if self.cumulative else counts

    def sensitivity(self, public: Public) -> Sensitivity:
        """One node moves up by one."""
        self.last(public)
        return edge_sensitivity(public, Sensitivity(1, 1) if self.cumulative else Sensitivity(2, 2), name=self.name)


def _several(nodes: int) -> int:
    if nodes < 2:
        raise InvalidParameterError(
            f"A graph of {nodes} nodes has no edges, so its degrees are public.", fix="open a graph of two nodes."
        )
    return nodes


ARCS_ENTRY = Entry(
    "arcs",
    ArcDegrees,
    Certificate(
        statistics=(
            Edges(),
            *(ArcDegrees(side, ranked) for side in ("out", "in") for ranked in (False, True)),
            *(ArcHistogram("in", top, cumulative) for top in (None, 1, 2) for cumulative in (False, True)),
            ArcHistogram("out"),
        ),
        units=(edge(),),
        directed=True,
    ),
)
