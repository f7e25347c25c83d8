"""Columns of dates and moments in whole microseconds. What no 64 bits hold is missing: no value wraps around."""

import datetime as dt
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["dated", "microseconds"]

_STEPS = {
    "D": Fraction(86_400_000_000),
    "s": Fraction(1_000_000),
    "ms": Fraction(1000),
    "us": Fraction(1),
    "ns": Fraction(1, 1000),
}
"""How many microseconds one count of a unit is."""
_MOST = 2**63 - 1
_START = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # moments without a zone are taken for UTC


def microseconds(column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
    """Whole microseconds since 1970, rounded down, and which of them are there; None for other types of columns.

    Guarantee:
        Each entry depends on that of the column alone. What is missing, or beyond 64 bits, is not there.

    >>> counts, there = microseconds(pa.array([1, 2**60, None], pa.timestamp("s")))
    >>> counts.tolist(), there.tolist()
    ([1000000, 0, 0], [True, False, False])
    """
    counted = _counted(column)
    if counted is None:
        return None
    counts, there, step = counted
    most = _MOST // step.numerator
    fits = there & (counts <= most) & (counts >= -most)
    return np.where(fits, counts, 0) * step.numerator // step.denominator, fits


def dated(column: Any) -> list[dt.date | None] | None:
    """The dates or moments in a column, as far as Python has years for them; None for other types of columns."""
    counted = microseconds(column)
    if counted is None:
        return None
    counts, there = counted
    moments = [_moment(count) if known else None for count, known in zip(counts.tolist(), there.tolist(), strict=True)]
    whole = pa.types.is_date(column.type) if isinstance(column, pa.Array) else np.datetime_data(column.dtype)[0] == "D"
    return [None if moment is None else moment.date() if whole else moment for moment in moments]


def _counted(column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_], Fraction] | None:
    """The counts in a column, which of them are there, and how many microseconds each is."""
    if not isinstance(column, pa.Array):
        unit, many = np.datetime_data(column.dtype) if column.dtype.kind == "M" else ("", 1)
        if unit not in _STEPS:
            return None
        return np.where(np.isnat(column), 0, column.astype(np.int64)), ~np.isnat(column), many * _STEPS[unit]
    kind = column.type
    if pa.types.is_timestamp(kind):
        counts, unit = column.cast(pa.int64()), kind.unit
    elif pa.types.is_date32(kind):
        counts, unit = column.cast(pa.int32()).cast(pa.int64()), "D"
    elif pa.types.is_date64(kind):
        counts, unit = column.cast(pa.int64()), "ms"
    else:
        return None
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return pc.fill_null(counts, 0).to_numpy(zero_copy_only=False), there, _STEPS[unit]


def _moment(count: int) -> dt.datetime | None:
    try:
        return _START + dt.timedelta(microseconds=count)
    except OverflowError:  # beyond the years that Python has
        return None
