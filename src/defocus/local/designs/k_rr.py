"""k-ary randomised response: the truth, or any other category."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import Number
from defocus.local.designs.design import Frequency, Overlap
from defocus.local.domains import Categories
from defocus.local.layouts import Cells
from defocus.local.levels import Levels
from defocus.privacy import events

__all__ = ["KRR"]


@final
@dataclass(frozen=True, slots=True)
class KRR(Frequency):
    r"""Report the truth with probability :math:`p = e^\varepsilon/(e^\varepsilon+k-1)`, else any other category.

    Guarantee:
        :math:`\varepsilon`-LDP: p/q is a ratio of two integers, at most :math:`e^\varepsilon`. Being the k-ary
        randomised response of a smaller epsilon, it follows from that of ``epsilon`` by post-processing.

    Error:
        Variance per category :math:`n(k-2+e^\varepsilon)/(e^\varepsilon-1)^2`: the least of all oracles when
        :math:`k < 3e^\varepsilon + 2`.
    Reference:
        Warner (1965); Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy.

    >>> round(KRR(Categories.of(1000), 1).variance(1), 1)
    339.3
    """

    domain: Categories
    epsilon: Number

    def _complete(self) -> None:
        _ = self.levels  # refused here rather than at the first report

    @property
    def levels(self) -> Levels:
        """The weight of the truth, and that of every other category."""
        return Levels.of(favoured=1, others=self.domain.size - 1, epsilon=self.epsilon)

    @property
    def overlap(self) -> Overlap:
        """Randomised response is accounted for as such."""
        return "none"

    @property
    def name(self) -> str:
        """What it is called."""
        return "k-rr"

    @property
    def layout(self) -> Cells:
        """The number of the reported category."""
        return Cells(self.domain.size)

    @property
    def law(self) -> dict[str, int]:
        """The two weights."""
        return {"high": self.levels.high, "low": self.levels.low}

    @property
    def ratio(self) -> Fraction:
        """The weight of the truth over that of another category."""
        return Fraction(self.levels.high, self.levels.low)

    @property
    def p(self) -> Fraction:
        """The probability of the truth."""
        return self.levels.chance

    @property
    def q(self) -> Fraction:
        """The probability of any one other category."""
        return Fraction(self.levels.low, self.levels.total)

    @property
    def together(self) -> tuple[Fraction, Fraction]:
        """Never: a report supports one category."""
        return Fraction(0), Fraction(0)

    @property
    def event(self) -> events.Event:
        """Randomised response with this many categories."""
        return events.RandomizedResponse(self.epsilon, self.domain.size)
