"""From noisy cells to numbers with errors. Nothing here looks at the data, so it also predicts."""

import math
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from defocus.mechanisms.quantiles import Located
from defocus.tables.aggregates import Quantile, Statistic
from defocus.tables.answers import AnswerColumn
from defocus.tables.moments import MOMENTS, slopes
from defocus.tables.noises import CellNoise
from defocus.tables.splits import Scaled, Split
from defocus.tables.titling import titles

__all__ = ["Noisy", "expected", "quantile_columns", "read", "read_plain"]

_Floats: TypeAlias = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """The noisy cells of one measurement, in units of rows, one line for each group."""

    cells: _Floats
    variance: float
    """Of one cell, in squared rows."""
    reach: float
    """How many standard errors make a 95 % interval."""
    words: str

    @classmethod
    def of(cls, noisy: npt.NDArray[np.int64], noise: CellNoise, grid: int) -> "Noisy":
        """Bring noisy integers back to rows."""
        return cls(noisy / grid, noise.variance / grid**2, noise.reach, noise.words)


def read(name: str, statistic: Statistic, split: Split, noisy: Noisy) -> AnswerColumn:
    """A statistic of each group, from the cells of the split that answers it."""
    moments = MOMENTS[statistic.operation]
    if not statistic.arguments:
        return _linear(name, split.everyone, noisy, f"number of rows, {noisy.words} on {_cells(split)}")
    coefficients = np.stack([split.moment(powers) for powers in moments.powers])
    how = f"{moments.words}, {noisy.words} on {_cells(split)} that also give the count"
    if statistic.operation == "count":
        return _linear(name, coefficients[0], noisy, how)
    sums = tuple(noisy.cells @ row for row in coefficients)
    values = moments.value(sums, split.values)
    gradient = np.stack(slopes(moments.formula, sums, split.values))
    spread = np.einsum("mg,mc->gc", gradient, coefficients)
    errors = np.sqrt(np.square(spread).sum(axis=1) * noisy.variance)
    low, high = moments.range(split.values)
    if statistic.operation == "sum":
        half = noisy.reach * errors
        return AnswerColumn(name, values, errors, values - half, values + half, integral=False, how=how)
    # Where the noise could hide the whole group, a quotient says nothing beyond its range.
    few = sums[0] <= noisy.reach * np.sqrt(np.square(coefficients[0]).sum() * noisy.variance)
    unsure = few | ~np.isfinite(errors)
    half = np.where(unsure, np.inf, noisy.reach * errors)
    return AnswerColumn(
        name,
        values,
        np.where(unsure, np.nan, errors),
        np.maximum(values - half, low),
        np.minimum(values + half, high),
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
    how = f"{way}; at most {rank:.4g} rows from the true rank, with 95 % probability"
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


def _linear(name: str, coefficients: _Floats, noisy: Noisy, how: str) -> AnswerColumn:
    values = noisy.cells @ coefficients
    errors = np.full(len(values), np.sqrt(np.square(coefficients).sum() * noisy.variance))
    half = noisy.reach * errors
    return AnswerColumn(name, values, errors, values - half, values + half, integral=True, how=how)


def _cells(split: Split) -> str:
    return "one sum" if split.cells == 1 else f"{split.cells} sums under one sensitivity"
