"""Statistics that follow from sums of values and of their products, and how their errors follow from the noise."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from defocus.answers import AnswerColumn, PreviewColumn, Tails
from defocus.answers.noise_sources import Noise, fieller
from defocus.errors import Number
from defocus.tables.aggregates import Aggregate
from defocus.tables.noise import CellNoise, Noisy
from defocus.tables.rows import Rows
from defocus.tables.splits import PRESENCE, Argument, Split, checked_text

__all__ = [
    "MOMENTS",
    "SIZES",
    "Formula",
    "Moments",
    "Statistic",
    "correlation",
    "count",
    "covariance",
    "expected",
    "mean",
    "ratio",
    "slopes",
    "std",
    "sum",
    "variance",
    "weighted_mean",
]

SIZES = (100, 1_000, 10_000, 100_000)
"""Group sizes to speak about where the error depends on the size of the group, which is private."""
_Floats: TypeAlias = npt.NDArray[np.float64]
Formula: TypeAlias = Callable[[tuple[_Floats, ...], tuple[Argument, ...]], _Floats]
_Range: TypeAlias = Callable[[tuple[Argument, ...]], tuple[float, float]]
_Quotient: TypeAlias = Callable[[tuple[Argument, ...]], tuple[tuple[float, ...], tuple[float, ...]]]


@final
@dataclass(frozen=True, slots=True)
class Moments:
    """One statistic: which sums it needs, the formula, and in which range it lies whatever the data."""

    degrees: tuple[int, ...]
    powers: tuple[tuple[int, ...], ...]
    """For each sum that the formula takes, the power of each value in it."""
    formula: Formula
    range: _Range
    words: str
    quotient: _Quotient | None = None
    """For a quotient of two linear combinations of the sums, what to multiply the sums with above and below."""
    linear: bool = False
    """Whether it is a linear combination of the sums, so that its error does not depend on the group."""
    root_of: str | None = None
    """The statistic whose root it is."""
    variances: tuple[tuple[int, int, int], ...] = ()
    """The sums of each value whose variance it divides by."""
    asked: str | None = None
    """What a question calls it before the names of its columns."""
    sql: tuple[type[exp.Expr] | str, ...] = ()
    """The functions that ask for it in SQL: classes of sqlglot, or names that sqlglot does not know."""
    sql_name: str | None = None
    """What its column is called in SQL; the name of the statistic by default."""
    names: tuple[str, ...] = ("column",)
    """What its function calls the values; their bounds are ``bounds`` of a column, and ``x_bounds`` of an x."""

    def value(self, sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
        """The statistic of noisy sums, within its range; the middle of a finite range where nothing is known."""
        low, high = self.range(values)
        with np.errstate(all="ignore"):
            raw = self.formula(sums, values)
        middle = (low + high) / 2 if np.isfinite(low + high) else 0.0
        return np.clip(np.where(np.isnan(raw), middle, raw), low, high)


def slopes(formula: Formula, sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> list[_Floats]:
    """The derivative of the formula by each of its sums, by central differences."""
    derivatives = []
    for i, part in enumerate(sums):
        step = 1e-6 * (1.0 + np.abs(part))
        above, below = (tuple(x + sign * step if j == i else x for j, x in enumerate(sums)) for sign in (1.0, -1.0))
        with np.errstate(all="ignore"):
            derivatives.append((formula(above, values) - formula(below, values)) / (2 * step))
    return derivatives


def _sum(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    n, x = sums
    return values[0].bottom * n + values[0].width * x


def _squares(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    n, x, xx = sums
    low, width = values[0].bottom, values[0].width
    return low**2 * n + 2 * low * width * x + width**2 * xx


def _mean(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    n, x = sums
    return values[0].bottom + values[0].width * x / n


def _mean_parts(values: tuple[Argument, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (values[0].bottom, values[0].width), (1.0, 0.0)


def _variance(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    n, x, xx = sums
    return values[0].width ** 2 * (xx / n - (x / n) ** 2)


def _std(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    return np.sqrt(np.maximum(_variance(sums, values), 0.0))


def _covariance(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    n, x, y, xy = sums
    return values[0].width * values[1].width * (xy / n - (x / n) * (y / n))


def _correlation(sums: tuple[_Floats, ...], _: tuple[Argument, ...]) -> _Floats:
    n, x, y, xy, xx, yy = sums
    spread = np.sqrt(np.maximum(xx / n - (x / n) ** 2, 0.0) * np.maximum(yy / n - (y / n) ** 2, 0.0))
    return np.asarray((xy / n - (x / n) * (y / n)) / spread)


def _ratio(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    return _divided(sums, _ratio_parts(values))


def _ratio_parts(values: tuple[Argument, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    top, bottom = values
    return (top.bottom, top.width, 0.0), (bottom.bottom, 0.0, bottom.width)


def _weighted_mean(sums: tuple[_Floats, ...], values: tuple[Argument, ...]) -> _Floats:
    return _divided(sums, _weighted_parts(values))


def _weighted_parts(values: tuple[Argument, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    value, weight = values
    top = (
        value.bottom * weight.bottom,
        value.width * weight.bottom,
        value.bottom * weight.width,
        value.width * weight.width,
    )
    return top, (weight.bottom, 0.0, weight.width, 0.0)


def _divided(sums: tuple[_Floats, ...], parts: tuple[tuple[float, ...], tuple[float, ...]]) -> _Floats:
    above, below = (np.tensordot(np.array(part), np.stack(sums), axes=1) for part in parts)
    return np.asarray(above / below)


def _anything(_: tuple[Argument, ...]) -> tuple[float, float]:
    return -np.inf, np.inf


def _within(values: tuple[Argument, ...]) -> tuple[float, float]:
    return values[0].bottom, values[0].bottom + values[0].width


def _spread(values: tuple[Argument, ...]) -> tuple[float, float]:
    return 0.0, values[0].width ** 2 / 4


MOMENTS: Mapping[str, Moments] = {
    "count": Moments(
        (0,),
        ((0,),),
        lambda sums, _: sums[0],
        _anything,
        "number of rows with a value",
        linear=True,
        asked="number of rows with",
    ),
    "sum": Moments((1,), ((0,), (1,)), _sum, _anything, "sum", linear=True, sql=(exp.Sum,)),
    "squares": Moments((2,), ((0,), (1,), (2,)), _squares, _anything, "sum of squares", linear=True),
    "mean": Moments((1,), ((0,), (1,)), _mean, _within, "mean", _mean_parts, sql=(exp.Avg, "mean"), sql_name="avg"),
    "variance": Moments((2,), ((0,), (1,), (2,)), _variance, _spread, "variance", sql=(exp.Variance, exp.VariancePop)),
    "std": Moments(
        (2,),
        ((0,), (1,), (2,)),
        _std,
        lambda values: (0.0, values[0].width / 2),
        "standard deviation",
        root_of="variance",
        sql=(exp.Stddev, exp.StddevPop, exp.StddevSamp),
        sql_name="stddev",
    ),
    "covariance": Moments(
        (1, 1),
        ((0, 0), (1, 0), (0, 1), (1, 1)),
        _covariance,
        lambda values: (-values[0].width * values[1].width / 4, values[0].width * values[1].width / 4),
        "covariance",
        sql=(exp.CovarPop, exp.CovarSamp),
        sql_name="covar",
        names=("x", "y"),
    ),
    "correlation": Moments(
        (2, 2),
        ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)),
        _correlation,
        lambda _: (-1.0, 1.0),
        "correlation",
        variances=((0, 1, 4), (0, 2, 5)),
        sql=(exp.Corr,),
        sql_name="corr",
        names=("x", "y"),
    ),
    "ratio": Moments(
        (1, 1),
        ((0, 0), (1, 0), (0, 1)),
        _ratio,
        _anything,
        "ratio of two sums",
        _ratio_parts,
        asked="ratio of",
        names=("numerator", "denominator"),
    ),
    "weighted_mean": Moments(
        (1, 1),
        ((0, 0), (1, 0), (0, 1), (1, 1)),
        _weighted_mean,
        _within,
        "weighted mean",
        _weighted_parts,
        names=("column", "weight"),
    ),
}
"""Every statistic of this kind, by name."""


@final
@dataclass(frozen=True, slots=True)
class Statistic(Aggregate):
    """Something that follows from sums: ``operation`` is a name in :data:`MOMENTS`."""

    operation: str
    arguments: tuple[Argument, ...] = ()

    @property
    def moments(self) -> Moments:
        """Its entry in :data:`MOMENTS`."""
        return MOMENTS[self.operation]

    @property
    def words(self) -> str:
        """What is asked, in words."""
        asked = self.moments.asked or f"{self.moments.words} of"
        return f"{asked} {' and '.join(self.texts)}" if self.arguments else "number of rows"

    @property
    def call(self) -> tuple[str, Mapping[str, Any]]:
        """The function that makes it."""
        given: dict[str, Any] = {}
        for name, argument in zip(self.moments.names, self.arguments, strict=False):
            given |= {name: argument.text, **argument.given("bounds" if name == "column" else f"{name}_bounds")}
        return self.operation, given

    @property
    def quotient(self) -> bool:
        """Whether its error depends on the size of the group."""
        return not self.moments.linear

    @property
    def limits(self) -> tuple[float, float]:
        """More rows raise a count, move a sum up or down by the signs of its values, and leave others in range."""
        if self.operation in {"count", "squares"}:
            return math.inf, math.inf
        if self.operation != "sum":
            return self.moments.range(self.arguments)
        (value,) = self.arguments
        return -math.inf if value.bottom < 0 else math.inf, math.inf if value.bottom + value.width > 0 else -math.inf

    def checked(self, rows: Rows) -> Self:
        """The same with declared bounds filled in; a count needs none."""
        if any(self.moments.degrees):
            return replace(self, arguments=tuple(argument.declared(rows) for argument in self.arguments))
        for text in self.texts:
            rows.values(text)
        return self

    @property
    def split(self) -> Split:
        """The sums that it needs, as a division of the weight of a row."""
        return Split(self.arguments, self.moments.degrees) if self.arguments else PRESENCE

    def foreseen(
        self, name: str, split: Split, noise: CellNoise, grid: int, variance: float | None = None
    ) -> PreviewColumn:
        """What is known about its column beforehand; ``variance`` is that of an estimate from several measurements."""
        if any(argument.find for argument in self.arguments):
            return PreviewColumn(name, "how exact it will be depends on the bounds that are found")
        by_size, how = [], ""
        for size in SIZES:
            noisy = noise.around(expected(split, size), grid)
            column = self.read(name, split, noisy if variance is None else replace(noisy, variance=variance))
            how = column.how
            by_size.append((size, float(column.errors[0]), float((column.high - column.low)[0] / 2)))
        if self.quotient:
            return PreviewColumn(name, how, by_size=tuple(by_size))
        return PreviewColumn(name, how, by_size[0][1], by_size[0][2])

    def read(self, name: str, split: Split, noisy: Noisy, words: str = "") -> AnswerColumn:
        """A statistic of each group, from the cells of the split that answers it; ``words`` may name it otherwise.

        Error:
            Sums and counts: exact. Means and other quotients: by Fieller, all q for which (above - q below), which is
            linear in the cells, may be zero; the whole range where what is below may be zero. Other statistics: by the
            derivatives of their formulas, and for a correlation the whole range where a variance may be zero. A
            standard deviation has the interval of the variance, under the root.
        Reference:
            Fieller (1954), Some problems in interval estimation.
        """
        moments = self.moments
        if moments.root_of is not None:
            return _rooted(replace(self, operation=moments.root_of).read(name, split, noisy, moments.words), noisy)
        if not self.arguments:
            return noisy.count(name, split.everyone, f"number of rows, {noisy.words} on {_cells(split)}")
        coefficients = np.stack([split.moment(powers) for powers in moments.powers])
        how = f"{words or moments.words}, {noisy.words} on {_cells(split)} that also give the count"
        if not any(moments.degrees):
            return noisy.count(name, coefficients[0], how)
        sums = tuple(noisy.cells @ row for row in coefficients)
        values = moments.value(sums, split.values)
        spread = _spread_over_cells(moments.formula, sums, split.values, coefficients)
        errors = _errors(spread, noisy)
        low, high = moments.range(split.values)
        if moments.linear:
            half = noisy.width * errors
            ends = values - half, values + half
            noise = noisy.noise(spread[:1], linear=True)
            return AnswerColumn(
                name, values, errors, *ends, integral=False, how=how, tails=Tails.LOG_CONCAVE, noise=noise
            )
        # Where the noise could hide the whole group, a quotient says nothing beyond its range.
        few = sums[0] <= noisy.width * np.sqrt(np.square(noisy.felt(coefficients[0])).sum() * noisy.variance)
        unsure = few | ~np.isfinite(errors)
        for places in moments.variances:
            unsure |= _flat(sums, coefficients, list(places), noisy)
        half = np.where(unsure, np.inf, noisy.width * errors)
        ends = values - half, values + half
        if moments.quotient is not None:
            above, below = (np.array(part) @ coefficients for part in moments.quotient(split.values))
            ends = _quotients(above, below, noisy)
            unsure |= ~np.isfinite(ends[0])
        return AnswerColumn(
            name,
            values,
            np.where(unsure, np.nan, errors),
            np.where(unsure, low, np.clip(ends[0], low, high)),
            np.where(unsure, high, np.clip(ends[1], low, high)),
            integral=False,
            how=how,
            noise=noisy.noise(np.where(unsure[:, None], np.nan, spread), linear=False),
        )


def expected(split: Split, rows: int) -> _Floats:
    """The cells of a group of ``rows`` rows whose values are spread evenly between their bounds."""
    cells = np.full(split.cells, rows / max(1, split.cells - split.optional))
    if split.optional:
        cells[-1] = 0.0
    return cells[None, :]


def _spread_over_cells(
    formula: Formula, sums: tuple[_Floats, ...], values: tuple[Argument, ...], coefficients: _Floats
) -> _Floats:
    """The derivatives of a formula by the cells; each sum is the cells multiplied with its coefficients."""
    return np.asarray(np.einsum("mg,mc->gc", np.stack(slopes(formula, sums, values)), coefficients))


def _errors(spread: _Floats, noisy: Noisy) -> _Floats:
    """Standard errors by derivatives."""
    return np.asarray(np.sqrt(np.square(noisy.felt(spread)).sum(axis=1) * noisy.variance))


def _flat(sums: tuple[_Floats, ...], coefficients: _Floats, places: list[int], noisy: Noisy) -> npt.NDArray[np.bool_]:
    """Where the variance of a value, of which these are the sums, may be zero."""
    formula, own, unit = MOMENTS["variance"].formula, tuple(sums[place] for place in places), (Argument("", 0, 1),)
    slope = _spread_over_cells(formula, own, unit, coefficients[places])
    with np.errstate(all="ignore"):
        spread = formula(own, unit)
    return np.asarray(~(spread > noisy.width * _errors(slope, noisy)))


def _quotients(above: _Floats, below: _Floats, noisy: Noisy) -> tuple[_Floats, _Floats]:
    """The least and largest q with |(above - q below) · cells| within what its noise explains."""
    noise, top, bottom = noisy.width**2 * noisy.variance, noisy.felt(above), noisy.felt(below)
    squares = noise * (top @ top), noise * (top @ bottom), noise * (bottom @ bottom)
    return fieller(noisy.cells @ above, noisy.cells @ below, *squares)


def _rooted(variance: AnswerColumn, noisy: Noisy) -> AnswerColumn:
    low, high = np.sqrt(variance.low), np.sqrt(variance.high)
    errors = np.where(np.isnan(variance.errors), np.nan, (high - low) / (2 * noisy.width))
    with np.errstate(all="ignore"):
        noise = None if not isinstance(variance.noise, Noise) else variance.noise.scaled(errors / variance.errors)
    values = np.sqrt(variance.values)
    return AnswerColumn(variance.name, values, errors, low, high, integral=False, how=variance.how, noise=noise)


def _cells(split: Split) -> str:
    return "one sum" if split.cells == 1 else f"{split.cells} sums under one sensitivity"


def count(column: str | None = None) -> Statistic:
    """The number of rows, or of those in which ``column`` is not missing.

    >>> count()
    Statistic(operation='count', arguments=())
    >>> count("age")
    Statistic(operation='count', arguments=(Argument(text='age', low=None, high=None, find=False, missing=None),))
    """
    return Statistic("count", () if column is None else (Argument(checked_text(column)),))


def sum(  # noqa: A001  # reads as dp.sum
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The sum of ``column``, each value clipped to [``low``, ``high``].

    >>> sum("age", 0, 120)
    Statistic(operation='sum', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("sum", (Argument.of(column, low, high, bounds, missing),))


def mean(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The mean of ``column``, each value clipped to [``low``, ``high``].

    >>> mean("age", 0, 120)
    Statistic(operation='mean', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("mean", (Argument.of(column, low, high, bounds, missing),))


def variance(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The variance of ``column``, each value clipped to [``low``, ``high``].

    >>> variance("age", 0, 120)
    Statistic(operation='variance', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("variance", (Argument.of(column, low, high, bounds, missing),))


def std(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The standard deviation of ``column``, each value clipped to [``low``, ``high``].

    >>> std("age", 0, 120)
    Statistic(operation='std', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("std", (Argument.of(column, low, high, bounds, missing),))


def covariance(x: str, y: str, *, x_bounds: Any = None, y_bounds: Any = None) -> Statistic:
    """The covariance of two columns over the rows that have both.

    >>> [argument.text for argument in covariance("age", "cost", x_bounds=(0, 120), y_bounds=(0, 500)).arguments]
    ['age', 'cost']
    """
    return Statistic("covariance", (Argument.of(x, bounds=x_bounds), Argument.of(y, bounds=y_bounds)))


def correlation(x: str, y: str, *, x_bounds: Any = None, y_bounds: Any = None) -> Statistic:
    """Pearson's correlation of two columns over the rows that have both.

    >>> [argument.text for argument in correlation("age", "cost", x_bounds=(0, 120), y_bounds=(0, 500)).arguments]
    ['age', 'cost']
    """
    return Statistic("correlation", (Argument.of(x, bounds=x_bounds), Argument.of(y, bounds=y_bounds)))


def ratio(
    numerator: str, denominator: str, *, numerator_bounds: Any = None, denominator_bounds: Any = None
) -> Statistic:
    """The sum of one column divided by the sum of another, over the rows that have both.

    >>> ratio("cost", "days", numerator_bounds=(0, 500), denominator_bounds=(0, 30)).operation
    'ratio'
    """
    top = Argument.of(numerator, bounds=numerator_bounds)
    return Statistic("ratio", (top, Argument.of(denominator, bounds=denominator_bounds)))


def weighted_mean(column: str, weight: str, *, bounds: Any = None, weight_bounds: Any = None) -> Statistic:
    """The mean of ``column`` in which each row counts with its ``weight``.

    >>> weighted_mean("cost", "days", bounds=(0, 500), weight_bounds=(0, 30)).operation
    'weighted_mean'
    """
    return Statistic("weighted_mean", (Argument.of(column, bounds=bounds), Argument.of(weight, bounds=weight_bounds)))
