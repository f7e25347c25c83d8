"""From pairs of ends to sorted rows of neighbours, by counting instead of comparing: linear in the number of pairs.

Pairs are dealt to the rows of one end, in any order. Dealing those rows once more, row by row, to the other end
leaves every new row sorted, and equal neighbours beside each other.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from defocus.graphs.kernels.compiling import compiled

__all__ = ["Ints", "Longs", "directed_rows", "undirected_rows"]

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
