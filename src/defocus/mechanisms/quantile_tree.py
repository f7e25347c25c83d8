r"""A noisy cumulative histogram from a tree of sums: all quantiles at once, with intervals.

The buckets are the leaves of a tree with ``fans`` children at each depth; noise is added to every node but the root.
Working upwards, the noisy sum of a node is averaged with the estimates of its children, weighted by the inverse of
their variances; working downwards, what is left over between a node and its children is shared equally among these.
The result is the least-squares estimate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from defocus.errors import Number
from defocus.mechanisms.mechanism import IntVector, add, scale_for
from defocus.noise import Bits, discrete_laplace
from defocus.privacy import events

__all__ = ["Floats", "NoisyTree", "Tree", "best_tree"]

Floats: TypeAlias = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """A tree over ``buckets`` leaves; places beyond them are empty."""

    buckets: int
    fans: tuple[int, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """How many leaves lie below a node, at each depth."""
        return tuple(math.prod(self.fans[depth + 1 :]) for depth in range(len(self.fans)))

    def sums(self, counts: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """The exact sums of all nodes, one matrix for each depth, from a matrix with one histogram in each row."""
        groups, _ = counts.shape
        full = np.zeros((groups, math.prod(self.fans)), np.int64)
        full[:, : self.buckets] = np.clip(counts, 0, (1 << 62) // self.buckets)
        return [full.reshape(groups, -1, width).sum(axis=2) for width in self.widths]

    def cumulative(self, noisy: Sequence[npt.NDArray[np.int64]]) -> tuple[Floats, Floats]:
        """The estimated weight before every bucket and before the end, and all weight, in each row."""
        groups = len(noisy[0])
        variances = self.variances
        estimates = [noisy[-1].astype(np.float64)]
        for depth in range(len(self.fans) - 2, -1, -1):
            fan, below = self.fans[depth + 1], variances[depth + 1]
            children = estimates[0].reshape(groups, -1, fan).sum(axis=2)
            share = fan * below / (1 + fan * below)
            estimates.insert(0, share * noisy[depth] + (1 - share) * children)
        settled = estimates[0]
        for depth in range(1, len(self.fans)):
            fan = self.fans[depth]
            children = estimates[depth].reshape(groups, -1, fan)
            left = (settled - children.sum(axis=2)) / fan
            settled = (children + left[:, :, np.newaxis]).reshape(groups, -1)
        before = np.zeros((groups, self.buckets + 1))
        np.cumsum(settled[:, : self.buckets], axis=1, out=before[:, 1:])
        return before, estimates[0].sum(axis=1)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of the estimate of a node from itself and those below, relative to that of one noise."""
        found = [1.0]
        for fan in reversed(self.fans[1:]):
            found.insert(0, 1 / (1 + 1 / (fan * found[0])))
        return tuple(found)

    def spread(self, level: float) -> Floats:
        r"""The standard deviation of (weight before t) − level · (all weight), for every t, relative to one noise.

        Within a node the estimate is :math:`\varphi T + R`, where T is the node's estimate, :math:`\varphi` the share
        of its leaves before t, and R an independent rest. If i of f children lie before t, and the share
        :math:`\varphi'` of the next, R has :math:`i + \varphi'^2 - f \varphi^2` times the variance of one child, and
        that child's own rest.
        """
        place = np.arange(self.buckets + 1)
        total = np.zeros(len(place))
        inner = np.zeros(len(place))
        for depth in range(len(self.fans) - 1, -1, -1):
            fan, variance, width = self.fans[depth], self.variances[depth], self.widths[depth]
            before = place // width % fan if depth else place // width
            share = (before + inner) / fan
            if depth:
                total += variance * (before + inner**2 - fan * share**2)
            else:
                total += variance * (before + inner**2 - 2 * level * (before + inner) + fan * level**2)
            inner = share
        return np.sqrt(np.maximum(total, 0.0))


@lru_cache(maxsize=64)
def best_tree(buckets: int) -> Tree:
    """The tree whose least certain median is most certain, when its depths share one budget."""
    trees = [Tree(buckets, _fans(buckets, depths)) for depths in range(1, 7) if depths == 1 or 2**depths <= buckets]
    return min(trees, key=lambda tree: len(tree.fans) * float(tree.spread(0.5).max()))


def _fans(buckets: int, depths: int) -> tuple[int, ...]:
    """About equal numbers of children, with few places to spare."""
    fans: list[int] = []
    rest = Fraction(buckets)
    for left in range(depths, 0, -1):
        fans.append(math.ceil(rest) if left == 1 else max(2, round(float(rest) ** (1 / left))))
        rest /= fans[-1]
    return tuple(fans)


@final
@dataclass(frozen=True, slots=True)
class NoisyTree:
    """The levels of :class:`defocus.mechanisms.Quantiles` by a tree; parameters have been checked there."""

    levels: tuple[Fraction, ...]
    epsilon: Number
    buckets: int
    moves: int
    """How much weight a unit moves."""

    @property
    def tree(self) -> Tree:
        """The sums that are measured."""
        return best_tree(self.buckets)

    @property
    def event(self) -> events.DiscreteLaplace:
        """Noise on the sums of all depths at once."""
        return events.DiscreteLaplace(self.scale, self.moves * len(self.tree.fans))

    @property
    def least_scale(self) -> Fraction:
        """The scale that the noise needs, whether it can be drawn or not."""
        return self.moves * len(self.tree.fans) / Fraction(self.epsilon)

    @property
    def scale(self) -> Number:
        """The scale of the noise on each sum."""
        return scale_for(self.moves * len(self.tree.fans), self.epsilon)

    @property
    def error(self) -> float:
        """The expected error of the cumulative weight, less the level's share of all, where it is least certain."""
        return math.sqrt(2 / math.pi) * self._widest

    def rank_error(self, beyond: float) -> float:
        r"""What the rank error of a level exceeds with probability at most ``beyond``, by Chernoff's bound.

        A weighted sum of Laplace noises of scale b, with weights of at most one and standard deviation :math:`\sigma`,
        has :math:`E e^{\theta X} \le e^{\theta^2 \sigma^2 / 2(1 - \theta^2 b^2)}`. All places and both sides add up.
        """
        b = float(self.least_scale)
        theta = np.arange(1, 1000) / 1000 / b
        logs = theta**2 * self._widest**2 / (2 * (1 - (theta * b) ** 2)) - math.log(beyond / (2 * (self.buckets + 1)))
        return float((logs / theta).min())

    def locate(
        self, rows: npt.NDArray[np.int64], bits: Bits | None, beyond: float
    ) -> tuple[IntVector, IntVector, IntVector]:
        """The bucket of each level in each row, and the first and last that it may be in.

        With G(t) the weight before t less the level's share of all, the quantile is in bucket t if
        G(t) <= 0 <= G(t + 1). The estimate of G is made monotone, by the mean of the least monotone function above
        it and the greatest below, and read at zero. Bucket t is in the interval unless the estimate of G(t) is
        above its error's quantile, or that of G(t + 1) below its negative.
        """
        tree = self.tree
        if not len(rows):
            nothing = np.zeros((0, len(self.levels)), np.int64)
            return nothing, nothing, nothing
        exact = tree.sums(rows)
        noise = discrete_laplace(self.scale, sum(sums.size for sums in exact), bits)
        parts = np.split(noise, np.cumsum([sums.size for sums in exact])[:-1])
        noisy = [add(sums.ravel(), part).reshape(sums.shape) for sums, part in zip(exact, parts, strict=True)]
        before, everything = tree.cumulative(noisy)
        found = [self._read(before - float(q) * everything[:, np.newaxis], float(q), beyond) for q in self.levels]
        buckets, low, high = (np.stack(part, axis=1).astype(np.int64) for part in zip(*found, strict=True))
        return buckets, low, high

    def _read(self, excess: Floats, level: float, beyond: float) -> tuple[IntVector, IntVector, IntVector]:
        rising = np.maximum.accumulate(excess, axis=1)
        rising += np.minimum.accumulate(excess[:, ::-1], axis=1)[:, ::-1]
        last = self.buckets - 1
        bucket = np.minimum(np.sum(rising[:, 1:] < 0, axis=1), last)
        width = max(float(ndtri(1 - beyond / 2)), -math.log(beyond) / math.sqrt(2)) * self._noise
        widths = width * self.tree.spread(level)
        low = np.argmax(excess[:, 1:] >= -widths[1:], axis=1)
        high = last - np.argmax((excess[:, :-1] <= widths[:-1])[:, ::-1], axis=1)
        return bucket, np.minimum(low, bucket), np.maximum(high, bucket)

    @property
    def _noise(self) -> float:
        """The standard deviation of one noise, at most."""
        return math.sqrt(2) * float(self.least_scale)

    @property
    def _widest(self) -> float:
        """The largest standard deviation over all levels and places."""
        return self._noise * max(float(self.tree.spread(float(level)).max()) for level in self.levels)
