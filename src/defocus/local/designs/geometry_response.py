"""Projective geometry response: report a point of a hyperplane that belongs to the category."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.design import Favouring, Overlap
from defocus.local.domains import Categories
from defocus.local.hashes import field, points, prime_power
from defocus.local.layouts import Cells
from defocus.local.levels import Levels

__all__ = ["LARGEST_SPACE", "GeometryResponse", "orders"]

LARGEST_SPACE = 1 << 25
"""A server transforms one array of this many numbers at most."""

_LARGEST_ORDER = 1024
"""Above, at an epsilon of 7 and more, k-ary randomised response serves all but huge domains as well."""


def orders(epsilon: float) -> list[int]:
    """Orders of fields around e**epsilon + 1, where the noise is least, as far as a server can still sum over them."""
    centre = min(math.exp(epsilon) + 1, _LARGEST_ORDER)
    powers = [(q, prime_power(q)) for q in range(max(2, int(centre / 8)), min(int(4 * centre) + 8, _LARGEST_ORDER))]
    return [q for q, parts in powers if parts is not None and (parts[1] == 1 or q <= 512)]


def _dimension(q: int, size: int) -> int:
    t = 2
    while points(q, t) < size:
        t += 1
    return t


def _other_share(levels: Levels, q: int, t: int) -> Fraction:
    """P(another's hyperplane): two hyperplanes meet in the points of a space of t - 2 dimensions."""
    plane, meet = points(q, t - 1), points(q, t - 2)
    return Fraction(levels.high * meet + levels.low * (plane - meet), levels.total)


@lru_cache(maxsize=256)
def _best_order(size: int, epsilon: Number) -> int:
    candidates: list[tuple[float, int]] = []
    for q in orders(float(epsilon)):
        t = _dimension(q, size)
        if q**t > LARGEST_SPACE:
            continue
        plane = points(q, t - 1)
        levels = Levels.of(favoured=plane, others=q ** (t - 1), epsilon=epsilon)
        other = _other_share(levels, q, t)
        candidates.append((float(other * (1 - other) / (levels.chance - other) ** 2), q))
    if not candidates:
        raise InvalidParameterError(
            f"No projective space suits {size} categories at epsilon = {float(epsilon):g}.",
            fix="use k-rr or olh for a large epsilon, and heavy hitters for a large domain.",
        )
    return min(candidates)[1]


@final
@dataclass(frozen=True, slots=True)
class GeometryResponse(Favouring):
    r"""Report a point of projective space at random, preferring those that are orthogonal to the category's point.

    Every category has a point x of the space over a field of q elements. Each point y that is orthogonal to x has
    :math:`e^\varepsilon` times the probability of each point that is not.

    Guarantee:
        :math:`\varepsilon`-LDP: every category has as many orthogonal points as any other, so the two weights of
        :class:`~defocus.local.levels.Levels` give all probabilities, and their ratio is at most :math:`e^\varepsilon`.

    Error:
        With q near :math:`e^\varepsilon + 1`, the variance is that of subset selection, the best there is, up to how
        near a power of a prime comes; a report has about :math:`\log_2 k + \varepsilon` bits, and a server needs
        one transform over the space.
    Reference:
        Feldman, Nelson, Nguyen, Talwar (2022), Private frequency estimation via projective geometry. We also
        use fields of prime power order (at epsilon = 1, that of 4 elements is better than any of prime order), and
        decode by characters instead of by dynamic programming.

    >>> made = GeometryResponse(Categories.of(1000), 1)
    >>> made.order, made.dimension, round(made.variance(1), 2)
    (4, 6, 3.68)
    """

    chosen: ClassVar = ("order",)
    domain: Categories
    epsilon: Number
    order: int = 0
    name: ClassVar[str] = "pgr"
    overlap: ClassVar[Overlap] = "alike"  # the points of the category's hyperplane

    def _complete(self) -> None:
        chosen = whole("order", self.order) or _best_order(self.domain.size, self.epsilon)
        object.__setattr__(self, "order", field(chosen).q)
        if self.order**self.dimension > LARGEST_SPACE:
            raise InvalidParameterError(
                f"A space of {self.order}**{self.dimension} vectors is too large to transform.", fix="leave order out."
            )

    @property
    def dimension(self) -> int:
        """How many coordinates a point has."""
        return _dimension(self.order, self.domain.size)

    @property
    def levels(self) -> Levels:
        """Points that are orthogonal to the category's point, and points that are not."""
        plane = points(self.order, self.dimension - 1)
        return Levels.of(favoured=plane, others=self.order ** (self.dimension - 1), epsilon=self.epsilon)

    @property
    def layout(self) -> Cells:
        """The number of a point."""
        return Cells(points(self.order, self.dimension))

    @property
    def law(self) -> dict[str, int]:
        """The two weights, and the dimension."""
        return {"high": self.levels.high, "low": self.levels.low, "dimension": self.dimension}

    @property
    def q(self) -> Fraction:
        """The probability of a point that is orthogonal to another category's."""
        return _other_share(self.levels, self.order, self.dimension)
