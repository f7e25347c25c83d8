"""A released column: values, errors, intervals at any confidence; and numbers with the digits that noise leaves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers.noise_sources import ColumnNoise
from defocus.errors import InvalidParameterError, Number, UnknownColumnError, probability

__all__ = [
    "CLOSED",
    "CONFIDENCE",
    "NUMBERS",
    "SUFFIXES",
    "AnswerColumn",
    "Floats",
    "Tails",
    "brief",
    "checked_names",
    "decimals",
    "named",
    "noisy",
    "rounded",
    "written",
]


Floats: TypeAlias = NDArray[np.float64]

_UNKNOWN = 6
"""Significant digits of a number whose error nobody knows."""


def decimals(error: float, *, integral: bool = False, value: float = math.nan) -> int | None:
    """The decimals of one number: none for counts; else the coarsest power of ten at most half of its own error.

    A negative number stands for tens, hundreds and so on. A value that is smaller than its error keeps two digits of
    its own, as far as a hundredth of that step: 18.6 with an error of 255 is 19, and not 0. None where no error is
    known.

    Error:
        Rounding to a step of at most half the standard error adds at most 1/48, two percent, to the variance.

    >>> decimals(0.104), decimals(950.0), decimals(14.0, integral=True), decimals(255.0, value=18.6)
    (2, -2, 0, 0)
    """
    if integral:
        return 0
    if not math.isfinite(error) or error <= 0:
        return None
    places = -math.floor(math.log10(error / 2))
    if not 0 < abs(value) < error:
        return places
    return min(places + 2, max(places, 1 - math.floor(math.log10(abs(value)))))


def rounded(values: Any, places: Sequence[int | None]) -> Floats:
    """The values with so many decimals each; as they are where the number is unknown. Never −0."""
    return np.array([_rounded(float(value), digits) for value, digits in zip(values, places, strict=True)], np.float64)


def _rounded(value: float, places: int | None) -> float:
    # beyond, powers of ten overflow
    return value if places is None or not math.isfinite(value) or abs(places) > 300 else round(value, places) + 0.0


def written(value: Any, places: int | None) -> str:
    """One number for people: so many decimals, groups of three digits set apart, a dash where there is none.

    >>> written(-12345.678, 1), written(1234.0, -2), written(float("nan"), 0)
    ('-12 345.7', '1 200', '–')
    """
    number = float(value)
    if not math.isfinite(number):
        return "–" if math.isnan(number) else ("∞" if number > 0 else "-∞")
    if places is None or abs(places) > 15 or abs(number) >= 1e15:
        return f"{number:.{_UNKNOWN}g}"
    number = _rounded(number, places)
    return f"{number:,.{max(places, 0)}f}".replace(",", " ")


def brief(value: Any) -> str:
    """An error for people: two digits are enough to know how large it is.

    >>> brief(24.49), brief(0.003721), brief(123456.0), brief(0.0)
    ('24', '0.0037', '120 000', '0')
    """
    number = float(value)
    if not math.isfinite(number) or number == 0:
        return written(number, 0)
    return written(number, 1 - math.floor(math.log10(abs(number))))


NUMBERS = ("values", "errors", "low", "high")
"""The parts of a column that have a number for each entry."""
SUFFIXES = ("", "_error", "_low", "_high", "_reliable", "_open")
"""What is added to a column's name for its value, error, 95 % interval, flag, and which ends are open."""
CLOSED = (math.inf, -math.inf)
"""The ``limits`` of intervals that hold all that the truth may be."""
_OPEN = {(False, False): None, (False, True): "above", (True, False): "below", (True, True): "both"}

CONFIDENCE = 0.95
"""The confidence of the intervals that a column holds."""
_Z = 1.959963984540054
_NORMAL = math.sqrt(math.pi / 2)
"""The standard deviation of normal noise with an expected absolute error of 1."""


class Tails(StrEnum):
    """What is known about the noise beyond its 95 % interval."""

    NORMAL = "normal"
    LOG_CONCAVE = "log-concave"
    """Symmetric with a log-concave density: Laplace noise, normal noise, and sums of them."""
    UNKNOWN = "unknown"

    def stretch(self, confidence: float, *, sides: int = 2) -> float:
        r"""How much wider than the 95 % interval one of this confidence is; NaN where that is not known.

        ``sides`` is one for intervals without an upper end. Noise is symmetric, so that one end at :math:`1-\alpha` is
        that of two at :math:`1-2\alpha`.

        With :math:`S(x) = P(|X| > x)`, log-concave noise has :math:`S(ch) \le S(h)^c` for c of at least 1, since
        :math:`\ln S` is concave and zero at zero. For less confidence than 95 % the 95 % interval serves.

        >>> round(Tails.NORMAL.stretch(0.5), 3), round(Tails.LOG_CONCAVE.stretch(0.9975), 6), Tails.UNKNOWN.stretch(0.5)
        (0.344, 2.0, 1.0)
        >>> round(Tails.LOG_CONCAVE.stretch(0.995, sides=1), 6)
        2.0
        """
        outside, usual = 2 * (1 - confidence) / sides, 2 * (1 - CONFIDENCE) / sides
        if self is Tails.NORMAL:
            return NormalDist().inv_cdf(1 - outside / 2) / NormalDist().inv_cdf(1 - usual / 2)
        if confidence <= CONFIDENCE:
            return 1.0
        return math.log(outside) / math.log(usual) if self is Tails.LOG_CONCAVE else math.nan


@final
@dataclass(frozen=True, slots=True, eq=False)
class AnswerColumn:
    """A noisy statistic of every group or entry. All of it is released already, so it may be shown to anyone.

    ``errors`` are standard errors of the noise, or expected absolute errors where ``absolute`` says so; NaN where
    unknown. ``low`` and ``high`` bound the statistic of the bounded data with 95 % confidence, one entry at a time;
    where what was left out can only have made it smaller, ``high`` is infinite and ``low`` alone bounds the truth;
    ``integral`` is for counts; ``how`` says in words which mechanism was used and why.

    >>> column = AnswerColumn("people", [990.0], [4.0], [982.0], [998.0], integral=True, how="Laplace noise")
    >>> column.half, column.reliable(0.1)
    (array([8.]), [True])
    """

    name: str
    values: Floats
    errors: Floats
    low: Floats
    high: Floats
    integral: bool
    how: str
    absolute: bool = False
    tails: Tails = Tails.UNKNOWN
    """What intervals of another confidence follow from."""
    error_of: str = "the noise"
    """What errors and intervals are of; empty for numbers about another column, which have none."""
    noise: ColumnNoise | None = None
    """Of which independent noises it is made, where that is known: errors of what is computed from it follow."""
    limits: tuple[float, float] = CLOSED
    """How far down and up the truth may lie beyond the intervals, by rows that noise hides and nobody bounds; plus
    infinity below, and minus infinity above, where it may not: that end is closed."""
    rank: float | None = None
    """Of a quantile without intervals: within how many rows of the true rank it is, with 95 % probability."""

    def __post_init__(self) -> None:
        for field in NUMBERS:
            array = np.array(getattr(self, field), dtype=np.float64)
            if array.ndim != 1 or array.shape != np.shape(self.values):
                raise InvalidParameterError(
                    f"The {field} of the column {self.name!r:.60} have the shape {array.shape}.",
                    fix="give one number for each group.",
                )
            array.setflags(write=False)
            object.__setattr__(self, field, array)

    @property
    def places(self) -> list[int | None]:
        """How many decimals the noise of each entry leaves meaningful."""
        pairs = zip(self.values.tolist(), self.spread.tolist(), strict=True)
        return [decimals(error, integral=self.integral, value=value) for value, error in pairs]

    @property
    def spread(self) -> Floats:
        """Standard errors; where none is known, that of normal noise with the same interval, or absolute error."""
        with np.errstate(invalid="ignore"):
            normal = self.half / _Z
        if self.absolute:
            return np.where(np.isfinite(normal), normal, _NORMAL * self.errors)
        return np.where(np.isfinite(self.errors), self.errors, normal)

    @property
    def half(self) -> Floats:
        """Half the width of each interval."""
        with np.errstate(invalid="ignore"):
            return (self.high - self.low) / 2

    def interval(self, confidence: Number = CONFIDENCE) -> tuple[Floats, Floats]:
        """Low and high ends that hold the statistic with this probability, one entry at a time; NaN where not known.

        Error:
            Noise is discrete. Where a step of it is a whole count, intervals of another confidence than 95 % have room
            for one step more: a tail of whole numbers beyond c(h + 1) is at most that beyond h to the power of c.
        """
        level = float(probability("confidence", confidence, zero=False, one=False))
        if level == CONFIDENCE:
            ends = self.low, self.high
        else:
            both, one = self.tails.stretch(level), self.tails.stretch(level, sides=1)
            factor = np.where(np.isposinf(self.high), one, both)
            step = np.where(self.integral & (factor != 1), np.fmax(factor, 1.0), 0.0)
            with np.errstate(invalid="ignore"):
                below, above = factor * (self.values - self.low) + step, factor * (self.high - self.values) + step
            ends = self.values - below, self.values + above
        if len(self.values) and np.isnan(ends).all():
            raise InvalidParameterError(
                f"The column {self.name!r:.60} carries no interval with {100 * level:.6g} % confidence.",
                fix="take the interval with 95 %, or that of the unbiased numbers before processing, if there is one.",
            )
        return ends

    @property
    def opened(self) -> list[str | None]:
        """Where the truth may lie beyond each interval: "above", "below", "both"; None where it holds everything.

        >>> limits = math.inf, math.inf
        >>> AnswerColumn("visits", [9.0], [4.0], [1.0], [17.0], integral=True, how="", limits=limits).opened
        ['above']
        """
        least, most = self.limits
        if self.rank is not None and self.limits != CLOSED:  # the ends are ranks, and rows beyond a bound move both
            return [
                "both" if np.isnan(low) else _OPEN[low > least, high < most]
                for low, high in zip(self.low.tolist(), self.high.tolist(), strict=True)
            ]
        pairs = zip((self.low > least).tolist(), (self.high < most).tolist(), strict=True)
        return [_OPEN[pair] for pair in pairs]

    def reliable(self, threshold: float) -> list[bool | None]:
        """Whether the standard error is at most ``threshold`` times the value; None where no error is known."""
        with np.errstate(invalid="ignore"):
            fine = np.isfinite(self.values) & (self.spread <= threshold * np.abs(self.values))
        unknown = np.isnan(self.spread) & np.isfinite(self.values)
        return [None if unsure else bool(yes) for yes, unsure in zip(fine, unknown, strict=True)]

    def taken(self, rows: Any) -> "AnswerColumn":
        """Some of the entries, in the order given."""
        noise = None if self.noise is None else self.noise.taken(rows)
        return replace(self, noise=noise, **{field: getattr(self, field)[rows] for field in NUMBERS})

    def non_negative(self) -> "AnswerColumn":
        """Negative values raised to 0: closer to a count, but biased upwards where the truth is small.

        The ends of the interval are raised as well: it holds what it held, since a count is not negative.
        """
        arrays = {field: np.maximum(getattr(self, field), 0) for field in ("values", "low", "high")}
        how = f"{self.how}; negative values raised to 0, so biased upwards"
        return replace(self, **arrays, how=how, tails=Tails.UNKNOWN, noise=None)


def noisy(
    name: str,
    values: Any,
    *,
    error: float | Floats,
    half: float | Floats,
    how: str,
    integral: bool = True,
    tails: Tails = Tails.UNKNOWN,
    open_ended: bool = False,
) -> AnswerColumn:
    """A column of values with their expected absolute errors and half-widths, of all entries or one for each.

    ``open_ended`` intervals have no upper end; ``half`` is then what the noise exceeds with 5 % probability.

    >>> noisy("edges", [41], error=1.9, half=6, how="Laplace noise").high
    array([47.])
    """
    numbers = np.asarray(values, dtype=np.float64)
    errors, low, high = np.full_like(numbers, error), numbers - half, numbers + (math.inf if open_ended else half)
    return AnswerColumn(name, numbers, errors, low, high, integral, how, absolute=True, tails=tails)


def named(columns: Sequence[AnswerColumn], name: object) -> AnswerColumn:
    """The column of this name, or a refusal with the nearest."""
    for column in columns:
        if isinstance(name, str) and column.name == name:
            return column
    raise UnknownColumnError(name, [column.name for column in columns])


def checked_names(keys: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse names that would meet in the table of an answer. Depends on the question alone: ask before charging.

    >>> checked_names(["ward"], ["stay", "stay_error"])
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: Two columns of the answer would be called 'stay_error'.
    To fix: rename one: a column x of an answer comes with x_error, x_low, x_high and x_reliable.
    """
    seen: set[str] = set()
    for name in [*keys, *(column + suffix for column in columns for suffix in SUFFIXES)]:
        if name.casefold() in seen:
            raise InvalidParameterError(
                f"Two columns of the answer would be called {name!r:.80}.",
                fix="rename one: a column x of an answer comes with x_error, x_low, x_high and x_reliable.",
            )
        seen.add(name.casefold())
