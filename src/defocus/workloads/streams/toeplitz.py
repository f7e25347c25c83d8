r"""Integer coefficients of the square root of summation, and exact norms of what is built from them.

Summation is the lower-triangular matrix of ones, the Toeplitz matrix of :math:`1/(1-x)`. Its square
root is the Toeplitz matrix of :math:`(1-x)^{-1/2} = \sum_a f_a x^a` with :math:`f_a =
\binom{2a}{a}/4^a`, so :math:`f_a = f_{a-1}(2a-1)/(2a) \approx 1/\sqrt{\pi(a + 1/4)}`.

Only the integers :math:`g_a`, the rounded :math:`2^b f_a`, ever meet data. They are made by additions,
multiplications, divisions and square roots alone, which IEEE arithmetic rounds alike on every machine,
so a stream that is resumed elsewhere goes on with the same strategy.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Floats",
    "Ints",
    "coefficients",
    "energies",
    "inverse",
    "separated",
    "square_root",
    "squares",
    "toeplitz_variances",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_EXACT = 1024
"""From this age on, the asymptotic formula is right to 2e-8, far below the rounding to integers."""


def square_root(n: int) -> Floats:
    """The first ``n`` coefficients of (1−x)^(−1/2).

    >>> square_root(4)
    array([1.    , 0.5   , 0.375 , 0.3125])
    """
    a = np.arange(1, n, dtype=np.float64)
    return np.concatenate(([1.0], np.cumprod((2 * a - 1) / (2 * a))))[:n]


_TABLE = square_root(_EXACT)


def coefficients(ages: Ints, bits: int) -> Ints:
    """The integers nearest to 2**bits times the coefficients of these ages: never negative, never rising with age.

    >>> coefficients(np.array([0, 1, 2, 5000]), 10)
    array([1024,  512,  384,    8])
    """
    real = 1.0 / np.sqrt(math.pi * (ages + 0.25))
    young = ages < _EXACT
    if young.any():
        real[young] = _TABLE[ages[young]]
    return np.asarray(np.rint(real * 2.0**bits), dtype=np.int64)


def energies(n: int) -> Floats:
    """The sums of squares of the first 1, 2, …, n coefficients, which grow like ln(n)/π."""
    return np.cumsum(square_root(n) ** 2)


def squares(vector: Ints) -> int:
    """The exact sum of squares of integers below 2**31 in absolute value.

    >>> squares(np.array([2**31 - 1] * 8)) == 8 * (2**31 - 1) ** 2
    True
    """
    if vector.size and int(np.abs(vector).max()) >= 2**31:
        return sum(int(x) ** 2 for x in vector)
    square = vector * vector
    return (int((square >> 32).sum()) << 32) + int((square & 0xFFFFFFFF).sum())


def separated(column: Ints, steps: int, participations: int, separation: int) -> int:
    r"""The largest squared L2 norm of a sum of columns that one unit can reach, for a Toeplitz strategy.

    ``column`` is the first column, with zeros left out at its end. A unit takes part in at most
    ``participations`` of the ``steps``, any two of them at least ``separation`` apart.

    Guarantee:
        Exact for coefficients that are non-negative and do not rise: taking part as early and as often as
        allowed, in steps 0, b, 2b, …, is the worst. For vectors :math:`v_i` of norm at most one in the
        participations, :math:`\|\sum_i c_i v_i^T\|_F^2 = \sum_{ij} \langle c_i, c_j\rangle \langle v_i,
        v_j\rangle` is largest when all are equal, because no inner product of columns is negative.
    Reference:
        Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta, Xu (2023), (Amplified) banded matrix
        factorization; Kalinin, Lampert (2024), Banded square root matrix factorization, Theorem 2.

    >>> separated(np.array([4, 2, 1]), steps=5, participations=2, separation=2)  # 4, 2, 1+4, 2, 1
    50
    """
    column = column[:steps]
    times = min(participations, -(-steps // separation))
    if separation >= len(column):  # the columns do not overlap, and only the last one can be cut off by the end
        full = min(times, (steps - len(column)) // separation + 1)
        return full * squares(column) + sum(squares(column[: steps - i * separation]) for i in range(full, times))
    shifted = np.zeros(steps, dtype=np.int64)
    for start in range(0, times * separation, separation):
        end = min(steps, start + len(column))
        shifted[start:end] += column[: end - start]
    return squares(shifted)


def inverse(column: Ints, steps: int) -> Iterator[float]:
    """The coefficients of one over the power series, one by one, remembering as many as ``column`` has."""
    reach = min(len(column), steps)
    backwards = (column[1:reach][::-1] / float(column[0])).astype(np.float64)
    recent = np.zeros(2 * reach)
    at = 0
    for t in range(steps):
        if at == len(recent):
            recent[:reach] = recent[at - reach : at]
            at = reach
        seen = min(t, reach - 1)
        response = 1.0 / float(column[0]) if t == 0 else -float(backwards[reach - 1 - seen :] @ recent[at - seen : at])
        recent[at] = response
        at += 1
        yield response


def toeplitz_variances(column: Ints, steps: int) -> Iterator[float]:
    """The variance of each running sum per unit of noise variance: sums of squares of the coefficients of A·C⁻¹."""
    coefficient = variance = 0.0
    for response in inverse(column, steps):
        coefficient += response
        variance += coefficient * coefficient
        yield variance
