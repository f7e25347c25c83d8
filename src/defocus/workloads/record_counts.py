"""Records and counts as data of a workload, each with a meaning by itself.

Whole numbers of data that nobody declared a type for: each has a meaning by itself, so that none can be refused.

An error that depends on one entry tells of whoever is in it. What has a type, as arrays and columns of frames do, is
refused for that type, whatever is in it; what has none, as lists do, is read entry by entry.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from defocus.errors import MismatchedDomainError, UnfitDataError
from defocus.errors.checks import guarded, number
from defocus.mechanisms.grid import columns_of, declared, read_column
from defocus.mechanisms.mechanism import LARGEST, SMALLEST, IntVector, integers
from defocus.workloads.strategy import IntArray

__all__ = ["Data", "Records", "checked", "code", "entries", "entry", "histogram", "passes", "records", "tables"]


def entries(values: Any, *, length: int | None = None) -> IntVector:
    """A vector of whole numbers, cut to 64 bits; other types, containers and lengths are refused.

    >>> entries([3, None, 2.5, 2**70]).tolist()
    [3, 0, 2, 9223372036854775807]
    """
    if hasattr(values, "dtype") and getattr(values, "ndim", 1) == 1 and not isinstance(values, np.generic):
        numbers, there = read_column(values)
        if numbers.dtype.kind == "u":
            numbers = np.minimum(numbers, np.array(LARGEST, np.uint64)).astype(np.int64)
        values = numbers if there is None else np.where(there, numbers, np.zeros((), numbers.dtype))
        if numbers.dtype.kind != "O":
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
    real: Any = number(value)
    return LARGEST if real >= LARGEST else SMALLEST if real <= SMALLEST else math.floor(real)


def _code(value: Any) -> int:
    real: Any = number(value)
    return 0 if isinstance(real, str) or real % 1 else _entry(real)


_BLOCK = 1 << 17
"""Cells counted in one pass: few enough to stay in the processor's cache."""
_MANY = 20_000
"""Above this number of tables, looking for passes that count several takes longer than it saves."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """A table of codes: one row for each attribute, or a list of records of any length. Made by :func:`records`.

    >>> import numpy as np
    >>> records(np.array([[0, 1], [2, 0]])).attributes
    2
    """

    columns: IntArray | list[Any] = field(repr=False)

    @property
    def attributes(self) -> int:
        """The number of columns, 0 if none is declared, as in lists; the number of records is private."""
        return 0 if isinstance(self.columns, list) else int(self.columns.shape[0])


Data = Records | IntArray | Sequence[int]


def records(codes: Any) -> Records:
    """Records as integer codes, counted from zero: rows are records, columns attributes.

    Guarantee:
        No error depends on what a record holds, nor on how many there are, and each record is counted in one cell:
        where records are replaced by others, that is what sensitivity rests on. A code outside an attribute's public
        range counts as the nearest one inside it. In lists, arrays of objects and nullable columns, what is no integer
        counts as code 0, and in lists so does each code that a record lacks; what it has beyond the attributes of the
        domain is not looked at. Types and shapes that are declared, those of arrays and frames, are refused if they are
        not integers in rows and columns.

    >>> records([[0, 1], [2, 0], [2, 1]])
    Records()
    """
    columns = columns_of(codes)
    if columns is not None:
        return Records(_stacked([_codes(column) for _, column in columns]))
    if not hasattr(codes, "dtype") and not hasattr(codes, "__array__"):
        return Records(_listed(codes))
    array = codes if isinstance(codes, np.ma.MaskedArray) else np.asarray(codes)
    if array.ndim != 2 or array.dtype.kind not in "iuO":
        raise _unfit()
    if array.dtype.kind == "O" or isinstance(array, np.ma.MaskedArray):
        return Records(_stacked([_codes(column) for column in array.T]))
    return Records(_stacked(np.ascontiguousarray(array.T)))


def _codes(column: Any) -> IntArray:
    """The codes of one attribute, by the type that is declared for it."""
    numbers, there = read_column(column)
    if str(declared(column)).lower() == "object":
        return np.array([code(value) for value in numbers.tolist()], np.int64)
    if numbers.dtype.kind not in "iu":
        raise _unfit()
    filled = numbers if there is None else np.where(there, numbers, np.zeros((), numbers.dtype))
    return entries(filled) if len(filled) else np.zeros(0, np.int64)


def _stacked(columns: Any) -> IntArray:
    """At least one attribute."""
    if not len(columns):
        raise _unfit()
    return np.stack(columns) if isinstance(columns, list) else columns


def _record(record: Any, attributes: int) -> list[int]:
    """The codes of one record, whatever it is: a list of them, or one by itself; none beyond the attributes is read."""
    codes = [code(value) for value in guarded(lambda one: _parts(one, attributes), record, [record])]
    return codes + [0] * (attributes - len(codes))


def _parts(record: Any, most: int) -> list[Any]:
    for kind in (list, tuple):
        if type.__subclasscheck__(kind, type(record)):
            return list(kind.__getitem__(record, slice(most)))
    return list(itertools.islice(record, most)) if getattr(record, "ndim", 0) == 1 else [record]


def _listed(codes: Any) -> list[Any]:
    if isinstance(codes, str | bytes | dict) or not hasattr(codes, "__iter__"):
        raise _unfit()
    return list(codes)


def _unfit() -> UnfitDataError:
    return UnfitDataError(
        "Records must be a two-dimensional array of integer codes.",
        fix="number the values of each attribute from 0 and pass one row for each record.",
    )


def checked(data: Any, sizes: tuple[int, ...]) -> None:
    """Refuse data that is not about this domain, by its type and shape alone."""
    if isinstance(data, Records):
        if data.attributes not in {0, len(sizes)}:
            raise MismatchedDomainError("The data", f"of {data.attributes} attributes", f"one of {len(sizes)}")
        return
    if isinstance(data, np.ndarray) and data.ndim != 1 and data.shape != sizes:
        raise MismatchedDomainError("The data", data.shape, sizes)
    length = len(_counts(data))
    if length != math.prod(sizes):
        raise MismatchedDomainError("The data", f"of {length} cells", f"{sizes} of {math.prod(sizes)} cells")


def histogram(data: Any, sizes: tuple[int, ...]) -> IntArray:
    """The counts of all cells."""
    if isinstance(data, Records):
        return _counted(_inside(data, sizes), sizes, tuple(range(len(sizes)))).ravel()
    return _counts(data)


def _counts(data: Any) -> IntArray:
    return entries(data.ravel() if isinstance(data, np.ndarray) else data)


def tables(data: Any, sizes: tuple[int, ...], sets: Sequence[tuple[int, ...]]) -> list[IntArray]:
    """The marginal over each of ``sets``, where a larger set comes after its subsets.

    Tables are taken from a larger one where there is one; the largest ones are counted together, several
    in one pass over the records.
    """
    summed: dict[tuple[int, ...], IntArray] = {}
    tops = _tops(sets)
    if isinstance(data, Records):
        columns = _inside(data, sizes)
        for block, inside in passes(tops, sizes):
            counts = _counted(columns, sizes, block)
            summed |= {chosen: _summed(counts, block, chosen) for chosen in inside}
    else:
        x = histogram(data, sizes).reshape(sizes)
        summed = {chosen: _summed(x, tuple(range(len(sizes))), chosen) for chosen in tops}
    for chosen in reversed(sets):
        for left_out in range(len(chosen)):
            smaller = chosen[:left_out] + chosen[left_out + 1 :]
            if smaller not in summed:
                summed[smaller] = summed[chosen].sum(axis=left_out)
    return [summed[chosen] for chosen in sets]


def _tops(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sets that lie in no larger one."""
    inner: set[tuple[int, ...]] = set()
    for chosen in reversed(sets):
        inner.update(chosen[:i] + chosen[i + 1 :] for i in range(len(chosen)))
    return [chosen for chosen in sets if chosen not in inner]


def passes(
    tops: Sequence[tuple[int, ...]], sizes: tuple[int, ...]
) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Blocks of attributes to count at once, and which tables to take from each: grown greedily."""
    if len(tops) > _MANY:
        return [(chosen, [chosen]) for chosen in tops]
    left = dict.fromkeys(tops)
    orders = sorted({len(chosen) for chosen in tops})
    blocks = []
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
        blocks.append((tuple(sorted(block)), inside))
    return blocks


def _inside(data: Records, sizes: tuple[int, ...]) -> list[Any]:
    """The columns as codes of their public range, in as few bytes as all passes can use."""
    narrow = np.int32 if max(sizes) < 1 << 31 else np.int64
    columns: Any = data.columns
    if isinstance(columns, list):
        columns = np.array([_record(record, len(sizes)) for record in columns], np.int64).reshape(-1, len(sizes)).T
    return [np.clip(column, 0, size - 1).astype(narrow) for column, size in zip(columns, sizes, strict=True)]


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
