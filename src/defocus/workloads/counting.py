"""Counting records: many marginals of one table in few passes over it."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, final

import numpy as np

from defocus.errors import MismatchedDomainError, UnfitDataError
from defocus.mechanisms.values import integers, saturate
from defocus.workloads.strategy import IntArray

__all__ = ["Data", "Records", "checked", "histogram", "records", "tables"]

_BLOCK = 1 << 17
"""Cells counted in one pass: few enough to stay in the processor's cache."""
_MANY = 20_000
"""Above this number of tables, looking for passes that count several takes longer than it saves."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """A table of codes, one row for each record and one column for each attribute. Made by :func:`records`."""

    columns: IntArray = field(repr=False)

    @property
    def attributes(self) -> int:
        """The number of columns, 0 if it is not known because there are no records; the number of rows is private."""
        return int(self.columns.shape[0])


Data = Records | IntArray | Sequence[int]


def records(codes: Any) -> Records:
    """Records as integer codes, counted from zero: rows are records, columns attributes.

    A code outside an attribute's public range counts as the nearest one inside it, so that no error depends on what a
    record holds; nor on how many there are: an empty list is no records of any domain.
    """
    if isinstance(codes, list | tuple) and not codes:
        return Records(np.zeros((0, 0), np.int64))
    array = codes if isinstance(codes, np.ndarray) and codes.dtype != object else _array(codes)
    if array.ndim != 2 or array.dtype.kind not in "iu" or not array.shape[1]:
        raise UnfitDataError(
            "Records must be a two-dimensional array of integer codes.",
            fix="number the values of each attribute from 0 and pass one row for each record.",
        )
    return Records(np.ascontiguousarray(array.T))


def _array(codes: Any) -> Any:
    """Codes as an array, those that 64 bits do not hold as the nearest that they do."""
    try:
        array = np.asarray(codes)
        if array.dtype.kind in "iu":
            return array
        wide = np.asarray(codes, object)
    except ValueError:  # rows of different lengths
        return np.zeros(0)
    whole = all(isinstance(code, Integral) and not isinstance(code, bool) for code in wide.ravel())
    if not whole:
        return array
    return np.array([saturate(int(code)) for code in wide.ravel()], np.int64).reshape(wide.shape)


def checked(data: Any, sizes: tuple[int, ...]) -> None:
    """Refuse data that is not about this domain, by its type and shape alone."""
    if isinstance(data, Records):
        if data.attributes not in {0, len(sizes)}:
            raise MismatchedDomainError("The data", f"of {data.attributes} attributes", f"one of {len(sizes)}")
        return
    if isinstance(data, np.ndarray) and data.ndim != 1 and data.shape != sizes:
        raise MismatchedDomainError("The data", data.shape, sizes)
    flat = data.ravel() if isinstance(data, np.ndarray) else data
    length = len(integers(flat)[0])
    if length != math.prod(sizes):
        raise MismatchedDomainError("The data", f"of {length} cells", f"{sizes} of {math.prod(sizes)} cells")


def histogram(data: Any, sizes: tuple[int, ...]) -> IntArray:
    """The counts of all cells."""
    if isinstance(data, Records):
        return _counted(_inside(data, sizes), sizes, tuple(range(len(sizes)))).ravel()
    return integers(data.ravel() if isinstance(data, np.ndarray) else data)[0]


def tables(data: Any, sizes: tuple[int, ...], sets: Sequence[tuple[int, ...]]) -> list[IntArray]:
    """The marginal over each of ``sets``, where a larger set comes after its subsets.

    Tables are taken from a larger one where there is one; the largest ones are counted together, several
    in one pass over the records.
    """
    found: dict[tuple[int, ...], IntArray] = {}
    tops = _tops(sets)
    if isinstance(data, Records):
        columns = _inside(data, sizes)
        for block, inside in _passes(tops, sizes):
            counts = _counted(columns, sizes, block)
            found |= {chosen: _summed(counts, block, chosen) for chosen in inside}
    else:
        x = histogram(data, sizes).reshape(sizes)
        found = {chosen: _summed(x, tuple(range(len(sizes))), chosen) for chosen in tops}
    for chosen in reversed(sets):
        for left_out in range(len(chosen)):
            smaller = chosen[:left_out] + chosen[left_out + 1 :]
            if smaller not in found:
                found[smaller] = found[chosen].sum(axis=left_out)
    return [found[chosen] for chosen in sets]


def _tops(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sets that lie in no larger one."""
    inner: set[tuple[int, ...]] = set()
    for chosen in reversed(sets):
        inner.update(chosen[:i] + chosen[i + 1 :] for i in range(len(chosen)))
    return [chosen for chosen in sets if chosen not in inner]


def _passes(
    tops: Sequence[tuple[int, ...]], sizes: tuple[int, ...]
) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Blocks of attributes to count at once, and which tables to take from each: grown greedily."""
    if len(tops) > _MANY:
        return [(chosen, [chosen]) for chosen in tops]
    left = dict.fromkeys(tops)
    orders = sorted({len(chosen) for chosen in tops})
    passes = []
    while left:
        block = set(next(iter(left)))
        while True:
            room = _BLOCK // math.prod(sizes[i] for i in block)
            gains = {
                i: sum(
                    tuple(sorted((*rest, i))) in left
                    for order in orders if order
                    for rest in itertools.combinations(block, order - 1)
                )
                for i in range(len(sizes))
                if i not in block and sizes[i] <= room
            }  # fmt: skip
            best = max(gains, key=gains.__getitem__, default=None)
            if best is None or not gains[best]:
                break
            block.add(best)
        inside = [chosen for chosen in left if block.issuperset(chosen)]
        for chosen in inside:
            del left[chosen]
        passes.append((tuple(sorted(block)), inside))
    return passes


def _inside(data: Records, sizes: tuple[int, ...]) -> list[Any]:
    """The columns as codes of their public range, in as few bytes as all passes can use."""
    narrow = np.int32 if max(sizes) < 1 << 31 else np.int64
    if not data.attributes:
        return [np.zeros(0, narrow) for _ in sizes]
    return [np.clip(column, 0, size - 1).astype(narrow) for column, size in zip(data.columns, sizes, strict=True)]


def _counted(columns: list[Any], sizes: tuple[int, ...], block: tuple[int, ...]) -> IntArray:
    cells = math.prod(sizes[i] for i in block)
    if not block:
        return np.array(len(columns[0]), np.int64)
    key: Any = np.zeros(len(columns[0]), np.int32 if cells < 1 << 31 else np.int64)
    for i in block:
        key *= key.dtype.type(sizes[i])
        key += columns[i]
    return np.bincount(key, minlength=cells).reshape([sizes[i] for i in block])


def _summed(counts: IntArray, block: tuple[int, ...], chosen: tuple[int, ...]) -> IntArray:
    away = tuple(axis for axis, i in enumerate(block) if i not in chosen)
    summed: IntArray = counts.sum(axis=away) if away else counts
    return summed
