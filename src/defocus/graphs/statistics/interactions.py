"""How many interactions fall into each step of time, where one interaction is protected."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.data import MISSING_TIME, Pairs
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import Adjacency, item

__all__ = ["ENTRY", "Interactions", "counted"]


@final
@dataclass(frozen=True, slots=True)
class Interactions:
    r"""How many interactions there were in each step; ``bounds`` are where steps begin, and the end of the last.

    Guarantee:
        Event privacy: one interaction is in one step, so :math:`\Delta_1 = \Delta_2 = 1` for the whole series, however
        many steps there are; where one replaces another, it leaves one step and enters one, :math:`\Delta_1 = 2` and
        :math:`\Delta_2^2 = 2`. Interactions outside of the steps, without a time, of a node with itself, or with an
        end that is no node are left out.

    >>> Interactions((0, 5, 10)).sensitivity(Public(item(), 4))
    Sensitivity(l1=1, l2_squared=1)
    """

    bounds: tuple[int, ...]

    @property
    def name(self) -> str:
        """What it is called."""
        return "interactions"

    def exact(self, graph: Any) -> IntVector:
        """The counts, of private data with a list of edges."""
        return counted(graph.pairs, np.array(self.bounds, np.int64))

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One count for each step."""
        return len(self.bounds) - 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """One interaction."""
        if public.unit.kind != "event":
            raise InvalidParameterError(
                f"Interactions are asked of graphs that protect events, and this one protects {public.unit}.",
                fix='open it with unit=dp.item() and time="name of the column".',
            )
        return Sensitivity(2, 2) if public.unit.adjacency is Adjacency.REPLACE else Sensitivity(1, 1)


def counted(pairs: Pairs, bounds: NDArray[np.int64]) -> IntVector:
    """How many interactions fall into each step."""
    if pairs.times is None:
        return np.zeros(len(bounds) - 1, np.int64)
    there = (pairs.left >= 0) & (pairs.right >= 0) & (pairs.left != pairs.right) & (pairs.times != MISSING_TIME)
    times = pairs.times[there]
    times = times[(times >= bounds[0]) & (times < bounds[-1])]
    at = np.searchsorted(bounds, times, side="right") - 1
    return np.bincount(at, minlength=len(bounds) - 1).astype(np.int64)


ENTRY = Entry(
    "interactions",
    Interactions,
    Certificate(statistics=(Interactions((0, 5, 10)),), units=(item(), item(replace=True))),
)
