"""What a value is called as a node: one rule for each value, which looks at nothing else.

Whether two values name the same node, and which of two nodes comes first, must not depend on who else is in the data.
So every value has a key of its own, from its type and what it holds, and nodes are told apart and ordered by keys.
"""

import datetime as dt
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeAlias, final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.graphs.graph import MOST_NODES
from defocus.graphs.timestamps import dated

__all__ = [
    "DIGITS",
    "NOBODY",
    "Column",
    "Key",
    "Lines",
    "Names",
    "as_column",
    "is_text",
    "key",
    "listed_in",
    "node_numbers",
    "order",
    "whole_numbers",
    "written_key",
]


Key: TypeAlias = int | str | tuple[Any, ...]
"""A whole number, a text, or a tuple whose first entry says what it is. Keys of equal nodes are equal."""

DIGITS = 18
"""Numbers written with at most so many digits fit in 64 bits."""
_LONGEST = 1000
"""Texts of more digits, and decimals beyond so many, are no whole numbers here."""
_START = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # moments without a zone are taken for UTC
_STEP = dt.timedelta(microseconds=1)


def key(value: Any) -> Key | None:
    """The key of a value, or None if it names no node. No value can make this fail.

    Whole numbers are equal whatever type holds them, and differ from the texts that spell them. Names are numbers,
    text, bytes, dates, moments in microseconds, UUIDs, and tuples of these; nothing else is.

    >>> [key(value) for value in (3, 3.0, "3", 2.5, (1, "a"), float("nan"), True, None, [1])]
    [3, 3, '3', ('number', '2.5'), ('tuple', ('whole', '0x1'), 'a'), None, None, None, None]
    """
    if type(value) is str or type(value) is int:
        return value
    try:
        return _key(value)
    except Exception:  # noqa: BLE001  # an object may refuse in any way, and says something about itself by that
        return None


def written_key(value: Any) -> Key | None:
    """The key where values are written as text, as in CSV: "12" and "-3" are whole numbers, "012" and "12.0" are text.

    >>> [written_key(text) for text in ("12", "-3", "012", "12.0", "-0", "", "x")]
    [12, -3, '012', '12.0', '-0', None, 'x']
    """
    named = key(value)
    if isinstance(named, str):
        if not named:
            return None
        digits = named.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST and named != "-0":
            return int(named) if digits == "0" or digits[0] != "0" else named
    return named


def order(one: Key) -> tuple[int, Any]:
    """What to sort keys by: numbers by size, then text, then the rest by how it is spelt."""
    if isinstance(one, int):
        return 0, one
    return (1, one) if isinstance(one, str) else (2, repr(one))


def _key(value: Any) -> Key | None:  # noqa: C901, PLR0911  # one line for each sort of value
    if value is None or isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | np.integer):
        return int.__index__(value) if isinstance(value, int) else int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return None if number != number else int(number) if number.is_integer() else ("number", repr(number))  # noqa: PLR0124  # NaN
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else ("ratio", hex(value.numerator), hex(value.denominator))
    if isinstance(value, bytes):
        return ("bytes", bytes(value))
    if isinstance(value, UUID):
        return ("uuid", hex(value.int))
    if isinstance(value, dt.date):
        return _moment(value)
    if isinstance(value, tuple):
        return ("tuple", *(_part(inner) for inner in tuple.__iter__(value)))
    return None


def _decimal(value: Decimal) -> Key | None:
    if not value.is_finite():
        return None if value.is_nan() else ("number", "inf" if value > 0 else "-inf")
    if value.adjusted() <= _LONGEST and value == value.to_integral_value():
        return int(value)
    sign, digits, exponent = value.as_tuple()
    short = "".join(map(str, digits)).rstrip("0")
    return ("decimal", sign, short, int(exponent) + len(digits) - len(short))


def _moment(value: dt.date) -> Key | None:
    if not isinstance(value, dt.datetime):
        return ("date", value.toordinal())
    if value != value:  # noqa: PLR0124  # the moment that is missing in pandas
        return None
    plain: dt.datetime = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    shift = plain.utcoffset() or dt.timedelta(0)
    return ("moment", (plain.replace(tzinfo=None) - _START - shift) // _STEP)


def _part(value: Any) -> Key:
    """The key of a part of a tuple, where None may stand too. Numbers are spelt, since huge ones have no text."""
    if value is None:
        return ("missing",)
    named = key(value)
    if named is None:
        raise TypeError  # then the whole tuple names nothing
    return ("whole", hex(named)) if isinstance(named, int) else named


NOBODY = -1
"""The number of no node."""

_FAR_END = 2.0**62


def node_numbers(side: Any) -> NDArray[np.int64]:
    """Whole numbers as they are; missing, fractional and infinite ones, and those beyond 64 bits, as -1.

    >>> node_numbers([3, None, 2.0, 2.5, float("nan"), 10**30, "x"]).tolist()
    [3, -1, 2, -1, -1, -1, -1]
    """
    numbers, whole = whole_numbers(side)
    return numbers if whole.all() else np.where(whole, numbers, NOBODY)


def whole_numbers(side: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers in a column, and which of its entries are whole numbers of 64 bits.

    Only the type of an array can be refused. A list of Python objects is read one by one, because numpy would
    choose its type, and so whether it is refused, by the values in it.
    """
    array = side if isinstance(side, np.ndarray) else _object_ends(side)
    if array.ndim != 1 or array.dtype.kind not in "iufO":
        raise UnfitDataError(
            f"Ends of edges are a column of whole numbers, but this has type {array.dtype} in {array.ndim} dimensions.",
            fix="pass node numbers 0, 1, 2, …, or name the nodes: dp.open_graph(…, nodes=names).",
        )
    if array.dtype.kind == "O":
        numbers = [_number(value) for value in array]
        whole = np.fromiter((number is not None for number in numbers), np.bool_, len(numbers))
        return np.fromiter((number or 0 for number in numbers), np.int64, len(numbers)), whole
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = (np.abs(array) < _FAR_END) & (array == np.floor(array))
        return np.where(whole, array, 0).astype(np.int64), whole
    fits = array <= np.uint64(2**63 - 1) if array.dtype == np.uint64 else np.ones(len(array), np.bool_)
    return np.ascontiguousarray(np.where(fits, array, 0) if array.dtype == np.uint64 else array, dtype=np.int64), fits


def _object_ends(side: Any) -> NDArray[Any]:
    if isinstance(side, str | bytes) or not hasattr(side, "__len__") or not hasattr(side, "__iter__"):
        raise UnfitDataError(
            f"Ends of edges are a list of nodes, but this has type {type(side).__name__}.",
            fix="pass two lists or arrays of the same length.",
        )
    array = np.empty(len(side), dtype=object)
    for place, value in enumerate(side):
        array[place] = value
    return array


def _number(value: Any) -> int | None:
    try:
        return _whole_numbers(value)
    except Exception:  # noqa: BLE001  # an object may refuse in any way, and names no node then
        return None


def _whole_numbers(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, Integral):
        return int(value) if -(2**63) <= int(value) < 2**63 else None
    number = float(value) if isinstance(value, float | np.floating) else math.nan
    return int(number) if abs(number) < _FAR_END and number.is_integer() else None


Column: TypeAlias = Any
"""One column of the data: an Arrow array, or a numpy array of one dimension; of objects where it has no type."""


_FAR = 2**63
_WRITTEN = f"^(0|-?[1-9][0-9]{{0,{DIGITS - 1}}})$"


@final
class Lines(list[str]):
    """Names of nodes that were written in a file, one in each line: numbers where the ends of edges are numbers."""


def as_column(values: Any) -> Column:
    """A column of whatever holds values in order. Its type is that of the container, never chosen from the values.

    >>> as_column([1, "a"]).dtype, as_column(np.array([1, 2])).dtype
    (dtype('O'), dtype('int64'))
    """
    library = type(values).__module__.partition(".")[0]
    if library == "polars":
        plain = values.dtype.base_type().__name__ not in {"Object", "Int128", "UInt128"}
        values = values.to_arrow() if plain else _from_objects(values.to_list())
    elif library == "pandas":
        values = _from_pandas(values)
    elif isinstance(values, range):
        values = np.arange(values.start, values.stop, values.step, dtype=np.int64)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidParameterError(
                f"A column has one dimension, but this has {values.ndim}.", fix="pass one value for each edge or node."
            )
        return values
    return _from_objects(values)


def _from_pandas(values: Any) -> Column:
    kind = type(values.dtype).__name__
    if kind == "CategoricalDtype":
        return _from_categories(values.cat if hasattr(values, "cat") else values)
    if isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    if kind == "StringDtype":
        objects = values.to_numpy(dtype=object, na_value=None)
        try:
            return pa.array(objects, pa.large_string(), from_pandas=True)
        except (pa.ArrowException, UnicodeError):  # half a character; read one by one, to the same names
            return objects
    return pa.Array.from_pandas(values)


def _from_categories(held: Any) -> Column:
    """Value by value: pandas chooses the type of categories by those that are there, so that it says something."""
    categories = as_column(held.categories)
    if not isinstance(categories, pa.Array) and categories.dtype.kind == "c":
        values: list[Any] = [value.real if value.imag == 0 else None for value in categories.tolist()]
    else:
        values = _objects(categories)
    return np.append(_from_objects(values), [None])[np.asarray(held.codes)]


def _from_objects(values: Any) -> NDArray[Any]:
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise InvalidParameterError(
            f"A column is a list or an array, but this has type {type(values).__name__}.",
            fix="pass one value for each edge, or the names of all nodes.",
        )
    objects = list(values)
    array = np.empty(len(objects), dtype=object)
    for place, value in enumerate(objects):
        array[place] = value
    return array


@final
class Names:
    """Nodes by name, or simply numbered. A name that is listed twice is one node; a missing one is none.

    Guarantee:
        Which node an entry names depends on that entry and on that node alone: both have a key of their own, see
        :mod:`~defocus.graphs.node_names`. No entry can make this fail.

    Args:
        nodes: how many, or their names.
        written: whether names and entries are text that may stand for whole numbers.
        ordered: whether nodes are numbered by their keys, and not as they are listed: where the list is private, its
            order is, too, and must not move with one node.

    >>> Names(["ada", "bob", None, "ada"]).numbers(as_column(["bob", "eve", "ada"])).tolist()
    [1, -1, 0]
    >>> Names(3).numbers(as_column([0, 2, 3, -1])).tolist()
    [0, 2, -1, -1]
    """

    __slots__ = ("_known", "_labels", "_sorted", "_written")

    def __init__(self, nodes: Any, *, written: bool = False, ordered: bool = False) -> None:
        self._labels: Sequence[Any]
        self._written = written
        self._known: dict[Key, int] | None = None
        self._sorted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        if isinstance(nodes, int):
            self._labels = range(nodes)
        elif (numbers := _plain_numbers(column := as_column(nodes))) is not None:
            distinct, first = np.unique(numbers, return_index=True)
            names = distinct if ordered else numbers[np.sort(first)]
            places = np.argsort(names, kind="stable")
            self._labels, self._sorted = names.tolist(), (names[places], places)
        else:
            labels: dict[Key, Any] = {}
            lines = isinstance(nodes, Lines)
            for label in _objects(column):
                if (found_key := self._key(label)) is not None:
                    labels.setdefault(found_key, found_key if lines else _label(found_key, label))
            keys = sorted(labels, key=order) if ordered else list(labels)
            self._labels = [labels[key] for key in keys]
            self._index(keys)
        if len(self._labels) > MOST_NODES:
            raise InvalidParameterError(f"A graph has at most {MOST_NODES} nodes here.", fix="list fewer nodes.")

    @property
    def labels(self) -> Sequence[Any]:
        """The names in the order of their numbers."""
        return self._labels

    @property
    def written(self) -> bool:
        """Whether names and entries are text that may stand for whole numbers."""
        return self._written

    def digest(self) -> str:
        """A few digits that tell these names from others; none where nodes are simply numbered."""
        if isinstance(self._labels, range):
            return ""
        text = "\n".join(f"{type(name).__name__} {_spelt(name)}" for name in self._labels)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def keyed(self) -> Iterator[tuple[Key, int]]:
        """The key of every node, and its number."""
        keys: Iterable[Key] = self._labels if self._known is None else self._known
        return ((each, number) for number, each in enumerate(keys))

    def check(self, column: Column) -> None:
        """Refuse a column whose type names none of the nodes, which must be public. Looks at no entry."""
        kind = _kind(column)
        if self._written or kind == "any" or not len(self._labels):
            return
        kinds = {"number"} if self._known is None else {_sort(name) for name in self._known}
        if kind not in kinds:
            shown = column.type if isinstance(column, pa.Array) else column.dtype
            raise InvalidParameterError(
                f"The ends of edges have the type {str(shown)[:60]}, but the nodes are"
                f" {'not named by numbers' if kind == 'number' else 'called otherwise'}.",
                fix="list the names of the nodes as the edges have them: nodes=[…].",
            )

    def numbers(self, column: Column) -> NDArray[np.int64]:
        """The number of the node that each entry names, or -1. No entry and no type is refused."""
        if self._sorted is None and self._known is None and _within(column, len(self._labels)):
            return np.asarray(column, dtype=np.int64).view()  # no copy of many numbers that are right already
        if _kind(column) == "number" and not (isinstance(column, pa.Array) and pa.types.is_decimal(column.type)):
            return self._from_numbers(column)
        if is_text(column):
            return self._from_texts(column)
        return np.fromiter((self._number(value) for value in _objects(column)), np.int64, len(column))

    def _from_numbers(self, column: Column) -> NDArray[np.int64]:
        """Quickly where numbers fit in 64 bits, and one by one where they do not."""
        numbers, whole = _whole(column)
        nodes = self._from_whole(numbers, whole)
        others = np.flatnonzero(~whole)
        if len(others) and not isinstance(self._labels, range):
            rest = _objects(column.take(pa.array(others)) if isinstance(column, pa.Array) else column[others])
            nodes[others] = np.fromiter((self._number(value) for value in rest), np.int64, len(rest))
        return nodes

    def _from_texts(self, column: Column) -> NDArray[np.int64]:
        bytes_ = _bytes(column)
        result = np.full(len(column), NOBODY, np.int64)
        if self._written:
            fine = pc.fill_null(pc.match_substring_regex(bytes_, _WRITTEN), False)
            spelt = bytes_.filter(fine).cast(pa.large_string()).cast(pa.int64()).to_numpy(zero_copy_only=False)
            result[fine.to_numpy(zero_copy_only=False)] = self._from_whole(spelt, np.ones(len(spelt), np.bool_))
        texts = {} if self._known is None else _spellings(self._known, written=self._written)
        if texts:
            place = pc.index_in(bytes_, value_set=pa.array(list(texts), pa.large_binary()), skip_nulls=True)
            places = pc.fill_null(place, NOBODY).to_numpy(zero_copy_only=False)
            nodes = np.fromiter(texts.values(), np.int64, len(texts))
            result = np.where(places >= 0, nodes[np.maximum(places, 0)], result)
        return result

    def _from_whole(self, numbers: NDArray[np.int64], whole: NDArray[np.bool_]) -> NDArray[np.int64]:
        if isinstance(self._labels, range):
            return np.where(whole & (numbers >= 0) & (numbers < len(self._labels)), numbers, NOBODY)
        if self._sorted is None or not len(self._sorted[0]):
            return np.full(len(numbers), NOBODY, np.int64)
        names, places = self._sorted
        place = np.minimum(np.searchsorted(names, numbers), len(names) - 1)
        return np.where(whole & (names[place] == numbers), places[place], NOBODY).astype(np.int64)

    def _index(self, keys: Sequence[Key]) -> None:
        """Keys by number, and those of 64 bits in order of size."""
        self._known = {each: number for number, each in enumerate(keys)}
        small = [(each, number) for number, each in enumerate(keys) if isinstance(each, int) and -_FAR <= each < _FAR]
        both = np.array(sorted(small), dtype=np.int64).reshape(-1, 2)
        self._sorted = np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def _key(self, value: Any) -> Key | None:
        return written_key(value) if self._written else key(value)

    def _number(self, value: Any) -> int:
        named = self._key(value)
        if named is None:
            return NOBODY
        if isinstance(self._labels, range):
            return named if isinstance(named, int) and 0 <= named < len(self._labels) else NOBODY
        if self._known is None:
            self._index(self._labels)
        return (self._known or {}).get(named, NOBODY)


def listed_in(*columns: Column, written: bool = False) -> Any:
    """Every name in the columns, once, in the order of their keys: for a declared public node set, or a private one."""
    numbers = [_plain_numbers(column) for column in columns]
    if all(number is not None for number in numbers):
        return np.unique(np.concatenate([number for number in numbers if number is not None]))
    keyed: Callable[[Any], Key | None] = written_key if written else key
    names: dict[Key, Any] = {}
    for column in columns:
        for name in _objects(pc.unique(_bytes(column)) if is_text(column) else column, text=is_text(column)):
            if (name_key := keyed(name)) is not None:
                names.setdefault(name_key, _label(name_key, name))
    return [names[name] for name in sorted(names, key=order)]


def _label(named: Key, name: Any) -> Any:
    return named if isinstance(named, int) and not isinstance(name, str) else name


def is_text(column: Column) -> bool:
    """Whether the type of a column is text of Arrow's."""
    if not isinstance(column, pa.Array):
        return False
    kind = column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _kind(column: Column) -> str:
    """What the type of a column says of its entries: "number", "text", "other", or nothing: "any"."""
    if not isinstance(column, pa.Array):
        return {"O": "any", "i": "number", "u": "number", "f": "number", "U": "text"}.get(column.dtype.kind, "other")
    kind = column.type
    if pa.types.is_null(kind):
        return "any"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "text" if is_text(column) else "other"


def _sort(named: Key) -> str:
    if isinstance(named, tuple):
        return "number" if named[0] in {"number", "decimal", "ratio"} else "other"
    return "number" if isinstance(named, int) else "text"


def _plain_numbers(column: Column) -> NDArray[np.int64] | None:
    """The numbers in a column of whole numbers that all fit in 64 bits, without those that are missing."""
    whole_type = pa.types.is_integer(column.type) if isinstance(column, pa.Array) else column.dtype.kind in "iu"
    if not whole_type:
        return None
    there = column.drop_null() if isinstance(column, pa.Array) else column
    numbers, whole = _whole(there)
    return numbers if whole.all() else None


def _within(column: Column, nodes: int) -> bool:
    """Whether a numpy column holds numbers of nodes and nothing else."""
    return (
        isinstance(column, np.ndarray)
        and column.dtype.kind in "iu"
        and len(column) > 0
        and int(column.min()) >= 0
        and int(column.max()) < nodes
    )


def _whole(column: Column) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers in a column of numbers, and which of its entries are whole numbers of 64 bits."""
    if not isinstance(column, pa.Array):
        return whole_numbers(column)
    there = pc.is_valid(column).to_numpy(zero_copy_only=False)
    filled = pc.fill_null(column.cast(pa.float64()) if pa.types.is_floating(column.type) else column, 0)
    numbers, whole = whole_numbers(filled.to_numpy(zero_copy_only=False))
    return numbers, whole & there


def _bytes(column: Column) -> pa.Array:
    """Text as bytes, which are not looked at: broken characters are in names like any others."""
    plain = column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column
    return plain.cast(pa.large_binary())


def _spellings(numbers: dict[Key, int], *, written: bool) -> dict[bytes, int]:
    """The bytes of names that are text; where numbers are written, of those too that do not fit in 64 bits."""
    spellings = {}
    for name, number in numbers.items():
        if isinstance(name, str) or (written and isinstance(name, int) and abs(name) >= 10**DIGITS):
            try:
                spellings[str(name).encode("utf-8", "surrogateescape")] = number
            except ValueError:  # no text of Arrow's holds half a character, or thousands of digits
                continue
    return spellings


def _spelt(name: Any) -> str:
    if isinstance(name, int) and abs(name) >= 10**1000:
        return hex(name)
    try:
        return repr(name)
    except Exception:  # noqa: BLE001  # a huge number in it, or an object that refuses; its key has neither
        return repr(key(name))


def _objects(column: Column, *, text: bool = False) -> list[Any]:
    """The entries as Python has them; None for those that it cannot hold, and for types that name nothing."""
    if (moments := dated(column)) is not None:
        return list(moments)
    if not isinstance(column, pa.Array):
        listed: list[Any] = column.tolist() if column.dtype.kind in "OiufUS" else [None] * len(column)
        return listed
    kind = column.type
    if text or is_text(column):
        return [None if one is None else one.decode("utf-8", "surrogateescape") for one in _bytes_list(column)]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or _is_bytes(kind):
        return list(column.to_pylist())
    return [None] * len(column)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _bytes_list(column: pa.Array) -> list[bytes | None]:
    return list((_bytes(column) if is_text(column) else column).to_pylist())
