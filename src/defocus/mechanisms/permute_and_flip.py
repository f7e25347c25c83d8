"""Permute-and-flip: a candidate with nearly the highest utility, never worse than the exponential mechanism."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from defocus.errors import Number
from defocus.mechanisms.parameters import outside
from defocus.mechanisms.selection import Utilities, checked_choice, rate
from defocus.mechanisms.values import rationals
from defocus.noise import Bits, bernoulli_exp, uniform
from defocus.privacy import events
from defocus.privacy.searching import least, turning

__all__ = ["PermuteAndFlip"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    r"""Visit candidates in random order; take the first whose coin of bias :math:`e^{-c(\max u - u_i)}` is heads.

    Guarantee:
        :math:`\varepsilon`-DP with :math:`c = \varepsilon/2\Delta`, or :math:`\varepsilon/\Delta` for
        monotone utilities. The law is that of the largest :math:`u_i + X_i` with independent
        exponential :math:`X_i` of rate c. Fix all noise but that of i: it wins when
        :math:`X_i > M_i - u_i` with :math:`M_i` the best of the others, which happens with
        probability :math:`\min(1, e^{-c(M_i - u_i)})`. Between neighbours :math:`M_i - u_i` moves by at
        most :math:`2\Delta`, and by at most :math:`\Delta` if all utilities move in one direction.
    Assumes:
        As for :class:`Exponential`: the sensitivity holds for every utility, monotone utilities
        all move in one direction between neighbours, and the candidates are public.

    Error:
        The expected loss of utility is never above that of :class:`Exponential`, up to half of it. It is
        largest when all other candidates tie at a gap g, where with :math:`p = e^{-cg}` it is
        :math:`g\,(1 - \frac{1-(1-p)^n}{np})`.
    Reference:
        McKenna, Sheldon (2020), Permute-and-flip: a new mechanism for differentially private
        selection; Ding, Kifer, Sayed, Steinke, Wang, Xiao, Zhang (2021), The permute-and-flip
        mechanism is identical to report-noisy-max with exponential noise.

    >>> PermuteAndFlip(epsilon=1, candidates=3).event
    Pure(epsilon=1)
    >>> PermuteAndFlip(epsilon=1, candidates=3).sample([900, 20, 10])
    0
    """

    answers_with: ClassVar[str] = "candidate"
    epsilon: Number
    candidates: int
    sensitivity: Number = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        checked_choice(self)

    @property
    def event(self) -> events.Pure:
        """What one choice owes."""
        return events.Pure(self.epsilon)

    @property
    def error(self) -> float:
        """The largest expected loss of utility over all utilities."""
        n = self.candidates
        if n == 1:
            return 0.0
        return -least(lambda g: -g * _loses(g, n), 0.0, 3 + 2 * math.log(n)) / float(rate(self))

    def interval(self, confidence: Number) -> float:
        r"""The loss of utility that is not exceeded with probability ``confidence``, whatever the utilities.

        A better coin of a candidate beyond t, or a worse coin of one within t, only helps those
        beyond it; so the chance of losing more than t is largest when all others sit just beyond t.
        """
        beyond, n = outside(confidence), self.candidates
        if n == 1 or _loses(0.0, n) <= beyond:
            return 0.0
        low, high = 0.0, 1.0
        while _loses(high, n) > beyond:
            low, high = high, 2 * high
        width = turning(lambda g: _loses(g, n) <= beyond, low, high, steps=60).yes
        return width * (1 + 1e-12) / float(rate(self))

    def check(self, utilities: object) -> None:
        """Refuse anything but one exact utility for each candidate."""
        rationals(utilities, length=self.candidates)

    def sample(self, utilities: Utilities, bits: Bits | None = None) -> int:
        """The position of the chosen candidate.

        All coins are flipped at once and one of the heads is taken uniformly: in a random order the
        first of the heads is a uniform one of them, and the number of coins says nothing about the data.
        """
        values = rationals(utilities, length=self.candidates)
        factor, best = rate(self), max(values)
        gaps: dict[Fraction, list[int]] = {}
        for i, u in enumerate(values):
            gaps.setdefault(factor * (best - u), []).append(i)
        heads: list[int] = []
        for gap, members in gaps.items():
            coins = bernoulli_exp(gap, len(members), bits)
            heads.extend(int(i) for i in np.asarray(members)[coins])
        heads.sort()
        return heads[uniform(len(heads), bits=bits)]


def _loses(gap: float, n: int) -> float:
    """The chance that the best of n candidates is not chosen when all others tie at ``gap`` / c below it."""
    p = math.exp(-gap)
    if n * p < 1e-5:  # the series, where the difference would cancel
        return (n - 1) * p / 2 * (1 - (n - 2) * p / 3)
    return 1 + math.expm1(n * math.log1p(-p)) / (n * p) if p < 1 else 1 - 1 / n
