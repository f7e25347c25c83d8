"""Statistics that follow from sums of values and of their products, and how their errors follow from the noise."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from defocus.answers import AnswerColumn, Tails
from defocus.mechanisms.quantiles import Located
from defocus.tables.aggregates import Quantile, Statistic
from defocus.tables.answers import titles
from defocus.tables.noise import CellNoise
from defocus.tables.splits import Scaled, Split

__all__ = ["MOMENTS", "Formula", "Moments", "Noisy", "expected", "quantile_columns", "read", "read_plain", "slopes"]


_Floats: TypeAlias = npt.NDArray[np.float64]
Formula: TypeAlias = Callable[[tuple[_Floats, ...], tuple[Scaled, ...]], _Floats]
_Range: TypeAlias = Callable[[tuple[Scaled, ...]], tuple[float, float]]
_Quotient: TypeAlias = Callable[[tuple[Scaled, ...]], tuple[tuple[float, ...], tuple[float, ...]]]


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

    def value(self, sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
        """The statistic of noisy sums, within its range; the middle of a finite range where nothing is known."""
        low, high = self.range(values)
        with np.errstate(all="ignore"):
            raw = self.formula(sums, values)
        middle = (low + high) / 2 if np.isfinite(low + high) else 0.0
        return np.clip(np.where(np.isnan(raw), middle, raw), low, high)


def slopes(formula: Formula, sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> list[_Floats]:
    """The derivative of the formula by each of its sums, by central differences."""
    found = []
    for i, part in enumerate(sums):
        step = 1e-6 * (1.0 + np.abs(part))
        above, below = (tuple(x + sign * step if j == i else x for j, x in enumerate(sums)) for sign in (1.0, -1.0))
        with np.errstate(all="ignore"):
            found.append((formula(above, values) - formula(below, values)) / (2 * step))
    return found


def _sum(sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
    n, x = sums
    return values[0].bottom * n + values[0].width * x


def _mean(sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
    n, x = sums
    return values[0].bottom + values[0].width * x / n


def _mean_parts(values: tuple[Scaled, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (values[0].bottom, values[0].width), (1.0, 0.0)


def _variance(sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
    n, x, xx = sums
    return values[0].width ** 2 * (xx / n - (x / n) ** 2)


def _std(sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
    return np.sqrt(np.maximum(_variance(sums, values), 0.0))


def _covariance(sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
    n, x, y, xy = sums
    return values[0].width * values[1].width * (xy / n - (x / n) * (y / n))


def _correlation(sums: tuple[_Floats, ...], _: tuple[Scaled, ...]) -> _Floats:
    n, x, y, xy, xx, yy = sums
    spread = np.sqrt(np.maximum(xx / n - (x / n) ** 2, 0.0) * np.maximum(yy / n - (y / n) ** 2, 0.0))
    return np.asarray((xy / n - (x / n) * (y / n)) / spread)


def _ratio(sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
    return _divided(sums, _ratio_parts(values))


def _ratio_parts(values: tuple[Scaled, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    top, bottom = values
    return (top.bottom, top.width, 0.0), (bottom.bottom, 0.0, bottom.width)


def _weighted_mean(sums: tuple[_Floats, ...], values: tuple[Scaled, ...]) -> _Floats:
    return _divided(sums, _weighted_parts(values))


def _weighted_parts(values: tuple[Scaled, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
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


def _anything(_: tuple[Scaled, ...]) -> tuple[float, float]:
    return -np.inf, np.inf


def _within(values: tuple[Scaled, ...]) -> tuple[float, float]:
    return values[0].bottom, values[0].bottom + values[0].width


def _spread(values: tuple[Scaled, ...]) -> tuple[float, float]:
    return 0.0, values[0].width ** 2 / 4


MOMENTS: Mapping[str, Moments] = {
    "count": Moments((0,), ((0,),), lambda sums, _: sums[0], _anything, "number of rows with a value"),
    "sum": Moments((1,), ((0,), (1,)), _sum, _anything, "sum"),
    "mean": Moments((1,), ((0,), (1,)), _mean, _within, "mean", _mean_parts),
    "variance": Moments((2,), ((0,), (1,), (2,)), _variance, _spread, "variance"),
    "std": Moments((2,), ((0,), (1,), (2,)), _std, lambda values: (0.0, values[0].width / 2), "standard deviation"),
    "covariance": Moments(
        (1, 1),
        ((0, 0), (1, 0), (0, 1), (1, 1)),
        _covariance,
        lambda values: (-values[0].width * values[1].width / 4, values[0].width * values[1].width / 4),
        "covariance",
    ),
    "correlation": Moments(
        (2, 2),
        ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)),
        _correlation,
        lambda _: (-1.0, 1.0),
        "correlation",
    ),
    "ratio": Moments((1, 1), ((0, 0), (1, 0), (0, 1)), _ratio, _anything, "ratio of two sums", _ratio_parts),
    "weighted_mean": Moments(
        (1, 1), ((0, 0), (1, 0), (0, 1), (1, 1)), _weighted_mean, _within, "weighted mean", _weighted_parts
    ),
}
"""Every statistic of this kind, by name."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """The noisy cells of one measurement, in units of rows, one line for each group."""

    cells: _Floats
    variance: float
    """Of one cell, in squared rows."""
    width: float
    """How many standard errors make a 95 % interval."""
    words: str

    @classmethod
    def of(cls, noisy: npt.NDArray[np.int64], noise: CellNoise, grid: int) -> "Noisy":
        """Bring noisy integers back to rows."""
        return cls(noisy / grid, noise.variance / grid**2, noise.width, noise.words)


def read(name: str, statistic: Statistic, split: Split, noisy: Noisy, words: str = "") -> AnswerColumn:
    """A statistic of each group, from the cells of the split that answers it; ``words`` may name it otherwise.

    Error:
        Sums and counts: exact. Means and other quotients: by Fieller, all q for which (above - q below), which is
        linear in the cells, may be zero; the whole range where what is below may be zero. Other statistics: by the
        derivatives of their formulas, and for a correlation the whole range where a variance may be zero. A standard
        deviation has the interval of the variance, under the root.
    Reference:
        Fieller (1954), Some problems in interval estimation.
    """
    if statistic.operation == "std":
        variance, words = Statistic("variance", statistic.arguments), MOMENTS["std"].words
        return _rooted(read(name, variance, split, noisy, words), noisy)
    moments = MOMENTS[statistic.operation]
    if not statistic.arguments:
        return _linear(name, split.everyone, noisy, f"number of rows, {noisy.words} on {_cells(split)}")
    coefficients = np.stack([split.moment(powers) for powers in moments.powers])
    how = f"{words or moments.words}, {noisy.words} on {_cells(split)} that also give the count"
    if statistic.operation == "count":
        return _linear(name, coefficients[0], noisy, how)
    sums = tuple(noisy.cells @ row for row in coefficients)
    values = moments.value(sums, split.values)
    errors = _errors(moments.formula, sums, split.values, coefficients, noisy)
    low, high = moments.range(split.values)
    if statistic.operation == "sum":
        half = noisy.width * errors
        ends = values - half, values + half
        return AnswerColumn(name, values, errors, *ends, integral=False, how=how, tails=Tails.LOG_CONCAVE)
    # Where the noise could hide the whole group, a quotient says nothing beyond its range.
    few = sums[0] <= noisy.width * np.sqrt(np.square(coefficients[0]).sum() * noisy.variance)
    unsure = few | ~np.isfinite(errors)
    if statistic.operation == "correlation":
        unsure |= _flat(sums, coefficients, [0, 1, 4], noisy) | _flat(sums, coefficients, [0, 2, 5], noisy)
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
    )


def read_plain(name: str, noisy: Noisy, how: str) -> AnswerColumn:
    """A count that is one cell."""
    return _linear(name, np.ones(1), noisy, f"{how}, {noisy.words}")


def quantile_columns(
    name: str, aggregate: Quantile, scaled: Scaled, places: Located, *, rank: float
) -> list[AnswerColumn]:
    """The middle of each chosen bucket. How far off it is in rank is known beforehand; in value a tree tells."""
    step = scaled.width / aggregate.buckets
    digits = max(0, 1 - math.floor(math.log10(step)))
    values = np.round(scaled.bottom + (places.buckets + 0.5) * step, digits)
    low = high = np.full(values.shape, np.nan)
    way = "exponential mechanism"
    if places.low is not None and places.high is not None:
        low, high = scaled.bottom + places.low * step, scaled.bottom + (places.high + 1) * step
        way = "tree of noisy sums"
    how = f"{way}; at most {rank:.4g} rows from the true rank, with 95 % probability, so of fewer rows it says nothing"
    unknown = np.full(len(values), np.nan)
    return [
        AnswerColumn(title, values[:, i], unknown, low[:, i], high[:, i], integral=False, how=how)
        for i, title in enumerate(titles(name, aggregate))
    ]


def expected(split: Split, rows: int) -> _Floats:
    """The cells of a group of ``rows`` rows whose values are spread evenly between their bounds."""
    cells = np.full(split.cells, rows / max(1, split.cells - split.optional))
    if split.optional:
        cells[-1] = 0.0
    return cells[None, :]


def _errors(
    formula: Formula, sums: tuple[_Floats, ...], values: tuple[Scaled, ...], coefficients: _Floats, noisy: Noisy
) -> _Floats:
    """Standard errors by the derivatives of a formula; each sum is the cells multiplied with its coefficients."""
    gradient = np.stack(slopes(formula, sums, values))
    spread = np.einsum("mg,mc->gc", gradient, coefficients)
    return np.asarray(np.sqrt(np.square(spread).sum(axis=1) * noisy.variance))


def _flat(sums: tuple[_Floats, ...], coefficients: _Floats, places: list[int], noisy: Noisy) -> npt.NDArray[np.bool_]:
    """Where the variance of a value, of which these are the sums, may be zero."""
    formula, own, unit = MOMENTS["variance"].formula, tuple(sums[place] for place in places), (Scaled("", 0, 1),)
    with np.errstate(all="ignore"):
        spread = formula(own, unit)
    return np.asarray(~(spread > noisy.width * _errors(formula, own, unit, coefficients[places], noisy)))


def _quotients(above: _Floats, below: _Floats, noisy: Noisy) -> tuple[_Floats, _Floats]:
    """The least and largest q with |(above - q below) · cells| within what its noise explains; infinite without any."""
    n, d = noisy.cells @ above, noisy.cells @ below
    noise = noisy.width**2 * noisy.variance
    a, b, c = d**2 - noise * (below @ below), n * d - noise * (above @ below), n**2 - noise * (above @ above)
    known = a > 0
    safe = np.where(known, a, 1.0)
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    return np.where(known, (b - root) / safe, -np.inf), np.where(known, (b + root) / safe, np.inf)


def _rooted(variance: AnswerColumn, noisy: Noisy) -> AnswerColumn:
    low, high = np.sqrt(variance.low), np.sqrt(variance.high)
    errors = np.where(np.isnan(variance.errors), np.nan, (high - low) / (2 * noisy.width))
    return AnswerColumn(variance.name, np.sqrt(variance.values), errors, low, high, integral=False, how=variance.how)


def _linear(name: str, coefficients: _Floats, noisy: Noisy, how: str) -> AnswerColumn:
    values = noisy.cells @ coefficients
    errors = np.full(len(values), np.sqrt(np.square(coefficients).sum() * noisy.variance))
    half = noisy.width * errors
    low, high = values - half, values + half
    return AnswerColumn(name, values, errors, low, high, integral=True, how=how, tails=Tails.LOG_CONCAVE)


def _cells(split: Split) -> str:
    return "one sum" if split.cells == 1 else f"{split.cells} sums under one sensitivity"
