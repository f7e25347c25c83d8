"""Weights and times of edges as numbers. Types can be refused; what is missing or no number stays missing."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from defocus.errors import UnfitDataError
from defocus.graphs.naming import Column
from defocus.graphs.pairs import MISSING_TIME

__all__ = ["times_of", "weights_of"]


def weights_of(column: Column | None) -> NDArray[np.float64] | None:
    """Weights as floats; what is missing or no number is NaN."""
    if column is None:
        return None
    kind = column.type if isinstance(column, pa.Array) else column.dtype
    if isinstance(column, pa.Array) and (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    ):
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return np.asarray(column, dtype=np.float64)
    if not isinstance(column, np.ndarray) or column.dtype.kind != "O":
        raise UnfitDataError(f"Weights of the type {str(kind)[:60]} are not numbers.", fix="convert the column first.")
    numbers = (float(x) if isinstance(x, int | float) and not isinstance(x, bool) else np.nan for x in column.tolist())
    return np.fromiter(numbers, np.float64, len(column))


def times_of(column: Column | None) -> NDArray[np.int64] | None:
    """Times as whole microseconds, or the whole numbers they are."""
    if column is None:
        return None
    if not isinstance(column, pa.Array):
        column = pa.array(column.tolist(), from_pandas=True) if column.dtype.kind == "O" else pa.array(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
        raise UnfitDataError("Times are neither dates nor whole numbers.", fix="convert the column of times first.")
    filled = pc.fill_null(column.cast(pa.int64()), MISSING_TIME)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)
