r"""Queries on one ordered attribute: running totals and intervals.

Their gram matrices are :math:`V_{ij} = a_{\min(i, j)} b_{\max(i, j)}`. So a product with one is two cumulative sums,
and its inverse is tridiagonal: an iteration of a search takes :math:`O(n^2)` where others take :math:`O(n^3)`.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.workloads.atoms import Array, Tridiagonal

__all__ = ["Prefix", "Ranges"]


@final
@dataclass(frozen=True, slots=True)
class Prefix:
    """All running totals: values up to and including each one."""

    n: int

    @property
    def queries(self) -> int:
        """One for each value."""
        return self.n

    def matrix(self) -> Array:
        """Lower triangle of ones."""
        return np.tri(self.n)

    def gram(self) -> Array:
        """Entry (i, j) counts the prefixes that hold both: n − max(i, j)."""
        i = np.arange(self.n, dtype=np.float64)
        return self.n - np.maximum.outer(i, i)

    def weighted_gram(self, weights: Array) -> Array:
        """Entry (i, j) sums the weights of prefixes from max(i, j) on."""
        later = np.cumsum(weights[::-1])[::-1]
        i = np.arange(self.n)
        gram: Array = later[np.maximum.outer(i, i)]
        return gram

    def times_gram(self, x: Array) -> Array:
        """Running totals from the left, and of those from the right."""
        return np.cumsum(np.cumsum(x, axis=-1)[..., ::-1], axis=-1)[..., ::-1]

    def gram_inverse(self) -> Tridiagonal | None:
        """A prefix less the one before it is a cell."""
        diagonal = np.full(self.n, 2.0)
        diagonal[0] = 1.0
        return diagonal, np.full(self.n - 1, -1.0)

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """Cumulative sums."""
        return np.cumsum(x, axis=-1)

    def variances(self, covariance: Array) -> Array:
        """Diagonal of the twice cumulated covariance."""
        return np.diagonal(covariance.cumsum(axis=0).cumsum(axis=1)).copy()

    def importance(self) -> Array:
        """One each."""
        return np.ones(self.n)

    def reach(self) -> tuple[float, float]:
        """The first value is in all of them."""
        return float(self.n), float(self.n)


@final
@dataclass(frozen=True, slots=True)
class Ranges:
    """All n(n+1)/2 intervals [i, j], ordered by i and then by j."""

    n: int

    @property
    def queries(self) -> int:
        """One for each interval."""
        return self.n * (self.n + 1) // 2

    def matrix(self) -> Array:
        """One row for each interval."""
        first, last = np.triu_indices(self.n)
        cells = np.arange(self.n)
        inside = (cells >= first[:, None]) & (cells <= last[:, None])
        return inside.astype(np.float64)

    def gram(self) -> Array:
        """Entry (i, j) counts the intervals that hold both: (min + 1)(n − max)."""
        i = np.arange(self.n, dtype=np.float64)
        gram: Array = (np.minimum.outer(i, i) + 1) * (self.n - np.maximum.outer(i, i))
        return gram

    def weighted_gram(self, weights: Array) -> Array:
        """Entry (i, j) sums the weights of intervals that start by min(i, j) and end from max(i, j) on."""
        corner = np.zeros((self.n, self.n))
        corner[np.triu_indices(self.n)] = weights
        held = corner.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1]
        gram: Array = np.triu(held) + np.triu(held, 1).T
        return gram

    def times_gram(self, x: Array) -> Array:
        """What is up to each cell and what is beyond it, each by one cumulative sum."""
        starts = np.arange(1.0, self.n + 1)
        ends = starts[::-1]
        beyond = x * ends
        right = np.cumsum(beyond[..., ::-1], axis=-1)[..., ::-1] - beyond
        product: Array = np.cumsum(x * starts, axis=-1) * ends + right * starts
        return product

    def gram_inverse(self) -> Tridiagonal | None:
        """Second differences over n + 1."""
        return np.full(self.n, 2.0 / (self.n + 1)), np.full(self.n - 1, -1.0 / (self.n + 1))

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """Differences of cumulative sums."""
        sums = np.concatenate([np.zeros_like(x[..., :1]), np.cumsum(x, axis=-1)], axis=-1)
        first, last = np.triu_indices(self.n)
        answers: NDArray[Any] = sums[..., last + 1] - sums[..., first]
        return answers

    def variances(self, covariance: Array) -> Array:
        """Var(S_j − S_i) from the covariance of the cumulative sums S."""
        sums = np.zeros((self.n + 1, self.n + 1))
        sums[1:, 1:] = covariance.cumsum(axis=0).cumsum(axis=1)
        first, last = np.triu_indices(self.n)
        own = np.diagonal(sums)
        spread: Array = own[last + 1] + own[first] - sums[last + 1, first] - sums[first, last + 1]
        return spread

    def importance(self) -> Array:
        """One each."""
        return np.ones(self.queries)

    def reach(self) -> tuple[float, float]:
        """The middle value is in the most."""
        most = ((self.n + 1) // 2) * (self.n - (self.n - 1) // 2)
        return float(most), float(most)
