"""Compiled loops over rows of neighbours: sorting them, triangles, and common neighbours.

From pairs of ends to sorted rows of neighbours, by counting instead of comparing: linear in the number of pairs.

Pairs are dealt to the rows of one end, in any order. Dealing those rows once more, row by row, to the other end
leaves every new row sorted, and equal neighbours beside each other.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import count
from defocus.graphs.graph import Graph
from defocus.machine_code import compiled, compiler

__all__ = [
    "Ints",
    "Longs",
    "Ranked",
    "closed_edges",
    "cores",
    "directed_rows",
    "in_pieces",
    "leading_pairs",
    "most_common_neighbours",
    "of_degrees",
    "projected",
    "projected_degrees",
    "ranked",
    "ready",
    "triangle_count",
    "undirected_rows",
]


_R = TypeVar("_R")


def in_pieces(work: Callable[[int], _R], pieces: int) -> list[_R]:
    """What ``work`` gives for 0, 1, … ``pieces`` - 1, computed by as many threads as there are cores."""
    if pieces == 1 or cores() == 1:
        return [work(piece) for piece in range(pieces)]
    with ThreadPoolExecutor(max_workers=min(pieces, cores())) as pool:
        return list(pool.map(work, range(pieces)))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ready() -> None:
    """Refuse if loops cannot be compiled here; asked before a ledger is made or charged."""
    compiler("Counting in graphs")


Longs: TypeAlias = NDArray[np.int64]
Ints: TypeAlias = NDArray[np.int32]


def undirected_rows(nodes: int, left: Longs, right: Longs) -> tuple[Longs, Ints]:
    """Offsets and targets of the simple undirected graph; loops and ends outside of [0, nodes) are left out."""
    starts = _room(nodes, left, right, True, True)
    dealt = _dealt(nodes, left, right, True, starts)
    return _turned(starts, dealt, starts)


def directed_rows(nodes: int, left: Longs, right: Longs) -> tuple[Longs, Ints]:
    """The same for arcs from ``left`` to ``right``."""
    starts = _room(nodes, left, right, False, True)
    dealt = _dealt(nodes, left, right, False, starts)
    return _turned(starts, dealt, _room(nodes, left, right, True, False))


@compiled
def _room(nodes: int, left: Longs, right: Longs, by_left: bool, by_right: bool) -> Longs:  # compiled
    """Where the row of each node starts, if pairs are dealt to the rows of their ends."""
    starts = np.zeros(nodes + 1, np.int64)
    for i in range(len(left)):
        u, v = left[i], right[i]
        if 0 <= u < nodes and 0 <= v < nodes and u != v:
            starts[u + 1] += by_left
            starts[v + 1] += by_right
    for u in range(nodes):
        starts[u + 1] += starts[u]
    return starts


@compiled
def _dealt(nodes: int, left: Longs, right: Longs, both: bool, starts: Longs) -> Ints:
    """The left ends in the rows of the right ones, and if ``both`` the other way round, too."""
    rows = np.empty(starts[nodes], np.int32)
    place = starts[:-1].copy()
    for i in range(len(left)):
        u, v = left[i], right[i]
        if 0 <= u < nodes and 0 <= v < nodes and u != v:
            rows[place[v]] = u
            place[v] += 1
            if both:
                rows[place[u]] = v
                place[u] += 1
    return rows


@compiled
def _turned(starts: Longs, dealt: Ints, room: Longs) -> tuple[Longs, Ints]:
    """The transposed rows, sorted and without repetitions."""
    nodes = len(starts) - 1
    rows = np.empty(room[nodes], np.int32)
    place = room[:-1].copy()
    for v in range(nodes):
        for k in range(starts[v], starts[v + 1]):
            u = dealt[k]
            if place[u] == room[u] or rows[place[u] - 1] != v:
                rows[place[u]] = v
                place[u] += 1
    offsets = np.zeros(nodes + 1, np.int64)
    for u in range(nodes):
        offsets[u + 1] = offsets[u] + place[u] - room[u]
        for k in range(place[u] - room[u]):  # a row only ever moves to the front
            rows[offsets[u] + k] = rows[room[u] + k]
    return offsets, rows[: offsets[nodes]].copy() if offsets[nodes] < len(rows) else rows


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


def closed_edges(graph: Graph) -> int:
    """How many edges have ends that share a neighbour."""
    return _closed(graph.offsets, graph.targets)


@compiled
def _closed(offsets: Longs, targets: Ints) -> int:
    nodes = len(offsets) - 1
    beside = np.full(nodes, -1, np.int64)  # of which node each one was last seen to be a neighbour
    count = 0
    for u in range(nodes):
        for k in range(offsets[u], offsets[u + 1]):
            beside[targets[k]] = u
        for k in range(offsets[u], offsets[u + 1]):
            v = targets[k]
            if v > u:
                for l in range(offsets[v], offsets[v + 1]):
                    if beside[targets[l]] == u:
                        count += 1
                        break
    return count


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
