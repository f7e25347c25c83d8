"""Counting reports: integers whose size does not depend on how many reports there were, and which add up."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.local.layouts import BitRows, Cells, Layout, Payload, Totals

__all__ = ["LARGEST", "Tally", "count_reports", "no_reports", "possible", "reports_in", "tally_shape"]

Tally: TypeAlias = NDArray[np.int64]

LARGEST = 1 << 62
"""No tally is of so many reports."""

_CHUNK = 1 << 16
"""Reports at once, which stay in the processor's cache."""
_SHORT = 1 << 14
"""Rows at once, whose planes of bits stay in the processor's cache."""
_LOW = (1 << 32) - 1
"""The low half of a square."""
_MOST = 1 << 27
"""A gibibyte of counts."""


def tally_shape(layout: Layout) -> tuple[int, ...]:
    """Reports by cell; reports by row and bit, their number as the last column; or number, sum and squares."""
    match layout:
        case Cells():
            return (layout.cells,)
        case BitRows():
            return (layout.rows, layout.width + 1)
        case Totals():
            return (4,)


def no_reports(layout: Layout) -> Tally:
    """A tally of nothing; refused where it would not fit into memory."""
    shape = tally_shape(layout)
    if math.prod(shape) > _MOST:
        raise InvalidParameterError(
            f"A server would keep {math.prod(shape)} counts, more than {_MOST}.",
            fix="use fewer categories, a sketch (hcms), or find frequent values first (heavy_hitters).",
        )
    return np.zeros(shape, np.int64)


def reports_in(layout: Layout, tally: Tally) -> int:
    """How many reports were counted."""
    match layout:
        case Cells():
            return int(tally.sum())
        case BitRows():
            return int(tally[:, -1].sum())
        case Totals():
            return int(tally[0])


def possible(layout: Layout, tally: Tally) -> bool:
    """Whether reports could have been counted so: nothing negative, no bit more often than there are reports."""
    counts = tally[[0, 2, 3]] if isinstance(layout, Totals) else tally
    if counts.size and (int(counts.min()) < 0 or float(counts.sum(dtype=np.float64)) >= LARGEST):
        return False
    return not isinstance(layout, BitRows) or bool((tally[:, :-1] <= tally[:, -1:]).all())


def count_reports(layout: Layout, tally: Tally, payload: Payload) -> None:
    """Add valid reports to a tally, in pieces that stay in the processor's cache."""
    step = layout.rows << 10 if isinstance(layout, BitRows) and layout.rows > _CHUNK >> 10 else _CHUNK
    for start in range(0, len(payload), step):
        part = payload[start : start + step]
        match layout:
            case Cells():
                _count_cells(tally, part)
            case BitRows():
                _count_bits(layout, tally, part)
            case Totals():
                _count_totals(tally, part)


def _count_cells(tally: Tally, part: Payload) -> None:
    if len(tally) <= 4 * len(part):
        tally += np.bincount(part.astype(np.intp, copy=False), minlength=len(tally))
    else:  # few reports among many cells
        np.add.at(tally, part.astype(np.intp, copy=False), 1)


def _count_bits(layout: BitRows, tally: Tally, part: Payload) -> None:
    """Row by row, a short piece at a time."""
    if layout.rows == 1:
        tally[0, -1] += len(part)
        for start in range(0, len(part), _SHORT):
            tally[0, :-1] += _column_sums(part[start : start + _SHORT])[: layout.width]
        return
    rows = layout.row(part)
    order = np.argsort(rows, kind="stable")
    present, starts = np.unique(rows[order], return_index=True)
    for row, people in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        tally[row, -1] += len(people)
        tally[row, :-1] += _column_sums(part[people, layout.prefix :])[: layout.width]


def _column_sums(packed: Payload) -> Tally:
    """How many ones each bit position has, by adding rows as binary numbers written across planes of bits.

    Three rows of weight :math:`2^k` become one of the same weight (their sum without carry) and one of weight
    :math:`2^{k+1}` (the carry): 64 positions at a time, until two rows or fewer are left of each weight.
    """
    words = -(-packed.shape[1] // 8)
    padded = np.zeros((len(packed), 8 * words), np.uint8)
    padded[:, : packed.shape[1]] = packed
    rows, weight = padded.view("<u8"), 0
    sums = np.zeros(64 * words, np.int64)
    while len(rows):
        carries = [rows[:0]]
        while len(rows) > 2:
            third = len(rows) // 3
            a, b, c = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            mixed = a ^ b
            carries.append(a & b | mixed & c)
            rows = np.concatenate([mixed ^ c, rows[3 * third :]])
        sums += np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").sum(axis=0, dtype=np.int64) << weight
        rows, weight = np.concatenate(carries), weight + 1
    return sums


def _count_totals(tally: Tally, part: Payload) -> None:
    """Squares are summed in two halves, so that two thousand million reports of any size fit."""
    squares = (np.abs(part).astype(np.uint64)) ** np.uint64(2)
    tally += np.array(
        [
            len(part),
            part.sum(),
            (squares & np.uint64(_LOW)).astype(np.int64).sum(),
            (squares >> np.uint64(32)).astype(np.int64).sum(),
        ]
    )
