"""A workload: weighted products of queries on single attributes, all over one public domain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, positive
from defocus.workloads.queries import Array, Atom

__all__ = ["LARGEST_DENSE", "Term", "Workload", "along", "checked_weights", "factor_of", "kron_of"]

LARGEST_DENSE = 4096
"""The largest domain, in cells, over which matrices are held in memory."""


@final
@dataclass(frozen=True, slots=True)
class Term:
    """One product: an atom for each attribute, and how much a squared error in its answers matters."""

    weight: float
    atoms: tuple[Atom, ...]

    @property
    def queries(self) -> int:
        """One for each combination of the atoms' queries."""
        return math.prod(atom.queries for atom in self.atoms)

    def importance(self) -> Array:
        """The weight of each query."""
        return self.weight * _product([atom.importance() for atom in self.atoms])

    def even_gram(self) -> Array:
        """The sum over queries q, whatever their weight, of q qᵀ / ‖q‖²: its trace is the number of queries."""
        return kron_of([atom.weighted_gram(1 / atom.variances(np.eye(atom.n))) for atom in self.atoms])

    def answer(self, x: NDArray[Any]) -> NDArray[Any]:
        """The answers for an array of counts, first attribute slowest."""
        for axis, atom in enumerate(self.atoms):
            x = along(axis, atom.answer, x)
        return x.ravel()


@final
@dataclass(frozen=True, slots=True)
class Workload:
    """Linear queries on the counts of a public domain, as a union of weighted products.

    A weight says how much the squared error of an answer matters to whoever plans; it does not
    change the answer. Nothing is materialised that is larger than the domain.

    >>> from defocus import workloads as w
    >>> both = w.union(w.prefix(4), w.identity(4), weights=[1, 2])
    >>> both.shape
    (8, 4)
    >>> both.answer([1, 0, 2, 1]).tolist()
    [1, 1, 3, 4, 1, 0, 2, 1]
    """

    sizes: tuple[int, ...]
    terms: tuple[Term, ...]

    @property
    def cells(self) -> int:
        """The size of the domain."""
        return math.prod(self.sizes)

    @property
    def queries(self) -> int:
        """The number of queries."""
        return sum(term.queries for term in self.terms)

    @property
    def shape(self) -> tuple[int, int]:
        """Queries by cells."""
        return self.queries, self.cells

    __array_ufunc__ = None  # a number of numpy is a number, and not an array to multiply entry by entry

    def __mul__(self, weight: Number) -> "Workload":
        factor = factor_of(weight)
        return Workload(self.sizes, tuple(Term(factor * term.weight, term.atoms) for term in self.terms))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        asked = f"{self.queries} {'query' if self.queries == 1 else 'queries'}"
        return f"<workload of {asked} over {' x '.join(map(str, self.sizes))} cells>"

    def answer(self, x: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        """The answers for a histogram ``x``, without any noise: for public or already noisy counts."""
        table = np.asarray(x).reshape(self.sizes)
        return np.concatenate([term.answer(table) for term in self.terms])

    def content(self) -> tuple[Any, ...]:
        """All that it asks."""
        return self.sizes, self.terms

    def importance(self) -> Array:
        """The weight of each query."""
        return np.concatenate([term.importance() for term in self.terms])

    def total_importance(self) -> float:
        """The sum of all weights."""
        return math.fsum(
            term.weight * math.prod(float(atom.importance().sum()) for atom in term.atoms) for term in self.terms
        )

    def gram(self) -> Array:
        """The sum over queries q of weight(q) q qᵀ, for domains of at most 4096 cells."""
        self._small()
        parts = [term.weight * kron_of([atom.gram() for atom in term.atoms]) for term in self.terms]
        gram: Array = reduce(np.add, parts)
        return gram

    def matrix(self) -> Array:
        """All queries as rows, for domains of at most 4096 cells."""
        self._small()
        return np.vstack([kron_of([atom.matrix() for atom in term.atoms]) for term in self.terms])

    def variances(self, covariance: Array) -> Array:
        """The variance of each answer when the cells have this covariance."""
        parts = [
            term.atoms[0].variances(covariance)
            if len(term.atoms) == 1
            else _quadratic(kron_of([atom.matrix() for atom in term.atoms]), covariance)
            for term in self.terms
        ]
        return np.concatenate(parts)

    def product_variances(self, factors: Sequence[Array]) -> Array:
        """The variance of each answer when the covariance is the Kronecker product of these, one each attribute."""
        parts = [
            _product([atom.variances(factor) for atom, factor in zip(term.atoms, factors, strict=True)])
            for term in self.terms
        ]
        return np.concatenate(parts)

    def reach(self) -> tuple[float, float]:
        """Bounds on the L1 norm and the squared L2 norm of any column, exact for a single product."""
        reaches = [[atom.reach() for atom in term.atoms] for term in self.terms]
        return sum(math.prod(r[0] for r in term) for term in reaches), sum(
            math.prod(r[1] for r in term) for term in reaches
        )

    def _small(self) -> None:
        if self.cells > LARGEST_DENSE:
            raise InvalidParameterError(
                f"The domain has {self.cells} cells, and matrices are held for up to {LARGEST_DENSE}.",
                fix="describe the workload as products or marginals, which are planned without a matrix.",
            )


def checked_weights(weights: Any, number: int, what: str) -> Array:
    """One weight for each of so many things, all one by default."""
    if weights is None:
        return np.ones(number)
    if isinstance(weights, str | bytes) or not hasattr(weights, "__len__") or not hasattr(weights, "__getitem__"):
        raise InvalidParameterError(
            f"weights must be a list of numbers, but it is {type(weights).__name__}.",
            fix=f"give one weight for each of the {what}: {number} in all.",
        )
    if len(weights) != number:
        raise InvalidParameterError(
            f"weights holds {len(weights)}, but there are {number} {what}.",
            fix=f"give one weight for each of the {what}.",
        )
    return np.array([factor_of(weight) for weight in weights])


def factor_of(weight: object) -> float:
    """A weight, if it is a positive number."""
    return float(positive("weight", weight.item() if isinstance(weight, np.generic) else weight))


def along(axis: int, transform: Any, x: NDArray[Any]) -> NDArray[Any]:
    """Apply a transform of the last axis to another one."""
    return np.moveaxis(transform(np.moveaxis(x, axis, -1)), -1, axis)


def kron_of(matrices: Sequence[Array]) -> Array:
    """The Kronecker product of all."""
    product: Array = np.ones((1, 1))
    for matrix in matrices:
        product = np.asarray(np.kron(product, matrix), np.float64)
    return product


def _product(vectors: Sequence[Array]) -> Array:
    return reduce(lambda a, b: np.multiply.outer(a, b).ravel(), vectors)


def _quadratic(rows: Array, covariance: Array) -> Array:
    spread: Array = np.einsum("qi,qi->q", rows @ covariance, rows)
    return spread
