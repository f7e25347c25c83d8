"""Statistics by the names that people write: "edges", "triangles", "stars_3"."""

import re
from collections.abc import Callable
from typing import Any

from defocus.graphs.statistics.degrees import Degrees
from defocus.graphs.statistics.edges import Edges
from defocus.graphs.statistics.histogram import Histogram
from defocus.graphs.statistics.stars import Stars
from defocus.graphs.statistics.triangles import Triangles

__all__ = ["NAMES", "named"]

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
