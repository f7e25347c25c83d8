"""How many nodes have each degree once no node has more than a bound: a statistic for node privacy."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import count
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.kernels.rows import projected_degrees
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector
from defocus.graphs.statistics.capped import node_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import node

__all__ = ["ENTRY", "ProjectedHistogram"]


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


ENTRY = Entry(
    "projected_histogram",
    ProjectedHistogram,
    Certificate(
        statistics=tuple(ProjectedHistogram(t, cumulative) for t in (1, 2, 3) for cumulative in (False, True)),
        units=(node(),),
        tight_from=4,
    ),
)
