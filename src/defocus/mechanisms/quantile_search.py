r"""Where quantiles are looked for: which level first, in which part of the histogram, and the exact choice there.

A *position* is a place along the histogram: a bucket and how many of its :data:`STEPS` equal parts lie before it. The
weight before a position is linear in the histogram, also where the position cuts a bucket.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from defocus.mechanisms.values import IntVector
from defocus.noise import Bits
from defocus.noise.cells import cell_choice

__all__ = ["STEPS", "Node", "Position", "Row", "depth", "plan", "rate", "search"]

STEPS = 1 << 16
"""How finely a bucket is cut where the search goes on to both sides of a level within it."""
_LIGHT = 8
"""A bucket this many units of loss across is proposed as one cell."""
_REACH = 100
"""How many halvings of probability the cells of a heavy bucket follow."""

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


def rate(node: Node, epsilon: Fraction, sensitivity: int) -> Fraction:
    r"""The rate c of the node's choice: :math:`\varepsilon / (2 \max(q, 1-q) \Delta)`."""
    return epsilon / (2 * max(node.level, 1 - node.level) * sensitivity)


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

    __slots__ = ("_shift", "before", "counts")

    def __init__(self, counts: IntVector) -> None:
        self.counts = np.maximum(counts, 0)
        cumulative: npt.NDArray[Any] = np.zeros(len(counts) + 1, np.int64)
        if float(self.counts.sum(dtype=np.float64)) < 2.0**60:
            np.cumsum(self.counts, out=cumulative[1:])
        else:
            cumulative = np.array([0, *np.cumsum(self.counts.astype(object))], dtype=object)
        self.before = cumulative
        self._shift = max(0, min(20, 60 - int(cumulative[-1]).bit_length()))

    def at(self, position: Position) -> Fraction:
        """The weight before a position."""
        bucket, step = position
        return int(self.before[bucket]) + Fraction(int(self.counts[bucket]) * step, STEPS)

    def distance(self, bucket: int, target: Fraction) -> Fraction:
        """How much weight lies between a bucket and the place with ``target`` before it; none if it is inside."""
        return max(Fraction(0), int(self.before[bucket]) - target, target - int(self.before[bucket + 1]))

    def bounds(self, first: int, last: int, target: Fraction) -> tuple[IntVector, int]:
        """Lower bounds of the distances of the buckets from ``first`` to ``last``, and their unit: 1/2**shift."""
        scaled = target * (1 << self._shift)
        below, above = scaled.numerator // scaled.denominator, -(-scaled.numerator // scaled.denominator)
        edges = self.before[first : last + 2] << self._shift
        gaps = np.maximum(np.maximum(edges[:-1] - above, below - edges[1:]), 0)
        return np.minimum(gaps, (1 << 63) - 1).astype(np.int64), self._shift


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
        bounds, shift = self.row.bounds(first, last, self.target)
        cell, _ = cell_choice(
            np.ones(len(bounds), np.int64),
            bounds,
            self.speed / (1 << shift),
            lambda i, _: self.speed * self.row.distance(first + i, self.target),
            self.bits,
        )
        return first + cell

    def position(self, low: Position, high: Position) -> Position:
        """A position with probability proportional to exp(−speed · abs(weight before it − target))."""
        first, last = low[0], high[0]
        bounds, shift = self.row.bounds(first, last, self.target)
        grain = self.speed / (1 << shift)
        starts = np.zeros(len(bounds), np.int64)
        starts[0] = low[1]
        counts = np.full(len(bounds), STEPS + 1, np.int64) - starts
        counts[-1] -= STEPS - high[1]
        at = np.arange(first, last + 1)
        widest, nearest = (int(min(Fraction(1 << 62), x)) for x in (_LIGHT / self.speed, _REACH / grain))
        heavy = np.flatnonzero((self.row.counts[first : last + 1] > widest) & (bounds < nearest))
        if heavy.size:
            light = np.ones(len(bounds), np.bool_)
            light[heavy] = False
            pieces = [self._cells(first + i, int(starts[i]), int(counts[i]), shift) for i in heavy.tolist()]
            rest = np.stack([at[light], starts[light], counts[light], bounds[light]])
            at, starts, counts, bounds = np.concatenate([rest, *pieces], axis=1)

        def distance(cell: int, place: int) -> Fraction:
            return self.speed * abs(self.row.at((int(at[cell]), int(starts[cell]) + place)) - self.target)

        cell, place = cell_choice(counts, bounds, grain, distance, self.bits)
        return int(at[cell]), int(starts[cell]) + place

    def _cells(self, bucket: int, start: int, count: int, shift: int) -> npt.NDArray[np.int64]:
        """A heavy bucket in cells across which the probability halves: bucket, start, count and bound of each."""
        weight, denominator = int(self.row.counts[bucket]), self.target.denominator
        scale, slope, end = denominator * STEPS, weight * denominator, start + count
        ahead = (self.target.numerator - int(self.row.before[bucket]) * denominator) * STEPS
        middle = min(max(-(-ahead // slope), start), end)  # the target lies ahead / slope steps into the bucket
        width = max(1, int(STEPS * Fraction(7, 10) / (self.speed * weight)))
        right, left = range(middle, end, width)[:_REACH], range(middle, start, -width)[:_REACH]
        ranges = [(x, y, x) for x, y in pairwise([*right, end])] + [(y, x, x - 1) for x, y in pairwise([*left, start])]
        most = (1 << 63) - 1
        cells = [(bucket, x, y - x, min((abs(slope * near - ahead) << shift) // scale, most)) for x, y, near in ranges]
        return np.array(cells, np.int64).T


def search(
    nodes: Sequence[Node], row: Row, *, epsilon: Fraction, sensitivity: int, bits: Bits | None
) -> dict[int, int]:
    """The bucket found for the index of each level; each depth of the search spends ``epsilon``."""
    found: dict[int, int] = {}
    waiting: list[tuple[Node, Position, Position]] = [(node, (0, 0), (len(row.counts) - 1, STEPS)) for node in nodes]
    while waiting:
        node, low, high = waiting.pop()
        start = row.at(low)
        target = start + node.level * (row.at(high) - start)
        aim = _Aim(row, target, rate(node, epsilon, sensitivity), bits)
        if node.splits:
            cut = aim.position(low, high)
            found[node.index] = cut[0]
            waiting += [(node.upper, cut, high)] if node.upper else []
            waiting += [(node.lower, low, cut)] if node.lower else []
        else:
            found[node.index] = aim.bucket(low[0], high[0])
    return found
