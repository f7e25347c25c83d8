r"""How one row's weight is divided between cells, so that many statistics share one sensitivity.

A value clipped to [low, high] and scaled to x in [0, 1] divides a weight w by the Bernstein polynomials of a degree d:
cell j receives :math:`w\binom dj x^j(1-x)^{d-j}`. They are non-negative and add up to w, whatever x is. So the cells of
all groups together move by no more than the weight of one person, and yet they determine every moment up to d:

.. math:: x^p = \sum_j \binom jp \binom dp^{-1} \binom dj x^j (1-x)^{d-j}.

Degree 1 gives count, sum and mean: the two sums of (v - low) and (high - v) under one joint sensitivity. Degree 2 adds
the variance, and products of two such splits the covariance. A row whose value is missing gives its weight to a cell of
its own, so the number of rows stays determined too.

In the engine each cell is rounded down to an integer, and the first receives the rest. The engine multiplies in floats,
but no harm is done: a product rounds less than :data:`_ROUNDINGS` times, each time by at most one part in 2**53, so the
products of a row add up to less than w + 1 for every w below 2**49, and the integers below them, whose sum is an
integer, to at most w. The parts of a row are non-negative integers that add up to w exactly.

Reference: Kulesza, Suresh, Wang (2023), Mean estimation in the add-remove model of differential privacy, for degree 1.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from defocus.engines.syntax import BIGINT, DOUBLE, decimal, mild, typed
from defocus.errors import Number
from defocus.tables.expressions import Expression

__all__ = ["PRESENCE", "Scaled", "Split"]

_LEAST = 2.0**-100
_ROUNDINGS = 16
"""A product has at most four values and four complements to one in it, each of which is rounded once or twice."""


@final
@dataclass(frozen=True, slots=True)
class Scaled:
    """A value with its bounds. ``missing`` says what stands for a NULL; None leaves such rows out."""

    text: str
    low: Number | None = None
    high: Number | None = None
    missing: Number | None = None
    find: bool = False
    """Whether the bounds are still to be found."""

    def found(self, ranges: Mapping[str, tuple[float, float]]) -> "Scaled":
        """The value with the bounds that were found for it."""
        if not self.find:
            return self
        low, high = ranges[self.text]
        return Scaled(self.text, low, high, self.missing)

    @property
    def width(self) -> float:
        """How far apart the bounds are."""
        return 1.0 if self.low is None or self.high is None else float(self.high) - float(self.low)

    @property
    def bottom(self) -> float:
        """The lower bound."""
        return 0.0 if self.low is None else float(self.low)

    @property
    def _is_usual(self) -> bool:
        """Whether distances between the bounds are numbers that can be divided without a second thought."""
        return _LEAST <= self.width <= 1 / _LEAST and max(abs(self.bottom), abs(self.bottom + self.width)) <= 1 / _LEAST

    def number(self, value: Expression) -> exp.Expression:
        """The value as a float, or NULL; where only its presence matters, any float will do."""
        if self.low is None or self.high is None:
            return exp.case().when(value.sql.copy().is_(exp.null()), exp.null()).else_(decimal(0.0))
        number = typed(value.sql.copy(), DOUBLE)
        return number if self.missing is None else exp.Coalesce(this=number, expressions=[decimal(self.missing)])

    def scaled(self, number: exp.Expression) -> exp.Expression:
        """What :meth:`number` gave, in [0, 1], or NULL.

        (v - low) is at most (high - low) after rounding, since rounding keeps order, so the quotient is at most 1.
        """
        if self.low is None or self.high is None:
            return number.copy()
        above = exp.Greatest(this=number.copy(), expressions=[decimal(self.low)], ignore_nulls=True)
        clipped = exp.Least(this=above, expressions=[decimal(self.high)], ignore_nulls=True)
        usual = mild if self._is_usual else _as_it_is
        distance = exp.paren(usual(exp.Sub(this=clipped, expression=decimal(self.low))))
        share = usual(exp.Div(this=distance, expression=decimal(self.width)))
        if self.missing is not None:
            return share
        # Engines leave NULL out of LEAST and GREATEST, so it is said again.
        return exp.case().when(number.copy().is_(exp.null()), exp.null()).else_(share)


@final
@dataclass(frozen=True, slots=True)
class Split:
    """A weight divided by the values of a row: one degree for each value. Without values it is the weight itself.

    >>> stay = Split((Scaled("stay", 0, 30),), (1,))
    >>> stay.cells, stay.moment((1,)).tolist(), stay.moment((0,)).tolist(), stay.everyone.tolist()
    (3, [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0])
    """

    values: tuple[Scaled, ...] = ()
    degrees: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert 2 * sum(self.degrees) < _ROUNDINGS  # noqa: S101  # what the sums of the parts rely on
        # A value of degree 0 is in no share: of several, one that is missing would leave the shares of the others.
        assert len(self.degrees) < 2 or min(self.degrees) > 0  # noqa: S101  # what every question keeps to

    def found(self, ranges: Mapping[str, tuple[float, float]]) -> "Split":
        """The split with the bounds that were found for its values."""
        return Split(tuple(value.found(ranges) for value in self.values), self.degrees)

    @property
    def optional(self) -> bool:
        """Whether a row may be missing a value, which has a cell of its own: the last."""
        return any(value.missing is None for value in self.values)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(degree + 1 for degree in self.degrees) + self.optional

    @property
    def everyone(self) -> npt.NDArray[np.float64]:
        """What to multiply the cells with for the weight of all rows."""
        return np.ones(self.cells)

    def moment(self, powers: Sequence[int]) -> npt.NDArray[np.float64]:
        """What to multiply the cells with for the sum of x1**p1 * x2**p2 … over the rows that miss nothing."""
        factors = [
            np.array([math.comb(j, power) / math.comb(degree, power) for j in range(degree + 1)])
            for degree, power in zip(self.degrees, powers, strict=True)
        ]
        inner = reduce(np.multiply.outer, factors, np.array(1.0)).ravel()
        return np.append(inner, 0.0) if self.optional else inner

    def parts(self, weight: exp.Expression, scaled: Sequence[exp.Expression]) -> list[exp.Expression]:
        """The integer shares of all cells but the first of those that are not missing, which receives the rest.

        ``scaled`` are columns that hold the values in [0, 1], or NULL.
        """
        ways = itertools.product(*(range(degree + 1) for degree in self.degrees))
        shares: list[exp.Expression] = [
            typed(exp.Floor(this=_product(weight, scaled, self.degrees, way)), BIGINT)
            for way in itertools.islice(ways, 1, None)
        ]
        if self.optional:
            absent = exp.or_(*(x.copy().is_(exp.null()) for x in scaled))
            shares.append(exp.case().when(absent, weight.copy()).else_(exp.Literal.number(0)))
        return shares


PRESENCE = Split()
"""One cell: the weight of all rows."""


def _product(
    weight: exp.Expression, scaled: Sequence[exp.Expression], degrees: Sequence[int], way: Sequence[int]
) -> exp.Expression:
    """The weight times the Bernstein polynomials of one cell; the engine computes it in floats."""
    factors: list[exp.Expression] = [typed(weight.copy(), DOUBLE)]
    for x, degree, j in zip(scaled, degrees, way, strict=True):
        coefficient = math.comb(degree, j)
        factors += [decimal(float(coefficient))] if coefficient != 1 else []
        factors += [x.copy() for _ in range(j)]
        factors += [exp.paren(mild(exp.Sub(this=decimal(1.0), expression=x.copy()))) for _ in range(degree - j)]
    return reduce(lambda a, b: mild(exp.Mul(this=a, expression=b)), factors)


def _as_it_is(tree: exp.Expression) -> exp.Expression:
    return tree
