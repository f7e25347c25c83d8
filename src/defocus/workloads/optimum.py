r"""Optimal Gaussian strategies by convex optimisation, with its progress.

Telling how far a search is: a share of the work, passed down and split among its parts.

Gram matrices with what is known of their structure: what strategies are optimised for.

The best strategy for Gaussian noise, by its convex dual.

With :math:`V = \sum_q w_q q q^T` and :math:`X = A^T A`, the weighted total variance per unit of squared sensitivity
is :math:`\mathrm{tr}(V X^{-1})` subject to :math:`X_{jj} \le 1`: convex in X. For multipliers u > 0,
:math:`D = \mathrm{diag}(u)`, the Lagrangian is least at
:math:`X = D^{-1/2} (D^{1/2} V D^{1/2})^{1/2} D^{-1/2}`, which gives for every u the lower bound

.. math:: \mathrm{tr}\big((D^{1/2} V D^{1/2})^{1/2}\big)^2 / \sum_j u_j,

the SVD bound where all :math:`u_j` are equal. At the optimum :math:`X_{jj} = 1`, that is
:math:`u = \mathrm{diag}((D^{1/2} V D^{1/2})^{1/2})`, which is iterated. Scaling the columns of A,
each to norm one or all by the largest norm, turns each iterate into a strategy, and the distance to the best bound
seen says how far from the optimum it can be.

For the largest variance instead of the total, the weights w are variables of the dual as well. For fixed u
the bound is, up to a constant, a sum of square roots of functions linear in w, and Jensen's inequality gives the
minorant whose maximum is at :math:`w_q \propto w_q \mathrm{Var}_q^2`.

Reference: Li, Miklau (2013), Optimal error of query sets under the differentially-private matrix mechanism (the SVD
bound); Yuan, Yang, Zhang, Hao (2016), Convex optimization for linear query processing; Denisov, McMahan, Rush, Smith,
Thakurta (2022), Improved differential privacy for SGD via optimal private linear operators on adaptive streams (the
fixed point).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.workloads.queries import Array, Atom, Explicit, Tridiagonal

__all__ = ["Gram", "Optimum", "Tell", "flattest", "least_total", "part", "percentages", "quiet", "singular_values"]


Tell = Callable[[float], None]
"""Takes the share of the work that is done, from 0 to 1."""


def quiet(share: float) -> None:
    """Tell nobody."""


def part(tell: Tell, start: float, end: float) -> Tell:
    """For a part of the work, between two shares of the whole.

    >>> part(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda share: tell(start + (end - start) * share)


def percentages(progress: Callable[[float], None] | None) -> Tell:
    """What a user's ``progress`` is told: percentages that never fall."""
    if progress is None:
        return quiet
    if not callable(progress):
        raise InvalidParameterError(
            f"progress is called with a percentage, but it is {type(progress).__name__}.",
            fix="pass a function of one number, for example progress=print.",
        )
    highest = 0.0

    def tell(share: float) -> None:
        nonlocal highest
        highest = max(highest, min(100.0, 100.0 * share))
        progress(highest)

    return tell


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

        >>> from defocus.workloads.queries import Prefix
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


_RIDGE = 1e-12
"""Directions that no query asks about are measured this faintly, so that every strategy has full rank."""


@final
@dataclass(frozen=True, slots=True)
class Optimum:
    """A strategy whose columns have norm one, its error at sensitivity one, and a bound that no strategy beats."""

    matrix: Array = field(repr=False)
    error: float
    bound: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """One iterate: the strategy at multipliers u, scaled to columns of norm one."""

    matrix: Array
    stretched: Array
    """Times its transpose, the inverse of the strategy squared."""
    error: float
    diagonal: Array
    bound: float

    def covariance(self) -> Array:
        """Of the cells, per unit of noise variance."""
        inverse: Array = self.stretched @ self.stretched.T
        return inverse


def singular_values(gram: Gram) -> Array:
    """The singular values of the workload, what is only rounding left out: their sum squared over the cells bounds."""
    if gram.inverse is not None:
        from scipy.linalg import eigvalsh_tridiagonal  # noqa: PLC0415  # seconds that most users never need

        roots: Array = 1 / np.sqrt(eigvalsh_tridiagonal(*gram.inverse))
        return roots
    values = np.linalg.eigvalsh(gram.matrix)
    return np.sqrt(np.where(values > len(gram) * 2.3e-16 * values[-1], values, 0.0))


def least_total(gram: Gram, *, tolerance: float = 5e-3, rounds: int = 20, tell: Tell = quiet) -> Optimum:
    """The strategy of least total variance, to within ``tolerance`` of a proven bound or ``rounds`` iterations."""
    u = np.full(len(gram), 1 / len(gram))
    best, bound = None, 0.0
    for done in range(rounds):
        point = _at(gram, u)
        tell((done + 1) / rounds)
        bound = max(bound, point.bound)
        settled = best is not None and (1 - tolerance / 10) * best.error < point.error < 1.05 * bound
        if best is None or point.error < best.error:
            best = Optimum(point.matrix, point.error, bound)
        if settled or best.error <= (1 + tolerance) * bound:
            break
        u = point.diagonal
    assert best is not None  # noqa: S101  # there is at least one round
    return Optimum(best.matrix, best.error, bound)


def flattest(
    gram: Callable[[Array], Array],
    variances: Callable[[Array], Array],
    queries: int,
    *,
    tolerance: float = 1e-2,
    rounds: int = 40,
    tell: Tell = quiet,
) -> Optimum:
    """The strategy whose largest variance is least. ``gram`` takes weights of the queries that sum to one."""
    weights = np.full(queries, 1 / queries)
    u: Array | None = None
    best, bound = None, 0.0
    for done in range(rounds):
        weighted = Gram.of(gram(weights))
        point = _at(weighted, np.full(len(weighted), 1 / len(weighted)) if u is None else u)
        tell((done + 1) / rounds)
        spread = variances(point.covariance())
        bound = max(bound, point.bound)
        if best is None or float(spread.max()) < best.error:
            best = Optimum(point.matrix, float(spread.max()), bound)
        if best.error <= (1 + tolerance) * bound:
            break
        u = point.diagonal
        weights = weights * (spread / spread.max()) ** 2
        weights /= weights.sum()
    assert best is not None  # noqa: S101  # there is at least one round
    return Optimum(best.matrix, best.error, bound)


def _at(gram: Gram, u: Array) -> _Point:
    r"""The strategy and the bound at multipliers u.

    The ridge :math:`\delta I` raises the trace by at most :math:`\sqrt\delta \sum_j \sqrt{u_j}`, since the trace
    of the square root is subadditive; that much is taken off the bound again.
    """
    half = np.sqrt(u)
    ridge = 0.0 if gram.inverse is not None else _RIDGE * float(np.linalg.norm(gram.matrix))
    if gram.inverse is not None:
        values, vectors = _inverted(gram.inverse, half)
    else:
        values, vectors = _eigen(half[:, None] * (gram.matrix + ridge * np.eye(len(gram))) * half)
    roots = np.sqrt(np.maximum(values, values[-1] * 1e-18 if values[-1] > 0 else 1e-300))
    diagonal = (vectors * vectors) @ roots
    norms = np.sqrt(diagonal) / half  # of the columns, before scaling
    bound = float((roots.sum() - np.sqrt(ridge) * half.sum()) ** 2 / u.sum())
    stretched = (half * norms)[:, None] * (vectors / np.sqrt(roots))
    rows = np.ascontiguousarray(stretched.T)
    error = float((gram.times(rows) * rows).sum())
    even = float(roots.sum()) * float(norms.max()) ** 2  # of all columns divided by the largest norm
    if error > even:
        stretched *= (norms.max() / norms)[:, None]
        norms, error = np.full(len(norms), norms.max()), even
    return _Point((vectors * np.sqrt(roots)).T / (half * norms), stretched, error, diagonal, bound)


def _inverted(inverse: Tridiagonal, half: Array) -> tuple[Array, Array]:
    """Eigenvalues, rising, and vectors of the gram matrix between two diagonal ones, from its tridiagonal inverse."""
    from scipy.linalg import eigh_tridiagonal  # noqa: PLC0415  # seconds that most users never need

    diagonal, beside = inverse
    values, vectors = eigh_tridiagonal(
        diagonal / half**2, beside / (half[:-1] * half[1:]), lapack_driver="stemr", check_finite=False
    )
    return 1 / values[::-1], vectors[:, ::-1]


def _eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors; in two halves, and four times as fast, where the matrix is its own mirror image."""
    n = len(matrix)
    if n % 2 or n < 64 or not np.allclose(matrix, matrix[::-1, ::-1], rtol=1e-9, atol=0):
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors
    middle = n // 2
    corner, across = matrix[:middle, :middle], matrix[:middle, middle:][:, ::-1]
    even, even_vectors = np.linalg.eigh(corner + across)
    odd, odd_vectors = np.linalg.eigh(corner - across)
    vectors = np.empty((n, n))
    vectors[:middle, :middle], vectors[middle:, :middle] = even_vectors, even_vectors[::-1]
    vectors[:middle, middle:], vectors[middle:, middle:] = odd_vectors, -odd_vectors[::-1]
    values = np.concatenate([even, odd])
    order = np.argsort(values)
    return values[order], vectors[:, order] / np.sqrt(2)
