"""The table of an answer: for programs as Arrow, for people as cells of text."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from defocus.answers.columns import SUFFIXES, AnswerColumn
from defocus.answers.digits import decimals, rounded, written
from defocus.answers.showing import Cells, plain, shortened
from defocus.answers.spelling import spelt

__all__ = ["ERRORS", "Keys", "arrow", "cells", "kinds_of_error", "labels", "notes"]

Keys: TypeAlias = Mapping[str, Any]
"""What each entry is about, by name: ranges, lists or Arrow arrays. Nothing for an answer without groups."""
ERRORS = "defocus.errors"
"""Where the metadata of a table says what its columns of errors are."""


def arrow(keys: Keys, columns: Sequence[AnswerColumn], threshold: float | None, *, exact: bool) -> pa.Table:
    """Keys, then value, error, low and high of each column, and its flags if there is a threshold.

    Rounded as it is shown if not ``exact``. The metadata says what the errors are.
    """
    made = {name: _array(values) for name, values in keys.items()}
    for column in columns:
        if exact:
            parts = [pa.array(part, pa.float64()) for part in (column.values, column.errors, column.low, column.high)]
        else:
            value, low, high = (_rounded(part, column) for part in (column.values, column.low, column.high))
            parts = [value, pa.array(rounded(column.errors, decimals(column.spread)), pa.float64()), low, high]
        if threshold is not None:
            parts.append(pa.array(column.reliable(threshold), pa.bool_()))
        made |= {f"{column.name}{suffix}": part for suffix, part in zip(SUFFIXES, parts, strict=False)}
    told = "\n".join(f"{name}: {kind}" for name, kind in kinds_of_error(columns).items())
    return pa.table(made).replace_schema_metadata({ERRORS: told.encode()})


def kinds_of_error(columns: Sequence[AnswerColumn]) -> dict[str, str]:
    """What x_error means for each column x: not all rooms state the same."""
    return {
        f"{column.name}_error": "expected absolute error" if column.absolute else "standard error" for column in columns
    }


def labels(keys: Keys, chosen: Sequence[int], *, whole: str = "all") -> list[str]:
    """One line for each of the chosen entries; what the ``whole`` is called where there are no keys."""
    return [", ".join(plain(part, widest=24) for part in row) or whole for row in _rows(keys, chosen)]


def cells(
    keys: Keys, columns: Sequence[AnswerColumn], threshold: float | None = None, *, interval: str = "95 % interval"
) -> Cells:
    """What people read, shortened if long; a star marks a cell whose noise is above the threshold, if there is one.

    ``interval`` is what stands above the intervals, which may hold something else than the truth.
    """
    room = "" if threshold is None else "  "
    heads = [plain(name) for name in keys]
    heads += [text for column in columns for text in (f"{plain(column.name)}{room}", interval)]
    right = [_is_integer(values) for values in keys.values()] + [True] * (2 * len(columns))
    shown, left_out = shortened(len(columns[0].values))
    body = [[plain(part) for part in row] for row in _rows(keys, shown)]
    for column in columns:
        part, places = column.taken(shown), column.places
        flags = [None] * len(shown) if threshold is None else part.reliable(threshold)
        for line, value, low, high, fine in zip(body, part.values, part.low, part.high, flags, strict=True):
            mark = " *" if fine is False else room
            line += [written(value, places) + mark, _interval(low, high, places)]
    if left_out:
        body.insert(len(shown) // 2, ["⋮"] * len(heads))
    return heads, body, right


def notes(
    columns: Sequence[AnswerColumn], threshold: float | None, more: Sequence[str], *, things: str = "groups"
) -> list[str]:
    """What to write below the cells: what was left out, what the star means, and ``more``."""
    count = len(columns[0].values)
    said = []
    if left_out := shortened(count)[1]:
        said.append(f"{count} {things}, {left_out} of them not shown")
    if threshold is not None and any(False in column.reliable(threshold) for column in columns):
        said.append(f"* the noise is more than {100 * threshold:g} % of the value")
    return [*said, *more]


def _interval(low: float, high: float, places: int | None) -> str:
    unknown = math.isnan(low) and math.isnan(high)
    return "–" if unknown else f"{written(low, places)} to {written(high, places)}"


def _array(values: Any) -> Any:
    """Keys as they are where Arrow has a type for all of them, else as text."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, range):
        return pa.array(values, pa.int64())
    listed = list(values)
    try:
        made = pa.array(listed)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        made = None
    if made is None or pa.types.is_nested(made.type) or _mixed(made, listed):
        return pa.array([None if value is None else spelt(value) for value in listed], pa.string())
    return made


def _mixed(made: pa.Array, listed: Sequence[Any]) -> bool:
    """Whether Arrow took text for bytes, because some of it is."""
    return bool(pa.types.is_binary(made.type) and any(isinstance(value, str) for value in listed))


def _is_integer(values: Any) -> bool:
    return isinstance(values, range) or bool(pa.types.is_integer(getattr(values, "type", pa.null())))


def _rows(keys: Keys, chosen: Sequence[int]) -> list[tuple[Any, ...]]:
    return [tuple(_value(values[i]) for values in keys.values()) for i in chosen]


def _value(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _rounded(part: Any, column: AnswerColumn) -> pa.Array:
    """Rounded as it is shown; counts as integers."""
    if not column.integral:
        return pa.array(rounded(part, column.places), pa.float64())
    return pa.array([round(x) if abs(x) < 2**63 else None for x in part.tolist()], pa.int64())
