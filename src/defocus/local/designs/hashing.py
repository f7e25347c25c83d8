"""Local hashing: randomised response on a hash of the category."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.design import Frequency, Overlap
from defocus.local.designs.geometry_response import LARGEST_SPACE, orders
from defocus.local.domains import Categories
from defocus.local.fields import field
from defocus.local.layouts import Cells
from defocus.local.levels import Levels

__all__ = ["LocalHashing"]


def _digits(g: int, size: int) -> int:
    t = 1
    while g**t < size:
        t += 1
    return t


@lru_cache(maxsize=256)
def _best_order(size: int, epsilon: Number) -> int:
    e = math.exp(float(epsilon))
    found = [
        ((e - 1 + g) ** 2 / (g - 1), g) for g in orders(float(epsilon)) if g ** (_digits(g, size) + 1) <= LARGEST_SPACE
    ]
    if not found:
        raise InvalidParameterError(
            f"No family of hash functions suits {size} categories at epsilon = {float(epsilon):g}.",
            fix="use k-rr for a large epsilon, and heavy hitters for a large domain.",
        )
    return min(found)[1]


@final
@dataclass(frozen=True, slots=True)
class LocalHashing(Frequency):
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

    domain: Categories
    epsilon: Number
    order: int = 0

    def _complete(self) -> None:
        chosen = whole("order", self.order) or _best_order(self.domain.size, self.epsilon)
        object.__setattr__(self, "order", field(chosen).q)
        if self.order ** (self.digits + 1) > LARGEST_SPACE:
            raise InvalidParameterError(
                f"{self.order}**{self.digits + 1} pairs of a seed and a value are too many to count.",
                fix="leave order out.",
            )
        _ = self.levels  # refused here rather than at the first report

    @property
    def overlap(self) -> Overlap:
        """The functions that hash the category to one value."""
        return "alike"

    @property
    def name(self) -> str:
        """What it is called."""
        return "olh"

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
    def options(self) -> dict[str, Any]:
        """Into how many values categories are hashed."""
        return {"order": self.order}

    @property
    def ratio(self) -> Fraction:
        """One weight over the other."""
        return Fraction(self.levels.high, self.levels.low)

    @property
    def p(self) -> Fraction:
        """The probability that the value is the category's own hash."""
        return self.levels.chance

    @property
    def q(self) -> Fraction:
        """The probability that it is another category's."""
        return Fraction(1, self.order)
