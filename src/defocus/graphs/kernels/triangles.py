"""Triangles, and the largest number of common neighbours that two nodes have."""

from typing import Any

import numpy as np

from defocus.graphs.graph import Graph
from defocus.graphs.kernels.rows import Ints, Longs, Ranked, compiled, cores, in_pieces

__all__ = ["leading_pairs", "most_common_neighbours", "of_degrees", "triangle_count"]


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
        common = 0
        for k in range(offsets[u], offsets[u + 1]):
            v = targets[k]
            l, end = offsets[v] + place[v], offsets[v + 1]
            while l < end and targets[l] <= u:
                l += 1
            place[v] = l - offsets[v]
            while l < end and targets[l] < limit:
                w = targets[l]
                if shared[w] == 0:
                    touched[common] = w
                    common += 1
                shared[w] += 1
                l += 1
        for k in range(common):
            w = touched[k]
            most = max(most, np.int64(shared[w]))
            shared[w] = 0
        best[thread, 0] = most
    return 0


def leading_pairs(graph: Graph) -> list[tuple[int, int]]:
    r"""Pairs (x, y), x >= y, of which one moves stars furthest, at every distance; at most three.

    With :math:`x = d_i - a_{ij}` and :math:`y = d_j - a_{ij}`, the degrees of two nodes without the edge between
    them, adding or removing that edge moves the number of k-stars by
    :math:`\binom{x}{k-1} + \binom{y}{k-1}`, which grows with both. So only pairs that no other pair exceeds in both
    matter. Let :math:`D_1 \ge D_2` be the largest degrees. Two nodes that have them give
    :math:`(D_1 - 1, D_2 - 1)` if they are joined, or else :math:`(D_1, D_2)`, which exceeds all. A pair that is not
    below the first has :math:`x = D_1`, or :math:`y = D_2`, and is not joined: a node of degree :math:`D_1` with
    its largest stranger, or two strangers of degree :math:`D_2`.

    >>> from defocus.graphs.data import build
    >>> leading_pairs(build(4, [0, 0, 1], [1, 2, 2]))
    [(2, 0), (1, 1)]
    """
    if graph.nodes < 2:
        return []
    degrees = graph.degrees
    order = np.argsort(-degrees, kind="stable").astype(np.int32)
    first, second = int(degrees[order[0]]), int(degrees[order[1]])
    stranger = _largest_stranger(graph.offsets, graph.targets, order, first, second)
    twins = first > second and _largest_stranger(graph.offsets, graph.targets, order[1:], second, second) == second
    return of_degrees(first, second, stranger, twins=twins)


def of_degrees(first: int, second: int, stranger: int, *, twins: bool) -> list[tuple[int, int]]:
    """The pairs, from the two largest degrees, and who is not joined.

    ``stranger`` is the degree of the largest stranger of a node of the first degree, or -1; ``twins`` says whether two
    nodes of the second degree, which is smaller, are strangers.
    """
    pairs = {(max(first - 1, 0), max(second - 1, 0))}
    if stranger >= 0:
        pairs.add((first, stranger))
    if twins:
        pairs.add((second, second))
    return sorted((pair for pair in pairs if not _exceeded(pair, pairs)), reverse=True)


def _exceeded(pair: tuple[int, int], pairs: set[tuple[int, int]]) -> bool:
    return any(other != pair and other[0] >= pair[0] and other[1] >= pair[1] for other in pairs)


@compiled
def _largest_stranger(offsets: Longs, targets: Ints, order: Ints, degree: int, enough: int) -> int:
    """The largest degree of a node in ``order`` that some node of ``degree``, the largest there, is not joined to."""
    met = np.zeros(len(offsets) - 1, np.bool_)
    most = -1
    for i in range(len(order)):
        u = order[i]
        if offsets[u + 1] - offsets[u] != degree or most >= enough:
            break
        for k in range(offsets[u], offsets[u + 1]):
            met[targets[k]] = True
        for j in range(len(order)):
            v = order[j]
            if v != u and not met[v]:
                most = max(most, offsets[v + 1] - offsets[v])
                break
        for k in range(offsets[u], offsets[u + 1]):
            met[targets[k]] = False
    return most
