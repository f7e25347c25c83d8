"""How many nodes have at least as many neighbours: a statistic for node privacy."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.node.caps import hirsch
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector
from defocus.graphs.statistics.capped import node_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import node

__all__ = ["ENTRY", "Hubs"]


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

    @property
    def name(self) -> str:
        """What it is called."""
        return "hubs"

    def exact(self, graph: Any) -> IntVector:
        """The number, in a vector of one."""
        return np.array([hirsch(graph)], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """A node is one of the hubs at most, and takes one edge from each of the others."""
        return node_sensitivity(public, Sensitivity(1, 1), name=self.name)


ENTRY = Entry("hubs", Hubs, Certificate(statistics=(Hubs(),), units=(node(),)))
