"""Noise that follows a level of the data: a ladder without rungs."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import InvalidParameterError, Number, count, whole
from defocus.mechanisms import previews
from defocus.mechanisms.parameters import checked_rate
from defocus.mechanisms.values import Integers, integers, saturate
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.noise.ranges import uniform_below
from defocus.noise.reals import ExponentialReal
from defocus.privacy import events

__all__ = ["Ramp"]

_MOST = 12
"""The highest power that is offered; statistics of graphs need few."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    r"""Add noise that is as wide as the statistic can move around *this* data set, at no cost in epsilon.

    The data comes with a level :math:`\ell`, a whole number that says how far the statistic can move here: by at most
    ``factor`` · :math:`\ell^p`, p = ``power``. For triangles, :math:`\ell` is the largest number of common neighbours.
    The noise is X rounded to an integer, where X has the density

    .. math:: \frac{1}{2Z} e^{-\varepsilon u(|x|)}, \qquad |x| = X(u) = \int_0^u W(v)\,dv,
              \qquad W(v) = F\,(\ell + b + \gamma v)^p

    with F = ``factor``, :math:`\gamma` = ``step`` and the margin
    :math:`b = \max(0, \gamma(\kappa/\varepsilon - 1))`, :math:`\kappa = (p!)^{1/p}` rounded up. It looks like Laplace
    noise of scale :math:`F\ell^p/\varepsilon` whose tails are slightly heavier: heavy enough that the level itself
    stays hidden.

    Guarantee:
        :math:`\varepsilon`-DP. Take neighbours with levels :math:`\ell, \ell'`, so that
        :math:`|\ell - \ell'| \le \gamma` and the statistic moves by s with
        :math:`|s| \le F\min(\ell, \ell')^p \le \min(W(0), W'(0))`.

        1. *Depths differ by at most one.* :math:`W'(v+1) \ge W(v)`, so
           :math:`X'(u+1) = \int_0^1 W' + \int_0^u W'(v+1)dv \ge W'(0) + X(u) \ge |s| + X(u)`: hence
           :math:`u'(|x+s|) \le u(|x|) + 1`, and the same with the roles exchanged. The log-ratio of the densities
           is therefore at most :math:`\varepsilon + \log Z'/Z`, which settles :math:`\ell' \le \ell`.
        2. *A larger level.* Let :math:`\ell' = \ell + \theta`, :math:`0 < \theta \le \gamma`, so :math:`W' \ge W`. With
           :math:`u = u(|x|)` and :math:`u' = u'(|x|+|s|)`, if :math:`u' > u` then
           :math:`(u'-u)W'(0) \le \int_u^{u'} W' = |s| - \int_0^u (W'-W) \le |s|`, so
           :math:`u' - u \le (\ell/(\ell+b+\theta))^p =: 1 - h(\theta)`. It remains to show
           :math:`\log Z'/Z \le \varepsilon h(\theta)`.
        3. *The normaliser.* With :math:`a = \varepsilon/\gamma`, Z is proportional to
           :math:`A(z) = \int_0^\infty (z+w)^p e^{-aw}dw` at :math:`z = \ell + b`, and integration by parts gives
           :math:`A'(z) = aA(z) - z^p = aA(z)(1 - 1/m(z))` with
           :math:`m(z) = \sum_j \binom pj j!/(az)^j`, which falls with z. So
           :math:`\log Z'/Z \le a\theta(1 - 1/m(z)) = \varepsilon\frac\theta\gamma(1 - 1/m(z))`. Since h is concave and
           :math:`h(0) \ge 0`, :math:`h(\theta) \ge \frac\theta\gamma h(\gamma)`, and it is enough that
           :math:`1 - 1/m(z) \le h(\gamma)`, that is :math:`m(z) \le (1 + (b+\gamma)/\ell)^p`. As
           :math:`j! \le \kappa^j` for :math:`j \le p` and :math:`z \ge \ell`,
           :math:`m(z) \le \sum_j \binom pj (\kappa/a\ell)^j = (1 + \kappa\gamma/\varepsilon\ell)^p`, and
           :math:`b + \gamma \ge \kappa\gamma/\varepsilon`. For :math:`\ell = 0`, :math:`h(\gamma) = 1`.

        Rounding a real number that is private to the nearest integer is post-processing; the statistic is an integer,
        so the noise can be rounded in its place.
    Assumes:
        Between neighbours of the ledger's unit, the level moves by at most ``step``, and the statistic by at most
        ``factor`` times the ``power``-th power of either level. ``bits`` is uniform.

    Error:
        Unbiased. :attr:`error` and :meth:`interval` hold for data whose level is ``typical``, a public guess that does
        not change the noise. For p = 1, :math:`E|X| = \frac{\gamma}{\varepsilon^2}\frac{q^2+3q+3}{q+1}` with
        :math:`q = \varepsilon(\ell+b)/\gamma`: about :math:`(\ell + 2\gamma/\varepsilon)/\varepsilon`, half of what
        the ladder mechanism needs. A noisy value that does not fit in 64 bits is cut to fit.
    Reference:
        The idea of a ladder: Zhang, Cormode, Procopiuc, Srivastava, Xiao (2015), Private release of graph statistics
        using ladder functions. Its rungs cost a factor of two, which the margin b saves; the proof is above.

    >>> triangles = Ramp(epsilon=1, typical=300)
    >>> triangles.event, round(triangles.error, 1)
    (Pure(epsilon=1), 302.0)
    >>> abs(triangles.sample((1_612_010, 293)) - 1_612_010) < 20_000
    True
    """

    epsilon: Number
    typical: int
    power: int = 1
    factor: Number = 1
    step: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_rate("epsilon", self.epsilon))
        object.__setattr__(self, "factor", checked_rate("factor", self.factor))
        object.__setattr__(self, "step", count("step", self.step))
        object.__setattr__(self, "power", count("power", self.power))
        whole("typical", self.typical)
        object.__setattr__(self, "typical", count("typical", max(1, self.typical)))
        if self.power > _MOST:
            raise InvalidParameterError(
                f"power is at most {_MOST}, but it is {self.power}.", fix="bound the statistic by a lower power."
            )

    @property
    def margin(self) -> Fraction:
        r"""The b of the definition: zero from :math:`\varepsilon = \kappa` on."""
        return max(Fraction(0), self.step * (_kappa(self.power) / Fraction(self.epsilon) - 1))

    @property
    def event(self) -> events.Pure:
        """What one release owes."""
        return events.Pure(self.epsilon)

    @property
    def error(self) -> float:
        """The expected absolute error at the typical level, up to the rounding to integers."""
        return self.error_at(self.typical)

    def error_at(self, level: int) -> float:
        """The expected absolute error for data of this ``level``, up to the rounding to integers."""
        a, z = self._rate, self._start(level)
        mean = _integral(2 * self.power + 1, z, a) / _integral(self.power, z, a)
        return float(self._slope * (mean - z ** (self.power + 1)))

    def interval(self, confidence: Number) -> int:
        """The half-width that holds the error with probability ``confidence`` at the typical level."""
        return self.interval_at(self.typical, confidence)

    def interval_at(self, level: int, confidence: Number) -> int:
        """The half-width that holds the error with probability ``confidence`` for data of this ``level``."""
        return previews.half_width(lambda width: self.tail(level, width), confidence)

    def tail(self, level: int, width: int) -> float:
        r"""The probability that the noise exceeds ``width`` in size at this ``level``.

        :math:`P(X > x) = e^{-aw}A(z+w)/A(z)` at the w with :math:`X(w) = x`; the noise exceeds ``width`` where X
        exceeds ``width`` + 1/2.
        """
        a, z = self._rate, self._start(level)
        reached = float((width + Fraction(1, 2)) / self._slope)
        p, start = self.power, float(z)
        if start > 0:
            w = start * math.expm1(math.log1p(reached / start ** (p + 1)) / (p + 1))
        else:
            w = reached ** (1 / (p + 1))
        far = Fraction(w) + z
        return math.exp(-float(a) * w) * float(_integral(p, far, a) / _integral(p, z, a))

    def check(self, value: object) -> None:
        """Refuse anything but two 64-bit integers: the statistic and the level."""
        integers(value, length=2)

    def sample(self, value: Integers, bits: Bits | None = None) -> int:
        """The first of the two integers plus noise for a level that is the second; a level below zero counts as zero.

        :math:`(z+w)^p e^{-aw}` is a mixture of Gamma laws with rational weights, and a Gamma variable is a sum of
        exponential ones, drawn bit by bit until the nearest integer is decided.
        """
        generator = source(bits)
        vector, _ = integers(value, length=2)
        exact, level = vector.tolist()
        size = self._size(self._start(level), generator)
        return saturate(exact + (-size if generator.integer(1) else size))

    @property
    def _rate(self) -> Fraction:
        return Fraction(self.epsilon) / self.step

    @property
    def _slope(self) -> Fraction:
        return Fraction(self.factor) / (self.step * (self.power + 1))

    def _start(self, level: int) -> Fraction:
        return max(level, 0) + self.margin

    def _size(self, z: Fraction, bits: Bits) -> int:
        a, p = self._rate, self.power
        summands = [ExponentialReal(bits) for _ in range(1 + _chosen(_weights(p, z, a), bits))]
        while True:
            ends = (sum(bounds, start=Fraction(0)) for bounds in zip(*(x.bounds() for x in summands), strict=True))
            low, high = (
                math.floor(self._slope * ((z + end / a) ** (p + 1) - z ** (p + 1)) + Fraction(1, 2)) for end in ends
            )
            if low == high:
                return low
            for x in summands:
                x.refine()


def _kappa(power: int) -> Fraction:
    """An upper bound of the ``power``-th root of its factorial, exact for 1."""
    grain, factorial = 1 << 20, math.factorial(power)
    numerator = math.floor(grain * factorial ** (1 / power)) - 1
    while numerator**power < factorial * grain**power:
        numerator += 1
    return Fraction(numerator, grain)


def _weights(power: int, z: Fraction, a: Fraction) -> list[Fraction]:
    r"""The integrals of the terms of :math:`(z+w)^p e^{-aw}` in powers of w."""
    return [math.comb(power, j) * math.factorial(j) * z ** (power - j) / a ** (j + 1) for j in range(power + 1)]


def _integral(power: int, z: Fraction, a: Fraction) -> Fraction:
    return sum(_weights(power, z, a), start=Fraction(0))


def _chosen(weights: list[Fraction], bits: Bits) -> int:
    """An index with probability proportional to its rational weight."""
    common = math.lcm(*(w.denominator for w in weights))
    shares = [w.numerator * (common // w.denominator) for w in weights]
    at = uniform_below(sum(shares), bits)
    for j, share in enumerate(shares):
        if at < share:
            return j
        at -= share
    raise AssertionError(at)  # pragma: no cover: at < sum(shares)
