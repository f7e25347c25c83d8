"""d-bit flip: each person answers about a few categories of their own, always the same."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.design import Frequency, Overlap
from defocus.local.designs.unary import UnaryLaw, unary_law
from defocus.local.domains import Categories
from defocus.local.layouts import BitRows

__all__ = ["DBitFlip"]


@final
@dataclass(frozen=True, slots=True)
class DBitFlip(Frequency):
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

    domain: Categories
    epsilon: Number
    asked: int = 1

    def _complete(self) -> None:
        object.__setattr__(self, "asked", whole("asked", self.asked, at_least=1))
        if self.asked > self.domain.size:
            raise InvalidParameterError(
                f"Nobody can be asked about {self.asked} of {self.domain.size} categories.", fix="ask about fewer."
            )
        _ = self.bits  # refused here rather than at the first report

    @property
    def overlap(self) -> Overlap:
        """A report tells about several categories at once."""
        return "none"

    @property
    def name(self) -> str:
        """What it is called."""
        return "d-bit"

    @property
    def bits(self) -> UnaryLaw:
        """The law of the answers."""
        root = math.exp(float(self.epsilon) / 2)
        return unary_law(self.epsilon, 1 / (root + 1), root / (root - 1) ** 2)

    @property
    def layout(self) -> BitRows:
        """For each category, whether the answer was yes; then, for each, whether it was no."""
        return BitRows(2 * self.domain.size, ones=self.asked)

    @property
    def law(self) -> dict[str, int]:
        """The integers behind the answers."""
        return {"noise": self.bits.noise, "depth": self.bits.depth, "truth": self.bits.truth}

    @property
    def options(self) -> dict[str, Any]:
        """About how many categories each person is asked."""
        return {"asked": self.asked}

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
