"""Handing a synthetic graph to the library that people work with."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from defocus.errors import InvalidParameterError, MissingExtraError
from defocus.graphs.graph import Graph

__all__ = ["to_networkx"]


def to_networkx(graph: Graph, labels: Sequence[Any] | None = None) -> Any:
    """A networkx graph of a synthetic graph. Nothing is added: give it released or synthetic graphs only.

    >>> from defocus.graphs.inference import realised
    >>> len(to_networkx(realised([2, 2, 2]), ["ada", "bob", "cyd"]))
    3
    """
    try:
        networkx = import_module("networkx")
    except ImportError as error:
        raise MissingExtraError("Handing over a graph", package="networkx", extra="graph") from error
    names = range(graph.nodes) if labels is None else labels
    if len(names) != graph.nodes or len(set(names)) != graph.nodes:
        raise InvalidParameterError(
            f"A graph of {graph.nodes} nodes needs as many different labels.", fix="pass one label for each node."
        )
    left, right = graph.pairs()
    made = networkx.Graph()
    made.add_nodes_from(names)
    made.add_edges_from((names[i], names[j]) for i, j in zip(left.tolist(), right.tolist(), strict=True))
    return made
