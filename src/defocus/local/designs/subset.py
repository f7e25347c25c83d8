"""Subset selection: a set of categories that holds one's own more often than others."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.design import Frequency, Overlap
from defocus.local.domains import Categories
from defocus.local.layouts import BitRows
from defocus.local.levels import growth

__all__ = ["SubsetSelection"]

_GRAIN = 1 << 63
"""One chance is drawn for each report, so it can be as fine as a word."""


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

    domain: Categories
    epsilon: Number
    members: int = 0

    def _complete(self) -> None:
        k = self.domain.size
        best = max(1, min(k - 1, round(k / (math.exp(float(self.epsilon)) + 1))))
        object.__setattr__(self, "members", whole("members", self.members) or best)
        if self.members >= k:
            raise InvalidParameterError(
                f"A set of {self.members} of {k} categories tells nothing.", fix="leave members out."
            )

    @property
    def overlap(self) -> Overlap:
        """The sets that hold the category."""
        return "alike"

    @property
    def name(self) -> str:
        """What it is called."""
        return "subset"

    @property
    def holds(self) -> int:
        """The set holds one's own category with this many of 2**63 chances."""
        below, _ = growth(self.epsilon)
        odds = below * self.members / (self.domain.size - self.members)
        return int(_GRAIN * (odds / (1 + odds)))

    @property
    def layout(self) -> BitRows:
        """One bit for each category, as many ones as the set has members."""
        return BitRows(self.domain.size, ones=self.members)

    @property
    def law(self) -> dict[str, int]:
        """The integer behind P."""
        return {"holds": self.holds}

    @property
    def options(self) -> dict[str, Any]:
        """How many categories a set has."""
        return {"members": self.members}

    @property
    def ratio(self) -> Fraction:
        """Of a set that holds the category to one that does not."""
        return self.p / (1 - self.p) * Fraction(self.domain.size - self.members, self.members)

    @property
    def p(self) -> Fraction:
        """The probability that the set holds one's own category."""
        return Fraction(self.holds, _GRAIN)

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
