"""Statistics for node privacy: with each node's edges capped, or of projected graphs."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from defocus.errors import InvalidParameterError, count, in_range
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.kernels.rows import projected_degrees
from defocus.graphs.node.caps import capped_edges_twice, hirsch
from defocus.graphs.node.programs import GRAIN, LARGEST, capped_triangles
from defocus.graphs.public import IntVector, Public
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import node

__all__ = [
    "CAPPED_EDGES_ENTRY",
    "CAPPED_TRIANGLES_ENTRY",
    "HUBS_ENTRY",
    "PROJECTED_ENTRY",
    "CappedEdges",
    "CappedTriangles",
    "Hubs",
    "ProjectedHistogram",
    "node_sensitivity",
]


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


CAPPED_EDGES_ENTRY = Entry(
    "capped_edges",
    CappedEdges,
    Certificate(statistics=(CappedEdges(1), CappedEdges(2)), units=(node(),), tight_from=3),
)
CAPPED_TRIANGLES_ENTRY = Entry(
    "capped_triangles",
    CappedTriangles,
    Certificate(
        statistics=(CappedTriangles(1), CappedTriangles(2)),
        units=(node(),),
        smallest=3,
        slack="room is left for rounding a value that a floating-point solver found",
    ),
)


@final
@dataclass(frozen=True, slots=True)
class ProjectedHistogram:
    r"""The number of nodes of degree 0, 1, … ``most`` after stable projection; or, ``cumulative``, at most so many.

    Edges are taken in their order and kept while both ends have room. Nothing is left out of the cumulative vector: its
    last entry is the number of nodes, which is private.

    Guarantee:
        Node privacy, with :math:`\theta` = ``most``. Let v leave, with j kept edges. Each of these edges made room
        where it is gone, which the next edge there may take, which makes room elsewhere, and so on: of each such chain
        only the last node has another degree than before, by one. So at most :math:`j \le \theta` of the other degrees
        move, by one each in all. The histogram moves by 2j for those and 1 for v:
        :math:`\Delta_1 = 2\theta + 1` and :math:`\Delta_2^2 \le \theta^2 + (\theta+1)^2`. The cumulative one moves by
        j for those and by :math:`\theta + 1 - j` for v: :math:`\Delta_1 = \theta + 1` and
        :math:`\Delta_2^2 \le \theta^2 + 1`.
    Reference:
        Day, Li, Lyu (2016), Publishing graph degree distribution with node differential privacy, Lemmas 8 and 9.

    >>> from defocus import node
    >>> ProjectedHistogram(20, cumulative=True).sensitivity(Public(node(), None)).l1
    21
    """

    most: int
    cumulative: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", count("most", self.most))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{'cumulative ' * self.cumulative}degree histogram, at most {self.most} edges at a node"

    def exact(self, graph: Any) -> IntVector:
        """The counts."""
        counts = np.bincount(projected_degrees(graph, self.most), minlength=self.most + 1).astype(np.int64)
        return np.cumsum(counts) if self.cumulative else counts

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One entry for each degree up to the bound."""
        return self.most + 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """One node leaves, and as many others as it had edges move. Nodes without an edge must be known."""
        public.need_all_nodes()
        t = self.most
        one = Sensitivity(t + 1, t * t + 1) if self.cumulative else Sensitivity(2 * t + 1, t * t + (t + 1) ** 2)
        return node_sensitivity(public, one, name=self.name)


PROJECTED_ENTRY = Entry(
    "projected_histogram",
    ProjectedHistogram,
    Certificate(
        statistics=tuple(ProjectedHistogram(t, cumulative) for t in (1, 2, 3) for cumulative in (False, True)),
        units=(node(),),
        tight_from=4,
    ),
)


@final
@dataclass(frozen=True, slots=True)
class Hubs:
    r"""The largest H such that H nodes have a degree of at least H: what a search for a cap begins with.

    Guarantee:
        Node privacy: :math:`\Delta_1 = \Delta_2 = 1`, attained; see :func:`~defocus.graphs.node.caps.hirsch`.

    >>> from defocus import node
    >>> Hubs().sensitivity(Public(node(), None))
    Sensitivity(l1=1, l2_squared=1)
    """

    name: ClassVar[str] = "hubs"

    def exact(self, graph: Any) -> IntVector:
        """The number, in a vector of one."""
        return np.array([hirsch(graph)], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """A node is one of the hubs at most, and takes one edge from each of the others."""
        return node_sensitivity(public, Sensitivity(1, 1), name=self.name)


HUBS_ENTRY = Entry("hubs", Hubs, Certificate(statistics=(Hubs(),), units=(node(),)))
