"""Gram matrices with what is known of their structure: what strategies are optimised for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import final

import numpy as np

from defocus.workloads.atoms import Array, Atom, Explicit, Tridiagonal

__all__ = ["Gram"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """The sum over queries q of weight(q) q qᵀ, a quick product with it, and its inverse where that is tridiagonal."""

    matrix: Array = field(repr=False)
    times: Callable[[Array], Array] = field(repr=False)
    inverse: Tridiagonal | None = field(default=None, repr=False)
    structured: bool = False
    """Whether products take a time in proportion to the length of a row."""

    def __len__(self) -> int:
        return len(self.matrix)

    @staticmethod
    def of(matrix: Array) -> "Gram":
        """A matrix of which nothing is known."""
        return Gram(matrix, lambda x: x @ matrix)

    @staticmethod
    def mixed(parts: Iterable[tuple[float, Atom]]) -> "Gram":
        """Queries on one attribute, each set of them with a weight.

        >>> from defocus.workloads.ordered import Prefix
        >>> Gram.mixed([(1.0, Prefix(2)), (3.0, Prefix(2))]).matrix.tolist()
        [[8.0, 4.0], [4.0, 4.0]]
        """
        weights: dict[Atom, float] = {}
        for weight, atom in parts:
            weights[atom] = weights.get(atom, 0.0) + weight
        matrix: Array = reduce(np.add, [weight * atom.gram() for atom, weight in weights.items()])
        if any(isinstance(atom, Explicit) for atom in weights):
            return Gram.of(matrix)

        def times(x: Array) -> Array:
            product: Array = reduce(np.add, [weight * atom.times_gram(x) for atom, weight in weights.items()])
            return product

        if len(weights) > 1:
            return Gram(matrix, times, structured=True)
        ((atom, weight),) = weights.items()
        inverse = atom.gram_inverse()
        scaled = None if inverse is None else (inverse[0] / weight, inverse[1] / weight)
        return Gram(matrix, times, scaled, structured=True)
