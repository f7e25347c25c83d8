"""Report noisy max: the candidate whose utility plus discrete Laplace noise is largest."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from defocus.errors import Number, count
from defocus.mechanisms import previews
from defocus.mechanisms.parameters import scale_for
from defocus.mechanisms.selection import checked_choice
from defocus.mechanisms.values import Integers, integers
from defocus.noise import Bits, discrete_laplace, permutation
from defocus.privacy import events

__all__ = ["ReportNoisyMax"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoisyMax:
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

    answers_with: ClassVar[str] = "candidate"
    epsilon: Number
    candidates: int
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        count("sensitivity", self.sensitivity)
        checked_choice(self)
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
        return previews.laplace_largest(self.scale, self.candidates)

    def interval(self, confidence: Number) -> int:
        """A loss of utility that is not exceeded with probability of at least ``confidence``, whatever the utilities.

        Losing more than t needs one of the n − 1 others to have more than t noise above that of the
        best candidate; these chances are added up.
        """
        others = self.candidates - 1
        return previews.half_width(lambda t: others / 2 * previews.sum_tail(self.scale, self.scale, t), confidence)

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
