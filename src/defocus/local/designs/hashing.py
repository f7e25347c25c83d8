"""Designs that hash: local hashing and count-mean sketches."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.categorical import SignFlipping
from defocus.local.designs.design import Favouring, Frequency, Overlap
from defocus.local.designs.geometry_response import LARGEST_SPACE, orders
from defocus.local.designs.unary import BitFlipping, UnaryLaw, symmetric_law
from defocus.local.domains import Categories
from defocus.local.hashes import field
from defocus.local.layouts import BitRows, Cells
from defocus.local.levels import Levels

__all__ = ["CountMeanSketch", "HadamardSketch", "LocalHashing"]


def _digits(g: int, size: int) -> int:
    t = 1
    while g**t < size:
        t += 1
    return t


@lru_cache(maxsize=256)
def _best_order(size: int, epsilon: Number) -> int:
    e = math.exp(float(epsilon))
    candidates = [
        ((e - 1 + g) ** 2 / (g - 1), g) for g in orders(float(epsilon)) if g ** (_digits(g, size) + 1) <= LARGEST_SPACE
    ]
    if not candidates:
        raise InvalidParameterError(
            f"No family of hash functions suits {size} categories at epsilon = {float(epsilon):g}.",
            fix="use k-rr for a large epsilon, and heavy hitters for a large domain.",
        )
    return min(candidates)[1]


@final
@dataclass(frozen=True, slots=True)
class LocalHashing(Favouring):
    r"""Draw a hash function into g values; report it with the category's hash under g-ary randomised response.

    Hash functions are all linear maps: with a category written in t digits of a field of g elements, seed a hashes v
    to :math:`\sum_i a_i v_i`. Two categories collide under exactly one g-th of the seeds, so the family is perfectly
    universal, and nothing is approximated: every person draws from *all* :math:`g^t` seeds. (A fixed sample of K
    public seeds, as fast variants take, adds :math:`\sum_u n_u^2/(K(g-1))` to the squared error, since some pairs
    collide more often in it than others.) And because the maps are linear, a server does not evaluate n·k hashes: it
    counts reports by seed and value and reads all supports from one transform.

    Guarantee:
        :math:`\varepsilon`-LDP: the seed is independent of the category, and the value is randomised response.

    Error:
        A report agrees with another category with probability exactly 1/g. Variance
        :math:`4ne^\varepsilon/(e^\varepsilon-1)^2` per category at
        :math:`g = e^\varepsilon+1`; the nearest power of a prime is taken.
    Reference:
        Wang, Blocki, Li, Jha (2017), Locally differentially private protocols for frequency estimation, for the
        protocol; Carter, Wegman (1979), Universal classes of hash functions.

    >>> made = LocalHashing(Categories.of(1000), 1)
    >>> made.order, made.digits, round(made.variance(1), 2)
    (4, 5, 3.69)
    """

    chosen: ClassVar = ("order",)
    domain: Categories
    epsilon: Number
    order: int = 0
    name: ClassVar[str] = "olh"
    overlap: ClassVar[Overlap] = "alike"  # the functions that hash the category to one value

    def _complete(self) -> None:
        chosen = whole("order", self.order) or _best_order(self.domain.size, self.epsilon)
        object.__setattr__(self, "order", field(chosen).q)
        if self.order ** (self.digits + 1) > LARGEST_SPACE:
            raise InvalidParameterError(
                f"{self.order}**{self.digits + 1} pairs of a seed and a value are too many to count.",
                fix="leave order out.",
            )

    @property
    def digits(self) -> int:
        """How many digits a category has."""
        return _digits(self.order, self.domain.size)

    @property
    def levels(self) -> Levels:
        """Seeds with the right value, and seeds with a wrong one."""
        seeds = self.order**self.digits
        return Levels.of(favoured=seeds, others=seeds * (self.order - 1), epsilon=self.epsilon)

    @property
    def layout(self) -> Cells:
        """Seed and value in one number: g times the seed, plus the value."""
        return Cells(self.order ** (self.digits + 1))

    @property
    def law(self) -> dict[str, int]:
        """The two weights, and the number of digits."""
        return {"high": self.levels.high, "low": self.levels.low, "digits": self.digits}

    @property
    def q(self) -> Fraction:
        """The probability that it is another category's."""
        return Fraction(1, self.order)


_LARGEST = 1 << 26
"""Half a gibibyte of counts on the server."""


@dataclass(frozen=True, slots=True)
class _Sketch(Frequency):
    """Counts in ``rows`` rows of ``width`` columns, one public hash function for each row."""

    chosen: ClassVar = ("rows", "width", "seed")
    domain: Categories
    epsilon: Number
    rows: int = 1024
    width: int = 1024
    seed: int = 0
    overlap: ClassVar[Overlap] = "varied"  # hash functions are public

    def _complete(self) -> None:
        r, w = whole("rows", self.rows, at_least=1), whole("width", self.width, at_least=2)
        if r * w > _LARGEST:
            raise InvalidParameterError(
                f"A sketch of {r} rows and {w} columns is too large.", fix="use fewer of either."
            )
        for name, value in (("rows", r), ("width", w), ("seed", whole("seed", self.seed))):
            object.__setattr__(self, name, value)

    def _support(self, q: Fraction) -> Fraction:
        """Another category lies in the same column with probability 1/width; then its support is that of one's own."""
        return q + (self.p - q) / self.width

    @property
    def collisions(self) -> Fraction:
        """One over the number of rows times the number of other columns."""
        return Fraction(1, self.rows * (self.width - 1))


@final
@dataclass(frozen=True, slots=True)
class CountMeanSketch(_Sketch, BitFlipping):
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

    name: ClassVar[str] = "cms"

    @property
    def bits(self) -> UnaryLaw:
        """The law of the bits."""
        return symmetric_law(self.epsilon)

    @property
    def layout(self) -> BitRows:
        """The number of a row, and one bit for each column."""
        return BitRows(self.width, self.rows)

    @property
    def q(self) -> Fraction:
        """The probability of a one in another category's column, over the choice of hash functions."""
        return self._support(self.bits.q)


@final
@dataclass(frozen=True, slots=True)
class HadamardSketch(_Sketch, SignFlipping):
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

    name: ClassVar[str] = "hcms"

    def _complete(self) -> None:
        super(HadamardSketch, self)._complete()
        rows, width = self.rows, self.width
        if rows & (rows - 1) or width & (width - 1):
            raise InvalidParameterError(
                f"A Hadamard sketch has powers of two, not {rows} rows and {width} columns.",
                fix="choose rows and width among 2, 4, 8, …; 1024 each is usual.",
            )

    @property
    def order(self) -> int:
        """There are 2**order pairs of a row and an entry."""
        return (self.rows * self.width).bit_length() - 1

    @property
    def q(self) -> Fraction:
        """The probability that it agrees with another category's, over the choice of hash functions."""
        return self._support(Fraction(1, 2))
