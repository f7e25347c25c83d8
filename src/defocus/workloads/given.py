"""Strategies that someone else has chosen: checked, and used as they are."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, WrongSensitivityError, positive
from defocus.workloads.atoms import Array
from defocus.workloads.describing import real_matrix
from defocus.workloads.designing import LAPLACE
from defocus.workloads.matrices import matrix_design
from defocus.workloads.strategy import Design
from defocus.workloads.workload import LARGEST_DENSE

__all__ = ["GivenStrategy", "strategy"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GivenStrategy:
    """A matrix to measure with. Made by :func:`strategy`."""

    matrix: Array

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its columns are the cells."""
        return (int(self.matrix.shape[1]),)

    def __repr__(self) -> str:
        rows, cells = self.matrix.shape
        return f"<strategy of {rows} rows over {cells} cells>"

    def design(self, sizes: tuple[int, ...], noise: str) -> Design:
        """The matrix over the cells of a domain with these sizes."""
        columns = np.abs(self.matrix).sum(axis=0) if noise == LAPLACE else np.sqrt((self.matrix**2).sum(axis=0))
        return matrix_design("the given strategy", sizes, self.matrix, float(columns.max()))


def strategy(matrix: Any, *, l1: Number | None = None, l2: Number | None = None) -> GivenStrategy:
    """A strategy given as a dense or sparse ``matrix``, whose sensitivity is computed and not taken on trust.

    If a sensitivity is declared, for one record added or removed, it is compared with the exact one.

    >>> strategy([[1, 1], [1, -1]], l1=2)
    <strategy of 2 rows over 2 cells>
    """
    rows = real_matrix("The strategy", matrix)
    if rows.shape[1] > LARGEST_DENSE:
        raise InvalidParameterError(
            f"The strategy has {rows.shape[1]} columns, and at most {LARGEST_DENSE} are held.",
            fix="plan without a strategy: products and marginals have no such limit.",
        )
    if not rows.any():
        raise InvalidParameterError("The strategy measures nothing: it is zero.", fix="give it a row that counts.")
    if l1 is not None:
        _compare("L1", positive("l1", l1), max(sum(map(abs, column), Fraction(0)) for column in _exact(rows)), 1)
    if l2 is not None:
        _compare("L2", positive("l2", l2), max(sum((x * x for x in column), Fraction(0)) for column in _exact(rows)), 2)
    return GivenStrategy(rows)


def _exact(rows: Array) -> list[list[Fraction]]:
    return [[Fraction(x) for x in column] for column in rows.T.tolist()]


def _compare(norm: str, declared: Number, actual: Fraction, power: int) -> None:
    """Equal to nine digits: a declaration is checked for being wrong, and never used."""
    if abs(Fraction(declared) ** power - actual) > actual / 10**9:
        raise WrongSensitivityError(norm, declared, f"{float(actual) ** (1 / power):.10g}")
