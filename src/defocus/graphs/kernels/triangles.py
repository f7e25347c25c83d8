r"""Triangles, and the largest number of common neighbours that two nodes have."""

from typing import Any

import numpy as np

from defocus.graphs.kernels.compiling import compiled, cores, in_pieces
from defocus.graphs.kernels.ranking import Ranked
from defocus.graphs.kernels.rows import Ints, Longs

__all__ = ["most_common_neighbours", "triangle_count"]

_PIECES = 64
"""Into how many pieces the work is dealt, so that threads end together."""


def triangle_count(graph: Ranked) -> int:
    r"""How many triples of nodes are joined to each other.

    Every triangle is found once, at the node of its three that has the smallest degree, among the neighbours of
    larger degree. No node has more than :math:`\sqrt{2m}` of those, so the work is :math:`O(m^{3/2})` at most.

    Reference:
        Latapy (2008), Main-memory triangle computations for very large (sparse (power-law)) graphs.
    """
    pieces = _PIECES if len(graph.targets) > 1 << 16 else 1
    ahead = _ahead(graph.offsets, graph.targets)
    return sum(in_pieces(lambda k: _triangles(graph.offsets, graph.targets, ahead, k, pieces), pieces))


def most_common_neighbours(graph: Ranked) -> int:
    """The largest number of neighbours that any two nodes share, whether they are joined or not.

    A pair shares at most as many as its smaller degree. So nodes are taken by falling degree, each is compared with
    those of smaller degree that could still beat the best pair so far, and nothing is left to do once degrees fall
    to it. Neighbours that could are at the front of every row.
    """
    if graph.nodes < 2:
        return 0
    threads = cores() if len(graph.targets) > 1 << 16 else 1
    best = np.zeros((threads, 8), np.int64)  # a cache line for each thread
    second = int(graph.offsets[2] - graph.offsets[1])  # no pair shares more, so small counters do
    counter = np.uint8 if second < 2**8 else (np.uint16 if second < 2**16 else np.uint32)
    falling = (graph.offsets[:-1] - graph.offsets[1:]).astype(np.int32)  # degrees below zero, so that they rise
    rows = (graph.offsets, graph.targets, falling)
    in_pieces(lambda k: _common(rows, np.zeros(graph.nodes, counter), best, k), threads)
    return int(best.max())


@compiled
def _ahead(offsets: Longs, targets: Ints) -> Longs:
    """Where the neighbours of larger degree end in each row."""
    nodes = len(offsets) - 1
    ends = np.empty(nodes, np.int64)
    for u in range(nodes):
        low, high = offsets[u], offsets[u + 1]
        while low < high:
            middle = (low + high) >> 1
            if targets[middle] < u:
                low = middle + 1
            else:
                high = middle
        ends[u] = low
    return ends


@compiled
def _triangles(offsets: Longs, targets: Ints, ahead: Longs, piece: int, pieces: int) -> int:
    """Triangles whose node of smallest degree is in this piece: every ``pieces``-th one."""
    nodes = len(offsets) - 1
    marked = np.zeros(nodes, np.bool_)
    count = 0
    for u in range(piece, nodes, pieces):
        start, end = offsets[u], ahead[u]
        if end - start < 2:
            continue
        for k in range(start, end):
            marked[targets[k]] = True
        for k in range(start + 1, end):
            v = targets[k]
            for l in range(offsets[v], ahead[v]):
                count += marked[targets[l]]
        for k in range(start, end):
            marked[targets[k]] = False
    return count


@compiled
def _common(rows: tuple[Longs, Ints, Ints], shared: Any, best: Longs, thread: int) -> int:
    """Take every so manieth node; threads read each other's best, and an old one only makes them slower."""
    offsets, targets, falling = rows
    nodes = len(offsets) - 1
    touched = np.empty(nodes, np.int32)
    place = np.zeros(nodes, np.int32)  # in each row, where ranks beyond the last node taken begin
    for u in range(thread, nodes, len(best)):
        most = best[:, 0].max()
        limit = np.searchsorted(falling, -most)  # nodes from here on have too small a degree
        if u >= limit:
            break
        found = 0
        for k in range(offsets[u], offsets[u + 1]):
            v = targets[k]
            l, end = offsets[v] + place[v], offsets[v + 1]
            while l < end and targets[l] <= u:
                l += 1
            place[v] = l - offsets[v]
            while l < end and targets[l] < limit:
                w = targets[l]
                if shared[w] == 0:
                    touched[found] = w
                    found += 1
                shared[w] += 1
                l += 1
        for k in range(found):
            w = touched[k]
            most = max(most, np.int64(shared[w]))
            shared[w] = 0
        best[thread, 0] = most
    return 0
