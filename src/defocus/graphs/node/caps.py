"""Caps on degrees for node privacy: capped counts by maximum flow, and caps that are found privately."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from defocus.errors import Number, count
from defocus.graphs.graph import Graph
from defocus.mechanisms import Laplace
from defocus.noise import Bits

__all__ = ["CapRule", "FoundScale", "capped_edges_twice", "hirsch"]


def capped_edges_twice(graph: Graph, cap: int) -> int:
    r"""Twice the largest total weight of edges, each at most 1, at most ``cap`` at every node: a whole number.

    Guarantee:
        Call half of it :math:`f_D(G)`, D = ``cap``. If no degree exceeds D, it is the number of edges. Adding a node v
        with any edges moves it by at most D, and up: weights of the smaller graph are weights of the larger one, with
        zero on the new edges; and weights of the larger graph lose at most D in total if the edges at v are dropped.
        So :math:`\Delta = D` under node privacy, whatever the degrees are, and no degree is too large.

        The double cover of G has a left and a right copy of every node, and for each edge ij one arc from left i to
        right j and one from left j to right i. A flow from the left (D into each copy) to the right (D out of each
        copy) gives weights by averaging the two arcs of an edge, and weights give a flow. So :math:`2f_D` is the
        maximum flow, whose capacities are integers, so that it is one, too.
    Reference:
        Kasiviswanathan, Nissim, Raskhodnikova, Smith (2013), Analyzing graphs with node differential privacy,
        Section 4; Raskhodnikova, Smith (2016), Lipschitz extensions for node-private graph statistics.

    >>> from defocus.graphs import build
    >>> star = build(5, [0, 0, 0, 0], [1, 2, 3, 4])
    >>> [capped_edges_twice(star, cap) for cap in (1, 2, 4, 100)]
    [2, 4, 8, 8]
    """
    most = count("cap", cap)
    degrees = graph.degrees
    if not len(graph.targets) or most >= int(degrees.max()):
        return 2 * graph.edges
    from scipy.sparse import csr_array  # noqa: PLC0415  # slow to load
    from scipy.sparse.csgraph import maximum_flow  # noqa: PLC0415

    n = graph.nodes
    here = np.flatnonzero(degrees)
    rooms = np.minimum(degrees[here], most).astype(np.int32)
    sources = np.repeat(np.arange(n, dtype=np.int32), degrees)
    rows = np.concatenate([np.full(len(here), 2 * n), sources, here + n])
    columns = np.concatenate([here, graph.targets + n, np.full(len(here), 2 * n + 1)])
    capacities = np.concatenate([rooms, np.ones(len(sources), np.int32), rooms])
    network = csr_array((capacities, (rows, columns)), shape=(2 * n + 2, 2 * n + 2))
    return int(maximum_flow(network, 2 * n, 2 * n + 1).flow_value)


_LEAST = 4
"""No cap is smaller: what it would save in noise is less than what a few edges at each node weigh."""
_HUBS, _EDGES, _NODES = Fraction(80, 1000), Fraction(27, 1000), Fraction(3, 1000)
"""Which parts of epsilon rough numbers of hubs, edges and nodes take."""
_MORE = (Fraction(80, 1000), Fraction(60, 1000), Fraction(20, 1000))
"""What is added to them at most where there are few hubs for this epsilon."""
_FEW, _VERY_FEW = 120, 50
"""In multiples of 1/epsilon: how many hubs are few, and how many are so few that all of that is added."""
_TAIL, _BEND, _WIDEST = 0.118, 1.6, 2.5
"""How the length of the tail grows with what is outside of the hubs, and the longest that is believed."""
_LEFT = 0.65
"""How much of a power law's slope is left in the tails of graphs."""
_NARROWEST = 2.8
"""Largest degrees are at least so many standard deviations of a Poisson law above the average."""


@final
@dataclass(frozen=True, slots=True)
class FoundScale:
    """A cap on degrees, the rough number of edges that it came from, and which part of epsilon all of it took."""

    cap: int
    edges: int
    spent: Fraction


@final
@dataclass(frozen=True, slots=True)
class CapRule:
    r"""Find a cap on degrees from rough numbers of hubs, edges and pairs of nodes.

    A cap D costs noise of scale :math:`D/\varepsilon` and loses the edges that do not fit. The sum is least where about
    :math:`1/\varepsilon` nodes are saturated, so no private search can find that place: a node more or less is all that
    separates it from the next. What can be found privately is the scale of the graph and its shape: H, of
    :func:`hirsch`, which moves by at most 1, the number of edges m, and n, how many nodes can be paired off with a
    neighbour (half an edge counts as half): most nodes that have one. A node that leaves takes many others out of the
    number of nodes with an edge, but two at most out of n. Three estimates come of them.

    1. Hubs end at the structural cut-off: :math:`0.118\sqrt{2m}\,(2m/H^2)^{1.6}`, kept within 1 and 2.5 of
       :math:`\sqrt{2m}`, above which a simple graph without degree correlations has no node.
    2. The degree falls from H, at rank H, as it fell from the average d at rank n/2: a power law with the exponent
       :math:`\gamma = \ln(H/d)/\ln(n/2H)`, bent to 0.65 of it, reaches :math:`H(\varepsilon H)^{0.65\gamma}` at rank
       :math:`1/\varepsilon`. Where all nodes have about the same degree, that is far below the cut-off.
    3. Even if edges were drawn at random, there would be degrees of :math:`d + 2.8\sqrt d`.

    The cap is the smaller of the first two, and not below the third. The constants were found on public graphs. Where
    H is small beside :math:`1/\varepsilon`, its noise decides everything, and more is spent on it.

    Guarantee:
        The three numbers have discrete Laplace noise for sensitivities of 1, the cap with which edges are counted, and
        2. That cap, and how much is spent on what, depend on the graph through noisy numbers only; what is spent adds
        up, at most to ``share``. The cap may be shown.

    Error:
        Measured in ``benchmarks/graphs.py`` beside the best fixed cap.
    Reference:
        Boguñá, Pastor-Satorras, Vespignani (2004), Cut-offs and finite size effects in scale-free networks; Hirsch
        (2005), An index to quantify an individual's scientific research output; Weissman (1978), Estimation of
        parameters and large quantiles based on the k largest observations.

    >>> float(CapRule().share)
    0.27
    """

    changes: int = 1
    """How many nodes come or go between neighbours: two where one replaces another."""

    @property
    def share(self) -> Fraction:
        """Which part of epsilon the search takes at most."""
        return _HUBS + _EDGES + _NODES + sum(_MORE, Fraction(0))

    def find(self, graph: Graph, epsilon: Number, bits: Bits) -> FoundScale:
        """A cap, and what was found on the way; all of it is released."""
        exact = Fraction(epsilon)

        def noisy(value: int, share: Fraction, sensitivity: int = 1) -> int:
            noise = Laplace.calibrated(epsilon=exact * share, sensitivity=sensitivity * self.changes)
            return noise.sample(value, bits)

        index = hirsch(graph)
        hubs = float(max(1, noisy(index, _HUBS)))
        more = _more(Fraction(hubs) * exact / self.changes)
        shares, spread = [_HUBS, _EDGES, _NODES], self.changes / float(exact * _HUBS)
        if more:
            added = _MORE[0] * more
            weight = float(added**2 / (added**2 + _HUBS**2))  # the inverse of each variance
            hubs = weight * noisy(index, added) + (1 - weight) * hubs
            spread = self.changes / float(exact) * math.hypot(weight / float(added), (1 - weight) / float(_HUBS))
            shares = [share + part * more for share, part in zip(shares, _MORE, strict=True)]
        hubs = max(hubs, _LEAST)
        first = max(_LEAST, math.ceil(hubs + 3 * spread) if more else math.floor(0.75 * hubs))
        edges = max(0, noisy(capped_edges_twice(graph, first), shares[1], 2 * first) // 2)
        nodes = max(10, noisy(capped_edges_twice(graph, 1), shares[2], 2))
        cap = _cap(hubs, edges, nodes, float(exact) / self.changes, highest=hubs + 4 * spread)
        return FoundScale(cap, edges, sum(shares, Fraction(0)))


def _more(hubs: Fraction) -> Fraction:
    """How much of what can be added is added, by the number of hubs in multiples of 1/epsilon."""
    if hubs >= _FEW:
        return Fraction(0)
    return min(Fraction(1), Fraction(_VERY_FEW) / max(hubs, Fraction(1))).limit_denominator(1000)


def _cap(hubs: float, edges: int, nodes: int, epsilon: float, *, highest: float) -> int:
    """The rule itself, of noisy numbers."""
    ends = max(2 * edges, 1)
    average = ends / nodes
    cut_off = math.sqrt(ends) * min(max(_TAIL * math.pow(ends / hubs**2, _BEND), 1.0), _WIDEST)
    slope = math.log(max(hubs / average, 1.0)) / max(math.log(max(nodes / (2 * hubs), 1.0)), 1.0)
    extrapolated = hubs * math.pow(max(hubs * epsilon, 1.0), _LEFT * min(slope, 1.0))
    random = min(average + _NARROWEST * math.sqrt(average), highest)
    return max(_LEAST, math.ceil(max(min(cut_off, extrapolated), random)))


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
