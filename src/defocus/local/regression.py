"""Least squares over cohorts: how categories are told apart when each report shows a part of a noisy filter."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError

__all__ = ["Regression"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    r"""Unbiased estimates of counts from debiased sums of bits.

    A person of category x is in cohort j, uniform among m, and bit i of the report, debiased, has mean
    :math:`X_{(j,i),x}`. With the pseudo-inverse A of X, the sum over people of :math:`m\sum_i A_{v,(j,i)} s_i`
    has mean :math:`n_v`. One person's part has a variance of two pieces: that of the bits given the cohort, and that
    of the cohort, :math:`\frac1m\sum_j (m\sum_i A_{v,(j,i)}X_{(j,i),x})^2 - [v = x]`.
    """

    cohorts: int
    matrix: NDArray[np.float64]
    inverse: NDArray[np.float64]

    @staticmethod
    def of(matrix: NDArray[np.float64], cohorts: int) -> "Regression":
        """Refused where two sets of categories look alike in all cohorts."""
        gram = matrix.T @ matrix
        if np.linalg.matrix_rank(gram) < len(gram):
            raise InvalidParameterError(
                f"{len(gram)} candidates cannot be told apart by {len(matrix)} bits of all cohorts.",
                fix="use more cohorts, longer filters or fewer candidates.",
            )
        return Regression(cohorts, matrix, np.asarray(np.linalg.solve(gram, matrix.T), np.float64))

    def counts(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimates from the debiased sums of each cohort's bits."""
        counts: NDArray[np.float64] = self.cohorts * (self.inverse @ sums)
        return counts

    def variances(self, held: NDArray[np.float64], zero: float, one: float) -> NDArray[np.float64]:
        """Of each estimate, for these counts, if a debiased bit has variance ``zero`` or ``one`` by what it was."""
        m = self.cohorts
        squares = m * self.inverse**2
        out = zero * held.sum() * squares.sum(axis=1) + (one - zero) * (squares @ (self.matrix @ held))
        width = len(self.matrix) // m
        for j in range(m):
            rows = slice(j * width, (j + 1) * width)
            out += m * (self.inverse[:, rows] @ self.matrix[rows]) ** 2 @ held
        variances: NDArray[np.float64] = out - held
        return variances
