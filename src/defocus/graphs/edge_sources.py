"""Where edges come from: the columns of a source, and the nodes that it lists itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.graphs.node_names import Column

__all__ = ["UNTYPED", "EdgeColumns", "EdgeSource"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeColumns:
    """The two ends of every edge as they are called in the data, with weights and times where they were named."""

    left: Column
    right: Column
    weights: Column | None = None
    times: Column | None = None


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeSource:
    """A list of edges that can be read.

    Everything here but what ``read`` and ``listed`` give is public: it comes from types, names and schemas.

    Args:
        kind: what it is, in words.
        name: what the data is called where nobody says; None for data in memory.
        head: the columns without rows, which have the same types.
        read: reads all edges.
        listed: the nodes that the source lists beside its edges, if it does.
        directed: whether its edges have a direction; None where it does not say.
    """

    kind: str
    name: str | None
    head: EdgeColumns
    read: Callable[[], EdgeColumns]
    listed: Callable[[], Sequence[Any]] | None = None
    directed: bool | None = None
    written: bool = False
    """Whether ends are text that may stand for whole numbers, as in CSV."""
    ends: tuple[str, str] | None = None
    """The columns that hold the ends, where the data has more than those two."""


UNTYPED = EdgeColumns(np.zeros(0, object), np.zeros(0, object), np.zeros(0, object), np.zeros(0, object))
"""The head of lists of Python objects, which may hold anything."""
