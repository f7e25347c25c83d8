"""From pairs of ends to a graph, by declared rules. No pair can make it fail, so no failure tells about one."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, UnfitDataError, whole
from defocus.graphs.graph import MOST_NODES, DirectedGraph, Graph
from defocus.graphs.kernels.rows import directed_rows, undirected_rows
from defocus.graphs.numbering import node_numbers

__all__ = ["RULES", "Ends", "build", "build_directed", "checked_nodes"]

Ends: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]

RULES = (
    "an edge that is listed more than once counts once",
    "an edge from a node to itself is left out",
    "an edge with an end that is missing, or is not one of the nodes, is left out",
)
"""What happens to pairs that a simple graph on the given nodes cannot hold."""


def build(nodes: int, left: Ends, right: Ends) -> Graph:
    """The undirected graph on nodes 0, 1, … ``nodes`` - 1 with an edge for each pair of ends.

    Guarantee:
        A pair adds at most the one edge it names: adding or removing all copies of one edge in the list adds or
        removes that edge and changes nothing else. The order of pairs, and of the ends in a pair, does not matter.

    >>> build(4, [0, 1, 1, 2, 9], [1, 0, 1, 3, 0]).pairs()
    (array([0, 2], dtype=int32), array([1, 3], dtype=int32))
    """
    count = checked_nodes(nodes)
    offsets, targets = undirected_rows(count, *_ends(left, right))
    return Graph(count, offsets, targets)


def build_directed(nodes: int, left: Ends, right: Ends) -> DirectedGraph:
    """The directed graph with an arc from ``left`` to ``right`` for each pair."""
    count = checked_nodes(nodes)
    offsets, targets = directed_rows(count, *_ends(left, right))
    return DirectedGraph(count, offsets, targets)


def checked_nodes(value: object) -> int:
    """A number of nodes that fits; none at all is fine."""
    count = whole("nodes", value)
    if count > MOST_NODES:
        raise InvalidParameterError(
            f"A graph has at most {MOST_NODES} nodes here, but nodes is "
            + (f"{count}." if count < 10**30 else "far more."),
            fix="number the nodes 0, 1, 2, … without gaps, or list their names: nodes=[…].",
        )
    return count


def _ends(left: Any, right: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ends = [node_numbers(side) for side in (left, right)]
    if len(ends[0]) != len(ends[1]):
        raise UnfitDataError(
            "The two lists of ends differ in length.", fix="give one left and one right end for each edge."
        )
    return ends[0], ends[1]
