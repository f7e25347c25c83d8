"""Columns of numpy, pandas, polars and Arrow, read by the type that is declared for them and never by their cells.

``numpy.asarray`` gives a nullable column of truth values or whole numbers another type as soon as one cell of it is
missing: objects, or floats that hold no whole number beyond 2**53 exactly. A type that one row can switch tells of that
row, so here the type that a column has without missing cells is the one it has with them.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["columns_of", "declared", "read_column"]

_NAMES = {"b": "bool(ean)?", "i": "int(8|16|32|64)", "u": "uint(8|16|32|64)", "f": "(half)?float(16|32|64)?|double"}
"""What types of numbers are called by pandas, polars and Arrow."""
_WIDEST = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64"}
_IN_PLACE = {"b": False, "i": 0, "u": 0, "f": math.nan}


def declared(values: Any) -> Any:
    """The type that is declared for a column, that of its categories where it has some; None where there is none."""
    if _categories(values) is not None:
        return _categories(values).dtype
    return getattr(values, "dtype", None) if hasattr(values, "dtype") else getattr(values, "type", None)


def columns_of(table: Any) -> Sequence[tuple[Any, Any]] | None:
    """Names and columns of a frame of pandas or polars or a table of Arrow; None for anything else."""
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return [(name, table.iloc[:, place]) for place, name in enumerate(table.columns)]
    if hasattr(table, "get_columns"):
        return [(column.name, column) for column in table.get_columns()]
    if hasattr(table, "itercolumns") and hasattr(table, "column_names"):
        return list(zip(table.column_names, table.itercolumns(), strict=True))
    return None


def read_column(values: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The cells as an array of the declared type, and which of them are there; None where the type misses none.

    Missing numbers of a type with fractions are NaN, as ever; cells of objects are given as they are.

    >>> import pandas as pd
    >>> read_column(pd.array([True, None], dtype="boolean"))
    (array([ True, False]), array([ True, False]))
    >>> read_column(pd.array([2**60 + 1, None], dtype="Int64"))[0].dtype
    dtype('int64')
    """
    categories = _categories(values)
    if categories is not None:
        found, there = read_column(categories)
        codes = np.asarray((values.cat if hasattr(values, "cat") else values).codes)
        if not len(found):
            return np.full(len(codes), None, dtype=object), None
        return found[codes], codes >= 0 if there is None else (codes >= 0) & there[codes]
    if str(declared(values)).startswith("dictionary<"):
        return read_column(values.cast(values.type.value_type))
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(values), ~np.ma.getmaskarray(values)
    kind = _nullable(values)
    return (np.asarray(values), None) if kind is None else _filled(values, kind)


def _filled(values: Any, kind: str) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Numbers of a column whose library knows missing ones, with anything in their place."""
    if hasattr(values, "isna"):
        found = values.to_numpy(dtype=_WIDEST[kind], na_value=_IN_PLACE[kind])
        missing = values.isna()
    else:
        found = np.asarray(values if kind == "f" else values.fill_null(_IN_PLACE[kind]))
        missing = values.is_null()
    return found, None if kind == "f" else ~np.asarray(missing, dtype=np.bool_)


def _categories(values: Any) -> Any:
    """The categories of a column of pandas."""
    if str(getattr(values, "dtype", None)) != "category":
        return None
    return values.cat.categories if hasattr(values, "cat") else values.categories


def _nullable(values: Any) -> str | None:
    """The kind of numbers of a column whose library knows missing ones, by numpy's letter; None for any other."""
    dtype = declared(values)
    if isinstance(dtype, np.dtype) or not (hasattr(values, "isna") or hasattr(values, "fill_null")):
        return None
    name = str(dtype).lower().split("[")[0]
    return next((kind for kind, names in _NAMES.items() if re.fullmatch(names, name)), None)
