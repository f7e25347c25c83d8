"""A cap chosen privately: large enough for nearly all edges to count, small enough for little noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from defocus.errors import Number
from defocus.graphs.graph import Graph
from defocus.graphs.node.flows import capped_edges_twice
from defocus.mechanisms import Laplace
from defocus.noise import Bits

__all__ = ["CapRule", "hirsch"]

_LEAST = 4
_SHARES = (Fraction(6, 100), Fraction(3, 100))
_TAIL = Fraction(8, 25)
_WIDEST = Fraction(5, 2)
"""In multiples of the structural cut-off."""


@final
@dataclass(frozen=True, slots=True)
class CapRule:
    r"""Find a cap on degrees from a rough number of hubs and a rough number of edges.

    A cap D costs noise of scale :math:`D/\varepsilon` and loses the edges that do not fit. The sum is least where about
    one node is saturated, so no private search can find that place: a node more or less is all that separates it from
    the next. What can be found privately is the scale of the graph and its shape. The scale is the structural cut-off
    :math:`\sqrt{2m}`, above which a simple graph without degree correlations has no node. The shape is
    :math:`2m/H^2`, how much of the graph is outside of its H hubs: :func:`hirsch` finds H, and moves by at most 1. The
    more there is, the longer the tail. The cap is :math:`0.32\sqrt{2m}\,\frac{2m}{H^2}`, kept within 1 and 2.5 of them;
    m is counted with a cap of 3/4 H, which few edges exceed. The constants were found on three public graphs.

    Guarantee:
        ``share`` of epsilon is spent on the two numbers, by discrete Laplace noise for sensitivities of 1 and of the
        cap; the second cap depends on the graph through the first noisy number only. The cap may be shown.

    Error:
        Measured in ``benchmarks/graphs.py`` beside the best fixed cap.
    Reference:
        Boguñá, Pastor-Satorras, Vespignani (2004), Cut-offs and finite size effects in scale-free networks; Hirsch
        (2005), An index to quantify an individual's scientific research output.

    >>> float(CapRule().share)
    0.09
    """

    changes: int = 1
    """How many nodes come or go between neighbours: two where one replaces another."""

    @property
    def share(self) -> Fraction:
        """Which part of epsilon the search takes."""
        return sum(_SHARES, Fraction(0))

    def find(self, graph: Graph, epsilon: Number, bits: Bits) -> tuple[int, int]:
        """A cap, and the rough number of edges that it came from; both are released."""
        exact = Fraction(epsilon)
        hubs = Laplace.calibrated(epsilon=exact * _SHARES[0], sensitivity=self.changes)
        many = max(_LEAST, hubs.sample(hirsch(graph), bits))
        first = max(_LEAST, 3 * many // 4)
        count = Laplace.calibrated(epsilon=exact * _SHARES[1], sensitivity=2 * first * self.changes)
        edges = max(0, count.sample(capped_edges_twice(graph, first), bits) // 2)
        cut_off = math.isqrt(2 * edges)
        tail = min(max(_TAIL * 2 * edges / many**2, Fraction(1)), _WIDEST)
        return max(_LEAST, math.ceil(tail * cut_off)), edges


def hirsch(graph: Graph) -> int:
    """The largest H such that H nodes have a degree of at least H.

    Guarantee:
        A node that leaves is one of these H at most, and lowers the degrees of the others by one at most: H - 1 nodes
        of degree H - 1 remain. A node that leaves raises no degree. So it moves by at most 1 under node privacy,
        however many edges the node has.

    >>> from defocus.graphs import build
    >>> hirsch(build(6, [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 4, 5]))
    3
    """
    falling = np.sort(graph.degrees)[::-1]
    return int((falling >= np.arange(1, len(falling) + 1)).sum())
