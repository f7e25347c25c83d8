"""Count-mean sketches: hash the category into a row of few columns, and report that row with noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.design import Frequency, Overlap
from defocus.local.designs.unary import UnaryLaw, unary_law
from defocus.local.domains import Categories
from defocus.local.layouts import BitRows, Cells
from defocus.local.levels import flipping_words
from defocus.privacy import events

__all__ = ["CountMeanSketch", "HadamardSketch"]

_LARGEST = 1 << 26
"""Half a gibibyte of counts on the server."""


def _size(rows: object, width: object) -> tuple[int, int]:
    r, w = whole("rows", rows, at_least=1), whole("width", width, at_least=2)
    if r * w > _LARGEST:
        raise InvalidParameterError(f"A sketch of {r} rows and {w} columns is too large.", fix="use fewer of either.")
    return r, w


def _chance_support(p: Fraction, q: Fraction, width: int) -> Fraction:
    """Another category lies in the same column with probability 1/width, and then its support is that of one's own."""
    return q + (p - q) / width


@final
@dataclass(frozen=True, slots=True)
class CountMeanSketch(Frequency):
    r"""Draw one of ``rows`` public hash functions, and report the category's hash in symmetric unary encoding.

    Guarantee:
        :math:`\varepsilon`-LDP: the row is independent of the category, and the bits are a unary encoding.

    Error:
        With p and q those of the encoding, w columns and r rows, the count of category v is estimated by :math:`(S_v -
        n\mu)/(p-\mu)`, :math:`\mu = q + (p-q)/w`. Over bits, rows and the choice of hash functions it is unbiased and
        has variance

        .. math:: \frac{n_v\,p(1-p) + (n-n_v)\,\mu(1-\mu)}{(p-\mu)^2} + \frac{\sum_{u\ne v} n_u(n_u-1)}{r\,(w-1)}.

        The last term is there because the hash functions are the same for everybody: whoever collides does so with all
        of their category. The original paper leaves it out and has a different first one.
    Reference:
        Apple Differential Privacy Team (2017), Learning with privacy at scale, for the protocol; arXiv 2406.03785
        for the faults in its expectation and variance.

    >>> made = CountMeanSketch(Categories.of(3000), 4)
    >>> made.layout.length
    130
    """

    domain: Categories
    epsilon: Number
    rows: int = 1024
    width: int = 1024
    seed: int = 0

    def _complete(self) -> None:
        rows, width = _size(self.rows, self.width)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "seed", whole("seed", self.seed))
        _ = self.bits  # refused here rather than at the first report

    @property
    def overlap(self) -> Overlap:
        """Hash functions are public."""
        return "varied"

    @property
    def name(self) -> str:
        """What it is called."""
        return "cms"

    @property
    def bits(self) -> UnaryLaw:
        """The law of the bits."""
        root = math.exp(float(self.epsilon) / 2)
        return unary_law(self.epsilon, 1 / (root + 1), root / (root - 1) ** 2)

    @property
    def layout(self) -> BitRows:
        """The number of a row, and one bit for each column."""
        return BitRows(self.width, self.rows)

    @property
    def law(self) -> dict[str, int]:
        """The integers behind p and q."""
        return {"noise": self.bits.noise, "depth": self.bits.depth, "truth": self.bits.truth}

    @property
    def options(self) -> dict[str, Any]:
        """The size of the sketch, and the seed of its hash functions."""
        return {"rows": self.rows, "width": self.width, "seed": self.seed}

    @property
    def ratio(self) -> Fraction:
        """p(1 − q) over (1 − p)q."""
        return self.bits.ratio

    @property
    def p(self) -> Fraction:
        """The probability of a one in the category's own column."""
        return self.bits.p

    @property
    def q(self) -> Fraction:
        """The probability of a one in another category's column, over the choice of hash functions."""
        return _chance_support(self.bits.p, self.bits.q, self.width)

    @property
    def collisions(self) -> Fraction:
        """One over the number of rows times the number of other columns."""
        return Fraction(1, self.rows * (self.width - 1))


@final
@dataclass(frozen=True, slots=True)
class HadamardSketch(Frequency):
    r"""The same sketch with one bit for each report: the sign of one random entry of the Hadamard transform of its row.

    Guarantee:
        :math:`\varepsilon`-LDP: row and entry are independent of the category, and the sign is randomised response.

    Error:
        As for :class:`CountMeanSketch` with q = ½.
    Reference:
        Apple Differential Privacy Team (2017), Learning with privacy at scale.

    >>> HadamardSketch(Categories.of(3000), 4).layout.length
    4
    """

    domain: Categories
    epsilon: Number
    rows: int = 1024
    width: int = 1024
    seed: int = 0

    def _complete(self) -> None:
        rows, width = _size(self.rows, self.width)
        if rows & (rows - 1) or width & (width - 1):
            raise InvalidParameterError(
                f"A Hadamard sketch has powers of two, not {rows} rows and {width} columns.",
                fix="choose rows and width among 2, 4, 8, …; 1024 each is usual.",
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "seed", whole("seed", self.seed))

    @property
    def overlap(self) -> Overlap:
        """Hash functions are public."""
        return "varied"

    @property
    def name(self) -> str:
        """What it is called."""
        return "hcms"

    @property
    def order(self) -> int:
        """There are 2**order pairs of a row and an entry."""
        return (self.rows * self.width).bit_length() - 1

    @property
    def flips(self) -> int:
        """The sign is flipped by so many of the 2**(64 - order) words that name a pair."""
        return flipping_words(self.epsilon, 64 - self.order)

    @property
    def layout(self) -> Cells:
        """Row, entry and sign in one number."""
        return Cells(2 << self.order)

    @property
    def law(self) -> dict[str, int]:
        """How many words name a pair, and how many of them flip its sign."""
        return {"order": self.order, "flips": self.flips}

    @property
    def options(self) -> dict[str, Any]:
        """The size of the sketch, and the seed of its hash functions."""
        return {"rows": self.rows, "width": self.width, "seed": self.seed}

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
        """The probability that it agrees with another category's, over the choice of hash functions."""
        return _chance_support(self.p, Fraction(1, 2), self.width)

    @property
    def collisions(self) -> Fraction:
        """One over the number of rows times the number of other columns."""
        return Fraction(1, self.rows * (self.width - 1))

    @property
    def event(self) -> events.Event:
        """Randomised response of one bit."""
        return events.RandomizedResponse(self.epsilon)
