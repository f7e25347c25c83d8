"""The ladder mechanism: noise in rungs, each as wide as the statistic can move that many steps away."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate, chain, islice
from typing import TypeAlias, final

from defocus.errors import Number, count, whole
from defocus.mechanisms import previews
from defocus.mechanisms.parameters import checked_rate
from defocus.mechanisms.values import Integers, integers, saturate
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.noise.enclosures import exp_bounds
from defocus.noise.laws import geometric_one
from defocus.noise.ranges import uniform_below
from defocus.noise.weights import enclosed_choice
from defocus.privacy import events

__all__ = ["Ladder"]

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

        return previews.half_width(tail, confidence)

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
