"""Weights and times of edges as numbers. Types can be refused; what is missing or no number stays missing."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from defocus.errors import UnfitDataError
from defocus.graphs.data import MISSING_TIME
from defocus.graphs.node_names import Column, key, whole_numbers
from defocus.graphs.timestamps import microseconds
from defocus.privacy.numbers import nearest

__all__ = ["times_of", "weights_of"]


def weights_of(column: Column | None) -> NDArray[np.float64] | None:
    """Weights as floats; what is missing or no number is NaN, and what is too large for a float is infinite."""
    if column is None:
        return None
    kind = column.type if isinstance(column, pa.Array) else column.dtype
    if isinstance(column, pa.Array) and (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    ):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            return np.asarray(column, dtype=np.float64)
    if not isinstance(column, np.ndarray) or column.dtype.kind != "O":
        raise UnfitDataError(f"Weights of the type {str(kind)[:60]} are not numbers.", fix="convert the column first.")
    return np.fromiter((_weight(value) for value in column.tolist()), np.float64, len(column))


def times_of(column: Column | None) -> NDArray[np.int64] | None:
    """Times as whole microseconds, or the whole numbers they are; what is neither, or beyond 64 bits, is missing.

    Whole numbers may be floats, as pandas writes them where one is missing: that must not decide what can be read.
    """
    if column is None:
        return None
    if not isinstance(column, pa.Array) and column.dtype.kind == "O":
        return np.fromiter((_time(value) for value in column.tolist()), np.int64, len(column))
    if not isinstance(column, pa.Array) and column.dtype.kind in "iuf":
        numbers, whole = whole_numbers(column)
        return np.where(whole, numbers, MISSING_TIME)
    if (counted := microseconds(column)) is not None:
        return np.where(counted[1], counted[0], MISSING_TIME)
    if not isinstance(column, pa.Array):
        raise _no_times()
    if pa.types.is_null(column.type):
        return np.full(len(column), MISSING_TIME, np.int64)
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        raise _no_times()
    numbers, whole = whole_numbers(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
    return np.where(whole & column.is_valid().to_numpy(zero_copy_only=False), numbers, MISSING_TIME)


def _no_times() -> UnfitDataError:
    return UnfitDataError("Times are neither dates nor whole numbers.", fix="convert the column of times first.")


def _weight(value: Any) -> float:
    try:
        return _nearest(value)
    except Exception:  # noqa: BLE001  # a value may refuse in any way, also to say what it is
        return math.nan


def _nearest(value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating | Decimal | Fraction)
    return math.nan if isinstance(value, bool) or not number else nearest(value)


def _time(value: Any) -> int:
    """A whole number of 64 bits, or the microseconds of a date or a moment, by the same rule as names have."""
    try:
        found = key(value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value)
    except Exception:  # noqa: BLE001  # a value may refuse in any way, also to say what it is
        return MISSING_TIME
    if isinstance(found, tuple) and found[0] == "date":
        found = (int(found[1]) - dt.date(1970, 1, 1).toordinal()) * 86_400_000_000
    elif isinstance(found, tuple) and found[0] == "moment":
        found = int(found[1])
    return found if isinstance(found, int) and -(2**63) <= found < 2**63 else MISSING_TIME
