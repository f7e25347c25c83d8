r"""The law of a private test statistic: normal sampling error plus Laplace or Gaussian noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from defocus.answers.digits import Floats

__all__ = ["Design", "Law", "least"]

_MOST = 100_000


@final
@dataclass(frozen=True, slots=True)
class Law:
    r"""A normal variable of standard deviation ``normal`` plus independent Laplace variables of the scales given.

    Error:
        The tail comes from the characteristic function
        :math:`\varphi(u) = e^{-s^2u^2/2}\prod_i (1+a_i^2u^2)^{-1}` by Davies' sum
        :math:`P(Z>t) = \tfrac12 - \tfrac1\pi\sum_k \varphi((k+\tfrac12)h)\sin((k+\tfrac12)ht)/(k+\tfrac12)`,
        whose error is at most :math:`P(|Z| > 2\pi/h - |t|)`: below 1e-20 here. It is cut off where what is left is
        below 1e-9, or after 100 000 terms.
    Reference:
        Davies (1973), Numerical inversion of a characteristic function.

    >>> round(Law(1.0).tail(1.96), 4), round(Law(0.0, (1.0,)).tail(math.log(50)), 4)
    (0.025, 0.01)
    """

    normal: float
    scales: tuple[float, ...] = ()

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.normal**2 + 2 * sum(a * a for a in self.scales))

    def tail(self, t: float) -> float:
        """The probability of more than ``t``."""
        total = self.deviation
        if not self.scales or total == 0:
            return _normal_tail(t / total) if total else float(t < 0)
        if t < 0:
            return 1 - self.tail(-t)
        x, s = t / total, self.normal / total
        a = np.array(self.scales) / total
        if x > 40:
            return 0.0
        h = 2 * math.pi / (x + 45)
        u = (np.arange(self._terms(s, a, h)) + 0.5) * h
        phi = np.exp(-0.5 * (s * u) ** 2) / np.prod(1 + np.outer(a, u) ** 2, axis=0)
        return float(np.clip(0.5 - (phi * np.sin(u * x) / (u / h))[::-1].sum() / math.pi, 0.0, 1.0))

    @staticmethod
    def _terms(s: float, a: Floats, h: float) -> int:
        """How many terms leave less than 1e-9: by the normal factor, or by the product of the Laplace factors."""
        by_normal = 6.5 / (s * h) if s else math.inf
        order = 2 * len(a)
        # sum over k > K of 1/(k prod (a u)^2) is at most (prod a^2)^-1 (K h)^-order / order
        log_product = 2 * float(np.log(a).sum())
        by_laplace = math.exp(min(60.0, (math.log(1e9 / order) - log_product) / order)) / h
        return max(50, min(_MOST, math.ceil(min(by_normal, by_laplace))))

    def critical(self, alpha: float) -> float:
        """The least c with P(|Z| > c) <= ``alpha``."""
        return least(lambda c: 2 * self.tail(c) <= alpha, 0.0, 2 * self.deviation)


@final
@dataclass(frozen=True, slots=True)
class Design:
    """A test on the unit interval: ``n`` people in each of one or two groups, of mean ``null`` and ``null + shift``.

    ``variance(p)`` is that of one person's value where the mean is p; ``laplace`` the scale of the noise of each of
    the two sums, or ``gaussian`` its standard deviation, in people.
    """

    null: float
    shift: float
    n: float
    groups: int
    variance: Callable[[float], float]
    laplace: float = 0.0
    gaussian: float = 0.0

    def law(self, means: tuple[float, ...], about: tuple[float, ...]) -> Law:
        """The statistic where the groups have these true means, its noise weighed about those."""
        normal = sum(self.variance(p) for p in means) / self.n
        normal += sum((1 - p) ** 2 + p * p for p in about) * self.gaussian**2 / self.n**2
        scales = tuple(w * self.laplace / self.n for p in about for w in (1 - p, p) if w * self.laplace)
        return Law(math.sqrt(normal), scales)

    @property
    def null_law(self) -> Law:
        """The statistic where there is no effect; two groups then share the mean between theirs."""
        middle = self.null if self.groups == 1 else self.null + self.shift / 2
        return self.law((middle,) * self.groups, (middle,) * self.groups)

    @property
    def law_of_effect(self) -> Law:
        """The statistic around the effect where there is one."""
        if self.groups == 1:
            return self.law((self.null + self.shift,), (self.null,))
        both = (self.null, self.null + self.shift)
        return self.law(both, both)

    @property
    def without_noise(self) -> "Design":
        """The same test on the data itself."""
        return replace(self, laplace=0.0, gaussian=0.0)

    def power(self, alpha: float) -> float:
        """The probability of noticing the effect at level ``alpha``."""
        critical, law, shift = self.null_law.critical(alpha), self.law_of_effect, abs(self.shift)
        return min(1.0, law.tail(critical - shift) + law.tail(critical + shift))


def least(enough: Callable[[float], bool], low: float, high: float, *, precision: float = 1e-9) -> float:
    """The least number from which on ``enough`` holds, rounded up; ``high`` is doubled until it does."""
    while not enough(high):
        low, high = high, 2 * high
    while high - low > precision * max(abs(high), 1e-300):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _normal_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))
