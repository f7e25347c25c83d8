"""Designs for categories: k-RR, Hadamard response, subset selection, d-bit flip."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.design import Favouring, Frequency, Overlap
from defocus.local.designs.unary import GRAIN, BitFlipping, UnaryLaw, symmetric_law
from defocus.local.domains import Categories
from defocus.local.layouts import BitRows, Cells
from defocus.local.levels import Levels, flipping_words, growth
from defocus.privacy import events

__all__ = ["KRR", "DBitFlip", "Hadamard", "SignFlipping", "SubsetSelection"]


@final
@dataclass(frozen=True, slots=True)
class KRR(Favouring):
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
    name: ClassVar[str] = "k-rr"
    overlap: ClassVar[Overlap] = "none"  # randomised response is accounted for as such

    @property
    def levels(self) -> Levels:
        """The weight of the truth, and that of every other category."""
        return Levels.of(favoured=1, others=self.domain.size - 1, epsilon=self.epsilon)

    @property
    def layout(self) -> Cells:
        """The number of the reported category."""
        return Cells(self.domain.size)

    @property
    def law(self) -> dict[str, int]:
        """The two weights."""
        return {"high": self.levels.high, "low": self.levels.low}

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


class SignFlipping(Frequency):
    """A design that draws one of 2**order entries of a Hadamard transform, and reports it with a sign that may flip."""

    __slots__ = ()

    @property
    @abstractmethod
    def order(self) -> int:
        """The binary logarithm of the number of entries."""

    @property
    def flips(self) -> int:
        """The sign is flipped by so many of the 2**(64 - order) words that name an entry."""
        return flipping_words(self.epsilon, 64 - self.order)

    @property
    def layout(self) -> Cells:
        """The entry's number and, as the lowest bit, the sign: 1 is minus."""
        return Cells(2 << self.order)

    @property
    def law(self) -> dict[str, int]:
        """How many words name an entry, and how many of them flip its sign."""
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
    def event(self) -> events.Event:
        """Randomised response of one bit."""
        return events.RandomizedResponse(self.epsilon)


@final
@dataclass(frozen=True, slots=True)
class Hadamard(SignFlipping):
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
    name: ClassVar[str] = "hadamard"
    overlap: ClassVar[Overlap] = "alike"  # half of all cells; two categories share half of them

    @property
    def order(self) -> int:
        """The matrix has 2**order rows: more than categories, since column 0 is constant and tells nothing."""
        return self.domain.size.bit_length()

    @property
    def q(self) -> Fraction:
        """The probability that it agrees with another category's sign."""
        return Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True)
class SubsetSelection(Frequency):
    r"""Report a uniform set of m categories, which holds one's own with probability :math:`P`.

    Guarantee:
        :math:`\varepsilon`-LDP: a set has probability :math:`P/\binom{k-1}{m-1}` if it holds one's category and
        :math:`(1-P)/\binom{k-1}{m}` if not. The ratio, :math:`\frac{P}{1-P}\cdot\frac{k-m}{m}`, is at most
        :math:`e^\varepsilon` by the choice of P, a multiple of :math:`2^{-63}`.

    Error:
        The least variance of any oracle, with m near :math:`k/(e^\varepsilon+1)`; but a report has k bits.
    Reference:
        Ye, Barg (2018), Optimal schemes for discrete distribution estimation under locally differential privacy.

    >>> round(SubsetSelection(Categories.of(1000), 1).variance(1), 2)
    3.67
    """

    chosen: ClassVar = ("members",)
    domain: Categories
    epsilon: Number
    members: int = 0
    name: ClassVar[str] = "subset"
    overlap: ClassVar[Overlap] = "alike"  # the sets that hold the category

    def _complete(self) -> None:
        k = self.domain.size
        best = max(1, min(k - 1, round(k / (math.exp(float(self.epsilon)) + 1))))
        object.__setattr__(self, "members", whole("members", self.members) or best)
        if self.members >= k:
            raise InvalidParameterError(
                f"A set of {self.members} of {k} categories tells nothing.", fix="leave members out."
            )

    @property
    def holds(self) -> int:
        """The set holds one's own category with this many of 2**63 chances."""
        below, _ = growth(self.epsilon)
        odds = below * self.members / (self.domain.size - self.members)
        return int(GRAIN * (odds / (1 + odds)))

    @property
    def layout(self) -> BitRows:
        """One bit for each category, as many ones as the set has members."""
        return BitRows(self.domain.size, ones=self.members)

    @property
    def law(self) -> dict[str, int]:
        """The integer behind P."""
        return {"holds": self.holds}

    @property
    def ratio(self) -> Fraction:
        """Of a set that holds the category to one that does not."""
        return self.p / (1 - self.p) * Fraction(self.domain.size - self.members, self.members)

    @property
    def p(self) -> Fraction:
        """The probability that the set holds one's own category."""
        return Fraction(self.holds, GRAIN)

    @property
    def q(self) -> Fraction:
        """The probability that it holds any other."""
        return (self.members - self.p) / (self.domain.size - 1)

    @property
    def together(self) -> tuple[Fraction, Fraction]:
        """Of the others, the set holds a uniform one of m - 1 or of m, by whether it holds one's own category."""
        k, m, p = self.domain.size, self.members, self.p
        if k == 2:
            return p * self.q, self.q**2  # there are no two others
        inside, outside = Fraction((m - 1) * (m - 2), (k - 1) * (k - 2)), Fraction(m * (m - 1), (k - 1) * (k - 2))
        return p * Fraction(m - 1, k - 1), p * inside + (1 - p) * outside


@final
@dataclass(frozen=True, slots=True)
class DBitFlip(BitFlipping):
    r"""Draw ``asked`` categories at random; for each, report with noise whether it is one's own.

    Guarantee:
        :math:`\varepsilon`-LDP: the categories are drawn independently of the value, and of the answers at most two
        differ between two values, as in the symmetric unary encoding. With the memory of
        :class:`~defocus.local.clients.Memory`, all reports of a person whose value stays the same are one report.
        Of a value that changes, the bits that change tell what it was and what it became.

    Error:
        A category is asked about by d of k people; the variance is more than k/d times that of unary encoding.
    Reference:
        Ding, Kulkarni, Yekhanin (2017), Collecting telemetry data privately, Section 3.2.

    >>> round(DBitFlip(Categories.of(32), 1, asked=4).variance(1), 1)
    49.5
    """

    chosen: ClassVar = ("asked",)
    domain: Categories
    epsilon: Number
    asked: int = 1
    name: ClassVar[str] = "d-bit"
    overlap: ClassVar[Overlap] = "none"  # a report tells about several categories at once

    def _complete(self) -> None:
        object.__setattr__(self, "asked", whole("asked", self.asked, at_least=1))
        if self.asked > self.domain.size:
            raise InvalidParameterError(
                f"Nobody can be asked about {self.asked} of {self.domain.size} categories.", fix="ask about fewer."
            )

    @property
    def bits(self) -> UnaryLaw:
        """The law of the answers."""
        return symmetric_law(self.epsilon)

    @property
    def layout(self) -> BitRows:
        """For each category, whether the answer was yes; then, for each, whether it was no."""
        return BitRows(2 * self.domain.size, ones=self.asked)

    @property
    def ratio(self) -> Fraction:
        """p(1 − q) over (1 − p)q; asked about one category only, the larger of the two odds."""
        if self.asked == 1:
            return max(self.bits.p / self.bits.q, (1 - self.bits.q) / (1 - self.bits.p))
        return self.bits.ratio

    @property
    def p(self) -> Fraction:
        """The probability of being asked about one's own category, and answering yes."""
        return self.bits.p * self.asked / self.domain.size

    @property
    def q(self) -> Fraction:
        """The probability of being asked about another, and answering yes."""
        return self.bits.q * self.asked / self.domain.size
