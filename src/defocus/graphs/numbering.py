"""Ends of edges as node numbers. Whatever is no node becomes -1 and is left out later: no value can raise an error."""

import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.errors import UnfitDataError

__all__ = ["NOBODY", "node_numbers"]

NOBODY = -1
"""The number of no node."""

_FAR = 2.0**62


def node_numbers(side: Any) -> NDArray[np.int64]:
    """Whole numbers as they are; missing, fractional and infinite ones, and those beyond 64 bits, as -1.

    Only the type of an array can be refused. A list of Python objects is read one by one, because numpy would
    choose its type, and so whether it is refused, by the values in it.

    >>> node_numbers([3, None, 2.0, 2.5, float("nan"), 10**30, "x"]).tolist()
    [3, -1, 2, -1, -1, -1, -1]
    """
    array = side if isinstance(side, np.ndarray) else _objects(side)
    if array.ndim != 1 or array.dtype.kind not in "iufO":
        raise UnfitDataError(
            f"Ends of edges are a column of whole numbers, but this has type {array.dtype} in {array.ndim} dimensions.",
            fix="pass node numbers 0, 1, 2, …, or name the nodes: dp.open_graph(…, nodes=names).",
        )
    if array.dtype.kind == "O":
        return np.fromiter(map(_number, array), np.int64, len(array))
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            fine = (np.abs(array) < _FAR) & (array == np.floor(array))
        return np.where(fine, array, NOBODY).astype(np.int64)
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(2**63 - 1))
    return np.ascontiguousarray(array, dtype=np.int64)


def _objects(side: Any) -> NDArray[Any]:
    if isinstance(side, str | bytes) or not hasattr(side, "__len__") or not hasattr(side, "__iter__"):
        raise UnfitDataError(
            f"Ends of edges are a list of nodes, but this has type {type(side).__name__}.",
            fix="pass two lists or arrays of the same length.",
        )
    array = np.empty(len(side), dtype=object)
    array[:] = list(side)
    return array


def _number(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        return NOBODY
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) < 2**63 else NOBODY
    number = float(value) if isinstance(value, float | np.floating) else math.nan
    return int(number) if abs(number) < _FAR and number.is_integer() else NOBODY
