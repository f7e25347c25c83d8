r"""What noise for triangles follows where edges are counted in SQL: a bound that needs the pairs of few nodes only.

The number of triangles moves by at most :math:`\ell`, the largest number of neighbours that two nodes share, which
itself moves by at most 1. To find it, all pairs of neighbours of every node would have to be counted: a node of degree
d has :math:`\binom d2` of them, and one hub of a million neighbours too many for any engine. So a slightly larger level
is used. With :math:`D_K` the K-th largest degree, for a public K,

.. math:: \ell_K(G) = \max\{\ell(G),\ \min(D_K(G),\, n - 2)\} .

*It can be computed from K nodes.* Two nodes share at most as many neighbours as the smaller of their degrees. So pairs
with a node of degree at most :math:`D_K` share at most :math:`\min(D_K, n-2)`, and :math:`\ell_K` is the maximum of
that and of what pairs of nodes of degree above :math:`D_K` share, of which there are at most K − 1. A node has at most
:math:`\binom{K-1}2` pairs of such neighbours, and these have at most 2m edges: at most :math:`mK` pairs in all,
and in graphs with hubs far less. Whenever :math:`\ell \ge D_K`, and always where :math:`n < K`, it is :math:`\ell`
itself: the same integer as in memory.

*It is large enough.* :math:`\ell_K \ge \ell`.

*It moves by at most 1.* An edge raises two degrees by 1 and no others, so the sorted degrees move by at most 1, each:
if K nodes have degree at least t after an edge is removed, they have it before; if K nodes have at least t before, they
have at least t − 1 after. The smaller of :math:`D_K` and a constant, and the larger of two numbers that move by at most
1, move by at most 1.

This is all that :class:`~defocus.mechanisms.Ramp`, :class:`~defocus.mechanisms.Ladder` and
:class:`~defocus.mechanisms.NoisyLocalSensitivity` assume of a level: that it bounds how far the statistic moves around
this graph, moves by at most 1 itself, and does not exceed the global bound n − 2. The test suite checks all three, and
the laws of the outputs, on all graphs of up to six nodes.

Reference:
    Nissim, Raskhodnikova, Smith (2007), Smooth sensitivity and sampling in private data analysis, for levels of
    local sensitivity; Karwa, Raskhodnikova, Smith, Yaroslavtsev (2011), Private analysis of graph structure, for bounds
    on it that are easier to compute.
"""

from collections.abc import Callable

from defocus.graphs.statistic import IntVector

__all__ = ["HUBS", "level", "nth_degree"]

HUBS = 8192
"""K: how many nodes of largest degree are compared, pair by pair. Public, and the same for all graphs."""
_FIRST = 64
"""So many nodes are compared first: what they share leaves fewer of the others to compare."""


def nth_degree(degrees: IntVector, times: IntVector, n: int) -> int:
    """The n-th largest degree, from rising degrees and how many nodes have each; 0 where there are fewer nodes.

    >>> import numpy as np
    >>> [nth_degree(np.array([1, 5]), np.array([3, 1]), n) for n in (1, 2, 4, 5)]
    [5, 1, 1, 0]
    """
    seen = 0
    for degree, many in zip(degrees[::-1].tolist(), times[::-1].tolist(), strict=True):
        seen += many
        if seen >= n:
            return int(degree)
    return 0


def level(
    degrees: IntVector,
    times: IntVector,
    nodes: int,
    shared: Callable[[int], int],
    *,
    hubs: int = HUBS,
    first: int = _FIRST,
) -> int:
    r"""The level :math:`\ell_K` of a graph.

    A few nodes of largest degree are compared first. What two of them share is a lower bound of the level, and then
    only nodes of larger degree than that need be compared, since others cannot share more.

    Args:
        degrees: which degrees there are, rising.
        times: how many nodes have each.
        nodes: how many nodes there are.
        shared: the largest number of neighbours shared by two nodes that both have a degree above a given one.
        hubs: K.
        first: how many nodes are compared first; the level does not depend on it.
    """
    least = min(nth_degree(degrees, times, hubs), max(nodes - 2, 0))
    above = nth_degree(degrees, times, min(first, hubs))
    found = max(least, shared(above) if above < nth_degree(degrees, times, 2) else 0)
    return found if found >= min(above, nodes - 2) else max(found, shared(found))
