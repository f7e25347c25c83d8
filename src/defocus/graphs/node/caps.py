"""Caps on degrees for node privacy: capped counts by maximum flow, and caps that are found privately."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from defocus.errors import Number, count
from defocus.graphs.graph import Graph
from defocus.mechanisms import PermuteAndFlip
from defocus.noise import Bits

__all__ = ["CapRule", "capped_edges_twice", "hirsch"]


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


_LARGEST = 17
"""Caps are tried up to two to this power; above the largest degree they all count the same."""
_MARGIN = 7
"""How many units of the choice's noise a larger cap must earn for each unit of sensitivity it costs."""
_WIDER = Fraction(3, 2)
"""What separates the best cap from the one that can be told to be good: a tail that noise hides."""


@final
@dataclass(frozen=True, slots=True)
class CapRule:
    r"""Choose a cap on degrees among powers of two, by how many edges each of them leaves.

    A cap D costs noise of scale :math:`D/\varepsilon_2` and loses the edges that do not fit, so the best one has the
    least :math:`q_D = D/\varepsilon_2 - f_D`. A cap that is too small loses a tail that grows with the graph; one that
    is too large by a factor costs as much more noise. So what cannot be told apart is chosen a little wider.

    Guarantee:
        :math:`\varepsilon_1`-DP with :math:`\varepsilon_1` = ``share`` of epsilon. One node more raises every
        :math:`f_D` by something between 0 and D (:func:`capped_edges_twice`), so :math:`q_i - q_j` moves by at most
        :math:`\max(D_i, D_j)`, and :math:`\max_j (q_i + tD_i - q_j - tD_j)/\max(D_i, D_j)` by at most 1, for any fixed
        t. A public handicap of :math:`2\ln(2)/\varepsilon_1` for each doubling is added, and permute-and-flip takes the
        least. Where a node is replaced, all of that moves by 2. The cap may be shown.

    Error:
        Measured in ``benchmarks/graphs.py`` beside the best fixed cap, on graphs that the constants were not chosen on.
    Reference:
        Raskhodnikova, Smith (2016), Lipschitz extensions for node-private graph statistics and the generalized
        exponential mechanism, Section 4, with the maximum instead of the sum of sensitivities, since counts move in one
        direction; McKenna, Sheldon (2020), Permute-and-flip.

    >>> float(CapRule().share)
    0.4
    """

    changes: int = 1
    """How many nodes come or go between neighbours: two where one replaces another."""
    share: Fraction = Fraction(2, 5)
    """Which part of epsilon the search takes."""

    def find(self, graph: Graph, epsilon: Number, bits: Bits) -> int:
        """A cap; it is released."""
        search = Fraction(epsilon) * self.share
        choice = PermuteAndFlip(epsilon=search, candidates=_LARGEST + 1, sensitivity=self.changes)
        chosen: int = choice.sample(self.scores(graph, Fraction(epsilon)), bits)
        return math.ceil(_WIDER * (1 << chosen))

    def scores(self, graph: Graph, epsilon: Fraction) -> list[Fraction]:
        """How good each power of two is beside the others; one node moves each of them by at most one."""
        caps = [2**power for power in range(_LARGEST + 1)]
        unit = self.changes / (epsilon * self.share)
        price = self.changes / (epsilon * (1 - self.share)) + _MARGIN * unit
        costs = [price * cap - Fraction(capped_edges_twice(graph, cap), 2) for cap in caps]
        handicap = 2 * unit * Fraction(math.log(2))
        return [
            -max((costs[i] - costs[j]) / max(caps[i], caps[j]) for j in range(len(caps))) - i * handicap
            for i in range(len(caps))
        ]


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
