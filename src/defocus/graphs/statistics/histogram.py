"""How many nodes have each degree, degree by degree or up to each degree."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, count
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector, edge_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "Histogram"]


@final
@dataclass(frozen=True, slots=True)
class Histogram:
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

    def last(self, public: Public) -> int:
        """The last degree that has a place of its own, or stands for all larger ones."""
        if public.n < 2:
            raise InvalidParameterError(
                f"A graph of {public.n} nodes has no edges, so its degrees are public.",
                fix="open a graph of two nodes.",
            )
        return public.n - 1 if self.at_most is None else min(self.at_most, public.n - 1)

    def exact(self, graph: Any) -> IntVector:
        """The counts."""
        top = graph.nodes - 1 if self.at_most is None else min(self.at_most, graph.nodes - 1)
        counts = np.zeros(top + 1, np.int64)
        degrees, times = graph.degree_counts()
        np.add.at(counts, np.minimum(degrees, top), times)
        return np.cumsum(counts)[:-1] if self.cumulative else counts

    def length(self, public: Public) -> int:
        """One entry for each degree."""
        return self.last(public) + (not self.cumulative)

    def sensitivity(self, public: Public) -> Sensitivity:
        """Two nodes move up by one."""
        self.last(public)
        return edge_sensitivity(public, Sensitivity(2, 4) if self.cumulative else Sensitivity(4, 8), name=self.name)


ENTRY = Entry(
    "degree_histogram",
    Histogram,
    Certificate(
        statistics=tuple(Histogram(top, cumulative) for top in (None, 1, 3) for cumulative in (False, True)),
        units=(edge(),),
    ),
)
