"""PageRank, and the gap that tells communities apart."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, count, in_range
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.graph import Graph
from defocus.graphs.public import IntVector, Public, edge_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = [
    "MOST_NODES",
    "PAGERANK_ENTRY",
    "SENSITIVITY",
    "SPECTRUM_ENTRY",
    "USUAL_PAGERANK_ENTRY",
    "Gap",
    "PageRank",
    "checked_size",
    "gaps",
    "singular_values",
]


MOST_NODES = 8000
"""Up to so many nodes all eigenvalues can be computed, with a proven error."""
SENSITIVITY = Fraction(101, 100)
"""How far a utility moves by one edge, with the rounding."""
_GRAIN = 1000
"""Utilities are rounded down to so many parts of one: a tenth of the room that SENSITIVITY leaves above 1."""


def checked_size(nodes: int, at_most: int) -> None:
    """Refuse graphs whose spectrum cannot be computed with a proven error; public facts only."""
    most = count("at_most", at_most)
    if nodes > MOST_NODES:
        raise InvalidParameterError(
            f"The eigenvalues of a graph of {nodes} nodes cannot be computed with a proven error here.",
            fix=f"ask it of a graph of at most {MOST_NODES} nodes, or compare labellings: communities(labellings=[…]).",
        )
    if most + 1 > nodes:
        raise InvalidParameterError(
            f"A graph of {nodes} nodes has at most {nodes - 1} communities here.", fix="pass a smaller at_most."
        )


def singular_values(graph: Graph, many: int) -> list[float]:
    r"""The ``many`` largest absolute eigenvalues of the adjacency matrix, largest first.

    Guarantee:
        One edge changes the matrix by one of spectral norm 1, so by Weyl's inequality each singular value, in order
        of size, moves by at most 1. Computed by a backward stable method on the full matrix, each is off by at most
        :math:`16 n 2^{-53} \|A\|_2 \le 16 n^2 2^{-53}`, below :math:`10^{-6}` for n up to 8000.
    Reference:
        Weyl (1912); Horn, Johnson (2013), Matrix analysis, Corollary 7.3.5; Anderson et al. (1999), LAPACK users'
        guide, Section 4.7 for the error.
    """
    from scipy.linalg import eigvalsh  # noqa: PLC0415  # slow to load

    n = graph.nodes
    matrix = np.zeros((n, n))
    matrix[np.repeat(np.arange(n), graph.degrees), graph.targets] = 1.0
    values = np.abs(eigvalsh(matrix, overwrite_a=True, check_finite=False))
    values[::-1].sort()
    return [float(value) for value in values[:many]]


def gaps(values: list[float], threshold: float) -> list[Fraction]:
    r"""The utility of 1, 2, … communities: :math:`u(k) = \min(\sigma_k - \tau, \tau - \sigma_{k+1})`, in 1000ths.

    Guarantee:
        :math:`\tau` is fixed, so each utility moves by at most 1 between neighbours, and with rounding, and with the
        error of both computations, by less than 1.01.

    >>> gaps([9.0, 5.0, 2.0], 4.0)
    [Fraction(-1, 1), Fraction(1, 1)]
    """
    return [
        Fraction(math.floor(_GRAIN * min(above - threshold, threshold - below)), _GRAIN)
        for above, below in pairwise(values)
    ]


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """How clearly ``k`` singular values stand out of a fixed ``threshold``: one utility of :func:`gaps`, in 1000ths.

    Guarantee:
        Edge privacy: at most :data:`SENSITIVITY`, 1010 thousandths. What is chosen by these utilities needs no more,
        since each of them moves by at most that.

    >>> Gap(1, 1.5).sensitivity(Public(edge(), 100))
    Sensitivity(l1=1010, l2_squared=1020100)
    """

    k: int
    threshold: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", count("k", self.k))
        object.__setattr__(self, "threshold", float(in_range("threshold", self.threshold, 0, MOST_NODES)))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"gap after {self.k} singular values"

    def exact(self, graph: Any) -> IntVector:
        """The utility, in a vector of one."""
        gap = gaps(singular_values(graph, self.k + 1), self.threshold)[self.k - 1]
        return np.array([gap * _GRAIN], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """One singular value moves by one, and is rounded. Graphs that have fewer values, or too many, are refused."""
        checked_size(public.n, self.k)
        most = math.ceil(SENSITIVITY * _GRAIN)
        return edge_sensitivity(public, Sensitivity(most, most * most), name=self.name)


SPECTRUM_ENTRY = Entry(
    "spectrum",
    Gap,
    Certificate(
        statistics=(Gap(1, 0.4), Gap(2, 1.0)),
        units=(edge(),),
        smallest=3,
        slack="a singular value moves by one at most; the hundredth above it is for rounding",
    ),
)


_PARTS = 1000
"""Rounding to the grain adds one part in so many to the sensitivity: next to nothing."""
_ROUND = Fraction(1, 2**53)
"""The largest relative error of one operation on floats."""
_MOST_NODES = 10**6
"""With more, rounding of floats would be a notable part of a sensitivity that falls with the number of nodes."""


@final
@dataclass(frozen=True, slots=True)
class PageRank:
    r"""The share of time that a surfer spends at each node who follows a random edge with probability ``damping``.

    With probability :math:`1 - \alpha` the surfer jumps to a node chosen uniformly; at a node without edges they stay.
    So :math:`\pi = \alpha P^\top \pi + (1-\alpha)\mathbf 1/n` with :math:`P_{wx} = 1/d_w` for neighbours, and
    :math:`P_{ww} = 1` where :math:`d_w = 0`. Numbers are counted in parts of :meth:`grain`.

    Guarantee:
        Edge privacy, n public: :math:`\Delta_1 \le \frac{2\alpha}{n}\max(\frac{1}{1-\alpha}, 2)`, which for
        :math:`\alpha \ge \frac12` is :math:`\frac{2\alpha}{(1-\alpha)n}`: half of what the norms of the changed rows
        give, :math:`\frac{4\alpha}{(1-\alpha)n}`. Let G' be G with the edge uv more, and
        :math:`R = (I - \alpha P'^\top)^{-1}`, which has no negative entry and columns of sum :math:`1/(1-\alpha)`.

        1. :math:`\pi' - \pi = \alpha R (P' - P)^\top\pi`, where only rows u and v change. With :math:`\mu_w` uniform on
           the neighbours of w in G, row u of :math:`P'` is :math:`(d_u\mu_u + e_v)/(d_u+1)`, so
           :math:`(P'_u - P_u) = (e_v - \mu_u)/(d_u+1)` if :math:`d_u > 0`.
        2. :math:`U = Re_u = e_u + \alpha R P_u'^\top`. Put into the line above, that gives
           :math:`\alpha R(e_v - \mu_u) = \frac{d_u+1}{d_u}(\alpha V - U_1)` with :math:`U = e_u + U_1`,
           :math:`V = Re_v = e_v + V_1`. So with :math:`A = \pi_u/d_u` and :math:`B = \pi_v/d_v`,
           :math:`\pi' - \pi = A(\alpha V - U_1) + B(\alpha U - V_1)
           = \alpha A e_v + \alpha B e_u + (\alpha A - B)V_1 + (\alpha B - A)U_1`, where :math:`U_1, V_1 \ge 0` have the
           sum :math:`\alpha/(1-\alpha)`.
        3. Let :math:`A \ge B`. If :math:`B \le \alpha A`, the norm is at most
           :math:`\alpha(A+B) + \frac{\alpha(1+\alpha)}{1-\alpha}(A - B)`, largest for B = 0:
           :math:`\frac{2\alpha}{1-\alpha}A`. Otherwise it is at most
           :math:`\alpha(A+B) + \frac{\alpha}{1-\alpha}(1-\alpha)(A+B) \le 4\alpha A`.
        4. :math:`s_w = \max(d_w, 1)` is stationary, :math:`P^\top s = s`, because edges have no direction. As
           :math:`\mathbf 1 \le s`, :math:`(P^\top)^k \mathbf 1/n \le s/n` for all k, so :math:`\pi \le s/n` and
           :math:`A, B \le 1/n`.
        5. If :math:`d_u = 0 < d_v`, then :math:`\pi_u = 1/n =: A` and :math:`U_1 = \alpha V`, and the change is
           :math:`\alpha(B-A)e_u + \alpha((1-\alpha)A + \alpha B)e_v + (1-\alpha)(\alpha A - (1+\alpha)B)V_1`, of norm
           at most :math:`2\alpha/n` where :math:`0 \le B \le 1/n`. If both have no edge, nothing changes.

        *Rounding.* :math:`\pi` is computed by K steps of the equation from the uniform vector. That leaves
        :math:`2\alpha^K`; and each step, of at most n + 6 operations on non-negative floats for an entry, errs
        by at most a part :math:`(n + 8)2^{-53}` of a total of one, which later steps do not enlarge:
        :math:`\frac{(n+8)2^{-53}}{1-\alpha}` in all. Rounding to whole units moves each of n entries by half a unit.
        All of it is counted, for both graphs.

        The bound for a single entry, :math:`\alpha/(1-\alpha)`, says nothing from :math:`\alpha = 1/2` on.
    Reference:
        The first step is in Ng, Zheng, Jordan (2001), Link analysis, eigenvectors and stability; the rest is above.

    >>> from defocus import edge
    >>> rank = PageRank(Fraction(1, 2))
    >>> public = Public(edge(), 10_000)
    >>> round(float(rank.sensitivity(public).l1 * rank.grain(10_000)) * 10_000, 2)
    2.0
    """

    damping: Number = 0.85

    def __post_init__(self) -> None:
        object.__setattr__(self, "damping", in_range("damping", self.damping, Fraction(1, 100), Fraction(99, 100)))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"PageRank with damping {float(self.damping):.4g}"

    def grain(self, nodes: int) -> Fraction:
        """In what ranks are counted: a public fraction of the sensitivity."""
        return self._movement(nodes) / (_PARTS * nodes)

    def exact(self, graph: Any) -> IntVector:
        """One rank for each node, in grains."""
        return np.rint(self.shares(graph) / float(self.grain(graph.nodes))).astype(np.int64)

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

    def sensitivity(self, public: Public) -> Sensitivity:
        """Two rows of the transition matrix change."""
        n = public.n
        if not 2 <= n <= _MOST_NODES or public.directed:
            raise InvalidParameterError(
                f"{self.name} is offered for undirected graphs of 2 to {_MOST_NODES} nodes.",
                fix="open such a graph; of directed graphs one edge can move all ranks.",
            )
        alpha = Fraction(self.damping)
        wrong = 2 * alpha**self._steps + (n + 8) * _ROUND / (1 - alpha) + 4 * _ROUND
        most = math.ceil((self._movement(n) + 2 * wrong) / self.grain(n)) + n
        return edge_sensitivity(public, Sensitivity(most, most * most), name=self.name)

    def _movement(self, nodes: int) -> Fraction:
        alpha = Fraction(self.damping)
        return 2 * alpha * max(1 / (1 - alpha), Fraction(2)) / nodes

    @property
    def _steps(self) -> int:
        """So many that what is left is below one part in 2**60."""
        return math.ceil(60 * math.log(2) / -math.log(float(self.damping)))


_SLACK = "the bound is for the worst ranks at both ends and the worst walk at once, which no graph has"
PAGERANK_ENTRY = Entry(
    "pagerank", PageRank, Certificate(statistics=(PageRank(Fraction(1, 2)),), units=(edge(),), slack=_SLACK)
)
USUAL_PAGERANK_ENTRY = Entry(
    "pagerank with the usual damping",
    PageRank,
    Certificate(statistics=(PageRank(),), units=(edge(),), slack=_SLACK, largest=5),
)
"""A damping of 0.85 takes 256 steps for each graph, and so minutes for all graphs of six nodes."""
