"""The number of edges."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector, edge_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "Edges"]


@final
@dataclass(frozen=True, slots=True)
class Edges:
    r"""How many edges the graph has.

    Guarantee:
        Edge privacy: one edge more or less moves the count by exactly 1, so :math:`\Delta_1 = \Delta_2 = 1`.
        With Laplace noise of scale :math:`1/\varepsilon` the mean squared error is :math:`2/\varepsilon^2`:
        a target M is met at :math:`\varepsilon = \sqrt{2/M}`.

    >>> from defocus import edge
    >>> Edges().sensitivity(Public(edge(), 100))
    Sensitivity(l1=1, l2_squared=1)
    """

    @property
    def name(self) -> str:
        """What it is called."""
        return "edges"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        return np.array([graph.edges], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """One edge is one edge."""
        return edge_sensitivity(public, Sensitivity(1, 1), name=self.name)


ENTRY = Entry("edges", Edges, Certificate(statistics=(Edges(),), units=(edge(),)))
