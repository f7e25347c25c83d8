r"""Strategies for running sums: integer lower-triangular matrices whose rows are noised one step at a time.

Every strategy here is :math:`y_t = (Cx)_t + z_t` with C lower triangular and *integer*, and z independent
from row to row. The running sums are then a function of :math:`y_1 … y_t` alone.

Integer coefficients of the square root of summation, and exact norms of what is built from them.

Summation is the lower-triangular matrix of ones, the Toeplitz matrix of :math:`1/(1-x)`. Its square
root is the Toeplitz matrix of :math:`(1-x)^{-1/2} = \sum_a f_a x^a` with :math:`f_a =
\binom{2a}{a}/4^a`, so :math:`f_a = f_{a-1}(2a-1)/(2a) \approx 1/\sqrt{\pi(a + 1/4)}`.

Only the integers :math:`g_a`, the rounded :math:`2^b f_a`, ever meet data. They are made by additions,
multiplications, divisions and square roots alone, which IEEE arithmetic rounds alike on every machine,
so a stream that is resumed elsewhere goes on with the same strategy.
"""

import math
from collections.abc import Iterator
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError

__all__ = [
    "Factor",
    "Floats",
    "Ints",
    "Strategy",
    "Tree",
    "coefficients",
    "energies",
    "inverse",
    "merging",
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


class Strategy(Protocol):
    """What a running sum needs to know about its strategy. All of it is public."""

    steps: int

    @property
    def rows(self) -> int:
        """How many rows the whole matrix has: how many noisy numbers are drawn for each entry."""

    @property
    def reach(self) -> int:
        """The most that a row, or a partial sum, can add up to before the noise when every step is at most one."""

    @property
    def memory(self) -> int:
        """The most partial sums that are remembered at a time."""

    def squared_sensitivity(self, participations: int, separation: int) -> int:
        """The largest squared L2 norm that one unit's participations of size one can reach, or a bound above it."""

    def variances(self) -> Iterator[float]:
        """The variance of the running sum after each step, per unit of noise variance."""


def merging(row: int, spread: int) -> Iterator[tuple[int, int]]:
    """First index and length of every group of steps that two halves become just before this row is made.

    Groups have lengths 2^j and begin at multiples of it. One comes into being when its newest step
    is ``spread``·2^j rows old, so the schedule depends on the row alone.

    >>> list(merging(7, 2))
    [(2, 2)]
    """
    size = 2
    while (row + 1) % size == 0:
        first = row - spread * size - size + 1
        if first >= 0:
            yield first, size
        size *= 2


@final
class Factor:
    r"""A lower-triangular strategy :math:`C_{ts} = g_{t-s'} w_s` with integers g (ages) and w (steps).

    Plain, :math:`s' = s`: with :math:`w_s = 1` the square root of summation, with :math:`w_s` inverse to the
    norm of column s the column-normalised square root, near the best possible for single participation. With a
    ``bandwidth``, :math:`g_a = 0` from that age on. With a ``spread`` c, steps whose ages differ by little
    share one coefficient: s' is the oldest step of the group of s (see :func:`merging`), where a group of 2^j
    steps is at least c·2^j rows old. One partial sum for each group is all that is remembered,
    about c·log2(T/c) of them, and coefficients differ from the square root's by a factor of at most √(1+1/c).

    Reference:
        Henzinger, Upadhyay, Upadhyay (2023), Almost tight error bounds on differentially private continual
        counting; Henzinger, Kalinin, Upadhyay (2025), Normalized square root (normalised columns); Kalinin, Lampert
        (2024), Banded square root matrix factorization (bands); Andersson, Pagh (2024), Streaming private continual
        counting via binning (groups).
    """

    __slots__ = ("_ends", "_longest", "_weights", "bandwidth", "bits", "normalised", "spread", "steps")

    def __init__(
        self,
        steps: int,
        *,
        bits: tuple[int, int],
        bandwidth: int | None = None,
        spread: int | None = None,
        normalised: bool = False,
    ) -> None:
        self.steps, self.bits, self.spread, self.normalised = steps, bits, spread, normalised
        self._longest: int | None = None
        self.bandwidth = min(steps, bandwidth or steps)
        self._ends, self._weights = _weights(steps, bits[1], fine=spread is None) if normalised else _no_weights(steps)

    @property
    def rows(self) -> int:
        """One row for each step."""
        return self.steps

    @property
    def reach(self) -> int:
        """Grouped coefficients are never above the plain ones, so the plain ones' sum bounds every row."""
        row = int(self.coefficients(np.arange(self.bandwidth, dtype=np.int64)).sum())
        return max(row, self.steps) * int(self._weights.max())

    @property
    def memory(self) -> int:
        """As many partial sums as there are groups at the end, or as the band is wide."""
        if self.spread is None:
            return self.bandwidth
        levels = range(1, self.steps.bit_length())
        return self.steps - sum(max(0, (self.steps >> level) - self.spread) for level in levels)

    @property
    def capacity(self) -> int:
        """Room for the partial sums at every row: between mergers there may be one more at each level."""
        return self.memory + self.steps.bit_length() + 2

    def coefficients(self, ages: Ints) -> Ints:
        """The integers g at these ages."""
        return coefficients(ages, self.bits[0])

    def row(self, t: int, first: Ints) -> Ints:
        """The integers of row t for groups that begin at these steps, before the weights of the steps."""
        return self.coefficients(t - first)

    def weight(self, step: int) -> int:
        """The integer w of a step."""
        return int(self._weights[np.searchsorted(self._ends, step, side="right")])

    def largest_column(self) -> int:
        """The exact squared norm of the longest column; weights meet norms as Python integers, which have no end."""
        tops = np.maximum.reduceat(self.norms(), np.concatenate(([0], self._ends[self._ends < self.steps])))
        return max(int(weight) ** 2 * int(top) for weight, top in zip(self._weights, tops, strict=False))

    def norms(self) -> Ints:
        r"""The exact squared norm of every column without its weight: below 2**63 for coefficients up to 2**18.

        Column s meets the coefficients of its group: from row :math:`T_j(s) = (\text{newest step of its group of
        } 2^j) + c 2^j` on, :math:`g_{t - s'_j}`. A sum of squares over each such stretch is a difference of
        two cumulative sums.
        """
        steps, s = self.steps, np.arange(self.steps, dtype=np.int64)
        g = self.coefficients(np.arange(self.bandwidth, dtype=np.int64))
        total = np.concatenate(([0], np.cumsum(g * g)))
        if self.spread is None:
            return np.asarray(total[np.minimum(steps - s, self.bandwidth)], dtype=np.int64)
        norms, size = np.zeros(steps, dtype=np.int64), 1
        begin, first = s, s
        while True:
            later = s // (2 * size) * (2 * size)
            end = np.minimum(later + 2 * size - 1 + 2 * size * self.spread, steps)
            norms += np.where(begin < steps, total[end - first] - total[np.minimum(begin, steps) - first], 0)
            if (end >= steps).all():
                return norms
            begin, first, size = end, later, 2 * size

    def squared_sensitivity(self, participations: int, separation: int) -> int:
        """Exact for one participation and for plain or banded strategies; else a bound above.

        Grouped coefficients are no larger than the plain ones, entry by entry, and nothing is negative, so
        with several participations the exact value of the plain strategy is a bound for the grouped one.
        """
        if participations == 1 or separation >= self.steps:
            if self._longest is None:
                self._longest = self.largest_column()
            return self._longest
        if self.normalised:
            raise InvalidParameterError(
                "Normalised columns are made for one participation of each unit.",
                fix="use the plain square root, a band or groups for several.",
            )
        column = self.coefficients(np.arange(self.bandwidth, dtype=np.int64))
        return separated(column, self.steps, participations, separation)

    def variances(self) -> Iterator[float]:
        """Exact up to floating point, from the integers in use; each takes O(memory), with groups O(memory²)."""
        if self.spread is not None:
            return self._grouped_variances()
        column = self.coefficients(np.arange(self.bandwidth, dtype=np.int64))
        return self._normalised_variances(column) if self.normalised else toeplitz_variances(column, self.steps)

    def _normalised_variances(self, column: Ints) -> Iterator[float]:
        r"""Row t of :math:`A C^{-1} = A W^{-1} G^{-1}` is the row before plus row t of :math:`G^{-1}` over w."""
        backwards = np.fromiter(inverse(column, self.steps), np.float64, self.steps)[::-1].copy()
        row = np.zeros(self.steps)
        for t in range(self.steps):
            row[: t + 1] += backwards[self.steps - 1 - t :] / self.weight(t)
            yield float(row[: t + 1] @ row[: t + 1])

    def _grouped_variances(self) -> Iterator[float]:
        r"""The covariance of the groups' errors, carried from row to row.

        The error of the weighted step, :math:`u_t = (z_t - \sum_B g_B U_B)/g_0`, depends on the sums U of the
        errors of the groups; the running sum's error also needs :math:`\sum u_s/w_s`, carried beside them.
        """
        spread, size = self.spread or 1, self.capacity
        cov, running = np.zeros((size, size)), np.zeros(size)  # among the groups, and of each with the running sum
        first = np.zeros(size, dtype=np.int64)
        m, variance, g0 = 0, 0.0, float(2 ** self.bits[0])
        for t in range(self.steps):
            for start, _ in merging(t, spread):
                i = int(np.searchsorted(first[:m], start))
                _merge(cov, running, first, i, m)
                m -= 1
            g = self.coefficients(t - first[:m]) / g0
            across = -(cov[:m, :m] @ g)
            own = 1.0 / (g0 * g0) - float(g @ across)
            with_running = -float(running[:m] @ g)
            w = self.weight(t)
            cov[m, :m] = cov[:m, m] = across
            cov[m, m] = own
            running[:m] += across / w
            running[m] = with_running + own / w
            variance += 2 * with_running / w + own / (w * w)
            first[m] = t
            m += 1
            yield variance


def _merge(cov: Floats, running: Floats, first: Ints, i: int, m: int) -> None:
    """Add place i+1 to place i, and close the gap."""
    cov[i, :m] += cov[i + 1, :m]
    cov[i + 1 : m - 1, :m] = cov[i + 2 : m, :m]
    cov[: m - 1, i] += cov[: m - 1, i + 1]
    cov[: m - 1, i + 1 : m - 1] = cov[: m - 1, i + 2 : m]
    running[i] += running[i + 1]
    running[i + 1 : m - 1] = running[i + 2 : m]
    first[i + 1 : m - 1] = first[i + 2 : m]


def _no_weights(steps: int) -> tuple[Ints, Ints]:
    return np.array([steps], dtype=np.int64), np.array([1, 1], dtype=np.int64)


def _weights(steps: int, bits: int, *, fine: bool) -> tuple[Ints, Ints]:
    """Where each weight ends, and the integers nearest to 2**bits over the norm of the columns.

    Exact for each step if ``fine``; else constant while the number of steps that are left changes by 5 %.
    """
    energy = energies(steps)
    if fine:
        left = np.arange(steps, 0, -1, dtype=np.int64)
    else:
        lengths = [steps]
        while lengths[-1] > 1:
            lengths.append(min(lengths[-1] - 1, math.floor(lengths[-1] / 1.05)))
        left = np.array(lengths, dtype=np.int64)
    weights = np.rint(2.0**bits / np.sqrt(energy[left - 1])).astype(np.int64)
    return steps - left[1:], np.asarray(weights)


@final
class Tree:
    r"""The binary tree: dyadic blocks of steps, each noised once when it is complete, added up to running sums.

    The running sum after t steps is the sum of as many blocks as t has ones in binary. By name, for comparison:
    its variance is several times that of :class:`Factor`. The only strategy here that Laplace noise suits, since one
    step is in at most :math:`\lfloor\log_2 T\rfloor + 1` blocks.

    Reference:
        Dwork, Naor, Pitassi, Rothblum (2010), Differential privacy under continual observation; Chan, Shi, Song (2011).
    """

    __slots__ = ("levels", "scale", "steps")

    def __init__(self, steps: int, *, scale: int) -> None:
        self.steps, self.scale, self.levels = steps, scale, steps.bit_length()

    @property
    def rows(self) -> int:
        """One row for each complete block."""
        return sum(self.steps >> level for level in range(self.levels))

    @property
    def reach(self) -> int:
        """The largest block."""
        return self.scale << (self.levels - 1)

    @property
    def memory(self) -> int:
        """One partial sum for each level."""
        return self.levels

    def squared_sensitivity(self, participations: int, separation: int) -> int:
        """Exact for one participation; else a bound above.

        In blocks of 2^j, j fixed, at most ⌈2^j/b⌉ of the k participations meet, so the squares of how many do
        add up to at most k·min(k, ⌈2^j/b⌉).
        """
        k = min(participations, -(-self.steps // separation))
        return self.scale**2 * sum(k * min(k, -(-(1 << level) // separation)) for level in range(self.levels))

    def sensitivity(self, participations: int, separation: int) -> int:
        """The L1 norm that one unit's participations of size one can reach: exact for one, else a bound above."""
        return self.scale * self.levels * min(participations, -(-self.steps // separation))

    def variances(self) -> Iterator[float]:
        """As many blocks as there are ones in the binary number of steps."""
        return (t.bit_count() / self.scale**2 for t in range(1, self.steps + 1))
