"""Kronecker strategies: one small integer matrix for each attribute, for domains too large for a single one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.workloads.matrices import MatrixStrategy, refined
from defocus.workloads.optimum import Gram
from defocus.workloads.queries import Array, Atom, Identity, Total
from defocus.workloads.record_counts import histogram
from defocus.workloads.strategy import Design, IntArray, Norms
from defocus.workloads.workload import LARGEST_DENSE, Workload, along

__all__ = ["ProductStrategy", "product_design", "product_factors"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProductStrategy:
    r"""The Kronecker product of a strategy for each attribute, never multiplied out.

    Guarantee:
        Every column is a product of columns of the factors, so its L1 and squared L2 norm are the products of
        theirs, and the largest is the product of the largest: exact integers. Two columns differ by at most
        the sum of their norms, and by :math:`\|a \otimes b - a' \otimes b'\| \le \|a - a'\| \|b\| + \|a'\| \|b - b'\|`.

    Error:
        :math:`(A^T A)^{-1}` is the product of the factors' inverses, so variances are products too.
    """

    factors: tuple[MatrixStrategy, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """One attribute for each factor."""
        return tuple(size for factor in self.factors for size in factor.sizes)

    @property
    def rows(self) -> int:
        """All combinations of rows."""
        return math.prod(factor.rows for factor in self.factors)

    @property
    def largest(self) -> int:
        """The product of the largest coefficients."""
        return math.prod(factor.largest for factor in self.factors)

    def content(self) -> tuple[Any, ...]:
        """That of each factor."""
        return tuple(factor.content() for factor in self.factors)

    def norms(self) -> Norms:
        """Products of exact column norms."""
        return reduce(_together, (factor.norms() for factor in self.factors))

    def measure(self, data: Any) -> IntArray:
        """Each factor along its axis, modulo 2**64."""
        x = histogram(data, self.sizes).reshape(self.sizes)
        for axis, factor in enumerate(self.factors):
            x = along(axis, partial(_times, factor.matrix.T), x)
        return x.ravel()

    def check(self, workload: Workload) -> None:
        """Refuse a workload over other attributes, or one that a factor does not determine."""
        for axis, factor in enumerate(self.factors):
            for term in workload.terms:
                factor.check(Workload((factor.matrix.shape[1],), (type(term)(1.0, (term.atoms[axis],)),)))

    def cells(self, noisy: Any) -> Array:
        """The estimate of every cell."""
        across = [factor.matrix.astype(np.float64) @ factor.covariance for factor in self.factors]

        def estimate(rows: Array) -> Array:
            x = rows.reshape([factor.rows for factor in self.factors])
            for axis, matrix in enumerate(across):
                x = along(axis, partial(_times, matrix), x)
            return x.ravel()

        return refined(estimate, self.measure, noisy)

    def answers(self, workload: Workload, noisy: Any) -> Array:
        """The workload on the estimated cells."""
        return workload.answer(self.cells(noisy))

    def variances(self, workload: Workload) -> Array:
        """Products of variances."""
        return workload.product_variances([factor.covariance for factor in self.factors])

    def greatest(self, workload: Workload) -> float:
        """The largest of these variances."""
        return max(
            math.prod(
                float(atom.variances(factor.covariance).max())
                for atom, factor in zip(term.atoms, self.factors, strict=True)
            )
            for term in workload.terms
        )

    def total(self, workload: Workload) -> float:
        """Sums of products of traces."""
        return math.fsum(
            term.weight
            * math.prod(
                float((atom.gram() * factor.covariance).sum())
                for atom, factor in zip(term.atoms, self.factors, strict=True)
            )
            for term in workload.terms
        )


def product_factors(
    workload: Workload, optimise: Callable[[Gram], tuple[Array, float]], *, rounds: int = 5
) -> list[Array]:
    r"""One matrix for each attribute, optimised in turn while the others stand still.

    With all but one attribute fixed, the total variance of a union of products is that of the single workload
    :math:`\sum_t c_t V_t`, :math:`c_t` the product of the other attributes' errors. One pass is enough for a single
    product. Reference: McKenna et al. (2018), section 6.3 (OPT over unions of products).
    """
    for size in workload.sizes:
        if size > LARGEST_DENSE:
            raise InvalidParameterError(
                f"An attribute has {size} values, and each may have at most {LARGEST_DENSE}.",
                fix="group its values, or ask for marginals, which have no such limit.",
            )
    grams = [[atom.gram() for atom in term.atoms] for term in workload.terms]
    errors = [[float(np.trace(gram)) for gram in term] for term in grams]
    factors: list[Array] = [np.eye(size) for size in workload.sizes]
    last = math.inf
    for _ in range(rounds if len(workload.terms) > 1 else 1):
        for axis in range(len(factors)):
            shares = [
                term.weight * math.prod(e for i, e in enumerate(error) if i != axis)
                for term, error in zip(workload.terms, errors, strict=True)
            ]
            top = max(shares)
            atoms = [term.atoms[axis] for term in workload.terms]
            factors[axis] = _plain([(share / top, atom) for share, atom in zip(shares, atoms, strict=True)], optimise)
            covariance = np.linalg.pinv(factors[axis].T @ factors[axis], hermitian=True)
            for error, term in zip(errors, grams, strict=True):
                error[axis] = float((term[axis] * covariance).sum())
        now = math.fsum(t.weight * math.prod(error) for t, error in zip(workload.terms, errors, strict=True))
        if now > 0.999 * last:
            break
        last = now
    return factors


def product_design(name: str, factors: Sequence[Array]) -> Design:
    """A design that rounds each factor, whose columns have norm one, to its share of the bits; integers need none."""
    fine = [bool((real != np.rint(real)).any()) for real in factors]
    number = max(1, sum(fine))

    def make(precision: int) -> ProductStrategy:
        shares = _split(precision, fine)
        rounded = [np.rint(real * 2.0**share).astype(np.int64) for real, share in zip(factors, shares, strict=True)]
        return ProductStrategy(tuple(MatrixStrategy.of((real.shape[1],), real) for real in rounded))

    return Design(name, make, math.prod(float(np.abs(real).max()) for real in factors), 20 * number)


def _together(a: Norms, b: Norms) -> Norms:
    """Of a product of two."""
    l1, l2 = a.l1 * b.l1, a.l2_squared * b.l2_squared
    left, right = a.apart_l2_squared * b.l2_squared, a.l2_squared * b.apart_l2_squared
    mixed = math.isqrt(4 * left * right)  # the square of a sum of two roots, rounded up
    mixed += mixed * mixed < 4 * left * right
    return Norms(l1, l2, min(2 * l1, a.apart_l1 * b.l1 + a.l1 * b.apart_l1), min(4 * l2, left + right + mixed))


def _plain(parts: Sequence[tuple[float, Atom]], optimise: Callable[[Gram], tuple[Array, float]]) -> Array:
    """The best matrix for one attribute; where only its total or only its cells are asked, nothing is better."""
    atoms = [atom for _, atom in parts]
    if all(isinstance(atom, Total) for atom in atoms):
        return np.ones((1, atoms[0].n))
    if all(isinstance(atom, Identity) for atom in atoms):
        return np.eye(atoms[0].n)
    return optimise(Gram.mixed(parts))[0]


def _split(bits: int, fine: Sequence[bool]) -> list[int]:
    """Bits for each factor that needs some; all to the first factor where none does."""
    wanting = [i for i, needs in enumerate(fine) if needs] or [0]
    return [min(20, bits // len(wanting)) if i in wanting else 0 for i in range(len(fine))]


def _times(matrix: Any, x: Any) -> Any:
    return x @ matrix
