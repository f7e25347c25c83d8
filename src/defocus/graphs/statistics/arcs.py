"""Degrees of directed graphs: how many arcs leave each node, or reach it."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, count
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector, edge_sensitivity
from defocus.graphs.statistics.edges import Edges
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "ArcDegrees", "ArcHistogram", "checked_side"]


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
class ArcHistogram:
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

    def last(self, public: Public) -> int:
        """The last degree that has a place of its own, or stands for all larger ones."""
        top = _several(public.n) - 1
        return top if self.at_most is None else min(self.at_most, top)

    def exact(self, graph: Any) -> IntVector:
        """The counts."""
        top = graph.nodes - 1 if self.at_most is None else min(self.at_most, graph.nodes - 1)
        degrees = graph.out_degrees if self.side == "out" else graph.in_degrees
        counts = np.bincount(np.minimum(degrees, top), minlength=top + 1).astype(np.int64)
        return np.cumsum(counts)[:-1] if self.cumulative else counts

    def length(self, public: Public) -> int:
        """One entry for each degree."""
        return self.last(public) + (not self.cumulative)

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


ENTRY = Entry(
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
