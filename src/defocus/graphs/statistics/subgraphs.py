"""Numbers of edges, triangles and stars."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from defocus.errors import InvalidParameterError, whole
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.graph import Undirected
from defocus.graphs.kernels.rows import closed_edges
from defocus.graphs.public import IntVector, Public, edge_sensitivity
from defocus.mechanisms.mechanism import saturate
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = [
    "CLOSED_ENTRY",
    "EDGES_ENTRY",
    "PAIRS_ENTRY",
    "STARS_ENTRY",
    "TRIANGLES_ENTRY",
    "Adjacent",
    "ClosedEdges",
    "Edges",
    "Stars",
    "Triangles",
]


@final
@dataclass(frozen=True, slots=True)
class Edges:
    r"""How many edges the graph has.

    Guarantee:
        Edge privacy: one edge more or less moves the count by exactly 1, so :math:`\Delta_1 = \Delta_2 = 1`.
        With Laplace noise of scale :math:`1/\varepsilon` the mean squared error is :math:`2/\varepsilon^2`:
        a target M is met at :math:`\varepsilon = \sqrt{2/M}`.

    >>> from defocus import edge
    >>> Edges().sensitivity(Public(edge(), 100))
    Sensitivity(l1=1, l2_squared=1)
    """

    name: ClassVar[str] = "edges"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        return np.array([graph.edges], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """One edge is one edge."""
        return edge_sensitivity(public, Sensitivity(1, 1), name=self.name)


@final
@dataclass(frozen=True, slots=True)
class Adjacent:
    r"""Whether each pair of nodes is joined: 0 or 1 for the pairs (0, 1), (0, 2), …, (1, 2), ….

    Guarantee:
        Edge privacy: one edge is one pair, so :math:`\Delta_1 = \Delta_2 = 1`.

    >>> from defocus import edge
    >>> Adjacent().length(Public(edge(), 100)), Adjacent().sensitivity(Public(edge(), 100)).l1
    (4950, 1)
    """

    name: ClassVar[str] = "pairs that are joined"

    def exact(self, graph: Any) -> IntVector:
        """One entry for each pair."""
        left, right = (side.astype(np.int64) for side in graph.pairs())
        joined = np.zeros(math.comb(graph.nodes, 2), np.int64)
        joined[left * graph.nodes - left * (left + 1) // 2 + right - left - 1] = 1
        return joined

    def length(self, public: Public) -> int:
        """As many as there are pairs."""
        return math.comb(public.n, 2)

    def sensitivity(self, public: Public) -> Sensitivity:
        """One edge is one pair."""
        return edge_sensitivity(public, Sensitivity(1, 1), name=self.name)


PAIRS_ENTRY = Entry("pairs", Adjacent, Certificate(statistics=(Adjacent(),), units=(edge(),)))
EDGES_ENTRY = Entry("edges", Edges, Certificate(statistics=(Edges(),), units=(edge(),)))


@final
@dataclass(frozen=True, slots=True)
class Triangles:
    r"""How many triples of nodes are joined to each other.

    Guarantee:
        Edge privacy: an edge between i and j closes one triangle with each common neighbour of i and j, of which
        there are at most n − 2: :math:`\Delta_1 = \Delta_2 = n - 2`, attained where all others are common neighbours.
        Around one graph the count moves by at most the largest number of common neighbours that any two
        nodes have, joined or not. That number is :meth:`local`; it moves by at most 1 itself, since an edge is in at
        most one of the two links from i and j to any common neighbour.
    Reference:
        Nissim, Raskhodnikova, Smith (2007), Smooth sensitivity and sampling in private data analysis, Section 3.3.

    >>> from defocus import edge
    >>> Triangles().sensitivity(Public(edge(), 100))
    Sensitivity(l1=98, l2_squared=9604)
    """

    name: ClassVar[str] = "triangles"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        return np.array([graph.triangles()], np.int64)

    def local(self, graph: Undirected) -> tuple[int, int]:
        """The count, and how far one edge can move it around this graph; in an engine, or a little more."""
        return graph.triangles_and_level()

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """All other nodes are common neighbours."""
        if public.n < 3:
            raise InvalidParameterError(
                f"A graph of {public.n} nodes has no triangles, whatever its edges are.",
                fix="open a graph of at least three nodes.",
            )
        return edge_sensitivity(public, Sensitivity(public.n - 2, (public.n - 2) ** 2), name=self.name)


TRIANGLES_ENTRY = Entry("triangles", Triangles, Certificate(statistics=(Triangles(),), units=(edge(),), smallest=3))


@final
@dataclass(frozen=True, slots=True)
class ClosedEdges:
    r"""How many edges are in a triangle: "gwesp" with decay 0, edgewise shared partners of which only the first counts.

    Guarantee:
        Edge privacy: an edge between i and j with c common neighbours is closed itself if c > 0, and closes at most the
        2c edges from i and j to them. So :math:`\Delta_1 = \Delta_2 = 2(n-2) + 1`, attained where all others are
        common neighbours and not joined to each other. Around one graph the count moves by at most 2(c + 1), with c
        the largest number of common neighbours of two nodes, which moves by at most 1: see :class:`Triangles`.
    Reference:
        Snijders, Pattison, Robins, Handcock (2006), New specifications for exponential random graph models; Hunter
        (2007), Curved exponential family models for social networks, for edgewise shared partners.

    >>> from defocus import edge
    >>> ClosedEdges().sensitivity(Public(edge(), 100)).l1
    197
    """

    name: ClassVar[str] = "edges in a triangle"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        return np.array([closed_edges(graph)], np.int64)

    def level(self, graph: Any) -> tuple[int, int]:
        """The count, and one more than the largest number of common neighbours: twice that is how far it moves."""
        return closed_edges(graph), Triangles().local(graph)[1] + 1

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """All other nodes are common neighbours."""
        Triangles().sensitivity(public)
        most = 2 * (public.n - 2) + 1
        return edge_sensitivity(public, Sensitivity(most, most * most), name=self.name)


CLOSED_ENTRY = Entry(
    "edges in a triangle", ClosedEdges, Certificate(statistics=(ClosedEdges(),), units=(edge(),), smallest=3)
)


_MOST = 12
"""As far as a ramp goes; of larger stars even a thousand nodes can have more than 64 bits count."""


@final
@dataclass(frozen=True, slots=True)
class Stars:
    r"""How many ways there are to choose a node and ``k`` of its neighbours, :math:`\sum_i \binom{d_i}{k}`.

    Guarantee:
        Edge privacy: an edge raises a degree d to d + 1 and the number of stars there by :math:`\binom{d}{k-1}`. Its
        two ends have at most n − 2 other neighbours each: :math:`\Delta_1 = \Delta_2 = 2\binom{n-2}{k-1}`, attained.
        For k = 2 that is 2n − 4. A count that does not fit in 64 bits is cut to fit, which moves neighbours no
        further apart.

    >>> from defocus import edge
    >>> Stars(2).sensitivity(Public(edge(), 100)).l1, Stars(3).sensitivity(Public(edge(), 100)).l1
    (196, 9506)
    """

    k: int = 2

    def __post_init__(self) -> None:
        whole("k", self.k, at_least=2)
        if self.k > _MOST:
            raise InvalidParameterError(f"k is at most {_MOST}, but it is {self.k}.", fix=f"pass k <= {_MOST}.")

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.k}-stars"

    def exact(self, graph: Any) -> IntVector:
        """The count, in a vector of one."""
        degrees, times = graph.degree_counts()
        stars = sum(t * math.comb(d, self.k) for d, t in zip(degrees.tolist(), times.tolist(), strict=True))
        return np.array([saturate(stars)], np.int64)

    def level(self, graph: Undirected) -> int:
        r"""How large the largest pair of nodes is: the least :math:`\ell` with :math:`\ell^p \ge x^p + y^p` for all.

        With p = k − 1 and x, y the degrees of two nodes without the edge between them, that edge moves the count by
        :math:`\binom xp + \binom yp \le \ell^p/p!`. An edge moves x or y of a pair by at most one, and the p-norm
        with it; so the level moves by at most 1.
        """
        power = self.k - 1
        return max((_root(x**power + y**power, power) for x, y in graph.leading_pairs()), default=0)

    def widths(self, graph: Undirected, many: int) -> list[int]:
        """How far one edge can move the count of any graph within 0, 1, … ``many`` - 1 edges of this one.

        Whichever pair is chosen, edges are best added at its larger end until that is joined to everyone.
        """
        room, power = graph.nodes - 2, self.k - 1
        widths = [0] * many
        for x, y in graph.leading_pairs():
            for steps in range(many):
                high = min(x + steps, room)
                low = min(y + steps - (high - x), room)
                widths[steps] = max(widths[steps], math.comb(high, power) + math.comb(low, power))
        return widths

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """Both ends are joined to everyone else."""
        if public.n <= self.k:
            raise InvalidParameterError(
                f"A graph of {public.n} nodes has no {self.name}, whatever its edges are.",
                fix=f"open a graph of at least {self.k + 1} nodes, or pass a smaller k.",
            )
        most = 2 * math.comb(public.n - 2, self.k - 1)
        if most >= 2**62:
            raise InvalidParameterError(
                f"The number of {self.name} in a graph of {public.n} nodes can move by more than 64 bits hold.",
                fix="pass a smaller k.",
            )
        return edge_sensitivity(public, Sensitivity(most, most * most), name=self.name)


def _root(number: int, power: int) -> int:
    """The least whole number whose power is not below ``number``."""
    guess = max(0, math.ceil(number ** (1 / power)) - 2) if number < 2**1000 else 1 << (number.bit_length() // power)
    while guess and (guess - 1) ** power >= number:
        guess -= 1
    while guess**power < number:
        guess += 1
    return guess


STARS_ENTRY = Entry("stars", Stars, Certificate(statistics=(Stars(2), Stars(3)), units=(edge(),), smallest=4))
