"""The number of triangles."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.graph import Undirected
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector, edge_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "Triangles"]


@final
@dataclass(frozen=True, slots=True)
class Triangles:
    r"""How many triples of nodes are joined to each other.

    Guarantee:
        Edge privacy: an edge between i and j closes one triangle with each common neighbour of i and j, of which
        there are at most n − 2: :math:`\Delta_1 = \Delta_2 = n - 2`, attained where all others are common neighbours.
        Around one graph the count moves by at most the largest number of common neighbours that any two
        nodes have, joined or not. That number is :meth:`local`; it moves by at most 1 itself, since an edge is in at
        most one of the two links from i and j to any common neighbour.
    Reference:
        Nissim, Raskhodnikova, Smith (2007), Smooth sensitivity and sampling in private data analysis, Section 3.3.

    >>> from defocus import edge
    >>> Triangles().sensitivity(Public(edge(), 100))
    Sensitivity(l1=98, l2_squared=9604)
    """

    @property
    def name(self) -> str:
        """What it is called."""
        return "triangles"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        return np.array([graph.triangles()], np.int64)

    def local(self, graph: Undirected) -> tuple[int, int]:
        """The count, and how far one edge can move it around this graph; in an engine, or a little more."""
        return graph.triangles_and_level()

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """All other nodes are common neighbours."""
        if public.n < 3:
            raise InvalidParameterError(
                f"A graph of {public.n} nodes has no triangles, whatever its edges are.",
                fix="open a graph of at least three nodes.",
            )
        return edge_sensitivity(public, Sensitivity(public.n - 2, (public.n - 2) ** 2), name=self.name)


ENTRY = Entry("triangles", Triangles, Certificate(statistics=(Triangles(),), units=(edge(),), smallest=3))
