r"""Queries on one attribute, described and not materialised: the factors that workloads are built of.

Queries on one ordered attribute: running totals and intervals.

Their gram matrices are :math:`V_{ij} = a_{\min(i, j)} b_{\max(i, j)}`. So a product with one is two cumulative sums,
and its inverse is tridiagonal: an iteration of a search takes :math:`O(n^2)` where others take :math:`O(n^3)`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Atom", "Explicit", "Identity", "Prefix", "Ranges", "Total", "Tridiagonal"]


Array = NDArray[np.float64]
Tridiagonal = tuple[Array, Array]
"""The diagonal of a symmetric matrix and the entries beside it; all others are zero."""


class Atom(ABC):
    """A set of linear queries on the counts of one attribute with ``n`` values."""

    __slots__ = ()

    @property
    @abstractmethod
    def n(self) -> int:
        """How many values the attribute has."""

    @property
    def queries(self) -> int:
        """How many queries there are; one for each value by default."""
        return self.n

    @abstractmethod
    def matrix(self) -> Array:
        """The queries as rows."""

    def gram(self) -> Array:
        """The sum over queries q of weight(q) q qᵀ."""
        return self.weighted_gram(self.importance())

    @abstractmethod
    def weighted_gram(self, weights: Array) -> Array:
        """The same for other weights of the queries."""

    @abstractmethod
    def times_gram(self, x: Array) -> Array:
        """``x`` times the gram matrix, along its last axis."""

    def gram_inverse(self) -> Tridiagonal | None:
        """The inverse of the gram matrix, if it is known to be tridiagonal."""
        return None

    @abstractmethod
    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """The answers for counts ``x`` along its last axis."""

    @abstractmethod
    def variances(self, covariance: Array) -> Array:
        """The variance of each answer when the counts have this covariance."""

    def importance(self) -> Array:
        """The weight of each query; one each by default."""
        return np.ones(self.queries)

    @abstractmethod
    def reach(self) -> tuple[float, float]:
        """The largest column of the queries: its L1 norm, and its L2 norm squared."""


@final
@dataclass(frozen=True, slots=True)
class Identity(Atom):
    """Each value by itself."""

    n: int = field()

    def matrix(self) -> Array:
        """The identity."""
        return np.eye(self.n)

    def weighted_gram(self, weights: Array) -> Array:
        """Their diagonal."""
        return np.diag(weights)

    def times_gram(self, x: Array) -> Array:
        """The same."""
        return x

    def gram_inverse(self) -> Tridiagonal | None:
        """The identity."""
        return np.ones(self.n), np.zeros(self.n - 1)

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """The counts themselves."""
        return x

    def variances(self, covariance: Array) -> Array:
        """The diagonal."""
        return np.diagonal(covariance).copy()

    def reach(self) -> tuple[float, float]:
        """A record is in one cell."""
        return 1.0, 1.0


@final
@dataclass(frozen=True, slots=True)
class Total(Atom):
    """All values together."""

    n: int = field()
    queries: ClassVar[int] = 1

    def matrix(self) -> Array:
        """A row of ones."""
        return np.ones((1, self.n))

    def weighted_gram(self, weights: Array) -> Array:
        """All the same."""
        return np.full((self.n, self.n), float(weights[0]))

    def times_gram(self, x: Array) -> Array:
        """The sum, everywhere."""
        return np.repeat(x.sum(axis=-1, keepdims=True), self.n, axis=-1)

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """The sum."""
        summed: NDArray[Any] = x.sum(axis=-1, keepdims=True)
        return summed

    def variances(self, covariance: Array) -> Array:
        """The variance of the sum."""
        return np.array([covariance.sum()])

    def reach(self) -> tuple[float, float]:
        """A record is counted once."""
        return 1.0, 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Explicit(Atom):
    """Queries given as the rows of a matrix, each with a weight."""

    rows: Array = field(repr=False)
    weights: Array = field(repr=False)

    @property
    def n(self) -> int:
        """The number of columns."""
        return int(self.rows.shape[1])

    @property
    def queries(self) -> int:
        """The number of rows."""
        return int(self.rows.shape[0])

    def matrix(self) -> Array:
        """The rows as they were given."""
        return self.rows

    def weighted_gram(self, weights: Array) -> Array:
        """One product."""
        gram: Array = self.rows.T @ (weights[:, None] * self.rows)
        return gram

    def times_gram(self, x: Array) -> Array:
        """Through the rows and back."""
        product: Array = (x @ self.rows.T * self.weights) @ self.rows
        return product

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """Products with each row."""
        answers: NDArray[Any] = x @ self.rows.T
        return answers

    def variances(self, covariance: Array) -> Array:
        """Quadratic forms, one for each row."""
        spread: Array = np.einsum("qi,qi->q", self.rows @ covariance, self.rows)
        return spread

    def importance(self) -> Array:
        """The weights as they were given."""
        return self.weights

    def reach(self) -> tuple[float, float]:
        """Over all columns."""
        return float(np.abs(self.rows).sum(axis=0).max()), float((self.rows**2).sum(axis=0).max())


@final
@dataclass(frozen=True, slots=True)
class Prefix(Atom):
    """All running totals: values up to and including each one."""

    n: int = field()

    def matrix(self) -> Array:
        """Lower triangle of ones."""
        return np.tri(self.n)

    def weighted_gram(self, weights: Array) -> Array:
        """Entry (i, j) sums the weights of prefixes from max(i, j) on: with equal ones, n − max(i, j)."""
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

    def reach(self) -> tuple[float, float]:
        """The first value is in all of them."""
        return float(self.n), float(self.n)


@final
@dataclass(frozen=True, slots=True)
class Ranges(Atom):
    """All n(n+1)/2 intervals [i, j], ordered by i and then by j."""

    n: int = field()

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

    def reach(self) -> tuple[float, float]:
        """The middle value is in the most."""
        most = ((self.n + 1) // 2) * (self.n - (self.n - 1) // 2)
        return float(most), float(most)
