r"""Strategies: integer matrices A that are measured, y = Ax + z, and from which answers are reconstructed.

*Exactness.* A strategy acts on integer counts with integer coefficients, so that y is integer and the
noise exact. Products are taken modulo 2**64 and so is the sum with the noise: reducing
Ax + z is a function of Ax + z, hence post-processing, and costs no privacy whatever x holds. A plan checks
from public bounds that nothing is ever reduced in earnest.

*Sensitivity.* Let one unit hold at most c records. Adding or removing it changes x by an integer vector
:math:`\Delta` with :math:`\|\Delta\|_1 \le c`, and by the triangle inequality
:math:`\|A\Delta\|_p \le \sum_j |\Delta_j| \|A_j\|_p \le c \max_j \|A_j\|_p`, attained by c records in the
largest column. Replacing one record by another moves it from cell i to cell j: :math:`\|A_i - A_j\|_p`. A unit that is
replaced and may hold fewer records than its successor decomposes into at most c such moves, additions and
removals, so c times the larger of both bounds holds. All of it is computed in integers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number
from defocus.privacy.units import Adjacency, Unit
from defocus.workloads.queries import Array

__all__ = ["Design", "IntArray", "Norms", "Strategy", "covers", "l1_sensitivity", "l2_sensitivity"]

IntArray = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class Norms:
    """The exact size of a strategy's columns, in integers.

    ``l1`` and ``l2_squared`` are the largest over columns; ``apart_l1`` and ``apart_l2_squared`` are at least
    the largest over differences of two columns.
    """

    l1: int
    l2_squared: int
    apart_l1: int
    apart_l2_squared: int


class Strategy(Protocol):
    """A matrix of integers over a public domain, held implicitly where that is possible."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain."""

    @property
    def rows(self) -> int:
        """How many numbers are measured."""

    @property
    def largest(self) -> int:
        """The largest coefficient in absolute value: a row on counts of total t is at most t times this."""

    def content(self) -> tuple[Any, ...]:
        """All integers that make it up: two strategies measure the same if and only if these are equal."""

    def norms(self) -> Norms:
        """Exact column norms."""

    def measure(self, data: Any) -> IntArray:
        """Ax modulo 2**64, in exact integers: private until noise is added."""

    def answers(self, workload: Any, noisy: Any) -> Array:
        """The generalised least-squares estimate of the workload's answers."""

    def variances(self, workload: Any) -> Array:
        """The variance of each answer, in multiples of the variance of one noise entry."""

    def greatest(self, workload: Any) -> float:
        """The largest of these variances."""

    def check(self, workload: Any) -> None:
        """Refuse a workload that the strategy does not determine."""

    def total(self, workload: Any) -> float:
        """The weighted sum of these variances, without listing them."""


@final
@dataclass(frozen=True, slots=True)
class Design:
    """A strategy in real numbers, and how to make an integer one of it at a precision of some bits.

    Its largest column has norm one in real numbers; ``peak`` is its largest coefficient and ``bits`` the most that it
    can use.
    """

    name: str
    make: Callable[[int], Strategy]
    peak: float
    bits: int


def covers(unit: Unit, contribution: Number) -> None:
    """Refuse a contribution that the unit itself says it can exceed: a weight moves its cell by as much as it is."""
    if unit.kind == "weight" and unit.bound is not None and contribution < unit.bound:
        raise InvalidParameterError(
            f"The plan protects {unit}, which can move a count by {unit.bound}, but contribution={contribution}.",
            fix="pass as contribution= the largest weight, in the integers that the data is in.",
        )
    if unit.per_person is not None and contribution < unit.per_person * (unit.bound or 1):
        raise InvalidParameterError(
            f"The plan protects {unit}, but contribution={contribution}.",
            fix=f"pass contribution={math.ceil(unit.per_person * (unit.bound or 1))}, what one person moves at most.",
        )


def l1_sensitivity(norms: Norms, unit: Unit, contribution: int) -> int:
    """How far one unit moves Ax in L1 norm, exactly or from above; 0 if it cannot."""
    if unit.adjacency is Adjacency.ADD_REMOVE:
        return contribution * norms.l1
    return contribution * (norms.apart_l1 if _one_for_one(unit, contribution) else max(norms.l1, norms.apart_l1))


def l2_sensitivity(norms: Norms, unit: Unit, contribution: int) -> Number:
    """How far one unit moves Ax in L2 norm: a rational that is exact or less than 2**-20 above.

    >>> from defocus import rows
    >>> l2_sensitivity(Norms(2, 2, 4, 4), rows(), 3) ** 2 >= 18
    True
    """
    if unit.adjacency is Adjacency.ADD_REMOVE:
        square = norms.l2_squared
    elif _one_for_one(unit, contribution):
        square = norms.apart_l2_squared
    else:
        square = max(norms.l2_squared, norms.apart_l2_squared)
    square *= contribution**2
    root = math.isqrt(square)
    return root if root * root == square else Fraction(math.isqrt(square << 40) + 1, 1 << 20)


def _one_for_one(unit: Unit, contribution: int) -> bool:
    """Whether replacing a unit always takes one record away and puts one in its place."""
    return unit.kind == "rows" and unit.per_person is None and contribution == 1
