"""How many edges a graph has if no node counts for more than its share, by maximum flow."""

import numpy as np

from defocus.errors import count
from defocus.graphs.graph import Graph

__all__ = ["capped_edges_twice"]


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
