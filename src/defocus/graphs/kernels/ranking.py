"""The same graph with its nodes numbered by size: node 0 has the largest degree."""

from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.graphs.graph import Graph
from defocus.graphs.kernels.compiling import compiled
from defocus.graphs.kernels.rows import Ints, Longs

__all__ = ["Ranked", "ranked"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranked:
    """Rows of neighbours by rank. Neighbours of larger degree come first in a row: those of smaller rank."""

    offsets: Longs
    targets: Ints

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.offsets) - 1


def ranked(graph: Graph) -> Ranked:
    """The graph by rank: largest degree first, ties by number."""
    degrees = graph.degrees
    order = np.argsort(-degrees, kind="stable").astype(np.int32)
    rank = np.empty(graph.nodes, np.int32)
    rank[order] = np.arange(graph.nodes, dtype=np.int32)
    offsets = np.zeros(graph.nodes + 1, np.int64)
    np.cumsum(degrees[order], out=offsets[1:])
    return Ranked(offsets, _renamed(graph.offsets, graph.targets, order, rank, offsets))


@compiled
def _renamed(offsets: Longs, targets: Ints, order: Ints, rank: Ints, new: Longs) -> Ints:
    """Dealing by rising rank leaves every row sorted, since the graph is its own transpose."""
    rows = np.empty(len(targets), np.int32)
    place = new[:-1].copy()
    for r in range(len(order)):
        u = order[r]
        for k in range(offsets[u], offsets[u + 1]):
            w = rank[targets[k]]
            rows[place[w]] = r
            place[w] += 1
    return rows
