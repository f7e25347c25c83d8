"""What can be asked of each group: ``dp.count()``, ``dp.mean("age", 0, 120)``, ``dp.quantile(...)`` and their kin."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

from defocus.engines.schema import bounds as checked_bounds
from defocus.errors import InvalidParameterError, Number, finite, probability, whole
from defocus.errors import count as counted

__all__ = [
    "FIND",
    "Aggregate",
    "Argument",
    "Distinct",
    "Histogram",
    "Quantile",
    "Statistic",
    "Units",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "quantiles",
    "ratio",
    "stands_for",
    "std",
    "sum",
    "variance",
    "weighted_mean",
]

FIND = "find"
"""``bounds="find"``: let a share of the budget find the bounds."""
_BUCKETS = 1024
_EXTREME = Fraction(1, 200)
"""Minimum and maximum are the quantiles this far from the ends: beyond, single people would decide."""


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """A column or expression, its bounds if they were given here, and what stands for a missing value."""

    text: str
    low: Number | None = None
    high: Number | None = None
    find: bool = False
    missing: Number | None = None


@final
@dataclass(frozen=True, slots=True)
class Statistic:
    """Something that follows from sums: ``operation`` is a name in :data:`~defocus.tables.estimates.MOMENTS`."""

    operation: str
    arguments: tuple[Argument, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Units:
    """The number of people."""


@final
@dataclass(frozen=True, slots=True)
class Distinct:
    """The number of different values, of which one person brings at most ``at_most``."""

    text: str
    at_most: int


@final
@dataclass(frozen=True, slots=True)
class Quantile:
    """Values below which given shares of the rows lie; ``single`` if there is one and it is shown as a number."""

    argument: Argument
    levels: tuple[Fraction, ...]
    buckets: int = _BUCKETS
    single: bool = True
    intervals: bool = False
    """Whether intervals are wanted, even where a choice without them would err less."""


@final
@dataclass(frozen=True, slots=True)
class Histogram:
    """How many rows lie between neighbouring edges; what lies outside them counts in the outermost."""

    text: str
    edges: tuple[float, ...]


Aggregate: TypeAlias = Statistic | Units | Distinct | Quantile | Histogram


def count(column: str | None = None) -> Statistic:
    """The number of rows, or of those in which ``column`` is not missing.

    >>> count()
    Statistic(operation='count', arguments=())
    >>> count("age")
    Statistic(operation='count', arguments=(Argument(text='age', low=None, high=None, find=False, missing=None),))
    """
    return Statistic("count", () if column is None else (Argument(_text(column)),))


def count_units() -> Units:
    """The number of people: units of a user-level table, rows of a row-level one.

    >>> count_units()
    Units()
    """
    return Units()


def count_distinct(column: str, *, at_most: int = 1) -> Distinct:
    """The number of different values of ``column``, where one person brings at most ``at_most`` of them.

    >>> count_distinct("city", at_most=2)
    Distinct(text='city', at_most=2)
    """
    return Distinct(_text(column), counted("at_most", at_most))


def sum(  # noqa: A001  # reads as dp.sum
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The sum of ``column``, each value clipped to [``low``, ``high``].

    >>> sum("age", 0, 120)
    Statistic(operation='sum', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("sum", (_argument(column, low, high, bounds, missing),))


def mean(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The mean of ``column``, each value clipped to [``low``, ``high``].

    >>> mean("age", 0, 120)
    Statistic(operation='mean', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("mean", (_argument(column, low, high, bounds, missing),))


def variance(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The variance of ``column``, each value clipped to [``low``, ``high``].

    >>> variance("age", 0, 120)
    Statistic(operation='variance', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("variance", (_argument(column, low, high, bounds, missing),))


def std(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, missing: Any = None
) -> Statistic:
    """The standard deviation of ``column``, each value clipped to [``low``, ``high``].

    >>> std("age", 0, 120)
    Statistic(operation='std', arguments=(Argument(text='age', low=0, high=120, find=False, missing=None),))
    """
    return Statistic("std", (_argument(column, low, high, bounds, missing),))


def covariance(x: str, y: str, *, x_bounds: Any = None, y_bounds: Any = None) -> Statistic:
    """The covariance of two columns over the rows that have both.

    >>> [each.text for each in covariance("age", "cost", x_bounds=(0, 120), y_bounds=(0, 500)).arguments]
    ['age', 'cost']
    """
    return Statistic("covariance", (_argument(x, None, None, x_bounds), _argument(y, None, None, y_bounds)))


def correlation(x: str, y: str, *, x_bounds: Any = None, y_bounds: Any = None) -> Statistic:
    """Pearson's correlation of two columns over the rows that have both.

    >>> [each.text for each in correlation("age", "cost", x_bounds=(0, 120), y_bounds=(0, 500)).arguments]
    ['age', 'cost']
    """
    return Statistic("correlation", (_argument(x, None, None, x_bounds), _argument(y, None, None, y_bounds)))


def ratio(
    numerator: str, denominator: str, *, numerator_bounds: Any = None, denominator_bounds: Any = None
) -> Statistic:
    """The sum of one column divided by the sum of another, over the rows that have both.

    >>> ratio("cost", "days", numerator_bounds=(0, 500), denominator_bounds=(0, 30)).operation
    'ratio'
    """
    top, bottom = (
        _argument(numerator, None, None, numerator_bounds),
        _argument(denominator, None, None, denominator_bounds),
    )
    return Statistic("ratio", (top, bottom))


def weighted_mean(column: str, weight: str, *, bounds: Any = None, weight_bounds: Any = None) -> Statistic:
    """The mean of ``column`` in which each row counts with its ``weight``.

    >>> weighted_mean("cost", "days", bounds=(0, 500), weight_bounds=(0, 30)).operation
    'weighted_mean'
    """
    return Statistic(
        "weighted_mean", (_argument(column, None, None, bounds), _argument(weight, None, None, weight_bounds))
    )


def quantile(
    column: str,
    level: Number,
    low: Number | None = None,
    high: Number | None = None,
    *,
    bounds: Any = None,
    buckets: int = _BUCKETS,
    intervals: bool = False,
) -> Quantile:
    """The value below which a share ``level`` of the rows lies, on a public grid of ``buckets`` between the bounds.

    ``intervals`` asks for an interval around it, which a tree of noisy sums gives; without, a single quantile is chosen
    by the exponential mechanism, which errs less but tells its error in ranks only.

    >>> quantile("age", 0.9, 0, 120).levels
    (Fraction(9, 10),)
    """
    return Quantile(
        _argument(column, low, high, bounds), (_level(level),), _buckets(buckets), intervals=bool(intervals)
    )


def quantiles(
    column: str,
    levels: Sequence[Number],
    low: Number | None = None,
    high: Number | None = None,
    *,
    bounds: Any = None,
    buckets: int = _BUCKETS,
    intervals: bool = False,
) -> Quantile:
    """Several quantiles at once, for one cost, in rising order.

    >>> len(quantiles("age", [0.25, 0.5, 0.75], 0, 120).levels)
    3
    """
    wanted = tuple(_level(level) for level in levels)
    if not wanted or list(wanted) != sorted(set(wanted)):
        raise InvalidParameterError(
            "Quantiles need levels in rising order, each once.", fix="write for example [0.25, 0.5, 0.75]."
        )
    return Quantile(
        _argument(column, low, high, bounds), wanted, _buckets(buckets), single=False, intervals=bool(intervals)
    )


def median(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, **how: Any
) -> Quantile:
    """The quantile of one half.

    >>> median("age", 0, 120).levels
    (Fraction(1, 2),)
    """
    return quantile(column, Fraction(1, 2), low, high, bounds=bounds, **how)


def min(  # noqa: A001  # reads as dp.min
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, **how: Any
) -> Quantile:
    """Nearly the smallest value: the quantile of 0.5 %. The very smallest belongs to one person, so it is not asked.

    >>> min("age", 0, 120).levels
    (Fraction(1, 200),)
    """
    return quantile(column, _EXTREME, low, high, bounds=bounds, **how)


def max(  # noqa: A001  # reads as dp.max
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, **how: Any
) -> Quantile:
    """Nearly the largest value: the quantile of 99.5 %. The very largest belongs to one person, so it is not asked.

    >>> max("age", 0, 120).levels
    (Fraction(199, 200),)
    """
    return quantile(column, 1 - _EXTREME, low, high, bounds=bounds, **how)


def histogram(column: str, edges: Sequence[Number]) -> Histogram:
    """How many rows lie in [e0, e1), [e1, e2), …; what lies outside the edges counts in the outermost.

    >>> histogram("age", [0, 18, 65, 120]).edges
    (0.0, 18.0, 65.0, 120.0)
    """
    given: object = edges
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidParameterError(
            f"The edges of a histogram are {type(given).__name__}.", fix="write them out, for example [0, 10, 20]."
        )
    numbers = tuple(float(finite("an edge", edge)) for edge in edges)
    if len(numbers) < 2 or any(a >= b for a, b in itertools.pairwise(numbers)):
        raise InvalidParameterError(
            "A histogram needs at least two rising edges.", fix="write for example [0, 10, 20]."
        )
    return Histogram(_text(column), numbers)


def _text(column: object) -> str:
    if not isinstance(column, str) or not column.strip():
        raise InvalidParameterError(
            f"An aggregate is about a column, but got {type(column).__name__}.", fix="pass the column's name as text."
        )
    return column


def _argument(column: str, low: Any, high: Any, bounds: Any, missing: Any = None) -> Argument:
    text = _text(column)
    if bounds is not None and (low is not None or high is not None):
        raise InvalidParameterError("Bounds were given twice.", fix="give low and high, or bounds=, not both.")
    if isinstance(bounds, str) and bounds == FIND:
        if missing is not None:
            raise InvalidParameterError(
                "A value that stands for missing ones must lie within known bounds.",
                fix="give bounds, or leave missing= out.",
            )
        return Argument(text, find=True)
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
    if low is None:
        return Argument(text, missing=missing)
    bottom, top = checked_bounds(text, low, high)
    stands_for(missing, bottom, top)
    return Argument(text, bottom, top, missing=missing)


def stands_for(missing: Any, low: Number | None, high: Number | None) -> None:
    """Refuse a value for missing ones that lies outside the bounds."""
    if missing is not None and low is not None and high is not None and not low <= finite("missing", missing) <= high:
        raise InvalidParameterError("missing must lie within the bounds.", fix=f"choose missing in [{low}, {high}].")


def _level(level: object) -> Fraction:
    number = probability("level", level, zero=False, one=False)
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def _buckets(buckets: object) -> int:
    number = whole("buckets", buckets, at_least=2)
    if number > 1 << 16:
        raise InvalidParameterError(f"buckets is {number}.", fix="use at most 65536.")
    return number
