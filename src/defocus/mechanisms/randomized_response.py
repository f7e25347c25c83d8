"""Randomised response: each person reports a category that is true with a known probability."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final, overload

import numpy as np
from numpy.typing import NDArray

from defocus.errors import Number, count, in_range, whole
from defocus.mechanisms.mechanism import Integers, IntVector, integers, outside
from defocus.noise import Bits, uniform
from defocus.noise.bits import source
from defocus.noise.enclosures import exp_bounds
from defocus.noise.ranges import coins
from defocus.privacy import events

__all__ = ["Estimate", "RandomizedResponse"]


@final
@dataclass(frozen=True, slots=True)
class Estimate:
    """Unbiased estimates of how many people are in each category, and their estimated variances.

    >>> import numpy as np
    >>> Estimate(np.array([40.0, 60.0]), np.array([25.0, 25.0])).counts.sum().item()
    100.0
    """

    counts: NDArray[np.float64]
    variances: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    r"""Report the truth with probability :math:`p = e^\varepsilon/(e^\varepsilon+k-1)`, else any other category.

    Guarantee:
        Every report is :math:`\varepsilon`-DP in the local model: a given report has probability p
        under one truth and :math:`q = (1-p)/(k-1) = e^{-\varepsilon}p` under any other. The coin of
        bias p, an irrational number, is decided by integer enclosures of p and as many random bits as it takes.
    Assumes:
        The categories 0, …, k − 1 are public; whoever is in none of them is taken to be in the
        nearest, because an error that depends on data is a leak. In a vector every entry belongs to
        another unit, so that each unit owes one event, and how many there are is public.

    Error:
        A report is wrong with probability :math:`1 - p`, which is ``error``. Of n reports,
        :math:`(C_v - nq)/(p-q)` estimates without bias how many people are in category v.
    Reference:
        Warner (1965), Randomized response; Kairouz, Oh, Viswanath (2016), Extremal mechanisms for
        local differential privacy.

    >>> asked = RandomizedResponse(epsilon=math.log(3))
    >>> round(asked.truth, 6), asked.event
    (0.75, RandomizedResponse(epsilon=1.0986122886681098, categories=2))
    >>> asked.estimate([550, 450]).counts
    array([600., 400.])
    """

    answers_with: ClassVar[str] = "report"
    epsilon: Number
    categories: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_range("epsilon", self.epsilon, Fraction(1, 2**40), 2**10))
        whole("categories", self.categories, at_least=2)
        object.__setattr__(self, "categories", count("categories", self.categories))

    @property
    def event(self) -> events.RandomizedResponse:
        """What one report of one person owes."""
        return events.RandomizedResponse(self.epsilon, self.categories)

    @property
    def truth(self) -> float:
        """The probability of the true category."""
        return 1 / (1 + (self.categories - 1) * math.exp(-float(self.epsilon)))

    @property
    def error(self) -> float:
        """The probability that a report is not the truth."""
        lies = (self.categories - 1) * math.exp(-float(self.epsilon))
        return lies / (1 + lies)

    def interval(self, confidence: Number, *, reports: int = 1) -> float:
        r"""A half-width around the estimated count of one category from ``reports`` reports.

        The number of reports of a category is a sum of n independent coins, whose deviation is
        bounded by Hoeffding's inequality, :math:`\sqrt{nL/2}` with :math:`L = \ln(2/(1-\text{confidence}))`, and by
        Bernstein's, :math:`\sqrt{2nvL} + 2L/3` with v the largest variance of a coin. The smaller is
        divided by :math:`p - q`. The coverage is at least ``confidence`` for all true counts.
        """
        n, spread = count("reports", reports), math.log(2 / outside(confidence))
        p, q = self.truth, self.error / (self.categories - 1)
        variance = max(p * (1 - p), q * (1 - q))
        hoeffding = math.sqrt(n * spread / 2)
        bernstein = math.sqrt(2 * n * variance * spread) + 2 * spread / 3
        return min(hoeffding, bernstein) / self._contrast

    def check(self, value: object) -> None:
        """Refuse anything but 64-bit integers; which category they are is private."""
        integers(value)

    @overload
    def sample(self, value: int, bits: Bits | None = None) -> int: ...
    @overload
    def sample(self, value: Integers, bits: Bits | None = None) -> IntVector: ...
    def sample(self, value: int | Integers, bits: Bits | None = None) -> int | IntVector:
        """One report for each category given, each by its own coins."""
        truth, single = self._categories(value)
        draw = source(bits)
        honest = coins(self._enclosure, len(truth), draw)
        other = uniform(self.categories - 1, len(truth), draw)
        reports = np.where(honest, truth, other + (other >= truth))
        return int(reports[0]) if single else reports

    def estimate(self, counts: Integers) -> Estimate:
        r"""How many people are in each category, from how many reported it.

        The variance of :math:`C_v` is :math:`n_v p(1-p) + (n-n_v) q(1-q)`, into which the estimate of
        :math:`n_v`, kept between 0 and n, is put.

        >>> RandomizedResponse(epsilon=50, categories=3).estimate([5, 3, 2]).counts
        array([5., 3., 2.])
        """
        reported, _ = integers(counts, length=self.categories)
        n = float(reported.sum())
        p, q = self.truth, self.error / (self.categories - 1)
        estimated = ((reported - n * q) / self._contrast).astype(np.float64)
        likely = np.clip(estimated, 0, n)
        variances = (likely * p * (1 - p) + (n - likely) * q * (1 - q)) / self._contrast**2
        return Estimate(estimated, variances.astype(np.float64))

    @property
    def _contrast(self) -> float:
        """The difference p − q, without cancellation for small epsilon."""
        return self.truth * -math.expm1(-float(self.epsilon))

    def _enclosure(self, precision: int) -> tuple[int, int]:
        """Integers around 2**precision · p, from p = 1/(1 + (k − 1)e^−ε)."""
        x, lies = Fraction(self.epsilon), self.categories - 1
        work = precision + lies.bit_length() + 4
        low, high = exp_bounds(x.numerator, x.denominator, work)
        one = 1 << work
        top = one << precision
        return top // (one + lies * high), -(-top // (one + lies * low))

    def _categories(self, value: object) -> tuple[IntVector, bool]:
        vector, single = integers(value)
        return np.clip(vector, 0, self.categories - 1), single
