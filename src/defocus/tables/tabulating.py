"""The table of an answer: for programs as Arrow, for people as cells of text."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from defocus.errors import InvalidParameterError
from defocus.tables import showing
from defocus.tables.answer_columns import SUFFIXES, AnswerColumn
from defocus.tables.digits import decimals, rounded, written

__all__ = ["Cells", "arrow", "cells", "in_order", "labels", "notes"]

Cells: TypeAlias = tuple[list[str], list[list[str]], list[bool]]
"""Heads, rows, and which columns end together on the right."""


def in_order(keys: pa.Table, *, as_given: bool) -> tuple[pa.Table, Any]:
    """Keys of plain types, each once, and the rows they came from: in the order of the keys, or as they were given."""
    for i, field in enumerate(keys.schema):
        if pa.types.is_dictionary(field.type):
            keys = keys.set_column(i, field.name, keys.column(i).cast(field.type.value_type))
    if keys.group_by(keys.column_names).aggregate([]).num_rows != keys.num_rows:
        raise InvalidParameterError("A key appears twice in an answer.", fix="name each group once.")
    order = pa.array(range(keys.num_rows), pa.int64())
    if not as_given:
        order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    return keys.take(order).combine_chunks(), order.to_numpy()


def arrow(keys: pa.Table, columns: Sequence[AnswerColumn], threshold: float, *, exact: bool) -> pa.Table:
    """Keys, then value, error, low, high and flag of each column; rounded numbers if not ``exact``."""
    arrays = list(keys.columns)
    for column in columns:
        if exact:
            arrays += [pa.array(part, pa.float64()) for part in (column.values, column.errors, column.low, column.high)]
        else:
            value, low, high = (_rounded(part, column) for part in (column.values, column.low, column.high))
            error = pa.array(rounded(column.errors, decimals(column.spread)), pa.float64())
            arrays += [value, error, low, high]
        arrays.append(pa.array(column.reliable(threshold), pa.bool_()))
    names = keys.column_names + [column.name + suffix for column in columns for suffix in SUFFIXES]
    return pa.Table.from_arrays(arrays, names=names)


def labels(keys: pa.Table, chosen: Sequence[int]) -> list[str]:
    """One line for each of the chosen groups; "all" where there are no keys."""
    return [", ".join(showing.plain(part, widest=24) for part in row) or "all" for row in _rows(keys, chosen)]


def cells(keys: pa.Table, columns: Sequence[AnswerColumn], threshold: float) -> Cells:
    """What people read, shortened if long; a star marks a cell whose noise is above the threshold."""
    heads = [showing.plain(name) for name in keys.column_names]
    heads += [text for column in columns for text in (f"{showing.plain(column.name)}  ", "95 % interval")]
    right = [pa.types.is_integer(field.type) for field in keys.schema] + [True] * (2 * len(columns))
    shown, left_out = showing.shortened(len(columns[0].values))
    body = [[showing.plain(part) for part in row] for row in _rows(keys, shown)]
    for column in columns:
        part, places = column.taken(shown), column.places
        for line, value, low, high, fine in zip(
            body, part.values, part.low, part.high, part.reliable(threshold), strict=True
        ):
            mark = " *" if fine is False else "  "
            line += [written(value, places) + mark, f"{written(low, places)} to {written(high, places)}"]
    if left_out:
        body.insert(len(shown) // 2, ["⋮"] * len(heads))
    return heads, body, right


def notes(columns: Sequence[AnswerColumn], threshold: float, more: Sequence[str]) -> list[str]:
    """What to write below the cells: what was left out, what the star means, and ``more``."""
    count = len(columns[0].values)
    said = []
    if left_out := showing.shortened(count)[1]:
        said.append(f"{count} groups, {left_out} of them not shown")
    if any(False in column.reliable(threshold) for column in columns):
        said.append(f"* the noise is more than {100 * threshold:g} % of the value")
    return [*said, *more]


def _rows(keys: pa.Table, chosen: Sequence[int]) -> list[tuple[Any, ...]]:
    if not keys.num_columns:
        return [() for _ in chosen]
    part = keys.take(pa.array(list(chosen), pa.int64()))
    return list(zip(*(column.to_pylist() for column in part.columns), strict=True))


def _rounded(part: Any, column: AnswerColumn) -> pa.Array:
    """Rounded as it is shown; counts as integers."""
    if not column.integral:
        return pa.array(rounded(part, column.places), pa.float64())
    return pa.array([round(x) if abs(x) < 2**63 else None for x in part.tolist()], pa.int64())
