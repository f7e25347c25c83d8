"""The exponential mechanism: a candidate with nearly the highest utility."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from scipy.special import lambertw

from defocus.errors import Number
from defocus.mechanisms.parameters import outside
from defocus.mechanisms.selection import Utilities, checked_choice, rate
from defocus.mechanisms.values import rationals
from defocus.noise import Bits, exponential_choice
from defocus.privacy import events

__all__ = ["Exponential"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
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

    answers_with: ClassVar[str] = "candidate"
    epsilon: Number
    candidates: int
    sensitivity: Number = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        checked_choice(self)

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

    def check(self, utilities: object) -> None:
        """Refuse anything but one exact utility for each candidate."""
        self._exact(utilities)

    def sample(self, utilities: Utilities, bits: Bits | None = None) -> int:
        """The position of the chosen candidate."""
        factor = rate(self)
        return int(exponential_choice([factor * u for u in self._exact(utilities)], bits))

    def _exact(self, utilities: object) -> list[Fraction]:
        return rationals(utilities, length=self.candidates)
