"""Which pairs of nodes decide how far one edge can move the number of stars."""

import numpy as np

from defocus.graphs.graph import Graph
from defocus.graphs.kernels.compiling import compiled
from defocus.graphs.kernels.rows import Ints, Longs

__all__ = ["leading_pairs", "of_degrees"]


def leading_pairs(graph: Graph) -> list[tuple[int, int]]:
    r"""Pairs (x, y), x >= y, of which one moves stars furthest, at every distance; at most three.

    With :math:`x = d_i - a_{ij}` and :math:`y = d_j - a_{ij}`, the degrees of two nodes without the edge between
    them, adding or removing that edge moves the number of k-stars by
    :math:`\binom{x}{k-1} + \binom{y}{k-1}`, which grows with both. So only pairs that no other pair exceeds in both
    matter. Let :math:`D_1 \ge D_2` be the largest degrees. Two nodes that have them give
    :math:`(D_1 - 1, D_2 - 1)` if they are joined, or else :math:`(D_1, D_2)`, which exceeds all. A pair that is not
    below the first has :math:`x = D_1`, or :math:`y = D_2`, and is not joined: a node of degree :math:`D_1` with
    its largest stranger, or two strangers of degree :math:`D_2`.

    >>> from defocus.graphs.building import build
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
