"""Statistics that follow from sums of values and of their products, and how their errors follow from the noise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from defocus.tables.splits import Scaled

__all__ = ["MOMENTS", "Formula", "Moments", "slopes"]

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
