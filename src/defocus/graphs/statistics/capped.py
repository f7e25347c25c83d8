"""Edges and triangles of which no node has more than its share: statistics for node privacy."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, count, in_range
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.node.caps import capped_edges_twice
from defocus.graphs.node.programs import GRAIN, LARGEST, capped_triangles
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import node

__all__ = ["ENTRY", "TRIANGLES", "CappedEdges", "CappedTriangles", "node_sensitivity"]


def node_sensitivity(public: Public, one: Sensitivity, *, name: str) -> Sensitivity:
    """The sensitivity under node privacy, from that of one node added or removed; replacing one is two such changes."""
    if public.unit.kind != "node":
        raise InvalidParameterError(
            f"{name} is for graphs that protect nodes, and this one protects {public.unit}.",
            fix="ask for what protects edges: edges(), triangles(), degree_histogram().",
        )
    return one.times(public.changes)


@final
@dataclass(frozen=True, slots=True)
class CappedEdges:
    r"""Twice the number of edges, with at most ``cap`` counted at any node.

    Guarantee:
        Node privacy: :math:`\Delta_1 = \Delta_2 = 2D`, attained by a node that joins D others; see
        :func:`~defocus.graphs.node.caps.capped_edges_twice`. With ``cap`` the largest degree, D is the
        sensitivity of the number of edges itself, and a target M of its mean squared error is met at
        :math:`\varepsilon = D\sqrt{2/M}`.

    >>> from defocus import node
    >>> CappedEdges(50).sensitivity(Public(node(), None))
    Sensitivity(l1=100, l2_squared=10000)
    """

    cap: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cap", count("cap", self.cap))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"twice the edges, at most {self.cap} at a node"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        return np.array([capped_edges_twice(graph, self.cap)], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """A node counts for at most its cap."""
        return node_sensitivity(public, Sensitivity(2 * self.cap, 4 * self.cap**2), name=self.name)


@final
@dataclass(frozen=True, slots=True)
class CappedTriangles:
    r"""The number of triangles in 64ths, with at most ``cap`` counted at any node.

    Guarantee:
        Node privacy: :math:`\Delta_1 = \Delta_2 = 64D + 3`, where the 3 is for rounding; see
        :func:`~defocus.graphs.node.programs.capped_triangles`.
    """

    cap: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cap", int(in_range("cap", count("cap", self.cap), 1, LARGEST)))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"triangles, at most {self.cap} at a node"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        return np.array([capped_triangles(graph, self.cap)], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """A node counts for at most its cap, and for the rounding."""
        most = GRAIN * self.cap + 3
        return node_sensitivity(public, Sensitivity(most, most * most), name=self.name)


ENTRY = Entry(
    "capped_edges",
    CappedEdges,
    Certificate(statistics=(CappedEdges(1), CappedEdges(2)), units=(node(),), tight_from=3),
)
TRIANGLES = Entry(
    "capped_triangles",
    CappedTriangles,
    Certificate(
        statistics=(CappedTriangles(1), CappedTriangles(2)),
        units=(node(),),
        smallest=3,
        slack="room is left for rounding a value that a floating-point solver found",
    ),
)
