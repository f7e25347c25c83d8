"""PageRank of every node of an undirected graph, in whole parts of a small unit."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, in_range
from defocus.graphs.certificates import Certificate
from defocus.graphs.public import Public
from defocus.graphs.reach import Reach
from defocus.graphs.registry import Entry
from defocus.graphs.statistic import IntVector, edge_reach
from defocus.privacy.units import edge

__all__ = ["ENTRY", "PageRank"]

_PARTS = 1000
"""Rounding to the unit adds one part in so many to the sensitivity."""
_ROUND = Fraction(1, 2**53)
"""The largest relative error of one operation on floats."""
_MOST_NODES = 10**6


@final
@dataclass(frozen=True, slots=True)
class PageRank:
    r"""The share of time that a surfer spends at each node who follows a random edge with probability ``damping``.

    With probability :math:`1 - \alpha` the surfer jumps to a node chosen uniformly; at a node without edges they stay.
    So :math:`\pi = \alpha P^\top \pi + (1-\alpha)\mathbf 1/n` with :math:`P_{wx} = 1/d_w` for neighbours, and
    :math:`P_{ww} = 1` where :math:`d_w = 0`. Numbers are in units of :meth:`unit`.

    Guarantee:
        Edge privacy, n public: :math:`\Delta_1 \le \frac{4\alpha}{(1-\alpha)n}`. Let G' be G with the edge uv more.

        1. :math:`\pi' - \pi = \alpha(I - \alpha P'^\top)^{-1}(P' - P)^\top\pi`, and :math:`P'^\top` enlarges no norm,
           so :math:`\|\pi' - \pi\|_1 \le \frac{\alpha}{1-\alpha}\sum_{w \in \{u,v\}} \pi_w \|P'_w - P_w\|_1`: no other
           row changes.
        2. Row w loses :math:`\frac1{d_w} - \frac1{d_w+1}` at each of its :math:`d_w` neighbours and gains
           :math:`\frac{1}{d_w+1}` at the new one: :math:`\|P'_w - P_w\|_1 = \frac{2}{d_w+1}`, also for
           :math:`d_w = 0`, where the loop of weight 1 moves.
        3. :math:`s_w = \max(d_w, 1)` is stationary, :math:`P^\top s = s`, because edges have no direction. As
           :math:`\mathbf 1 \le s`, :math:`(P^\top)^k \mathbf 1/n \le s/n` for all k, so :math:`\pi_w \le s_w/n`.
        4. Each of the two terms is at most :math:`\frac{\max(d_w, 1)}{n}\cdot\frac{2}{d_w+1} \le \frac2n`.

        *Rounding.* :math:`\pi` is computed by K steps of the equation from the uniform vector. That leaves
        :math:`2\alpha^K`; and each step, of at most n + 6 operations on non-negative floats for an entry, errs
        by at most a part :math:`(n + 8)2^{-53}` of a total of one, which later steps do not enlarge:
        :math:`\frac{(n+8)2^{-53}}{1-\alpha}` in all. Rounding to whole units moves each of n entries by half a unit.
        All of it is counted, for both graphs.

        The bound for a single entry, :math:`\alpha/(1-\alpha)`, says nothing from :math:`\alpha = 1/2` on.
    Reference:
        The first step is in Ng, Zheng, Jordan (2001), Link analysis, eigenvectors and stability; the proof is above.

    >>> from defocus import edge
    >>> rank = PageRank(Fraction(1, 2))
    >>> public = Public(edge(), 10_000)
    >>> round(float(rank.reach(public).l1 * rank.unit(10_000)) * 10_000, 2)
    4.0
    """

    damping: Number = 0.85

    def __post_init__(self) -> None:
        object.__setattr__(self, "damping", in_range("damping", self.damping, Fraction(1, 100), Fraction(99, 100)))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"PageRank with damping {float(self.damping):.4g}"

    def unit(self, nodes: int) -> Fraction:
        """The unit in which ranks are counted: a public fraction of the sensitivity."""
        return self._movement(nodes) / (_PARTS * nodes)

    def exact(self, graph: Any) -> IntVector:
        """One rank for each node, in units."""
        unit = self.unit(graph.nodes)
        return np.rint(self.shares(graph) / float(unit)).astype(np.int64)

    def shares(self, graph: Any) -> NDArray[np.float64]:
        """The ranks as shares of one; private like the graph, unless the graph is released."""
        n, alpha = graph.nodes, float(self.damping)
        degrees = graph.degrees
        sources = np.repeat(np.arange(n), degrees)
        stay = np.where(degrees == 0, alpha, 0.0)
        share = alpha / np.maximum(degrees, 1)
        ranks = np.full(n, 1 / n)
        for _ in range(self._steps):
            arriving = np.bincount(sources, weights=(share * ranks)[graph.targets], minlength=n)
            ranks = arriving + stay * ranks + (1 - alpha) / n
        return ranks

    def length(self, public: Public) -> int:
        """As many as there are nodes."""
        return public.n

    def reach(self, public: Public) -> Reach:
        """Two rows of the transition matrix change."""
        n = public.n
        if not 2 <= n <= _MOST_NODES or public.directed:
            raise InvalidParameterError(
                f"{self.name} is offered for undirected graphs of 2 to {_MOST_NODES} nodes.",
                fix="open such a graph; of directed graphs one edge can move all ranks.",
            )
        alpha = Fraction(self.damping)
        wrong = 2 * alpha**self._steps + (n + 8) * _ROUND / (1 - alpha) + 4 * _ROUND
        most = math.ceil((self._movement(n) + 2 * wrong) / self.unit(n)) + n
        return edge_reach(public, Reach(most, most * most), name=self.name)

    def _movement(self, nodes: int) -> Fraction:
        alpha = Fraction(self.damping)
        return 4 * alpha / ((1 - alpha) * nodes)

    @property
    def _steps(self) -> int:
        """So many that what is left is below one part in 2**60."""
        return math.ceil(60 * math.log(2) / -math.log(float(self.damping)))


ENTRY = Entry(
    "pagerank",
    PageRank,
    Certificate(
        statistics=(PageRank(Fraction(1, 2)),),
        units=(edge(),),
        slack="the bound is for the worst degrees and the worst walk at once, which no graph has",
    ),
)
