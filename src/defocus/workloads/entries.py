"""Whole numbers of data that nobody declared a type for: each has a meaning by itself, so that none can be refused.

An error that depends on one entry tells of whoever is in it. What has a type, as arrays and columns of frames do, is
refused for that type, whatever is in it; what has none, as lists do, is read entry by entry.
"""

import math
from typing import Any

import numpy as np

from defocus.errors.plain import guarded, number
from defocus.mechanisms.columns import read_column
from defocus.mechanisms.parameters import LARGEST, SMALLEST, IntVector, integers

__all__ = ["code", "entries", "entry"]


def entries(values: Any, *, length: int | None = None) -> IntVector:
    """A vector of whole numbers, cut to 64 bits; other types, containers and lengths are refused.

    >>> entries([3, None, 2.5, 2**70]).tolist()
    [3, 0, 2, 9223372036854775807]
    """
    if hasattr(values, "dtype") and getattr(values, "ndim", 1) == 1 and not isinstance(values, np.generic):
        found, there = read_column(values)
        if found.dtype.kind == "u":
            found = np.minimum(found, np.array(LARGEST, np.uint64)).astype(np.int64)
        values = found if there is None else np.where(there, found, np.zeros((), found.dtype))
        if found.dtype.kind != "O":
            return integers(values, length=length)[0]
    if isinstance(values, str | bytes | dict | set | frozenset) or not hasattr(values, "__len__"):
        return integers(values, length=length)[0]
    if getattr(values, "ndim", 1) != 1:
        return integers(np.asarray(values), length=length)[0]
    return integers([entry(value) for value in values], length=length)[0]


def entry(value: Any) -> int:
    """A number as a whole one of 64 bits: fractions are rounded down, and what is no number is zero.

    Rounding down moves two numbers no further apart than the whole number above their distance.
    """
    return guarded(_entry, value, 0)


def code(value: Any) -> int:
    """The code of one attribute: a whole number as it is, cut to 64 bits, and zero for all else.

    >>> [code(value) for value in (3, True, 2.0, 2.5, None, "3")]
    [3, 1, 2, 0, 0, 0]
    """
    return guarded(_code, value, 0)


def _entry(value: Any) -> int:
    found: Any = number(value)
    return LARGEST if found >= LARGEST else SMALLEST if found <= SMALLEST else math.floor(found)


def _code(value: Any) -> int:
    found: Any = number(value)
    return 0 if isinstance(found, str) or found % 1 else _entry(found)
