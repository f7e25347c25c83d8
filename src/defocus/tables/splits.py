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
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from defocus.engines.schema import Kind, retyped
from defocus.engines.schema import bounds as checked_bounds
from defocus.engines.syntax import BIGINT, DOUBLE, decimal, mild, typed
from defocus.errors import InvalidParameterError, NotDeclaredError, Number, WrongKindError, finite
from defocus.tables.contribution import FIND
from defocus.tables.expressions import Expression
from defocus.tables.rows import Rows

__all__ = ["PRESENCE", "Argument", "Split", "apart", "checked_text", "numeric"]

_LEAST = 2.0**-100
_ROUNDINGS = 16
"""A product has at most four values and four complements to one in it, each of which is rounded once or twice."""


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """A column or expression with its bounds. ``missing`` says what stands for a NULL; None leaves such rows out."""

    text: str
    low: Number | None = None
    high: Number | None = None
    find: bool = False
    """Whether the bounds are still to be found."""
    missing: Number | None = None

    @classmethod
    def of(cls, column: object, low: Any = None, high: Any = None, bounds: Any = None, missing: Any = None) -> Self:
        """What an aggregate is about, from what people pass to it."""
        text = checked_text(column)
        if bounds is not None and (low is not None or high is not None):
            raise InvalidParameterError("Bounds were given twice.", fix="give low and high, or bounds=, not both.")
        if isinstance(bounds, str) and bounds == FIND:
            if missing is not None:
                raise InvalidParameterError(
                    "A value that stands for missing ones must lie within known bounds.",
                    fix="give bounds, or leave missing= out.",
                )
            return cls(text, find=True)
        if bounds is not None:
            if not isinstance(bounds, tuple | list) or len(bounds) != 2:
                raise InvalidParameterError(
                    f"The bounds of {text!r:.40} are not understood.", fix='pass bounds=(low, high) or bounds="find".'
                )
            low, high = bounds
        if (low is None) != (high is None):
            raise InvalidParameterError(
                f"{text!r:.40} has only one bound.", fix="give both, as in mean(column, 0, 30) or bounds=(0, 30)."
            )
        argument = cls(text, missing=missing)
        return argument if low is None else argument.within(*checked_bounds(text, low, high))

    def given(self, bounds: str) -> dict[str, Any]:
        """The bounds under this name, and what stands for missing values, as far as they were given."""
        both = {bounds: FIND} if self.find else {} if self.low is None else {bounds: (self.low, self.high)}
        return {**both, **({} if self.missing is None else {"missing": self.missing})}

    def declared(self, rows: Rows) -> Self:
        """The argument with the bounds that follow from what was declared for its columns, unless it has its own."""
        if self.low is None and not self.find and rows.values(self.text).kind is Kind.BOOLEAN:
            column = exp.column(self.text, quoted=True).sql("duckdb") if self.text in rows.schema else self.text
            return replace(self, text=f"CAST(({column}) AS BIGINT)").within(0, 1)
        value = numeric(rows, self.text)
        if self.find or self.low is not None:
            return self
        if value.bounds is None:
            raise NotDeclaredError(
                f"Nobody declared between which bounds {self.text!r:.60} lies.",
                fix="give them without looking at the data, as in mean(column, low, high); declare them for the column;"
                ' or pass bounds="find" to pay for finding them.',
            )
        return self.within(*checked_bounds(self.text, *apart(*value.bounds)))

    def within(self, low: Any, high: Any) -> Self:
        """The argument with these bounds, which hold what stands for a missing value."""
        if self.missing is not None and not low <= finite("missing", self.missing) <= high:
            raise InvalidParameterError(
                "missing must lie within the bounds.", fix=f"choose missing in [{low}, {high}]."
            )
        return replace(self, low=low, high=high)

    def found(self, ranges: Mapping[str, tuple[float, float]]) -> Self:
        """The argument with the bounds that were found for it."""
        if not self.find:
            return self
        low, high = ranges[self.text]
        return replace(self, low=low, high=high, find=False)

    @property
    def rule(self) -> str:
        """What is done to its values, in words."""
        missing = "left out" if self.missing is None else f"counted as {self.missing}"
        if self.low is None:
            return f"rows in which {self.text} is missing are {missing}"
        return f"values of {self.text} are clipped to [{self.low}, {self.high}]; missing ones are {missing}"

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

    def is_two_valued(self, rows: Rows) -> bool:
        """Whether whatever is in a row is 0, 1 or missing once it is scaled: whole numbers between neighbours are."""
        if self.find or self.low is None or self.high is None:
            return not self.find
        ends = (self.low, self.high)
        neighbours = all(isinstance(end, int) for end in ends) and self.width == 1
        return neighbours and self.missing in {None, *ends} and rows.values(self.text).kind is Kind.INTEGER

    def number(self, value: Expression) -> exp.Expression:
        """The value as a float, or NULL; where only its presence matters, any float will do."""
        if self.low is None or self.high is None:
            return exp.case().when(value.sql.copy().is_(exp.null()), exp.null()).else_(decimal(0.0))
        number = typed(value.sql.copy(), DOUBLE)
        return number if self.missing is None else exp.Coalesce(this=number, expressions=[decimal(self.missing)])

    def scaled(self, number: exp.Expression) -> exp.Expression:
        """What :meth:`number` gave, in [0, 1], or NULL.

        Between the bounds (v - low) is at most (high - low) after rounding, since rounding keeps order, so the quotient
        is at most 1. Where the value is NULL, no comparison holds and the quotient is NULL. To take away zero, or to
        divide by one, changes no float and is left out.
        """
        if self.low is None or self.high is None:
            return number.copy()
        usual = mild if self._is_usual else _as_it_is
        share = number.copy()
        if self.bottom:
            share = exp.paren(usual(exp.Sub(this=share, expression=decimal(self.low))))
        if self.width != 1:
            share = usual(exp.Div(this=share, expression=decimal(self.width)))
        below = exp.LT(this=number.copy(), expression=decimal(self.low))
        above = exp.GT(this=number.copy(), expression=decimal(self.high))
        return exp.case().when(below, decimal(0.0)).when(above, decimal(1.0)).else_(share)


@final
@dataclass(frozen=True, slots=True)
class Split:
    """A weight divided by the values of a row: one degree for each value. Without values it is the weight itself.

    >>> stay = Split((Argument("stay", 0, 30),), (1,))
    >>> stay.cells, stay.moment((1,)).tolist(), stay.moment((0,)).tolist(), stay.everyone.tolist()
    (3, [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0])
    """

    values: tuple[Argument, ...] = ()
    degrees: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert 2 * sum(self.degrees) < _ROUNDINGS  # noqa: S101  # what the sums of the parts rely on
        # A value of degree 0 is in no share: of several, one that is missing would leave the shares of the others.
        assert len(self.degrees) < 2 or min(self.degrees) > 0  # noqa: S101  # what every question keeps to

    def found(self, ranges: Mapping[str, tuple[float, float]]) -> Self:
        """The split with the bounds that were found for its values."""
        return replace(self, values=tuple(value.found(ranges) for value in self.values))

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


def checked_text(column: object) -> str:
    """The column or expression that an aggregate is about."""
    if not isinstance(column, str) or not column.strip():
        raise InvalidParameterError(
            f"An aggregate is about a column, but got {type(column).__name__}.", fix="pass the column's name as text."
        )
    return column


def numeric(rows: Rows, text: str) -> Expression:
    """The expression, which must give numbers."""
    value = rows.values(text)
    if not value.kind.numeric:
        raise WrongKindError(
            f"{text!r:.60} is of kind {value.kind}, but this needs numbers.",
            fix=f'convert it, "CAST({text:.60} AS DOUBLE)"{retyped(text, value.kind)}.',
        )
    return value


def apart(low: Any, high: Any) -> tuple[Any, Any]:
    """Bounds that differ, also around a constant."""
    if low < high:
        return low, high
    return (0, high) if high > 0 else (low, 0 if low < 0 else 1)


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
