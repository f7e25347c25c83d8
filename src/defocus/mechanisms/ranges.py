"""Range finding: bounds for values when none are known, from a noisy histogram of magnitudes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, count, finite, in_range, positive, probability
from defocus.mechanisms import error_laws
from defocus.mechanisms.mechanism import Integers, add, integers, outside, scale_for
from defocus.mechanisms.selection import checked_flag
from defocus.noise import Bits, discrete_laplace
from defocus.privacy import events

__all__ = ["FoundRange", "RangeFinding"]

_TOO_WIDE = 0.05
"""How often noise alone may widen a range, at most."""
_FURTHER = 2
"""By how many buckets a range may be widened, where that errs less than to cut what they hold."""
_ONE_SIDED = 1.645
"""Below how many standard deviations noise stays with 95 % probability: of one Laplace noise 1.63, of many 1.645."""


@final
@dataclass(frozen=True, slots=True)
class FoundRange:
    """A range that was read from noisy counts."""

    low: float
    high: float
    outside: float
    """The share of all weight that lies outside, at most, with about 95 % probability."""
    seen: bool
    """Whether any bucket stood out; else it is the default range, and says nothing about the values."""
    below: float = 1.0
    """The share that lies below it, likewise; and ``above``."""
    above: float = 1.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RangeFinding:
    r"""The smallest range between powers of two that leaves out no more weight than noise or ``share`` explains.

    Values are counted in public buckets, from one of the :attr:`edges` up to below the next: :math:`\pm 2^j` for j
    from ``smallest`` to ``largest``. Values beyond belong to the outermost buckets. Discrete Laplace noise is added
    to every count. Then buckets are left out from each end, until one more would leave out a bucket, or all in all a
    weight, above half the ``share`` of the noisy total and what the noise of empty buckets would show.

    Guarantee:
        The buckets are disjoint, so a user changes the histogram by at most ``sensitivity`` in L1 norm (twice that
        with ``replace``), and the noisy histogram is ``epsilon``-DP by the Laplace mechanism. The range is computed
        from it alone.
    Assumes:
        The weights of a user add up to at most ``sensitivity``; exponents and ``default`` are public. Weights
        below zero count as zero, which no histogram has.

    Error:
        With probability 95 % or more, neither end reaches beyond the outermost bucket that holds any weight. How much
        weight lies outside is bounded by :meth:`missed`. Where no bucket stands out, as in an empty table, the range is
        ``default``.
    Reference:
        Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson (2020), Differentially private SQL with bounded
        user contribution, section 5.1.1: one threshold for each bucket. The sums and the share are added here.

    >>> finder = RangeFinding(epsilon=1, smallest=0, largest=4)
    >>> finder.edges
    (-16.0, -8.0, -4.0, -2.0, -1.0, 1.0, 2.0, 4.0, 8.0, 16.0)
    >>> finder.read([0, 0, 0, 0, 500, 9000, 100_000, 0, 0])
    (-1.0, 4.0)
    >>> RangeFinding(epsilon=1, default=(0, 100)).read([0] * 129)
    (0.0, 100.0)
    """

    answers_with: ClassVar[str] = "crossings"
    epsilon: Number
    sensitivity: int = 1
    smallest: int = -16
    largest: int = 48
    share: Number = Fraction(1, 1000)
    default: Sequence[Number] | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        object.__setattr__(self, "smallest", _exponent("smallest", self.smallest))
        object.__setattr__(self, "largest", _exponent("largest", self.largest))
        object.__setattr__(self, "share", in_range("share", probability("share", self.share), 0, Fraction(1, 4)))
        checked_flag("replace", self.replace)
        if self.smallest >= self.largest:
            raise InvalidParameterError(
                "The smallest power of two must be below the largest.", fix="pass for example smallest=-4, largest=20."
            )
        object.__setattr__(self, "default", _pair(self.default, math.ldexp(1.0, self.smallest)))
        _ = self.scale

    @property
    def edges(self) -> tuple[float, ...]:
        """Where the buckets begin and end: bucket i holds edges[i] <= v < edges[i + 1]."""
        up = tuple(math.ldexp(1.0, j) for j in range(self.smallest, self.largest + 1))
        return (*(-x for x in reversed(up)), *up)

    @property
    def buckets(self) -> int:
        """How many counts :meth:`sample` takes."""
        return 2 * (self.largest - self.smallest) + 1

    @property
    def scale(self) -> Number:
        """The scale of the noise on each count."""
        return scale_for(self._moves, self.epsilon)

    @property
    def event(self) -> events.DiscreteLaplace:
        """What one release owes."""
        return events.DiscreteLaplace(self.scale, self._moves)

    @property
    def error(self) -> float:
        """The expected absolute error of one noisy count."""
        return error_laws.laplace_error(self.scale)

    def interval(self, confidence: Number) -> int:
        """The half-width that the error of one noisy count stays within."""
        return error_laws.half_width(lambda width: error_laws.laplace_tail(self.scale, width), confidence)

    def missed(self, confidence: Number) -> float:
        """With probability ``confidence``, at most this much more weight than ``share`` of all lies outside the range.

        What is left out at one end is at most what the rule allows there and the noise hides. Both are bounded for
        all sums from an end at once. A default is no range found: this says nothing about it.
        """
        n = self.buckets
        hidden = _sums(self.scale, n, outside(confidence) / (2 * n + 1))
        return 2 * (self._margins()[-1] + hidden[-1]) + float(self.share) * hidden[-1]

    def check(self, counts: object) -> None:
        """Refuse anything but one 64-bit integer for each bucket."""
        integers(counts, length=self.buckets)

    def sample(self, counts: Integers, bits: Bits | None = None) -> tuple[float, float]:
        """The ends of the range found."""
        return self.read(self.add(counts, bits))

    def add(self, counts: Integers, bits: Bits | None = None) -> list[int]:
        """The counts with fresh noise, from which ranges are read."""
        vector, _ = integers(counts, length=self.buckets)
        noisy: list[int] = add(np.maximum(vector, 0), discrete_laplace(self.scale, len(vector), bits)).tolist()
        return noisy

    def read(self, noisy: Sequence[int]) -> tuple[float, float]:
        """The range that noisy counts show: a function of them alone."""
        found = self.best(noisy, math.inf)
        return found.low, found.high

    def best(self, noisy: Sequence[int], error: float) -> FoundRange:
        """The range with the least expected error, where a range of width one makes an average err by ``error``.

        Beside the buckets that stand out may be others that noise hides. The range is widened by up to two on each side
        as long as that errs less than twice what cutting their noisy counts would move an average by; no interval
        tells the latter. A function of the noisy counts alone.
        """
        total = max(1, sum(noisy))
        allowed = float(self.share) * max(0, sum(noisy)) / 2
        low, high = self._left_out(noisy, allowed), self.buckets - 1 - self._left_out(noisy[::-1], allowed)
        if high < 0 or low == self.buckets:
            low_end, high_end = self.default or (0, 0)
            return FoundRange(float(low_end), float(high_end), 1.0, seen=False)
        low, high = min(low, high), max(low, high)
        if math.isfinite(error):
            below = range(max(0, low - _FURTHER), low + 1)
            above = range(high, min(self.buckets - 1, high + _FURTHER) + 1)
            near = range(below[0], above[-1] + 1)
            low, high = min(
                ((first, last) for first in reversed(below) for last in above),
                key=lambda ends: math.hypot(
                    error * (self.edges[ends[1] + 1] - self.edges[ends[0]]), 2 * self._moved(noisy, ends, near) / total
                ),
            )

        def share(left: Sequence[int]) -> float:
            margin = _ONE_SIDED * float(self.scale) * math.sqrt(2 * len(left))
            return min(1.0, max(0.0, sum(left) + margin) / total)

        under, over = noisy[:low], noisy[high + 1 :]
        ends = self.edges[low], self.edges[high + 1]
        return FoundRange(*ends, share([*under, *over]), seen=True, below=share(under), above=share(over))

    def _moved(self, noisy: Sequence[int], ends: tuple[int, int], near: Sequence[int]) -> float:
        """What cutting at the ends of these buckets moves the sum of all values by, as far as nearby counts tell."""
        low, high = self.edges[ends[0]], self.edges[ends[1] + 1]
        middles = ((i, (self.edges[i] + self.edges[i + 1]) / 2) for i in near if not ends[0] <= i <= ends[1])
        return sum(max(0, noisy[i]) * max(low - middle, middle - high) for i, middle in middles)

    def _left_out(self, noisy: Sequence[int], allowed: float) -> int:
        """How many buckets are left out at the front."""
        margins = self._margins()
        for i, (value, total) in enumerate(zip(noisy, accumulate(noisy), strict=True)):
            if value > margins[0] + allowed or total > margins[i] + allowed:
                return i
        return len(noisy)

    def _margins(self) -> list[float]:
        """What the noise of 1, 2, … empty buckets stays below, all of them together and from both ends."""
        return _sums(self.scale, self.buckets, _TOO_WIDE / (4 * self.buckets))

    @property
    def _moves(self) -> int:
        return self.sensitivity * (2 if self.replace else 1)


@lru_cache(maxsize=64)
def _sums(scale: Number, n: int, beyond: float) -> list[float]:
    r"""What the sum of 1 … n noises exceeds with probability at most ``beyond``, each, by Chernoff's bound.

    :math:`P(X_1 + … + X_i > t) \le e^{-\theta t} M(\theta)^i` with
    :math:`M(\theta) = (1-q)^2 / ((1-q e^\theta)(1-q e^{-\theta}))`; each :math:`\theta` on a grid gives a valid t.
    """
    rate = 1 / float(scale)
    theta = rate * np.arange(1, 400) / 400
    moment = 2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(theta - rate)) - np.log(-np.expm1(-theta - rate))
    times = np.arange(1, n + 1)[:, np.newaxis]
    bounds: list[float] = ((times * moment - math.log(beyond)) / theta).min(axis=1).tolist()
    single = error_laws.half_width(lambda width: error_laws.laplace_tail(scale, width) / 2, 1 - beyond)
    return [min(bounds[0], float(single)), *bounds[1:]]


def _exponent(name: str, value: object) -> int:
    number = in_range(name, value, -1000, 1000)
    if not isinstance(number, int):
        raise InvalidParameterError(f"{name} must be a whole power of two, but it is {number}.", fix="pass an int.")
    return number


def _pair(value: object, one: float) -> tuple[float, float]:
    """The default range; without one, from one of the edges around zero to the other."""
    if value is None:
        return -one, one
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidParameterError("default must be a pair of numbers.", fix="pass default=(0, 1), or leave it out.")
    low, high = (float(finite("an end of default", end)) for end in value)
    if low >= high:
        raise InvalidParameterError("default must be a range.", fix="pass its lower end first.")
    return low, high
