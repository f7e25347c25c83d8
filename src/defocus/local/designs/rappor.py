"""RAPPOR: noisy Bloom filters, remembered for good and disguised anew in every report."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.design import Categorical
from defocus.local.domains import Categories
from defocus.local.hashes import bloom_matrix
from defocus.local.layouts import BitRows
from defocus.local.levels import growth

__all__ = ["Rappor", "Regression", "nearest_counts", "rappor_matrix", "rappor_regression"]


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
                fix='use more cohorts, longer filters or fewer candidates; or ask for processing="non-negative".',
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


_TIGHT = 0.998
"""A chance is fine enough if it uses so much of epsilon; each digit more costs a random bit for every bit."""
_HEAVY = 1000.0
"""How much heavier the total is than a candidate's bits."""
_STEPS = 100
"""Exchanges for each candidate, of which a few are seen."""
_DEEPEST = 40
"""Binary digits at most; the least epsilon that is allowed needs fewer."""


@final
@dataclass(frozen=True, slots=True)
class Rappor(Categorical):
    r"""Put the category into a Bloom filter, flip each bit once and for all, and report the filter with fresh noise.

    The first noise, *permanent*, is drawn once for each value and remembered on the device. The second,
    *instantaneous*, is fresh in every report: a one is reported with probability ¾ where the remembered bit is a one
    and with ½ where it is a zero. It makes it harder to recognise a person by
    their reports, and one report cost less than all of them.

    Guarantee:
        All reports ever made about one value are post-processing of the remembered bits. Two filters differ in at most
        2h bits, h the number of hash functions, each flipped with a dyadic probability :math:`\varphi`; so together
        they are :math:`\varepsilon`-LDP with :math:`((1-\varphi)/\varphi)^{2h} \le e^\varepsilon`. One single report is
        ``report_epsilon``-LDP. Cohorts are independent of the value.
    Assumes:
        The value does not change. When it changes can in the long run be seen from the reports, and the loss then grows
        with their number; only where the moments of change are public, c different values cost c times epsilon.

    Error:
        Least squares over all cohorts, unbiased, with the variance that :class:`Regression` states. Where there are
        more candidates than bits of all cohorts, and where ``processing="non-negative"`` is asked for, that of
        :func:`nearest_counts`.
    Reference:
        Erlingsson, Pihur, Korolova (2014), RAPPOR: randomized aggregatable privacy-preserving ordinal response.

    >>> made = Rappor(Categories.of(["a", "b", "c"]), 4)
    >>> round(made.report_epsilon, 2)
    0.99
    """

    chosen: ClassVar = ("width", "hashes", "cohorts")
    domain: Categories
    epsilon: Number
    width: int = 64
    hashes: int = 2
    cohorts: int = 16
    name: ClassVar[str] = "rappor"

    def _complete(self) -> None:
        for name, most in (("width", 1 << 14), ("hashes", 8), ("cohorts", 1 << 14)):
            value = whole(name, getattr(self, name), at_least=1)
            if value > most:
                raise InvalidParameterError(f"{name} = {value} is more than {most}.", fix=f"choose {name} <= {most}.")
            object.__setattr__(self, name, value)
        if self.cohorts * max(self.width, 64) * self.domain.size > 1 << 28:
            raise InvalidParameterError(
                f"{self.domain.size} candidates in {self.cohorts} cohorts of {self.width} bits are too many.",
                fix="use fewer candidates, cohorts or bits.",
            )

    @property
    def permanent(self) -> tuple[int, int]:
        """A bit is flipped for good with probability first / 2**second."""
        below, above = growth(Fraction(self.epsilon) / (2 * self.hashes))
        depth, flips = 1, 1
        while depth < _DEEPEST:
            depth += 1
            flips = -int(-(1 << depth) // (1 + below))
            got = Fraction((1 << depth) - flips, flips)
            if got > 1 and math.log(got) >= _TIGHT * math.log(above):
                break
        return flips, depth

    @property
    def layout(self) -> BitRows:
        """The cohort, and the bits of the filter."""
        return BitRows(self.width, self.cohorts)

    @property
    def law(self) -> dict[str, int]:
        """The integers behind the permanent noise."""
        flips, depth = self.permanent
        return {"flips": flips, "depth": depth}

    @property
    def flip(self) -> Fraction:
        """The probability of a permanent flip."""
        flips, depth = self.permanent
        return Fraction(flips, 1 << depth)

    @property
    def ratio(self) -> Fraction:
        """Of all reports together: the odds of a flip, once for every bit in which two filters can differ."""
        return ((1 - self.flip) / self.flip) ** (2 * self.hashes)

    @property
    def zero(self) -> Fraction:
        """The probability that one report shows a one where the filter has a zero."""
        return Fraction(1, 2) + self.flip / 4

    @property
    def one(self) -> Fraction:
        """The probability that one report shows a one where the filter has a one."""
        return Fraction(3, 4) - self.flip / 4

    @property
    def report_epsilon(self) -> float:
        """What one single report would cost, if no other were ever made."""
        odds = self.one * (1 - self.zero) / (self.zero * (1 - self.one))
        return self.hashes * math.log(odds)

    def bit_variances(self) -> tuple[float, float]:
        """Of a debiased bit, where the filter has a zero and where it has a one."""
        p, q = self.zero, self.one
        return float(p * (1 - p) / (q - p) ** 2), float(q * (1 - q) / (q - p) ** 2)

    def variance(self, n: int, count: int = 0, *, pairs: int = 0) -> float:
        """The variance of the first category's count, all others being spread evenly over the other categories."""
        reports, own, _ = whole("n", n), whole("count", count), whole("pairs", pairs)
        held = np.full(self.domain.size, (reports - own) / (self.domain.size - 1))
        held[0] = own
        return float(rappor_regression(self).variances(held, *self.bit_variances())[0])


@lru_cache(maxsize=4)
def rappor_regression(design: Rappor) -> Regression:
    """The regression that tells a design's categories apart."""
    return Regression.of(rappor_matrix(design), design.cohorts)


@lru_cache(maxsize=4)
def rappor_matrix(design: Rappor) -> NDArray[np.float64]:
    """The filters of all categories in all cohorts; refused where two have the same."""
    matrix = bloom_matrix(design.domain, design.cohorts, design.width, design.hashes)
    if len(np.unique(np.packbits(matrix.astype(np.bool_), axis=0), axis=1).T) < design.domain.size:
        raise InvalidParameterError(
            f"Of {design.domain.size} candidates, two cannot be told apart: they have the same filter in every cohort.",
            fix="use more cohorts, longer filters or fewer candidates.",
        )
    return matrix


def nearest_counts(matrix: NDArray[np.float64], sums: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    r"""Counts :math:`n \ge 0` with the given total whose expected sums :math:`Xn` are nearest to ``sums``.

    There may be more candidates than sums. Filters have no negative entry, so that no candidate can make up for
    another, and most counts come out as zero without a penalty that would have to be chosen. The total is a row of
    its own, of a weight beside which all others are small.

    Error:
        Biased as little as the constraints make it. Over shapes, sizes and epsilons its root mean squared error is
        0.9 to 1.0 of that of the LASSO and least squares on what it selects (``benchmarks/rappor.py``).
    Reference:
        Slawski, Hein (2013), Non-negative least squares for high-dimensional linear models: consistency and sparse
        recovery without regularization; for the LASSO, Erlingsson, Pihur, Korolova (2014), Section 4.

    >>> filters = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> nearest_counts(filters, np.array([70.0, 10.0]), 70.0).round(1)
    array([60.,  0., 10.])
    """
    from scipy.optimize import nnls  # noqa: PLC0415  # slow to load

    weight = _HEAVY * math.sqrt(float((matrix**2).sum(axis=0).max()))
    rows = np.vstack([matrix, np.full(matrix.shape[1], weight)])
    counts: NDArray[np.float64] = nnls(rows, np.append(sums, weight * total), maxiter=_STEPS * len(matrix.T))[0]
    return counts * (total / counts.sum()) if counts.any() else counts
