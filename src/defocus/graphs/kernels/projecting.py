"""Graphs of bounded degree: edges are kept while both of their ends have room."""

import numpy as np

from defocus.errors import count
from defocus.graphs.graph import Graph
from defocus.graphs.kernels.compiling import compiled
from defocus.graphs.kernels.rows import Ints, Longs

__all__ = ["projected", "projected_degrees"]


def projected_degrees(graph: Graph, most: int) -> Longs:
    r"""The degrees after stable projection: edges are taken in their order and kept while both ends have room.

    Guarantee:
        The order, by the smaller end and then by the larger, does not change for the other edges when a node leaves.
        With :math:`\theta` = ``most``, the degrees of the others then move by at most :math:`\theta` in all.
    Reference:
        Day, Li, Lyu (2016), Publishing graph degree distribution with node differential privacy, Section 4.
    """
    degrees, _ = _kept(graph.offsets, graph.targets, count("most", most))
    return degrees


def projected(graph: Graph, most: int) -> Graph:
    """The projected graph itself, in which no node has more than ``most`` neighbours."""
    degrees, kept = _kept(graph.offsets, graph.targets, count("most", most))
    offsets = np.zeros(graph.nodes + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    return Graph(graph.nodes, offsets, graph.targets[kept])


@compiled
def _kept(offsets: Longs, targets: Ints, most: int) -> tuple[Longs, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Degrees, and which entries of the rows stay: both copies of every edge that does."""
    nodes = len(offsets) - 1
    degrees = np.zeros(nodes, np.int64)
    kept = np.zeros(len(targets), np.bool_)
    place = offsets[:-1].copy()  # rows are met in rising order, so copies are, too
    for u in range(nodes):
        for k in range(offsets[u], offsets[u + 1]):
            v = targets[k]
            if v < u:
                continue
            if degrees[u] < most and degrees[v] < most:
                degrees[u] += 1
                degrees[v] += 1
                kept[k] = True
                kept[place[v]] = True
            place[v] += 1
    return degrees, kept
