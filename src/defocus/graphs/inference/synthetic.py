"""Synthetic graphs from released statistics."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from defocus.answers import Answer
from defocus.errors import InvalidParameterError, MissingExtraError
from defocus.graphs.data import build
from defocus.graphs.graph import Graph
from defocus.graphs.inference.degrees import graphical
from defocus.noise import Bits
from defocus.noise.bits import source

__all__ = ["SyntheticGraph", "synthetic_graph", "to_networkx"]


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
    copy = networkx.Graph()
    copy.add_nodes_from(names)
    copy.add_edges_from((names[i], names[j]) for i, j in zip(left.tolist(), right.tolist(), strict=True))
    return copy


_SHORT = 30
"""So few numbers may look like anything."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticGraph:
    """A graph made of released numbers: public, all of it. Nodes that have no edge are nodes as well."""

    graph: Graph

    @property
    def nodes(self) -> int:
        """How many nodes there are, numbered from 0."""
        return self.graph.nodes

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return self.graph.edges

    @property
    def degrees(self) -> NDArray[np.int64]:
        """How many neighbours each node has."""
        return self.graph.degrees

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Every edge once: its smaller and its larger end."""
        return self.graph.pairs()

    def to_networkx(self, labels: Sequence[Any] | None = None) -> Any:
        """The graph for networkx, nodes without an edge too; ``labels`` are what its nodes are called, in order."""
        return to_networkx(self.graph, labels)

    def __repr__(self) -> str:
        return f"<a synthetic graph, which is public: {self.nodes} nodes, {self.edges} edges>"


def synthetic_graph(
    degrees: Answer | ArrayLike,
    *,
    counts: bool | None = None,
    labels: Sequence[Any] | None = None,
    mixing: ArrayLike | None = None,
    bits: Bits | None = None,
) -> SyntheticGraph:
    r"""A random simple graph whose nodes have about these degrees: the degree-corrected block model.

    Nodes i and j are joined independently, with probability :math:`1 - e^{-w_i w_j \omega_{ab}}` for blocks a, b. The
    degrees are first made those of some graph. Without ``labels`` there is one block and
    :math:`\omega = 1/\sum_i w_i` (Chung and Lu).

    Guarantee:
        Post-processing: made from released numbers and public labels, it costs nothing, and may be shown, however large
        it is. It has the released statistics and no others of the real graph; what was not released, such as
        triangles, is that of a random graph.

    Args:
        degrees: a released answer: degrees, degrees in order of size, or a degree histogram. Or the numbers themselves:
            one released degree for each node.
        counts: whether the numbers are a histogram: how many nodes have degree 0, 1, …. Numbers that look like one are
            refused unless this is said.
        labels: a public block for each node.
        mixing: for each pair of blocks the released number of edges between them (within a block, of edges there).
        bits: the source of randomness; the system's by default.

    Reference:
        Karrer, Newman (2011), Stochastic blockmodels and community structure in networks; Chung, Lu (2002).

    >>> made = synthetic_graph([3.2, 2.9, -1.0, 1.7, 2.1, 2.4])
    >>> made.nodes
    6
    """
    weights = graphical(_degrees(degrees, counts)).astype(np.float64)
    generator = source(bits)
    blocks, omega = _mixing(weights, labels, mixing)
    lefts, rights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    members = [np.flatnonzero(blocks == a) for a in range(len(omega))]
    for a in range(len(omega)):
        for b in range(a, len(omega)):
            # A Poisson number of multi-edges, ends by weight: pairs are then joined as above, once merged.
            sums = weights[members[a]].sum(), weights[members[b]].sum()
            mean = omega[a, b] * sums[0] * sums[1] * (0.5 if a == b else 1.0)
            many = _poisson(mean, generator)
            lefts.append(_ends(weights, members[a], many, generator))
            rights.append(_ends(weights, members[b], many, generator))
    return SyntheticGraph(build(len(weights), np.concatenate(lefts), np.concatenate(rights)))


def _degrees(given: Any, counts: bool | None) -> NDArray[np.float64]:
    """One degree for each node, from whatever holds them."""
    if isinstance(given, Answer):
        names = {column.name for column in given.columns}
        if "degree" in given.keys and "nodes" in names:
            return _spread(given["nodes"].values)
        if "degree" not in names or not {"node", "rank"} & given.keys.keys() or counts:
            raise InvalidParameterError(
                f"No degrees were released by this answer: {given.question:.100}.",
                fix="pass the answer to degrees(), degree_sequence() or degree_histogram().",
            )
        return given["degree"].values
    numbers = np.asarray(given, dtype=np.float64)
    if counts:
        return _spread(numbers)
    likely = (
        numbers.ndim == 1
        and len(numbers) > _SHORT
        and (abs(numbers.sum() - len(numbers)) < len(numbers) / 100 or numbers.max() > 2 * len(numbers))
    )
    if counts is None and likely:
        raise InvalidParameterError(
            "These numbers look like a histogram: how many nodes have each degree, and not the degree of each node.",
            fix="pass the answer itself, or counts=True; if they are degrees, pass counts=False.",
        )
    return numbers


def _spread(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """As many nodes of each degree as a histogram has, rounded so that their total is kept."""
    ends = np.rint(np.cumsum(np.maximum(counts, 0.0))).astype(np.int64)
    return np.repeat(np.arange(len(counts), dtype=np.float64), np.diff(ends, prepend=0))


def _mixing(weights: NDArray[np.float64], labels: Any, mixing: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The block of each node, and the rates between blocks for nodes of weight one."""
    if labels is None:
        total = weights.sum()
        return np.zeros(len(weights), np.int64), np.array([[1 / total if total else 0.0]])
    if len(labels) != len(weights) or mixing is None:
        raise InvalidParameterError(
            "Blocks need one label for each node and the numbers of edges between blocks.",
            fix="pass labels=[…] and mixing=[[…], …], or neither.",
        )
    names, blocks = np.unique(np.asarray(labels), return_inverse=True)
    edges = np.maximum(np.asarray(mixing, dtype=np.float64), 0.0)
    if edges.shape != (len(names), len(names)) or not np.isfinite(edges).all():
        raise InvalidParameterError(
            f"There are {len(names)} blocks, so mixing must have {len(names)} rows and columns.",
            fix="pass one number of edges for each pair of blocks, in the order of their names.",
        )
    sums = np.bincount(blocks, weights=weights, minlength=len(names))
    room = np.outer(sums, sums) * np.where(np.eye(len(names), dtype=bool), 0.5, 1.0)
    rates = np.divide(edges, room, out=np.zeros_like(edges), where=room > 0)
    return blocks.astype(np.int64), rates


def _ends(weights: NDArray[np.float64], members: NDArray[np.int64], many: int, bits: Bits) -> NDArray[np.int64]:
    if not many:
        return np.zeros(0, np.int64)
    sums = np.cumsum(weights[members])
    at = _uniforms(many, bits) * sums[-1]
    ends: NDArray[np.int64] = members[np.minimum(np.searchsorted(sums, at, side="right"), len(members) - 1)]
    return ends


def _poisson(mean: float, bits: Bits) -> int:
    """About a Poisson number: no privacy rests on it. Sums of exponentials, a normal number where it is large."""
    if mean > 1000:
        pair = _uniforms(2, bits)
        normal = math.sqrt(-2 * math.log(1 - pair[0])) * math.cos(2 * math.pi * pair[1])
        return max(0, round(mean + math.sqrt(mean) * normal))
    steps = -np.log1p(-_uniforms(int(mean + 10 * math.sqrt(mean) + 30), bits))
    return int(np.searchsorted(np.cumsum(steps), mean, side="right"))


def _uniforms(many: int, bits: Bits) -> NDArray[np.float64]:
    return (bits.words(many) >> np.uint64(11)).astype(np.float64) / 2.0**53
