"""Compiled loops over rows of neighbours.

From pairs of ends to sorted rows of neighbours, by counting instead of comparing: linear in the number of pairs.

Pairs are dealt to the rows of one end, in any order. Dealing those rows once more, row by row, to the other end
leaves every new row sorted, and equal neighbours beside each other.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import MissingExtraError, count
from defocus.graphs.graph import Graph

__all__ = [
    "Ints",
    "Longs",
    "Ranked",
    "compiled",
    "cores",
    "directed_rows",
    "in_pieces",
    "projected",
    "projected_degrees",
    "ranked",
    "ready",
    "undirected_rows",
]


_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code, compiled on its first call and kept on disk for the next process.

    The code runs without Python's lock, so that threads share the work. Without numba it is refused: interpreted,
    the loops would take hundreds of times as long.
    """

    @wraps(function)
    def run(*arguments: _P.args, **named: _P.kwargs) -> _R:
        result: _R = _machine_code(function)(*arguments, **named)
        return result

    return run


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
    _numba()


def _numba() -> Any:
    """The compiler. One that cannot be loaded is as good as none."""
    try:
        return import_module("numba")
    except ImportError as error:
        raise MissingExtraError("Counting in graphs", package="numba", extra="graph") from error


@cache
def _machine_code(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled_function: Callable[..., Any] = _numba().njit(cache=True, nogil=True)(function)
    return compiled_function


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
