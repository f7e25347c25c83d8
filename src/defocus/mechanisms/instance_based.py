"""Instance-based mechanisms: noise calibrated to a private bound on the sensitivity around this data set."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate, chain, islice
from typing import NamedTuple, TypeAlias, final

from defocus.errors import InvalidParameterError, Number, count, in_range, probability, whole
from defocus.mechanisms import error_laws
from defocus.mechanisms.laplace import Laplace
from defocus.mechanisms.mechanism import Integers, checked_rate, integers, saturate, scale_for
from defocus.noise import Bits, discrete_laplace
from defocus.noise.bits import source
from defocus.noise.enclosures import exp_bounds
from defocus.noise.ranges import uniform_below
from defocus.noise.reals import ExponentialReal, enclosed_choice
from defocus.noise.tables import geometric_one
from defocus.privacy import events

__all__ = ["Bounded", "Ladder", "NoisyLocalSensitivity", "Ramp"]


_Widths: TypeAlias = tuple[list[int], range]
"""Widths that were given, then those that follow."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    r"""Choose an integer by how many rungs of a ladder it lies from the true value, exactly.

    The data comes as the statistic followed by the widths :math:`I_0 \le I_1 \le …` of its first rungs; further
    rungs grow by ``step`` until they reach ``cap``. Rung t consists of the :math:`2I_{t-1}` integers beyond those of
    the rungs below it, and each of its integers has a weight of :math:`e^{-\varepsilon t/2}`.

    Guarantee:
        The choice is an exponential mechanism whose utility, minus the number of the rung, moves by at most one
        between neighbours, so it has bounded range :math:`\varepsilon` and is :math:`\varepsilon`-DP: an integer on
        rung t of one data set lies within :math:`I'_0 + I'_1 + … + I'_t` of the value of the other, because
        :math:`I'_0` bounds the move of the value and :math:`I_{j} \le I'_{j+1}`.
    Assumes:
        :math:`I_0` bounds how far the statistic moves to any neighbour; :math:`I_t \le I'_{t+1}` for all neighbours
        and t; ``cap`` bounds how far it moves between any neighbours. The last width that is given moves by at most
        ``step`` between neighbours. How many widths are given is public. Widths are cut to [0, cap] and to rise.

    Error:
        Unbiased; about :math:`2(I_0 + 2/\varepsilon)/\varepsilon`, twice that of :class:`~defocus.mechanisms.Ramp`.
        :attr:`error` and :meth:`interval` hold for a first width of ``typical``, a public guess that does not change
        the noise.
    Reference:
        Zhang, Cormode, Procopiuc, Srivastava, Xiao (2015), Private release of graph statistics using ladder
        functions, Algorithm 1 and Theorem 4.2.

    >>> triangles = Ladder(epsilon=1, cap=4037, typical=300)
    >>> triangles.event
    Exponential(epsilon=1)
    >>> abs(triangles.sample((1_612_010, 293)) - 1_612_010) < 40_000
    True
    """

    epsilon: Number
    cap: int
    typical: int
    step: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_rate("epsilon", self.epsilon))
        object.__setattr__(self, "cap", count("cap", self.cap))
        object.__setattr__(self, "step", count("step", self.step))
        whole("typical", self.typical)
        object.__setattr__(self, "typical", count("typical", max(1, self.typical)))

    @property
    def event(self) -> events.Exponential:
        """What one release owes."""
        return events.Exponential(self.epsilon)

    @property
    def error(self) -> float:
        """The expected absolute error for a first width of ``typical``."""
        masses, reached, widths, q = self._preview()
        inner = sum(m * (r + (w + 1) / 2) for m, r, w in zip(masses, reached, widths, strict=False))
        beyond = reached[-1] + (self.cap + 1) / 2 + self.cap * q / (1 - q)
        return (inner + masses[-1] * beyond) / (1 + sum(masses))

    def interval(self, confidence: Number) -> int:
        """The half-width that holds the error with probability ``confidence`` for a first width of ``typical``."""
        masses, reached, widths, q = self._preview()
        total = 1 + sum(masses)
        above = list(accumulate(reversed(masses)))[::-1]

        def tail(size: int) -> float:
            if size >= reached[-1]:
                rungs, rest = divmod(size - reached[-1], self.cap)
                return masses[-1] * q**rungs * (1 - (1 - q) * rest / self.cap) / total
            at = next(t for t, r in enumerate(reached) if r > size) - 1
            return (above[at] - masses[at] * (size - reached[at]) / widths[at]) / total

        return error_laws.half_width(tail, confidence)

    def check(self, value: object) -> None:
        """Refuse anything but 64-bit integers, at least two: the statistic and the widths of rungs."""
        self._parts(value)

    def sample(self, value: Integers, bits: Bits | None = None) -> int:
        """The first of the integers plus noise for rungs whose widths are the others."""
        generator = source(bits)
        exact, given = self._parts(value)
        rungs = self._rungs(given)
        rung = enclosed_choice(partial(_rung_weights, Fraction(self.epsilon) / 2, rungs, self.cap), generator)
        if rung == 0:
            return exact
        below = list(islice(chain(*rungs), rung))
        size = 1 + sum(below[: rung - 1])
        if rung > len(below):
            size += geometric_one(Fraction(self.epsilon) / 2, generator) * self.cap + uniform_below(self.cap, generator)
        else:
            size += uniform_below(below[-1], generator)
        return saturate(exact + (-size if generator.integer(1) else size))

    def _parts(self, value: object) -> tuple[int, list[int]]:
        vector, _ = integers(value)
        if len(vector) < 2:
            integers(value, length=2)
        exact, *widths = vector.tolist()
        return exact, widths

    def _rungs(self, given: list[int]) -> _Widths:
        """The widths of all rungs below the first as wide as the cap, within [0, cap] and never falling."""
        rising = list(accumulate((min(max(w, 0), self.cap) for w in given), max))
        return [w for w in rising if w < self.cap], range(rising[-1] + self.step, self.cap, self.step)

    def _preview(self) -> tuple[list[float], list[int], list[int], float]:
        """The weights of the rungs of a typical ladder and of the tail, what lies below, the widths, and the ratio.

        Rungs whose weight is nothing to a float are counted with the tail.
        """
        q = math.exp(-float(self.epsilon) / 2)
        widths = list(islice(chain(*self._rungs([self.typical])), math.ceil(200 / float(self.epsilon)) + 2))
        masses = [2 * w * q ** (t + 1) for t, w in enumerate(widths)]
        tail = 2 * self.cap * q ** (len(widths) + 1) / (1 - q)
        return [*masses, tail], list(accumulate(widths, initial=0)), widths, q


def _rung_weights(rate: Fraction, rungs: _Widths, cap: int, precision: int) -> list[tuple[int, int]]:
    r"""Enclose :math:`2^n (1 - e^{-r})` times 1, :math:`2I_{t-1}e^{-rt}`, and the weight of all rungs beyond.

    Powers are multiplied up, each product rounded outwards. Once they are nothing at this precision, all further rungs
    together are enclosed by (0, what they weigh at most), and are told apart when more bits are asked for.
    """
    low, high = exp_bounds(rate.numerator, rate.denominator, precision)
    one = 1 << precision
    rest_low, rest_high = one - high, one - low
    pairs = [(rest_low, rest_high)]
    power_low = power_high = one
    for width in chain(*rungs):
        power_low, power_high = power_low * low >> precision, (power_high * high >> precision) + 1
        if not power_low:
            return [*pairs, (0, 2 * cap * power_high)]
        pairs.append(
            (2 * width * power_low * rest_low >> precision, (2 * width * power_high * rest_high >> precision) + 1)
        )
    pairs.append((2 * cap * power_low * low >> precision, (2 * cap * power_high * high >> precision) + 1))
    return pairs


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
        return error_laws.half_width(lambda width: self.tail(level, width), confidence)

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


_GRAIN = 1024
"""Shares of epsilon are multiples of one part in so many."""


class Bounded(NamedTuple):
    """A noisy value and the bound that its noise was made for; both may be shown.

    >>> Bounded(value=1402, bound=7).bound
    7
    """

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
        return error_laws.laplace_error(self._value_scale(self._usual))

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
