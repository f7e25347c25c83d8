r"""Fixed point: how fractional data becomes integers without losing its sensitivity bound.

Rounding changes sensitivity, and where it happens decides by how much:

*Each record before summing* (:meth:`Grid.contributions`, :meth:`Grid.total`). Clip every record to
[low, high] and round it. A record then contributes an integer in [L, H], the rounded bounds, and
the sum of integers is exact. One record added or removed moves the sum by at most
:math:`\max(|L|, |H|)`, one replaced by at most :math:`H - L`. Nothing else enters: not the rounding error,
not the number of records, not the order of summation. This is the safe way for floats.

*The statistic after computing it* (:meth:`Grid.nearest`, :meth:`Grid.sensitivity`). If a real-valued f
moves by at most :math:`\Delta` and :math:`g = \lfloor f/s + 1/2 \rfloor`, then
:math:`|g - g'| < \Delta/s + 1`, so :math:`|g - g'| \le \lceil\Delta/s\rceil`; for a vector of which k
entries move, the L1 distance is at most :math:`\lceil\Delta_1/s\rceil + k - 1`. Halves must go up: with
halves to even, 0.5 and 1.5 are one apart and become 0 and 2. And f must have been computed exactly: a sum of
floats depends on rounding and order, and may move by more than :math:`\Delta`, so floats are refused here.

Reference: Mironov (2012), On significance of the least significant bits for differential privacy;
Casacuberta, Shoemate, Vadhan, Wagaman (2022), Widespread underestimation of sensitivity in
differentially private libraries and how to fix it.

Columns of numpy, pandas, polars and Arrow, read by the type that is declared for them and never by their cells.

``numpy.asarray`` gives a nullable column of truth values or whole numbers another type as soon as one cell of it is
missing: objects, or floats that hold no whole number beyond 2**53 exactly. A type that one row can switch tells of that
row, so here the type that a column has without missing cells is the one it has with them.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, NotExactError, Number, UnfitDataError, count, finite, positive
from defocus.errors.checks import guarded, number
from defocus.mechanisms.mechanism import IntVector, saturate
from defocus.privacy.numbers import nearest

__all__ = ["Grid", "Values", "columns_of", "declared", "read_column"]


_WIDEST = 2**53
"""Bounds beyond this many steps could not be told apart as floats."""

Values: TypeAlias = Sequence[float | Fraction | Decimal | None] | NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class Grid:
    r"""The multiples of ``step``: fractional records become integers, and noisy integers become decimals again.

    Guarantee:
        :meth:`total` of two data sets that differ in one record differs by at most
        :meth:`bound`, whatever the records are: infinities are clipped, NaN is the declared
        ``missing`` value, and a total that does not fit in 64 bits is cut to fit (a cut moves
        neighbouring totals no further apart).
    Assumes:
        ``step``, ``low``, ``high`` and ``missing`` are chosen without looking at the data.

    Error:
        A record within the bounds is rounded by at most half a step, up to the last place of a float.
    Reference:
        The derivation, and what is unsafe, is at the top of this module.

    >>> from defocus.mechanisms import Laplace
    >>> pressures = [118.5, 131.25, float("nan"), 240.0, 97.5]
    >>> grid = Grid("0.5")
    >>> total = grid.total(pressures, low=80, high=200, missing=120)
    >>> grid.bound(low=80, high=200, replace=True)
    240
    >>> mechanism = Laplace.calibrated(epsilon=1, sensitivity=240)
    >>> mean = grid.decimal(mechanism.sample(total)) / len(pressures)
    """

    step: Fraction

    def __init__(self, step: Number | Decimal | str) -> None:
        object.__setattr__(self, "step", _step(step))

    def contributions(self, values: Values, *, low: Number, high: Number, missing: Number | None = None) -> IntVector:
        """Each record clipped to [``low``, ``high``] and rounded to the grid, as integers; none for no records.

        NaN becomes ``missing``, which is the bound nearest to zero unless it is given.

        >>> Grid(Fraction(1, 10)).contributions([0.26, -5.0, float("nan")], low=0, high=1).tolist()
        [3, 0, 0]
        """
        least, most = self._bounds(low, high)
        blank = max(least, min(most, 0)) if missing is None else self._missing(missing, least, most)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = _records(values) / float(self.step)
        known = np.nan_to_num(steps, nan=0.0, posinf=most, neginf=least)
        rounded = np.clip(np.floor(np.clip(known, least, most) + 0.5), least, most).astype(np.int64)
        return np.where(np.isnan(steps), blank, rounded)

    def total(self, values: Values, *, low: Number, high: Number, missing: Number | None = None) -> int:
        """The exact sum of the contributions, cut to 64 bits. The number of records may be zero."""
        parts = self.contributions(values, low=low, high=high, missing=missing)
        return saturate((int((parts >> 32).sum()) << 32) + int((parts & 0xFFFFFFFF).sum()))

    def bound(self, *, low: Number, high: Number, replace: bool = False) -> int:
        """How far one record can move a total, in steps: added or removed, or replaced by another.

        >>> Grid(1).bound(low=0, high=30), Grid(1).bound(low=80, high=200, replace=True)
        (30, 120)
        """
        least, most = self._bounds(low, high)
        return max(1, most - least if replace else max(abs(least), abs(most)))

    @overload
    def nearest(self, value: int | Fraction) -> int: ...
    @overload
    def nearest(self, value: Sequence[int | Fraction]) -> IntVector: ...
    def nearest(self, value: int | Fraction | Sequence[int | Fraction]) -> int | IntVector:
        """An exactly computed statistic in steps, halves rounded up; owes :meth:`sensitivity`.

        >>> Grid("0.01").nearest(Fraction(1, 3))
        33
        """
        single = not hasattr(value, "__len__")
        items: list[Any] = [value] if single else list(value)  # type: ignore[arg-type]
        for item in items:
            if isinstance(item, bool) or not isinstance(item, Rational):
                raise NotExactError(type(item).__name__)
        if not items:
            raise UnfitDataError("The data is an empty vector.", fix="release at least one number.")
        rounded = [saturate(_half_up(Fraction(item) / self.step)) for item in items]
        return rounded[0] if single else np.array(rounded, dtype=np.int64)

    def sensitivity(self, bound: Number, *, entries: int = 1) -> int:
        """The L1 sensitivity in steps of a statistic rounded by :meth:`nearest`, from its real L1 sensitivity.

        ``entries`` is how many entries of the statistic one unit can change.

        >>> Grid("0.01").sensitivity(Fraction(1, 3)), Grid(1).sensitivity(2, entries=3)
        (34, 4)
        """
        exact = Fraction(positive("bound", bound)) / self.step
        return count("the sensitivity in steps", math.ceil(exact) + count("entries", entries) - 1)

    @overload
    def decimal(self, result: int) -> float: ...
    @overload
    def decimal(self, result: IntVector) -> NDArray[np.float64]: ...
    def decimal(self, result: int | IntVector) -> float | NDArray[np.float64]:
        """A noisy result, or its error or half-width, in the units of the data. Post-processing, so it is free.

        >>> Grid("0.5").decimal(257)
        128.5
        """
        if isinstance(result, np.ndarray):
            return np.asarray(result, dtype=np.float64) * float(self.step)
        try:
            return float(Fraction(finite("result", result)) * self.step)
        except OverflowError:
            raise InvalidParameterError("result is beyond the range of floats.", fix="pass a 64-bit result.") from None

    def _bounds(self, low: Number, high: Number) -> tuple[int, int]:
        bottom, top = Fraction(finite("low", low)), Fraction(finite("high", high))
        if bottom >= top:
            raise InvalidParameterError(
                f"low must be below high, but low is {low} and high is {high}.",
                fix="declare bounds that hold for most records, without looking at the data.",
            )
        least, most = _half_up(bottom / self.step), _half_up(top / self.step)
        if max(abs(least), abs(most)) > _WIDEST:
            raise InvalidParameterError(
                f"[{low}, {high}] is wider than 2**53 steps of {self.step}.", fix="use a larger step."
            )
        return least, most

    def _missing(self, value: Number, least: int, most: int) -> int:
        steps = _half_up(Fraction(finite("missing", value)) / self.step)
        if not least <= steps <= most:
            raise InvalidParameterError("missing must lie between low and high.", fix="choose missing in [low, high].")
        return steps


def _step(step: object) -> Fraction:
    try:
        exact = _written(step) if isinstance(step, str | Decimal) else Fraction(positive("step", step))
    except (ValueError, ArithmeticError) as error:
        if isinstance(error, InvalidParameterError):
            raise
        exact = Fraction(0)
    if not Fraction(1, 2**500) <= exact <= 2**500:
        raise InvalidParameterError(
            f"step must be a positive number of ordinary size, but it is {str(step)[:40]!r}.",
            fix='write for example Grid("0.01").',
        )
    return exact


def _written(step: str | Decimal) -> Fraction:
    """A step in decimals or as p/q; zero for one of so many digits that writing them out would fill the memory."""
    if isinstance(step, str) and "/" in step:
        return Fraction(step)
    number = Decimal(step)
    return Fraction(number) if number.is_finite() and abs(number.adjusted()) < 400 else Fraction(0)


def _half_up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def _records(values: object) -> NDArray[np.float64]:
    """The records as floats. Which integer a record becomes depends on that record alone, so rounding here is safe."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        records = values.astype(np.float64)
    elif isinstance(values, str | bytes | dict) or not hasattr(values, "__len__"):
        raise UnfitDataError(f"Records have type {type(values).__name__}.", fix="pass a vector of numbers.")
    else:
        records = np.array([_record(x) for x in values], dtype=np.float64)  # type: ignore[attr-defined]
    if records.ndim != 1:
        raise UnfitDataError("Records are a vector.", fix="pass one number for each record.")
    return records


def _record(x: object) -> float:
    """One record as a float: missing where it is no number, infinite where floats do not reach."""
    return guarded(_as_float, x, math.nan)


def _as_float(x: object) -> float:
    found = number(x)
    return math.nan if isinstance(found, str | bool | None) else nearest(found)


_NAMES = {"b": "bool(ean)?", "i": "int(8|16|32|64)", "u": "uint(8|16|32|64)", "f": "(half)?float(16|32|64)?|double"}
"""What types of numbers are called by pandas, polars and Arrow."""
_WIDEST_COLUMN = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64"}
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
        found = values.to_numpy(dtype=_WIDEST_COLUMN[kind], na_value=_IN_PLACE[kind])
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
