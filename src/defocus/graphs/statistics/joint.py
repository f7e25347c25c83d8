"""Several statistics as one vector, so that one noise serves for all."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.public import IntVector, Public, Statistic
from defocus.graphs.statistics.degrees import Degrees, Histogram
from defocus.graphs.statistics.subgraphs import Edges, Stars, Triangles
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "NAMES", "Joint", "named"]


@final
@dataclass(frozen=True, slots=True)
class Joint:
    r"""The entries of all ``parts``, one after the other.

    Guarantee:
        The sensitivity is the sum of those of the parts, in L1 and in squared L2. For edges, degrees, histograms, stars
        and triangles this is exact, because one pair of graphs moves all of them as far as they go: the complete
        graph, with and without one edge. Its two ends then have the same degree n − 2 and share all other nodes. So
        edges with the degree histogram have :math:`\Delta_1 = 1 + 4 = 5`; and edges, 2-stars and triangles, the
        statistics of an exponential random graph model, :math:`\Delta_1 = 1 + (2n-4) + (n-2) = 3n - 5`.

    >>> from defocus import edge
    >>> Joint((Edges(), Histogram())).sensitivity(Public(edge(), 100)).l1
    5
    >>> Joint((Edges(), Stars(2), Triangles())).sensitivity(Public(edge(), 100)).l1 == 3 * 100 - 5
    True
    """

    parts: Sequence[Statistic]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        given: tuple[Any, ...] = tuple(self.parts)
        names = [part.name for part in given if isinstance(part, Statistic)]
        if len(names) < 2 or len(names) != len(self.parts) or len(set(names)) != len(names):
            raise InvalidParameterError(
                "A joint release needs two or more different statistics.",
                fix="pass for example graphs.Edges(), graphs.Stars(2), graphs.Triangles().",
            )

    @property
    def name(self) -> str:
        """What it is called."""
        return ", ".join(part.name for part in self.parts)

    def exact(self, graph: Any) -> IntVector:
        """All entries."""
        return np.concatenate([part.exact(graph) for part in self.parts])

    def length(self, public: Public) -> int:
        """All entries together."""
        return sum(part.length(public) for part in self.parts)

    def sensitivity(self, public: Public) -> Sensitivity:
        """That of the parts, together."""
        return reduce(add, (part.sensitivity(public) for part in self.parts))


ENTRY = Entry(
    "joint",
    Joint,
    Certificate(
        statistics=(
            Joint((Edges(), Histogram())),
            Joint((Edges(), Stars(2), Triangles())),
            Joint((Degrees(), Histogram(cumulative=True), Stars(3), Triangles())),
        ),
        units=(edge(),),
        smallest=4,
    ),
)


_KNOWN: dict[str, Callable[[], Any]] = {
    "edges": Edges,
    "triangles": Triangles,
    "degree_histogram": Histogram,
    "degrees": Degrees,
}
_STARS = re.compile(r"stars_([0-9]{1,2})")
NAMES = (*_KNOWN, "stars_2")
"""Names that are known; any other number of leaves goes as well."""


def named(name: object) -> Any:
    """The statistic of this name; None where there is none.

    >>> named("stars_3"), named("squares")
    (Stars(k=3), None)
    """
    if not isinstance(name, str):
        return None
    stars = _STARS.fullmatch(name)
    if stars:
        return Stars(int(stars[1]))
    return _KNOWN[name]() if name in _KNOWN else None
