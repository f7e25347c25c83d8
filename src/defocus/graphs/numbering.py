"""Ends of edges as node numbers. Whatever is no node becomes -1 and is left out later: no value can raise an error."""

import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.errors import UnfitDataError

__all__ = ["NOBODY", "node_numbers", "whole_numbers"]

NOBODY = -1
"""The number of no node."""

_FAR = 2.0**62


def node_numbers(side: Any) -> NDArray[np.int64]:
    """Whole numbers as they are; missing, fractional and infinite ones, and those beyond 64 bits, as -1.

    >>> node_numbers([3, None, 2.0, 2.5, float("nan"), 10**30, "x"]).tolist()
    [3, -1, 2, -1, -1, -1, -1]
    """
    numbers, whole = whole_numbers(side)
    return numbers if whole.all() else np.where(whole, numbers, NOBODY)


def whole_numbers(side: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers in a column, and which of its entries are whole numbers of 64 bits.

    Only the type of an array can be refused. A list of Python objects is read one by one, because numpy would
    choose its type, and so whether it is refused, by the values in it.
    """
    array = side if isinstance(side, np.ndarray) else _objects(side)
    if array.ndim != 1 or array.dtype.kind not in "iufO":
        raise UnfitDataError(
            f"Ends of edges are a column of whole numbers, but this has type {array.dtype} in {array.ndim} dimensions.",
            fix="pass node numbers 0, 1, 2, …, or name the nodes: dp.open_graph(…, nodes=names).",
        )
    if array.dtype.kind == "O":
        found = [_number(value) for value in array]
        whole = np.fromiter((number is not None for number in found), np.bool_, len(found))
        return np.fromiter((number or 0 for number in found), np.int64, len(found)), whole
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = (np.abs(array) < _FAR) & (array == np.floor(array))
        return np.where(whole, array, 0).astype(np.int64), whole
    fits = array <= np.uint64(2**63 - 1) if array.dtype == np.uint64 else np.ones(len(array), np.bool_)
    return np.ascontiguousarray(np.where(fits, array, 0) if array.dtype == np.uint64 else array, dtype=np.int64), fits


def _objects(side: Any) -> NDArray[Any]:
    if isinstance(side, str | bytes) or not hasattr(side, "__len__") or not hasattr(side, "__iter__"):
        raise UnfitDataError(
            f"Ends of edges are a list of nodes, but this has type {type(side).__name__}.",
            fix="pass two lists or arrays of the same length.",
        )
    array = np.empty(len(side), dtype=object)
    for place, value in enumerate(side):
        array[place] = value
    return array


def _number(value: Any) -> int | None:
    try:
        return _whole(value)
    except Exception:  # noqa: BLE001  # an object may refuse in any way, and names no node then
        return None


def _whole(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, Integral):
        return int(value) if -(2**63) <= int(value) < 2**63 else None
    number = float(value) if isinstance(value, float | np.floating) else math.nan
    return int(number) if abs(number) < _FAR and number.is_integer() else None
