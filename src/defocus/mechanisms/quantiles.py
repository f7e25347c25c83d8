"""Quantiles by search: which level first, in which part of the histogram, and the exact choice there.

A *position* is a place along the histogram: a bucket and how many of its :data:`STEPS` equal parts lie before it. The
weight before a position is linear in the histogram, also where the position cuts a bucket.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw

from defocus.errors import InvalidParameterError, Number, choice, count, finite, positive
from defocus.mechanisms.mechanism import LARGEST_SCALE, Integers, IntVector, integers, outside
from defocus.mechanisms.quantile_tree import NoisyTree
from defocus.mechanisms.selection import checked_flag
from defocus.noise import Bits
from defocus.noise.choice import cell_choice
from defocus.privacy import events

__all__ = ["STEPS", "Located", "Node", "Position", "Quantiles", "Row", "Search", "depth", "plan"]


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


_METHODS = ("auto", "search", "tree")
_FINEST = 10**6
_MOST_BUCKETS = 1 << 24
_EXTREME = 2**500


@final
@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """Buckets of the levels, and the first and last bucket that each quantile may be in; None where that is unknown.

    Vectors with one entry for each level, or matrices with one row for each group.

    >>> import numpy as np
    >>> Located(np.array([17]), None, None).buckets.tolist()
    [17]
    """

    buckets: IntVector
    low: IntVector | None
    high: IntVector | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    r"""For each level q, a bucket with about the share q of all weight before it and 1 − q after it.

    The data is a histogram of integer weights over public buckets, or a matrix with one such histogram in each row,
    for disjoint groups. There are two methods; ``method="auto"`` takes the one with the smaller error where
    a few dozen buckets compete for a level: mostly the search for up to three levels, else the tree.

    *Search*: the level in the middle is found first, by the exponential mechanism; the histogram is cut there, and
    the levels below and above are found in its two parts in the same way. Two levels are found one after the other,
    each in the whole histogram.

    *Tree*: discrete Laplace noise is added to the sums of a tree over the buckets, and the quantiles are read from
    the least-squares estimate of the cumulative histogram, with intervals.

    Guarantee:
        A user adds weights :math:`d \ge 0` of total at most :math:`\Delta` = ``sensitivity``.

        *Search.* Consider one choice in a part with weight N of which the user holds s. The loss of a bucket is how
        far the target :math:`qN` lies outside the ranks the bucket covers,
        :math:`L(t) = \max(0,\ below(t) - qN,\ qN - below(t) - h_t)`; that of a cut is :math:`|before - qN|`. The user
        holds between 0 and s before any place, so each term moves by a number in :math:`[-qs, (1-q)s]` or its
        negative, and a maximum moves no further than its terms: :math:`|\Delta L| \le \max(q, 1-q)\,s`. With
        :math:`P \propto e^{-cL}` and :math:`c = \varepsilon' / 2\max(q, 1-q)\Delta`, the log-likelihood ratios
        of the choice span a range of at most :math:`\varepsilon' s/\Delta`.

        Choices of one depth are made in disjoint parts and groups. Given the cuts made before, a cut takes from
        each bucket the same share of everybody's weight, so the user's weights in the parts add up to their whole
        weight: :math:`\sum s \le \Delta`. The choices are independent, so the ranges of their log-likelihood ratios
        add up, to at most :math:`\sum \varepsilon' s/\Delta \le \varepsilon'`. Hence everything at one depth together
        has bounded range :math:`\varepsilon' = \varepsilon/D`, whatever came before, and the D depths compose to
        :math:`\varepsilon`-DP, and to less for a delta.

        *Tree.* At each of H depths the sums are disjoint, so all of them together move by at most :math:`H\Delta` in
        L1 norm, and noise of scale :math:`H\Delta/\varepsilon` makes them :math:`\varepsilon`-DP. Sums
        that 64 bits might not hold are prevented by cutting each weight to :math:`2^{62}` / ``buckets``, which moves
        neighbours no further apart.

        With ``replace``, one user leaves and another comes: :math:`\Delta` is doubled.
    Assumes:
        The weights of a user over all buckets and groups of the release add up to at most ``sensitivity``. Buckets,
        groups and levels are public. Negative entries count as zero, which no histogram has.

    Error:
        See :meth:`rank_error`. An empty histogram gives random buckets, uniform ones by search; no data is refused.
    Reference:
        Kaplan, Schnapp, Stemmer (2022), Differentially private approximate quantiles, for rows of distinct values;
        the cut through a bucket, so that heavy values do no harm, and users' weights are proven above. Smith (2011),
        Privacy-preserving statistical estimation with optimal convergence rates, for one level. Hay, Rastogi, Miklau,
        Suciu (2010), Boosting the accuracy of differentially private histograms through consistency, for the tree.

    >>> ages = Quantiles(levels=(0.25, 0.5, 0.75), epsilon=1, buckets=100)
    >>> ages.event
    Composed(parts=((Exponential(epsilon=Fraction(1, 2)), 2),))
    >>> ages.sample([0] * 40 + [1_000_000] + [0] * 59)
    array([40, 40, 40])
    >>> deciles = Quantiles(levels=[Fraction(i, 10) for i in range(1, 10)], epsilon=1, buckets=100)
    >>> deciles.event
    DiscreteLaplace(scale=Fraction(2, 1), sensitivity=2)
    >>> deciles.locate([0] * 40 + [1_000_000] + [0] * 59).high
    array([40, 40, 40, 40, 40, 40, 40, 40, 40])
    """

    answers_with: ClassVar[str] = "candidate"
    levels: Sequence[Number]
    epsilon: Number
    buckets: int
    sensitivity: int = 1
    replace: bool = False
    method: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", _levels(self.levels))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "buckets", count("buckets", self.buckets))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        checked_flag("replace", self.replace)
        object.__setattr__(self, "method", choice("method", self.method, _METHODS))
        if self.buckets > _MOST_BUCKETS:
            raise InvalidParameterError("buckets must be at most 2**24.", fix="use wider buckets.")
        if not Fraction(1, _EXTREME) <= Fraction(self.epsilon) / self.sensitivity <= _EXTREME:
            raise InvalidParameterError(
                "epsilon and sensitivity are more than 2**500 apart.", fix="pass parameters of ordinary size."
            )
        _ = self.event

    @property
    def event(self) -> events.Event:
        """What one release owes, however many groups it has."""
        return self._way.event

    @property
    def error(self) -> float:
        """The expected rank error of the worst level, in units of weight.

        By search: over all histograms. By tree: the expected error of the cumulative weight where it is least certain.
        """
        return self._way.error

    def rank_error(self, confidence: Number) -> float:
        r"""The rank error of a level, in units of weight, is at most this with probability ``confidence``.

        It is the weight between the chosen bucket and the place of the quantile, whatever the histogram.

        *Search*: one choice among n candidates loses more than t with probability at most
        :math:`m e^{-ct}/(1 + m e^{-ct})`, m = n − 1. An error e of a cut at level p moves the target of a level
        q < p below it by :math:`(q/p) e`, so the errors on the way to a level are added with these weights, each at
        an equal share of 1 − ``confidence``. A cut is one of n = buckets · 65537, as fine as is needed where all weight
        lies in one bucket; to it belongs a further 2⁻¹⁷ of the weight of one bucket. Where the weight is
        spread, errors are several times smaller than this.

        *Tree*: the error is at most the largest error of the estimated cumulative weight, at any bucket; by Chernoff's
        bound at each, added up.
        """
        return self._way.rank_error(outside(confidence))

    def interval(self, confidence: Number) -> float:
        """The same as :meth:`rank_error`."""
        return self.rank_error(confidence)

    def check(self, counts: object) -> None:
        """Refuse anything but integer weights for all buckets: a vector, or a matrix with one row for each group."""
        self._rows(counts)

    def sample(self, counts: Integers | npt.NDArray[np.integer[Any]], bits: Bits | None = None) -> IntVector:
        """The bucket of each level, in the order of ``levels``: a vector, or one row for each group of a matrix."""
        return self.locate(counts, bits).buckets

    def locate(
        self,
        counts: Integers | npt.NDArray[np.integer[Any]],
        bits: Bits | None = None,
        *,
        confidence: Number = Fraction(19, 20),
    ) -> Located:
        """One release with intervals, where the method has them: each holds its quantile with this ``confidence``."""
        beyond = outside(confidence)
        rows, single = self._rows(counts)
        way = self._way
        if isinstance(way, Search):
            found = way.locate(rows, bits)
            return Located(found[0] if single else found, None, None)
        each = way.locate(rows, bits, beyond)
        return Located(*(part[0] for part in each)) if single else Located(*each)

    @property
    def _way(self) -> Search | NoisyTree:
        """The method that is used."""
        moves = self.sensitivity * (2 if self.replace else 1)
        levels = tuple(Fraction(level) for level in self.levels)
        search = Search(levels, self.epsilon, self.buckets, moves)
        tree = NoisyTree(levels, self.epsilon, self.buckets, moves)
        if self.method == "auto":
            return search if tree.least_scale > LARGEST_SCALE or search.typical <= tree.error else tree
        return search if self.method == "search" else tree

    def _rows(self, counts: object) -> tuple[npt.NDArray[np.int64], bool]:
        if not isinstance(counts, np.ndarray) or counts.ndim != 2 or counts.shape[1] != self.buckets:
            vector, _ = integers(counts, length=self.buckets)
            return vector[np.newaxis], True
        if not counts.size:
            return np.zeros(counts.shape, np.int64), False
        return integers(counts.ravel())[0].reshape(counts.shape), False


def _levels(levels: object) -> tuple[Fraction, ...]:
    """Distinct levels strictly between zero and one, exactly as written: 0.9 is nine tenths."""
    if isinstance(levels, str | bytes | dict) or not hasattr(levels, "__len__") or not hasattr(levels, "__iter__"):
        raise InvalidParameterError(
            f"levels must be a sequence of numbers, but it is {type(levels).__name__}.", fix="pass levels=(0.5,)."
        )
    exact: list[Fraction] = []
    for level in levels:
        number = finite("a level", level)
        value = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
        if not 0 < value < 1:
            raise InvalidParameterError(
                f"A level must lie strictly between 0 and 1, but it is {number}.",
                fix="pass for example 0.01 and 0.99 for nearly the least and the largest value.",
            )
        exact.append(value)
    if not exact or len(set(exact)) < len(exact):
        raise InvalidParameterError("levels must be distinct, at least one.", fix="pass each level once.")
    if math.lcm(*(value.denominator for value in exact)) > _FINEST:
        raise InvalidParameterError(
            "The levels have a common denominator above a million.", fix="round them to at most six decimals."
        )
    return tuple(exact)
