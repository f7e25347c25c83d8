"""Synthetic graphs from a private network: released degrees, triangles and edges between public groups, then drawn."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers import Preview, export
from defocus.errors import InvalidParameterError, Number, positive
from defocus.graphs import Network
from defocus.graphs.data import build
from defocus.graphs.inference import SyntheticGraph, synthetic_graph
from defocus.graphs.network import GraphQuery
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.synthesis.generator import seeded
from defocus.synthesis.saving import saved

__all__ = ["GraphGenerator", "GraphSynthesiser"]

_FORMAT = "defocus synthetic graph 1"
_SHARES = {"degrees": 0.5, "groups": 0.2, "triangles": 0.3}
_SWAPS, _MOST_SWAPS = 40, 400_000
"""How many exchanges of edges are tried: for each edge, and at most."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class GraphSynthesiser:
    """Which synthetic graphs are asked for: with the degrees and triangles of a network, and its public groups.

    Each statistic is a question to the network, with its own charge; together they cost what is asked.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> network = examples.ring()
    >>> made = dp.synthesis.GraphSynthesiser(network).fit(epsilon=6)
    >>> made.sample().nodes
    100
    >>> network.close()
    """

    network: Network
    groups: Sequence[Any] | None = None
    """A public label for each node: edges inside and between groups are kept."""

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise InvalidParameterError(
                f"Synthetic graphs are made from a network, not from {type(self.network).__name__}.",
                fix="open it first: network = dp.open_graph(…).",
            )

    def preview(self, *, epsilon: Number, delta: Number | None = None) -> dict[str, Preview]:
        """What each statistic would cost and how exact it would be, free of charge."""
        return {name: query.preview(**price) for name, query, price in self._questions(epsilon, delta)}

    def fit(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        bits: Bits | None = None,
    ) -> "GraphGenerator":
        """Release the statistics, one charge for each, and keep them for drawing graphs."""
        found: dict[str, Any] = {}
        for name, query, price in self._questions(epsilon, delta):
            found[name] = query.release(**price, purpose=purpose, who=who, bits=bits)
        degrees = np.asarray(found["degrees"].value, np.float64)
        mixing = None
        labels = None if self.groups is None else tuple(map(str, self.groups))
        if labels is not None:
            names = sorted(set(labels))
            mixing = np.zeros((len(names), len(names)))
            for (one, two), value in zip(
                itertools.combinations_with_replacement(range(len(names)), 2),
                found["groups"].columns[0].values,
                strict=True,
            ):
                mixing[one, two] = mixing[two, one] = max(0.0, value)
        return GraphGenerator(degrees, float(found["triangles"].value), labels, mixing)

    def _questions(self, epsilon: Number, delta: Number | None) -> list[tuple[str, GraphQuery, dict[str, Any]]]:
        price = float(positive("epsilon", epsilon))
        asked = {"degrees": self.network.degree_sequence(), "triangles": self.network.triangles()}
        if self.groups is not None:  # labels belong to nodes, so degrees do as well
            labels = [str(label) for label in self.groups]
            asked |= {"degrees": self.network.degrees(), "groups": self.network.group_edges(groups=labels)}
        whole = sum(_SHARES[name] for name in asked)
        part = None if delta is None else float(delta) / len(asked)
        return [
            (name, query, {"epsilon": price * _SHARES[name] / whole, "delta": part}) for name, query in asked.items()
        ]


@final
@dataclass(frozen=True, slots=True, eq=False)
class GraphGenerator:
    """Synthetic graphs with released statistics. Made by :class:`GraphSynthesiser`; everything about it is released.

    >>> made = GraphGenerator(np.full(40, 4.0), 30.0)
    >>> made.sample().nodes
    40
    """

    degrees: NDArray[np.float64]
    triangles: float
    labels: tuple[str, ...] | None = None
    mixing: NDArray[np.float64] | None = None

    def sample(self, *, bits: Bits | None = None) -> SyntheticGraph:
        """A graph with these degrees, and edges between groups, whose edges are exchanged until triangles agree.

        Exchanges keep all degrees and the number of edges between each two groups.
        """
        chance = bits_of(bits)
        names = None if self.labels is None else sorted(set(self.labels))
        blocks = None if names is None or self.labels is None else [names.index(label) for label in self.labels]
        made = synthetic_graph(self.degrees, counts=False, labels=blocks, mixing=self.mixing, bits=chance)
        lefts, rights = made.pairs()
        edges = list(zip(lefts.tolist(), rights.tolist(), strict=True))
        closed = _closed(made.nodes, edges, blocks or [0] * made.nodes, max(0.0, self.triangles), seeded(chance))
        ends = np.array(closed, np.int64).reshape(-1, 2)
        return SyntheticGraph(build(made.nodes, ends[:, 0], ends[:, 1]))

    def save(self, path: str | Path) -> None:
        """Write everything to one JSON file, which holds no code."""
        mixing = None if self.mixing is None else self.mixing.tolist()
        labels = None if self.labels is None else list(self.labels)
        held = {"degrees": self.degrees.tolist(), "triangles": self.triangles, "labels": labels, "mixing": mixing}
        export.write_bytes(path, json.dumps({"format": _FORMAT, **held}).encode())

    @classmethod
    def load(cls, path: str | Path) -> "GraphGenerator":
        """What :meth:`save` wrote."""
        return saved(path, _FORMAT, cls._read, "does not hold a saved graph")

    @classmethod
    def _read(cls, held: Any) -> "GraphGenerator":
        labels = None if held["labels"] is None else tuple(map(str, held["labels"]))
        mixing = None if held["mixing"] is None else np.asarray(held["mixing"], np.float64)
        made = cls(np.asarray(held["degrees"], np.float64), float(held["triangles"]), labels, mixing)
        fits = made.degrees.ndim == 1 and len(made.degrees) and (labels is None) == (mixing is None)
        if labels is not None and mixing is not None:
            groups = len(set(labels))
            fits = fits and len(labels) == len(made.degrees) and mixing.shape == (groups, groups)
        if not fits:
            raise ValueError("degrees, labels and groups do not fit together")
        most = len(made.degrees) ** 2 + 1e6  # noise may exceed what a graph has, but not by that
        numbers = (made.degrees, np.array(made.triangles) / most, np.zeros(0) if mixing is None else mixing)
        if not all((np.abs(own) <= most).all() for own in numbers):
            raise ValueError("not a number, or more edges than there can be")
        return made


def _closed(
    nodes: int, edges: list[tuple[int, int]], blocks: Sequence[int], wanted: float, random: np.random.Generator
) -> list[tuple[int, int]]:
    """Edges after exchanges: those of b-x and d-y become b-d and x-y, where d and x are in one group.

    Where triangles are missing, b and d are neighbours of one node, so that each exchange closes one.
    """
    near: list[set[int]] = [set() for _ in range(nodes)]
    for one, two in edges:
        near[one].add(two)
        near[two].add(one)
    there = sum(len(near[one] & near[two]) for one, two in edges) / 3
    tries = iter(random.random((min(_MOST_SWAPS, _SWAPS * len(edges)), 5)))

    def some(of: set[int], share: float) -> int:
        return sorted(of)[int(share * len(of))]

    for draw in tries:
        if abs(there - wanted) < 1 or not edges:
            break
        middle = edges[int(draw[0] * len(edges))][int(draw[1] * 2)]
        b = some(near[middle], draw[2])
        d = some(near[middle], draw[3]) if there < wanted else int(draw[3] * nodes)
        if b == d or d in near[b] or not near[d]:
            continue
        others = [x for x in near[b] if blocks[x] == blocks[d] and x not in {d, middle}]
        if not others:
            continue
        x, y = sorted(others)[int(draw[4] * len(others))], some(near[d], draw[0])
        if len({b, d, x, y}) < 4 or y == middle or y in near[x]:
            continue
        lost = len(near[b] & near[x]) + len(near[d] & near[y])
        _exchange(near, (b, x), (d, y))
        won = len(near[b] & near[d])
        near[b].add(d)
        near[d].add(b)
        won += len(near[x] & near[y])
        near[x].add(y)
        near[y].add(x)
        if abs(there + won - lost - wanted) < abs(there - wanted):
            there += won - lost
            continue
        _exchange(near, (b, d), (x, y))
        for one, two in ((b, x), (d, y)):
            near[one].add(two)
            near[two].add(one)
    return [(one, two) for one in range(nodes) for two in near[one] if one < two]


def _exchange(near: list[set[int]], *gone: tuple[int, int]) -> None:
    for one, two in gone:
        near[one].discard(two)
        near[two].discard(one)
