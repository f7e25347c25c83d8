"""Mechanisms that choose one of several candidates: exponential, permute-and-flip and report noisy max."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

from defocus.errors import InvalidParameterError, Number, count, positive
from defocus.mechanisms import error_laws
from defocus.mechanisms.mechanism import Integers, integers, outside, rationals, scale_for
from defocus.noise import Bits, bernoulli_exp, discrete_laplace, exponential_choice, permutation, uniform
from defocus.privacy import events
from defocus.privacy.numbers import bisect, least

__all__ = [
    "Choice",
    "Exponential",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "Utilities",
    "checked_flag",
    "rate",
]


Utilities: TypeAlias = Sequence[int | Fraction] | NDArray[np.integer[Any]]

_EXTREME = 2**500


def checked_flag(name: str, value: object) -> None:
    """Refuse anything but True and False: a truthy string must not halve the noise."""
    if not isinstance(value, bool):
        raise InvalidParameterError(
            f"{name} must be True or False, but it has type {type(value).__name__}.", fix=f"pass {name}=True or False."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of several public candidates, chosen by a utility that moves by at most ``sensitivity``."""

    answers_with: ClassVar[str] = "candidate"
    epsilon: Number
    candidates: int
    sensitivity: Number = 1
    monotone: bool = False
    """Whether all utilities move in one direction between neighbours."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "candidates", count("candidates", self.candidates))
        object.__setattr__(self, "sensitivity", positive("sensitivity", self.sensitivity))
        checked_flag("monotone", self.monotone)
        if not Fraction(1, _EXTREME) <= rate(self) <= _EXTREME:
            raise InvalidParameterError(
                "epsilon and sensitivity are more than 2**500 apart.", fix="pass parameters of ordinary size."
            )

    def check(self, utilities: object) -> None:
        """Refuse anything but one exact utility for each candidate."""
        rationals(utilities, length=self.candidates)


def rate(choice: Choice) -> Fraction:
    r"""The factor c of the utilities: :math:`\varepsilon/2\Delta`, or :math:`\varepsilon/\Delta` if monotone."""
    return Fraction(choice.epsilon) / (Fraction(choice.sensitivity) * (1 if choice.monotone else 2))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Choice):
    r"""Choose candidate i with probability proportional to :math:`e^{c u_i}`, exactly.

    Guarantee:
        :math:`c = \varepsilon/2\Delta`, or :math:`\varepsilon/\Delta` for monotone utilities.
        When every utility moves by :math:`d_i` between neighbours, the log-likelihood ratio of
        candidate i is :math:`c\,d_i` minus a constant. Its range over the candidates is
        :math:`c(\max d - \min d)`, at most :math:`2c\Delta`, and at most :math:`c\Delta` if all
        :math:`d_i` have one sign: in both cases :math:`\varepsilon`, so the release has
        bounded range :math:`\varepsilon`, which is stronger than :math:`\varepsilon`-DP.
    Assumes:
        No utility moves by more than ``sensitivity`` between neighbours of the ledger's unit. With
        ``monotone`` they all move in one direction: true of counts when a unit is added or
        removed, not true when one is replaced. The candidates are public.

    Error:
        The expected loss of utility is at most :math:`W((n-1)/e)/c` with Lambert's W, reached
        when all other candidates tie at :math:`(1 + W)/c` below the best.
    Reference:
        McSherry, Talwar (2007), Mechanism design via differential privacy; Dong, Durfee, Rogers
        (2020), Optimal differential privacy composition for exponential mechanisms. Choosing the
        largest utility after adding Gumbel noise is the same mechanism.

    >>> best_code = Exponential(epsilon=1, candidates=3, monotone=True)
    >>> best_code.event
    Exponential(epsilon=1)
    >>> best_code.sample([900, 20, 10])
    0
    """

    @property
    def event(self) -> events.Exponential:
        """What one choice owes."""
        return events.Exponential(self.epsilon)

    @property
    def error(self) -> float:
        r"""The largest expected loss of utility over all utilities.

        Stationarity in each gap gives :math:`g_i = E + 1/c` for all i, so all gaps are equal and
        :math:`cE\,e^{cE} = (n-1)/e`.
        """
        return float(lambertw((self.candidates - 1) / math.e).real) / float(rate(self))

    def interval(self, confidence: Number) -> float:
        r"""The loss of utility that is not exceeded with probability ``confidence``, whatever the utilities.

        The chance of losing more than t is largest when all others sit just beyond t, where it is
        :math:`m e^{-ct}/(1 + m e^{-ct})` with :math:`m = n - 1`.
        """
        beyond = outside(confidence)
        if self.candidates == 1:
            return 0.0
        odds = math.log(self.candidates - 1) + math.log1p(-beyond) - math.log(beyond)
        return max(0.0, odds) / float(rate(self))

    def sample(self, utilities: Utilities, bits: Bits | None = None) -> int:
        """The position of the chosen candidate."""
        factor = rate(self)
        return int(exponential_choice([factor * u for u in rationals(utilities, length=self.candidates)], bits))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(Choice):
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
        width = bisect(lambda g: _loses(g, n) <= beyond, low, high, steps=60).yes
        return width * (1 + 1e-12) / float(rate(self))

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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoisyMax(Choice):
    r"""Add discrete Laplace noise to every integer utility and report which is largest, ties broken at random.

    Guarantee:
        :math:`\varepsilon`-DP with noise of scale :math:`b = 2\Delta/\varepsilon`, or
        :math:`\Delta/\varepsilon` for monotone utilities, ties included. Ties are broken by a random
        order of the candidates that does not depend on the data, so it is enough to prove the
        claim for each order. Fix the noise of all candidates but i. Then i wins exactly when
        :math:`X_i \ge m_i`, where :math:`m_i = \max_{j \ne i}(u_j + X_j + [j \text{ before } i]) - u_i`
        is an integer. Between neighbours :math:`m_i` moves by at most :math:`2\Delta`, and by at
        most :math:`\Delta` if all utilities move in one direction. Since
        :math:`P(X = k+1) \ge e^{-1/b} P(X = k)` for every k, also
        :math:`P(X \ge m + s) \ge e^{-s/b} P(X \ge m)` for every integer m and :math:`s \ge 0`.
    Assumes:
        Utilities are integers, each moves by at most ``sensitivity`` between neighbours, monotone
        ones all in one direction; the candidates are public.

    Error:
        The loss of utility is at most the difference of two of the noises; its expectation is at most
        that of the largest of n of them, which is the number reported.
    Reference:
        Dwork, Roth (2014), The algorithmic foundations of differential privacy, Claim 3.9 (for continuous
        noise without ties). With exponential noise it is :class:`PermuteAndFlip`, with Gumbel noise
        :class:`Exponential`; :func:`advise_choice` compares the three.

    >>> ReportNoisyMax(epsilon=1, candidates=3).event
    Pure(epsilon=1)
    >>> ReportNoisyMax(epsilon=1, candidates=3).sample([900, 20, 10])
    0
    """

    sensitivity: int = 1

    def __post_init__(self) -> None:
        count("sensitivity", self.sensitivity)
        Choice.__post_init__(self)
        _ = self.scale

    @property
    def scale(self) -> Number:
        """The scale of the noise on each utility."""
        return scale_for(self.sensitivity * (1 if self.monotone else 2), self.epsilon)

    @property
    def event(self) -> events.Pure:
        """What one choice owes."""
        return events.Pure(self.epsilon)

    @property
    def error(self) -> float:
        """A bound on the expected loss of utility, whatever the utilities."""
        return error_laws.laplace_largest(self.scale, self.candidates)

    def interval(self, confidence: Number) -> int:
        """A loss of utility that is not exceeded with probability of at least ``confidence``, whatever the utilities.

        Losing more than t needs one of the n − 1 others to have more than t noise above that of the
        best candidate; these chances are added up.
        """
        others = self.candidates - 1
        return error_laws.half_width(lambda t: others / 2 * error_laws.sum_tail(self.scale, self.scale, t), confidence)

    def check(self, utilities: object) -> None:
        """Refuse anything but one 64-bit integer for each candidate."""
        integers(utilities, length=self.candidates)

    def sample(self, utilities: Integers, bits: Bits | None = None) -> int:
        """The position of the chosen candidate."""
        values, _ = integers(utilities, length=self.candidates)
        noise = discrete_laplace(self.scale, len(values), bits)
        order = permutation(len(values), bits)
        # The sum of two 64-bit integers may need 65 bits; it is compared by its upper 64 and its last one.
        last = (values & 1) + (noise & 1)
        upper = (values >> 1) + (noise >> 1) + (last >> 1)
        winner = np.lexsort((order, last & 1, upper))[-1]
        return int(winner)
