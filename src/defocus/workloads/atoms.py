"""Queries on one attribute, described and not materialised: the factors that workloads are built of."""

from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Atom", "Explicit", "Identity", "Total", "Tridiagonal"]

Array = NDArray[np.float64]
Tridiagonal = tuple[Array, Array]
"""The diagonal of a symmetric matrix and the entries beside it; all others are zero."""


class Atom(Protocol):
    """A set of linear queries on the counts of one attribute with ``n`` values."""

    @property
    def n(self) -> int:
        """How many values the attribute has."""

    @property
    def queries(self) -> int:
        """How many queries there are."""

    def matrix(self) -> Array:
        """The queries as rows."""

    def gram(self) -> Array:
        """The sum over queries q of weight(q) q qᵀ."""

    def weighted_gram(self, weights: Array) -> Array:
        """The same for other weights of the queries."""

    def times_gram(self, x: Array) -> Array:
        """``x`` times the gram matrix, along its last axis."""

    def gram_inverse(self) -> Tridiagonal | None:
        """The inverse of the gram matrix, if it is known to be tridiagonal."""

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """The answers for counts ``x`` along its last axis."""

    def variances(self, covariance: Array) -> Array:
        """The variance of each answer when the counts have this covariance."""

    def importance(self) -> Array:
        """The weight of each query."""

    def reach(self) -> tuple[float, float]:
        """The largest column of the queries: its L1 norm, and its L2 norm squared."""


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """Each value by itself."""

    n: int

    @property
    def queries(self) -> int:
        """One for each value."""
        return self.n

    def matrix(self) -> Array:
        """The identity."""
        return np.eye(self.n)

    def gram(self) -> Array:
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

    def importance(self) -> Array:
        """One each."""
        return np.ones(self.n)

    def reach(self) -> tuple[float, float]:
        """A record is in one cell."""
        return 1.0, 1.0


@final
@dataclass(frozen=True, slots=True)
class Total:
    """All values together."""

    n: int

    @property
    def queries(self) -> int:
        """One."""
        return 1

    def matrix(self) -> Array:
        """A row of ones."""
        return np.ones((1, self.n))

    def gram(self) -> Array:
        """All ones."""
        return np.ones((self.n, self.n))

    def weighted_gram(self, weights: Array) -> Array:
        """All the same."""
        return np.full((self.n, self.n), float(weights[0]))

    def times_gram(self, x: Array) -> Array:
        """The sum, everywhere."""
        return np.repeat(x.sum(axis=-1, keepdims=True), self.n, axis=-1)

    def gram_inverse(self) -> Tridiagonal | None:
        """There is none."""
        return None

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """The sum."""
        summed: NDArray[Any] = x.sum(axis=-1, keepdims=True)
        return summed

    def variances(self, covariance: Array) -> Array:
        """The variance of the sum."""
        return np.array([covariance.sum()])

    def importance(self) -> Array:
        """One."""
        return np.ones(1)

    def reach(self) -> tuple[float, float]:
        """A record is counted once."""
        return 1.0, 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Explicit:
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

    def gram(self) -> Array:
        """Weighted."""
        gram: Array = self.rows.T @ (self.weights[:, None] * self.rows)
        return gram

    def weighted_gram(self, weights: Array) -> Array:
        """One product."""
        gram: Array = self.rows.T @ (weights[:, None] * self.rows)
        return gram

    def times_gram(self, x: Array) -> Array:
        """Through the rows and back."""
        product: Array = (x @ self.rows.T * self.weights) @ self.rows
        return product

    def gram_inverse(self) -> Tridiagonal | None:
        """Not known."""
        return None

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
