"""The degree of every node, node by node or in order of size."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector, edge_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "Degrees"]


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


ENTRY = Entry("degrees", Degrees, Certificate(statistics=(Degrees(), Degrees(ranked=True)), units=(edge(),)))
