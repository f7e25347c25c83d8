r"""Quantiles by search: which level first, in which part of the histogram, and the exact choice there.

A *position* is a place along the histogram: a bucket and how many of its :data:`STEPS` equal parts lie before it. The
weight before a position is linear in the histogram, also where the position cuts a bucket.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw

from defocus.errors import Number
from defocus.mechanisms.values import IntVector
from defocus.noise import Bits
from defocus.noise.cells import cell_choice
from defocus.privacy import events

__all__ = ["STEPS", "Node", "Position", "Row", "Search", "depth", "plan"]

STEPS = 1 << 16
"""How finely a bucket is cut where the search goes on to both sides of a level within it."""
_LIGHT = 8
"""A bucket this many units of loss across is proposed as one cell."""
_REACH = 100
"""How many halvings of probability the cells of a heavy bucket follow."""

_MOST = (1 << 63) - 1
_COMPETING = 32
"""How many buckets compete with the best one, in a typical histogram."""

Position: TypeAlias = tuple[int, int]
"""A bucket, and how many of its STEPS parts lie before the cut."""


@final
@dataclass(frozen=True, slots=True)
class Node:
    """A level to find within a part: ``level`` of the part's weight lies before it. Levels below and above follow."""

    index: int
    level: Fraction
    depth: int
    lower: "Node | None" = None
    upper: "Node | None" = None

    @property
    def splits(self) -> bool:
        """Whether the search goes on in the two parts."""
        return self.lower is not None or self.upper is not None


def plan(levels: Sequence[Fraction]) -> tuple[Node, ...]:
    """The searches that find ``levels``: one after another for two of them, else halves of halves.

    >>> [node.depth for node in plan([Fraction(1, 2), Fraction(9, 10)])]
    [0, 1]
    >>> root, = plan([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)])
    >>> root.level, root.lower.level, root.upper.level
    (Fraction(1, 2), Fraction(1, 2), Fraction(1, 2))
    """
    order = sorted(range(len(levels)), key=lambda i: levels[i])
    if len(order) <= 2:
        return tuple(Node(i, levels[i], d) for d, i in enumerate(order))
    root = _halves(order, levels, Fraction(0), Fraction(1), 0)
    return () if root is None else (root,)


def depth(nodes: Sequence[Node]) -> int:
    """How many rounds of choices the search makes."""
    return max((max(n.depth + 1, depth([c for c in (n.lower, n.upper) if c])) for n in nodes), default=0)


def _halves(order: Sequence[int], levels: Sequence[Fraction], low: Fraction, high: Fraction, at: int) -> Node | None:
    if not order:
        return None
    middle = len(order) // 2
    i = order[middle]
    level = (levels[i] - low) / (high - low)
    lower = _halves(order[:middle], levels, low, levels[i], at + 1)
    upper = _halves(order[middle + 1 :], levels, levels[i], high, at + 1)
    return Node(i, level, at, lower, upper)


@final
class Row:
    """One exact histogram with its cumulative weights: ``before[t]`` lies in the buckets before t."""

    __slots__ = ("before", "counts", "shift")

    def __init__(self, counts: IntVector) -> None:
        self.counts = np.maximum(counts, 0)
        cumulative: npt.NDArray[Any] = np.zeros(len(counts) + 1, np.int64)
        if float(self.counts.sum(dtype=np.float64)) < 2.0**60:
            np.cumsum(self.counts, out=cumulative[1:])
        else:
            cumulative = np.array([0, *np.cumsum(self.counts.astype(object))], dtype=object)
        self.before = cumulative
        self.shift = max(0, min(20, 60 - int(cumulative[-1]).bit_length()))

    def at(self, position: Position) -> Fraction:
        """The weight before a position."""
        bucket, step = position
        return int(self.before[bucket]) + Fraction(int(self.counts[bucket]) * step, STEPS)

    def distance(self, bucket: int, target: Fraction) -> Fraction:
        """How much weight lies between a bucket and the place with ``target`` before it; none if it is inside."""
        return max(Fraction(0), int(self.before[bucket]) - target, target - int(self.before[bucket + 1]))

    def bounds(self, first: int, last: int, target: Fraction) -> IntVector:
        """Lower bounds of the distances of the buckets from ``first`` to ``last``, in units of 2**-shift."""
        scaled = target * (1 << self.shift)
        below, above = scaled.numerator // scaled.denominator, -(-scaled.numerator // scaled.denominator)
        edges = self.before[first : last + 2] << self.shift
        gaps = np.maximum(np.maximum(edges[:-1] - above, below - edges[1:]), 0)
        bounds: IntVector = np.minimum(gaps, _MOST).astype(np.int64)
        return bounds


@final
@dataclass(frozen=True, slots=True)
class _Aim:
    """One choice to make: near the place with ``target`` before it, with probabilities that fall at rate ``speed``."""

    row: Row
    target: Fraction
    speed: Fraction
    bits: Bits | None

    def bucket(self, first: int, last: int) -> int:
        """A bucket with probability proportional to exp(−speed · distance)."""
        bounds = self.row.bounds(first, last, self.target)
        cell, _ = cell_choice(
            np.ones(len(bounds), np.int64),
            bounds,
            self.speed / (1 << self.row.shift),
            lambda i, _: self.speed * self.row.distance(first + i, self.target),
            self.bits,
        )
        return first + cell

    def position(self, low: Position, high: Position) -> Position:
        """A position with probability proportional to exp(−speed · abs(weight before it − target))."""
        first, last = low[0], high[0]
        least = self._least(first, last, (low[1], high[1]))  # taken off every distance: the differences matter
        spared = min(-int(-least * (1 << self.row.shift) // 1), _MOST)
        bounds = np.maximum(self.row.bounds(first, last, self.target) - spared, 0)
        grain = self.speed / (1 << self.row.shift)
        starts = np.zeros(len(bounds), np.int64)
        starts[0] = low[1]
        counts = np.full(len(bounds), STEPS + 1, np.int64) - starts
        counts[-1] -= STEPS - high[1]
        at = np.arange(first, last + 1)
        widest, nearest = (int(min(Fraction(1 << 62), x)) for x in (_LIGHT / self.speed, _REACH / grain))
        heavy = np.flatnonzero((self.row.counts[first : last + 1] > widest) & (bounds <= nearest))
        if heavy.size:
            light = np.ones(len(bounds), np.bool_)
            light[heavy] = False
            pieces = [self._cells(first + i, int(starts[i]), int(counts[i]), spared) for i in heavy.tolist()]
            rest = np.stack([at[light], starts[light], counts[light], bounds[light]])
            at, starts, counts, bounds = np.concatenate([rest, *pieces], axis=1)

        def distance(cell: int, place: int) -> Fraction:
            loss = abs(self.row.at((int(at[cell]), int(starts[cell]) + place)) - self.target)
            return self.speed * (loss - least)

        cell, place = cell_choice(counts, bounds, grain, distance, self.bits)
        return int(at[cell]), int(starts[cell]) + place

    def _least(self, first: int, last: int, steps: tuple[int, int]) -> Fraction:
        """The least distance of a position, from step steps[0] of bucket ``first`` to steps[1] of ``last``."""
        ends = self.row.before[first + 1 : last + 1]
        bucket = first + int(np.searchsorted(ends, math.ceil(self.target), side="left"))  # where the target lies
        weight, into = int(self.row.counts[bucket]), self.target - int(self.row.before[bucket])
        near = int(into * STEPS / weight) if weight else 0
        low, high = steps[0] if bucket == first else 0, steps[1] if bucket == last else STEPS
        return min(abs(self.row.at((bucket, min(max(step, low), high))) - self.target) for step in (near, near + 1))

    def _cells(self, bucket: int, start: int, count: int, spared: int) -> npt.NDArray[np.int64]:
        """A heavy bucket in cells across which the probability halves: bucket, start, count and bound of each."""
        weight, denominator = int(self.row.counts[bucket]), self.target.denominator
        scale, slope, end = denominator * STEPS, weight * denominator, start + count
        ahead = (self.target.numerator - int(self.row.before[bucket]) * denominator) * STEPS
        middle = min(max(-(-ahead // slope), start), end)  # the target lies ahead / slope steps into the bucket
        width = max(1, int(STEPS * Fraction(7, 10) / (self.speed * weight)))
        right, left = range(middle, end, width)[:_REACH], range(middle, start, -width)[:_REACH]
        ranges = [(x, y, x) for x, y in pairwise([*right, end])] + [(y, x, x - 1) for x, y in pairwise([*left, start])]
        bounds = [(abs(slope * near - ahead) << self.row.shift) // scale - spared for _, _, near in ranges]
        cells = [(bucket, x, y - x, min(max(b, 0), _MOST)) for (x, y, _), b in zip(ranges, bounds, strict=True)]
        return np.array(cells, np.int64).T


@final
@dataclass(frozen=True, slots=True)
class Search:
    """The levels of :class:`defocus.mechanisms.Quantiles` by choices; parameters have been checked there."""

    levels: tuple[Fraction, ...]
    epsilon: Number
    buckets: int
    moves: int
    """How much weight a unit moves."""

    @property
    def event(self) -> events.Event:
        """One choice of bounded range for each depth."""
        rounds = depth(self.nodes)
        return rounds * events.Exponential(self.epsilon if rounds == 1 else self.each)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Where the search begins."""
        return plan(self.levels)

    @property
    def each(self) -> Fraction:
        """What each depth spends."""
        return Fraction(self.epsilon) / depth(self.nodes)

    def rate(self, node: Node) -> Fraction:
        r"""The rate c of the choice at a node: :math:`\varepsilon' / (2 \max(q, 1-q) \Delta)`."""
        return self.each / (2 * max(node.level, 1 - node.level) * self.moves)

    @property
    def error(self) -> float:
        """The expected rank error of the worst level and histogram."""
        return self._worst(lambda node, _: _mean(self._others(node)))

    @property
    def typical(self) -> float:
        """The same if only a few buckets compete, as where the weight is spread."""
        return self._worst(lambda _, __: _mean(min(self.buckets - 1, _COMPETING)))

    def rank_error(self, beyond: float) -> float:
        """What the rank error of a level exceeds with probability at most ``beyond``."""

        def tail(node: Node, length: int) -> float:
            others, part = self._others(node), beyond / length
            return max(0.0, math.log(others) + math.log1p(-part) - math.log(part)) if others else 0.0

        return self._worst(tail)

    def locate(self, rows: npt.NDArray[np.int64], bits: Bits | None) -> npt.NDArray[np.int64]:
        """The bucket of each level in each row."""
        nodes, rates = self.nodes, {node: self.rate(node) for node in _all(self.nodes)}
        found = np.zeros((len(rows), len(self.levels)), np.int64)
        for i, counts in enumerate(rows):
            row = Row(counts)
            waiting = [(node, (0, 0), (self.buckets - 1, STEPS)) for node in nodes]
            while waiting:
                node, low, high = waiting.pop()
                start = row.at(low)
                aim = _Aim(row, start + node.level * (row.at(high) - start), rates[node], bits)
                if node.splits:
                    cut = aim.position(low, high)
                    found[i, node.index] = cut[0]
                    waiting += [(node.upper, cut, high)] if node.upper else []
                    waiting += [(node.lower, low, cut)] if node.lower else []
                else:
                    found[i, node.index] = aim.bucket(low[0], high[0])
        order = np.argsort(np.array(self.levels, dtype=object))
        found[:, order] = np.sort(found, axis=1)
        return found

    def _others(self, node: Node) -> int:
        return self.buckets * (STEPS + 1 if node.splits else 1) - 1

    def _worst(self, loss: Callable[[Node, int], float]) -> float:
        """The largest sum of losses, in units of 1/rate, on the way to a level."""
        paths = _paths(self.nodes)
        return max(sum(w * loss(node, len(path)) / float(self.rate(node)) for w, node in path) for path in paths)


def _mean(others: int) -> float:
    """The largest expected loss of a choice with so many other candidates; see :class:`Exponential`."""
    return float(lambertw(others / math.e).real)


def _all(nodes: Iterable[Node | None]) -> Iterator[Node]:
    for node in nodes:
        if node is not None:
            yield node
            yield from _all((node.lower, node.upper))


def _paths(nodes: Iterable[Node]) -> Iterator[list[tuple[float, Node]]]:
    """For each level the choices on the way to it, with the weight of each one's error."""
    for node in nodes:
        yield [(1.0, node)]
        for below, lower in ((node.lower, True), (node.upper, False)):
            for path in _paths([below] if below else []):
                place = _place(path)
                yield [(float(place if lower else 1 - place), node), *path]


def _place(path: list[tuple[float, Node]]) -> Fraction:
    """The level at the end of a path, relative to the part at its start."""
    low, high = Fraction(0), Fraction(1)
    for (_, node), (_, following) in pairwise(path):
        cut = low + node.level * (high - low)
        low, high = (low, cut) if following is node.lower else (cut, high)
    return low + path[-1][1].level * (high - low)
