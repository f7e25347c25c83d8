"""Hadamard response: one random question about the category, answered by one noisy bit."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import Number
from defocus.local.designs.design import Frequency, Overlap
from defocus.local.domains import Categories
from defocus.local.layouts import Cells
from defocus.local.levels import flipping_words
from defocus.privacy import events

__all__ = ["Hadamard"]


@final
@dataclass(frozen=True, slots=True)
class Hadamard(Frequency):
    r"""Draw a row j of the Hadamard matrix and report j with the sign of entry (j, v + 1), flipped at random.

    Guarantee:
        :math:`\varepsilon`-LDP: j is independent of the value, and the sign is binary randomised response whose flip
        has a dyadic probability f with :math:`(1-f)/f \le e^\varepsilon`.

    Error:
        Columns are orthogonal, so a report agrees with another category's sign with probability exactly ½. Variance
        per category :math:`n((e^\varepsilon+1)/(e^\varepsilon-1))^2`: close to the best for :math:`\varepsilon \le 1`,
        poor above 2, since one bit cannot say more.
    Reference:
        Acharya, Sun, Zhang (2019), Hadamard response; Bassily, Smith (2015), Local, private, efficient protocols for
        succinct histograms.

    >>> round(Hadamard(Categories.of(1000), 1).variance(1), 2)
    4.68
    """

    domain: Categories
    epsilon: Number

    def _complete(self) -> None:
        _ = self.flips  # refused here rather than at the first report

    @property
    def order(self) -> int:
        """The matrix has 2**order rows: more than categories, since column 0 is constant and tells nothing."""
        return self.domain.size.bit_length()

    @property
    def flips(self) -> int:
        """The sign is flipped by so many of the 2**(64 - order) words that name a row."""
        return flipping_words(self.epsilon, 64 - self.order)

    @property
    def overlap(self) -> Overlap:
        """Half of all cells; two categories share half of them."""
        return "alike"

    @property
    def name(self) -> str:
        """What it is called."""
        return "hadamard"

    @property
    def layout(self) -> Cells:
        """The row's number and, as the lowest bit, the sign: 1 is minus."""
        return Cells(2 << self.order)

    @property
    def law(self) -> dict[str, int]:
        """How many words name a row, and how many of them flip its sign."""
        return {"order": self.order, "flips": self.flips}

    @property
    def ratio(self) -> Fraction:
        """Words that keep the sign, over words that flip it."""
        return Fraction((1 << (64 - self.order)) - self.flips, self.flips)

    @property
    def p(self) -> Fraction:
        """The probability that the sign is kept."""
        return 1 - Fraction(self.flips, 1 << (64 - self.order))

    @property
    def q(self) -> Fraction:
        """The probability that it agrees with another category's sign."""
        return Fraction(1, 2)

    @property
    def event(self) -> events.Event:
        """Randomised response of one bit."""
        return events.RandomizedResponse(self.epsilon)
