"""A cap chosen privately: large enough for nearly all edges to count, small enough for little noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import Number
from defocus.graphs.graph import Graph
from defocus.graphs.node.flows import capped_edges_twice
from defocus.mechanisms import Laplace
from defocus.noise import Bits

__all__ = ["CapRule"]

_FIRST = 16
"""The public cap of the first, roughest count."""
_LEAST = 4
_SHARES = (Fraction(1, 100), Fraction(4, 100))
_WIDTH = Fraction(6, 5)
"""How many structural cut-offs wide the cap is."""


@final
@dataclass(frozen=True, slots=True)
class CapRule:
    r"""Find a cap on degrees from two rough counts of edges, by the structural cut-off :math:`\sqrt{2m}`.

    A cap D costs noise of scale :math:`D/\varepsilon` and loses the edges that do not fit. The sum is least where about
    one node is saturated, so no private search can find that place: a node more or less is all that separates it from
    the next. What can be found privately is the scale of the graph. In a simple graph without degree correlations
    no degree exceeds the structural cut-off :math:`\sqrt{2m}`, because two such nodes would expect more than one
    edge between them; and in any graph at most :math:`\sqrt{2m}` nodes do. The cap is 1.2 times that. The number of
    edges m is first counted with the cap 16, which gives the scale of a second cap, :math:`\sqrt{2m}/2`, and then with
    that one.

    Guarantee:
        ``share`` of epsilon is spent on the two counts, by discrete Laplace noise on a statistic whose sensitivity is
        its cap; the second cap depends on the first count only through its noisy value. The cap may be shown.

    Error:
        Measured in ``benchmarks/graphs.py`` beside the best fixed cap.
    Reference:
        Boguñá, Pastor-Satorras, Vespignani (2004), Cut-offs and finite size effects in scale-free networks.

    >>> float(CapRule().share)
    0.05
    """

    changes: int = 1
    """How many nodes come or go between neighbours: two where one replaces another."""

    @property
    def share(self) -> Fraction:
        """Which part of epsilon the search takes."""
        return sum(_SHARES, Fraction(0))

    def find(self, graph: Graph, epsilon: Number, bits: Bits) -> tuple[int, int]:
        """A cap, and the rough number of edges that it came from; both are released."""
        rough = self._counted(graph, _FIRST, Fraction(epsilon) * _SHARES[0], bits)
        second = max(_LEAST, math.isqrt(2 * rough) // 2)
        better = self._counted(graph, second, Fraction(epsilon) * _SHARES[1], bits)
        return max(_LEAST, math.ceil(_WIDTH * math.isqrt(2 * better))), better

    def _counted(self, graph: Graph, cap: int, epsilon: Fraction, bits: Bits) -> int:
        """A noisy number of edges, at least zero."""
        mechanism = Laplace.calibrated(epsilon=epsilon, sensitivity=2 * cap * self.changes)
        return max(0, mechanism.sample(capped_edges_twice(graph, cap), bits) // 2)
