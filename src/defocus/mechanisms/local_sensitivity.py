"""Laplace noise as wide as a noisy bound on how far the statistic can move around this data set."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

from defocus.errors import InvalidParameterError, Number, count, in_range, probability, whole
from defocus.mechanisms import previews
from defocus.mechanisms.laplace import Laplace
from defocus.mechanisms.parameters import checked_rate, scale_for
from defocus.mechanisms.values import Integers, integers
from defocus.noise import Bits, discrete_laplace
from defocus.noise.bits import source
from defocus.noise.enclosures import exp_bounds
from defocus.privacy import events

__all__ = ["Bounded", "NoisyLocalSensitivity"]

_GRAIN = 1024
"""Shares of epsilon are multiples of one part in so many."""


class Bounded(NamedTuple):
    """A noisy value and the bound that its noise was made for; both may be shown."""

    value: int
    bound: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLocalSensitivity:
    r"""Release an upper bound on the local sensitivity with noise, then the statistic with noise for that bound.

    The bound is :math:`B = \ell + N + k`, cut to [1, cap], where N is discrete Laplace noise of scale
    :math:`\gamma/\varepsilon_1` and k the least whole number with :math:`P(N < -k) \le \delta`. The statistic then
    gets discrete Laplace noise of scale :math:`B/\varepsilon_2`.

    Guarantee:
        :math:`(\varepsilon_1 + \varepsilon_2, \delta)`-DP, also when B is shown. Let the statistic of two neighbours
        differ by s, with :math:`|s| \le \min(\ell, \ell')`. Outcomes with :math:`B \ge |s|` have likelihood
        ratios of at most :math:`e^{\varepsilon_1}e^{\varepsilon_2}`; the others need :math:`N < -k` and have
        probability at most :math:`\delta` under either data set. The cap does not undercut: :math:`|s| \le` cap.
    Assumes:
        Between neighbours of the ledger's unit, the local sensitivity moves by at most ``step`` and the statistic by at
        most either local sensitivity and at most ``cap``. ``bits`` is uniform.

    Error:
        Unbiased; about :math:`(\ell + \gamma\ln(1/2\delta)/\varepsilon_1)/\varepsilon_2`. ``share`` is
        :math:`\varepsilon_1/\varepsilon`; left out, it is the best one for a local sensitivity of ``typical``: with
        :math:`a = \gamma\ln(1/2\delta)/(\varepsilon\ell)`, :math:`\sqrt{a^2+a} - a`. :attr:`error` and
        :meth:`interval` hold for ``typical``, a public guess.
    Reference:
        Karwa, Raskhodnikova, Smith, Yaroslavtsev (2011), Private analysis of graph structure, Section 4; the pattern is
        in Dwork, Lei (2009), Differential privacy and robust statistics.

    >>> triangles = NoisyLocalSensitivity(epsilon=1, delta=1e-6, cap=4037, typical=300)
    >>> triangles.event, triangles.margin, round(float(triangles.share), 2), round(triangles.error)
    (Approximate(epsilon=1, delta=1e-06), 77, 0.17, 454)
    """

    epsilon: Number
    delta: Number
    cap: int
    typical: int
    step: int = 1
    share: Number | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_rate("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta, zero=False, one=False))
        in_range("delta", self.delta, 1e-30, 1)
        object.__setattr__(self, "cap", count("cap", self.cap))
        object.__setattr__(self, "step", count("step", self.step))
        whole("typical", self.typical)
        object.__setattr__(self, "typical", count("typical", max(1, self.typical)))
        if self.share is None:
            object.__setattr__(self, "share", self._best_share())
        object.__setattr__(self, "share", probability("share", self.share, zero=False, one=False))
        if not Fraction(1, 2**20) <= Fraction(self.share) <= 1 - Fraction(1, 2**20):  # type: ignore[arg-type]  # set above
            raise InvalidParameterError(
                "share leaves next to nothing for one of the two noises.", fix="choose share between 0.01 and 0.99."
            )
        Laplace(scale=self._value_scale(self.cap))

    @property
    def event(self) -> events.Approximate:
        """What one release owes, with or without the bound."""
        return events.Approximate(self.epsilon, self.delta)

    @property
    def margin(self) -> int:
        r"""The least k with :math:`P(N < -k) = q^{k+1}/(1+q) \le \delta`, q enclosed from above.

        >>> NoisyLocalSensitivity(epsilon=2, delta=0.1, cap=9, typical=3, share=0.5).margin
        1
        """
        rate = self._first / self.step
        guess = max(0, math.floor(math.log(1 / (2 * float(self.delta))) / float(rate)) - 2)
        while not _rarer(rate, guess, Fraction(self.delta)):
            guess += 1
        while guess and _rarer(rate, guess - 1, Fraction(self.delta)):
            guess -= 1
        return guess

    @property
    def error(self) -> float:
        """The expected absolute error at a local sensitivity of ``typical`` and its average bound."""
        return previews.laplace_error(self._value_scale(self._usual))

    def interval(self, confidence: Number) -> int:
        """The half-width with an average bound; :meth:`interval_for` holds for the bound that came."""
        return self.interval_for(self._usual, confidence)

    def interval_for(self, bound: int, confidence: Number) -> int:
        """The half-width that holds the error with probability ``confidence``, given the bound that was released."""
        return Laplace(scale=self._value_scale(bound)).interval(confidence)

    def check(self, value: object) -> None:
        """Refuse anything but two 64-bit integers: the statistic and its local sensitivity."""
        integers(value, length=2)

    def sample(self, value: Integers, bits: Bits | None = None) -> int:
        """The first of the two integers plus noise for a local sensitivity that is the second."""
        return self.bounded(value, bits).value

    def bounded(self, value: Integers, bits: Bits | None = None) -> Bounded:
        """The noisy value with the bound that its noise was made for."""
        generator = source(bits)
        vector, _ = integers(value, length=2)
        exact, level = vector.tolist()
        noise = int(discrete_laplace(scale_for(self.step, self._first), 1, generator)[0])
        bound = self._cut(min(max(level, 0), self.cap) + noise + self.margin)
        return Bounded(Laplace(scale=self._value_scale(bound)).sample(exact, generator), bound)

    @property
    def _first(self) -> Fraction:
        return Fraction(self.epsilon) * Fraction(self.share or 0)

    @property
    def _usual(self) -> int:
        return self._cut(self.typical + self.margin)

    def _cut(self, bound: int) -> int:
        return max(1, min(bound, self.cap))

    def _value_scale(self, bound: int) -> Number:
        return scale_for(bound, Fraction(self.epsilon) - self._first)

    def _best_share(self) -> Fraction:
        a = self.step * max(0.0, math.log(1 / (2 * float(self.delta)))) / (float(self.epsilon) * self.typical)
        best = 1 / (1 + math.sqrt(1 + 1 / a)) if a else 0.0
        return Fraction(min(max(round(_GRAIN * best), 1), _GRAIN - 1), _GRAIN)


def _rarer(rate: Fraction, k: int, delta: Fraction) -> bool:
    """Whether q**(k + 1) / (1 + q) <= delta for q = exp(-rate), decided on the safe side to 2**-192."""
    power = rate * (k + 1)
    _, tail = exp_bounds(power.numerator, power.denominator, 192)
    low, _ = exp_bounds(rate.numerator, rate.denominator, 192)
    return tail << 192 <= delta * (1 << 192) * ((1 << 192) + low)
