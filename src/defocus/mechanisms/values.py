r"""The data a mechanism accepts: integers of 64 bits, and arithmetic on them that cannot leak by overflowing.

Noise is added as if the sum were unbounded, and the sum is then cut to 64 bits. Cutting is a
function of the noisy sum alone, so it is post-processing: whether it happened says nothing that
the noisy sum did not. No error depends on how large a 64-bit value is.

A value that does not fit in 64 bits is cut to them, before the noise as well: a cut moves neighbouring
values no further apart, and an error that depends on data would be a leak. Types are refused.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from defocus.errors import NotExactError, UnfitDataError

__all__ = ["LARGEST", "SMALLEST", "IntVector", "Integers", "add", "integers", "rationals", "saturate"]

IntVector: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def integers(value: object, *, length: int | None = None) -> tuple[IntVector, bool]:
    """The data as a vector of 64-bit integers, and whether it was a single number.

    >>> integers([3, 1, 4])
    (array([3, 1, 4]), False)
    """
    single = isinstance(value, Integral | Real | Decimal) or (isinstance(value, np.ndarray) and value.ndim == 0)
    vector = _vector([value] if single and not isinstance(value, np.ndarray) else value)
    if length is not None and len(vector) != length:
        raise UnfitDataError(
            f"The data has {len(vector)} entries, but this mechanism was made for {length}.",
            fix=f"pass {length} entries, or make the mechanism for {len(vector)}; that number must be public.",
        )
    return vector, single


def rationals(values: object, *, length: int) -> list[Fraction]:
    """The utilities of ``length`` candidates as exact numbers: integers or fractions of any size."""
    items = _items(values)
    for item in items:
        if isinstance(item, bool | np.bool_) or not isinstance(item, Rational):
            raise _refusal(type(item))
    if len(items) != length:
        raise UnfitDataError(
            f"There are {len(items)} utilities, but this mechanism was made for {length} candidates.",
            fix=f"pass one utility for each of the {length} candidates; the number of candidates must be public.",
        )
    return [Fraction(int(item.numerator), int(item.denominator)) for item in items]


def add(value: IntVector, noise: IntVector) -> IntVector:
    """The sum, cut to 64 bits where it does not fit."""
    total = value + noise
    wrapped = ((value ^ total) & (noise ^ total)) < 0
    return np.where(wrapped, np.where(value < 0, SMALLEST, LARGEST), total).astype(np.int64)


def saturate(value: int) -> int:
    """The nearest 64-bit integer. Neighbouring values move no further apart."""
    return max(SMALLEST, min(LARGEST, value))


def _vector(value: object) -> IntVector:
    if isinstance(value, np.ndarray) and value.dtype != object:
        array = value
    else:
        items = _items(value)
        for item in items:
            if isinstance(item, bool | np.bool_) or not isinstance(item, Integral):
                raise _refusal(type(item))
        array = np.array([saturate(int(item)) for item in items], dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise _refusal(array.dtype)
    array = np.atleast_1d(array)
    if array.ndim != 1:
        raise UnfitDataError(
            f"The data has {array.ndim} dimensions, but mechanisms take a number or a vector.",
            fix="pass array.ravel() and reshape the result.",
        )
    if not array.size:
        raise UnfitDataError("The data is an empty vector.", fix="release at least one number.")
    if array.dtype.kind == "u":
        array = np.minimum(array, np.uint64(LARGEST))
    return array.astype(np.int64)


def _items(values: object) -> list[Any]:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or isinstance(values, dict | set | frozenset):
        raise _refusal(type(values))
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise UnfitDataError(
            f"The data has {values.ndim} dimensions, but mechanisms take a number or a vector.",
            fix="pass array.ravel() and reshape the result.",
        )
    items: list[Any] = list(values)  # type: ignore[call-overload]  # anything with a length that iterates
    if not items:
        raise UnfitDataError("The data is an empty vector.", fix="release at least one number.")
    return items


def _refusal(kind: object) -> UnfitDataError:
    name = kind.__name__ if isinstance(kind, type) else str(kind)
    real = isinstance(kind, type) and kind is not bool and issubclass(kind, Real | Decimal)
    if real or (isinstance(kind, np.dtype) and kind.kind == "f"):
        return NotExactError(name)
    return UnfitDataError(
        f"A mechanism releases integers, but the data has type {name}.",
        fix="pass an int, a sequence of ints or a numpy array of integers; count booleans with sum().",
    )
