"""Cells of tables as numbers and labels, so that no single one can make a fit fail.

What a column is declared to be, its type, decides whether it is refused; what is in it never does. Where the type
admits anything (objects, lists), every cell has an outcome: a number, or text that spells one, is that number, and all
else is NaN, which estimators declare what it counts as; a label is a number or a text, and all else is nobody's.
"""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from defocus.errors import UnfitDataError
from defocus.learning.estimators.balls import Floats, Matrix

__all__ = ["family", "marks", "numbers", "table"]

_NUMBERS = "biuf"
_TEXTS = ("str", "string", "large_string", "utf8", "enum", "categorical")
_ANYTHING = {"object", "category"}


def table(X: Any) -> Matrix:
    """Rows of numbers from an array, a frame, a sparse matrix or lists; shapes are left as they are."""
    if sp.issparse(X):
        _refuse_types(X.dtype, "X")
        return X
    columns = _columns(X)
    if columns is not None:
        made = [_as_numbers(column, f"The feature {str(name)!r:.60}") for name, column in columns]
        return np.column_stack(made) if made else np.empty((len(X), 0))
    return _as_numbers(X, "X")


def numbers(y: Any) -> Floats:
    """Targets as numbers."""
    return _as_numbers(y, "y")


def marks(y: Any) -> NDArray[Any]:
    """Labels of one type as they are; of any type as whole numbers, fractions and texts, and None for nobody's.

    Zero has no sign, and lists have no type: truth values in one are numbers, as they would be beside other numbers.
    """
    found = _array(y)
    if found.dtype.kind == "b" and not hasattr(y, "dtype"):
        return found.astype(np.int64)
    if found.dtype.kind == "f":
        return found + 0.0
    if found.dtype.kind in _NUMBERS + "UM":
        return found
    if found.dtype.kind not in "OT":
        raise _unfit("y", found.dtype, "pass numbers, texts or dates.")
    made = np.empty(found.size, dtype=object)
    made[:] = [_mark(value) for value in found.ravel().tolist()]
    return made.reshape(found.shape)


def family(values: Any) -> str | None:
    """What labels are by their type alone: numbers, texts, or None where the type does not say."""
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", "O")
    if kind in _NUMBERS:
        return "numbers"
    return "texts" if kind in "UT" or _is_text(dtype) else None


def _columns(X: Any) -> Sequence[tuple[Any, Any]] | None:
    """Names and columns of a frame of pandas or polars."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return [(name, X.iloc[:, place]) for place, name in enumerate(X.columns)]
    if hasattr(X, "get_columns"):
        return [(column.name, column) for column in X.get_columns()]
    return None


def _as_numbers(values: Any, what: str) -> Floats:
    """Numbers of any shape."""
    dtype = getattr(values, "dtype", None)
    if str(dtype) == "category":
        dtype = values.cat.categories.dtype if hasattr(values, "cat") else values.categories.dtype
    if dtype is not None:
        _refuse_types(dtype, what)
        if str(dtype) in _ANYTHING:
            warnings.warn(
                f"{what} is of type {dtype}: what is no number in it counts as missing.", UserWarning, stacklevel=6
            )
    found = _array(values)
    if found.dtype.kind in _NUMBERS + "c":  # complex numbers are refused by their type, by who asks
        return found
    made = np.array([_number(value) for value in found.ravel().tolist()], dtype=np.float64)
    return made.reshape(found.shape)


def _array(values: Any) -> NDArray[Any]:
    """An array. Lists have no type: unless all of them are numbers, they are objects, so that none changes others."""
    if hasattr(values, "dtype") or hasattr(values, "__array__"):
        return np.asarray(values)
    with suppress(ValueError):
        found = np.asarray(values)
        if found.dtype.kind in _NUMBERS:
            return found
    return _listed(values)


def _listed(values: Any) -> NDArray[Any]:
    """Lists as objects: in rows and columns where all of them are lists of one length, else one beside the other."""
    rows = list(values)
    widths = {len(row) if isinstance(row, list | tuple) or getattr(row, "ndim", 0) == 1 else -1 for row in rows}
    width = widths.pop() if len(widths) == 1 else -1
    made = np.empty(len(rows) if width < 0 else (len(rows), width), dtype=object)
    for place, row in enumerate(rows):
        for column, cell in enumerate(row if width >= 0 else ()):
            made[place, column] = cell
        if width < 0:
            made[place] = row
    return made


def _refuse_types(dtype: Any, what: str) -> None:
    """Refuse a type that holds no numbers, whatever is in it."""
    if _is_text(dtype) or getattr(dtype, "kind", "O") in "USTMmV":
        raise _unfit(what, dtype, "encode it first, over declared categories or as numbers.")


def _is_text(dtype: Any) -> bool:
    return str(dtype).lower().split("[")[0].split("(")[0] in _TEXTS


def _unfit(what: str, dtype: Any, fix: str) -> UnfitDataError:
    return UnfitDataError(f"{what} is of type {str(dtype)[:40]}, which does not fit.", fix=fix)


def _number(value: Any) -> float:
    """One cell as a number: NaN for what is none, infinity beyond the range of floats."""
    try:
        if isinstance(value, str | bool | np.bool_ | Decimal | Real):
            return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except Exception:  # noqa: BLE001, S110 # whatever a cell does, it is one that is no number
        pass
    return float("nan")


def _mark(value: Any) -> int | float | str | None:
    """One label; equal numbers are one label, however they are written."""
    try:
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, bool | np.bool_ | Integral):
            return int(value)
        if isinstance(value, Decimal | Real):
            number = float(value)
            return None if number != number else int(number) if number.is_integer() else number  # noqa: PLR0124 # NaN
    except Exception:  # noqa: BLE001, S110 # whatever a label does, it is nobody's
        pass
    return None
