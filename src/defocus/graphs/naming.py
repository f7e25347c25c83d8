"""The nodes of a graph: what they are called, and the number of each. Ends that name no node become -1."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.graphs.graph import MOST_NODES
from defocus.graphs.numbering import NOBODY, whole_numbers

__all__ = ["Column", "Names", "as_column", "listed_in", "read_numbers"]

Column: TypeAlias = Any
"""One column of the data: an Arrow array, or a numpy array of one dimension; of objects where it has no type."""


def as_column(values: Any) -> Column:
    """A column of whatever holds values in order. Its type is that of the container, never chosen from the values.

    >>> as_column([1, "a"]).dtype, as_column(np.array([1, 2])).dtype
    (dtype('O'), dtype('int64'))
    """
    library = type(values).__module__.partition(".")[0]
    if library == "polars":
        values = values.to_arrow()
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
        categories = values.cat.categories if hasattr(values, "cat") else values.categories
        return _from_pandas(values.astype(categories.dtype))
    if isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    if kind == "StringDtype":
        return pa.array(values.to_numpy(dtype=object, na_value=None), pa.string(), from_pandas=True)
    return pa.Array.from_pandas(values)


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

    >>> Names(["ada", "bob", None, "ada"]).numbers(as_column(["bob", "eve", "ada"])).tolist()
    [1, -1, 0]
    >>> Names(3).numbers(as_column([0, 2, 3, -1])).tolist()
    [0, 2, -1, -1]
    """

    __slots__ = ("_known", "_labels", "_sorted")

    def __init__(self, nodes: Any) -> None:
        self._labels: Sequence[Any]
        self._known: dict[Any, int] | None = None
        self._sorted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        if isinstance(nodes, int):
            self._labels = range(nodes)
        elif _is_whole(column := as_column(nodes)) or _all_whole(column):
            numbers, whole = _whole(column)
            once = np.sort(np.unique(numbers[whole], return_index=True)[1])
            names = numbers[whole][once]
            order = np.argsort(names, kind="stable")
            self._labels, self._sorted = names.tolist(), (names[order], order)
        else:
            self._labels = list(dict.fromkeys(name for name in _objects(column) if _nameable(name)))
            self._known = {name: number for number, name in enumerate(self._labels)}
        if len(self._labels) > MOST_NODES:
            raise InvalidParameterError(f"A graph has at most {MOST_NODES} nodes here.", fix="list fewer nodes.")

    @property
    def numbered(self) -> bool:
        """Whether nodes are called by whole numbers."""
        return self._known is None

    @property
    def labels(self) -> Sequence[Any]:
        """The names in the order of their numbers."""
        return self._labels

    def digest(self) -> str:
        """A few digits that tell these names from others; none where nodes are simply numbered."""
        if isinstance(self._labels, range):
            return ""
        text = "\n".join(f"{type(name).__name__} {name!r}" for name in self._labels)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def numbers(self, column: Column) -> NDArray[np.int64]:
        """The number of the node that each entry names, or -1. The type of a column can be refused, no value can."""
        if self._known is None:
            if self._sorted is None and _within(column, len(self._labels)):
                return np.asarray(column, dtype=np.int64).view()  # no copy of many numbers that are right already
            return self._from_whole(*_whole(column))
        texts = isinstance(column, pa.Array) and _is_text(column)
        if texts and all(isinstance(name, str) for name in self._labels):
            known = pa.array(self._labels, column.type)
            found = pc.index_in(column, value_set=known, skip_nulls=True)
            return np.asarray(pc.fill_null(found, NOBODY).to_numpy(zero_copy_only=False), dtype=np.int64)
        if _is_whole(column) and self._labels and not any(isinstance(name, int) for name in self._labels):
            raise _mismatch(column, "not named by numbers")
        known_names = self._known
        return np.fromiter((_number(name, known_names) for name in _objects(column)), np.int64, len(column))

    def _from_whole(self, numbers: NDArray[np.int64], whole: NDArray[np.bool_]) -> NDArray[np.int64]:
        if self._sorted is None:
            return np.where(whole & (numbers >= 0) & (numbers < len(self._labels)), numbers, NOBODY)
        names, order = self._sorted
        if not len(names):
            return np.full(len(numbers), NOBODY, np.int64)
        place = np.minimum(np.searchsorted(names, numbers), len(names) - 1)
        return np.where(whole & (names[place] == numbers), order[place], NOBODY).astype(np.int64)


def listed_in(*columns: Column) -> Any:
    """Every name in the columns, once, in rising order: for a declared public node set, or a private one."""
    if all(_is_whole(column) for column in columns):
        both = [_whole(column) for column in columns]
        return np.unique(np.concatenate([numbers[whole] for numbers, whole in both]))
    names = {name for column in columns for name in _objects(column) if _nameable(name)}
    try:
        return sorted(names)
    except TypeError:  # names of several types: by type, then by how they are written
        return sorted(names, key=lambda name: (type(name).__name__, repr(name)))


def read_numbers(column: Column) -> Column:
    """Texts that are written as whole numbers, as numbers: "12" and "-3", and neither "012" nor "12.0"; else missing.

    >>> read_numbers(pa.array(["12", "-3", "012", "1e3", None])).to_pylist()
    [12, -3, None, None, None]
    """
    fine = pc.match_substring_regex(column, "^(0|-?[1-9][0-9]{0,17})$")
    return pc.if_else(fine, column, pa.scalar(None, column.type)).cast(pa.int64())


def _is_whole(column: Column) -> bool:
    return bool(pa.types.is_integer(column.type)) if isinstance(column, pa.Array) else column.dtype.kind in "iu"


def _within(column: Column, nodes: int) -> bool:
    """Whether a numpy column holds numbers of nodes and nothing else."""
    return (
        isinstance(column, np.ndarray)
        and column.dtype.kind in "iu"
        and len(column) > 0
        and int(column.min()) >= 0
        and int(column.max()) < nodes
    )


def _all_whole(column: Column) -> bool:
    """Whether a list of Python objects names nodes by whole numbers only, so that they can be looked up quickly."""
    if isinstance(column, pa.Array) or column.dtype.kind != "O":
        return False
    return all(isinstance(name, int | np.integer) for name in column.tolist() if _nameable(name))


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _whole(column: Column) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers in a column, and which of its entries are whole numbers."""
    if not isinstance(column, pa.Array):
        if column.dtype.kind not in "iufO":
            raise _mismatch(column, "whole numbers")
        return whole_numbers(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    if not _is_whole(column) and not pa.types.is_floating(column.type):
        raise _mismatch(column, "whole numbers")
    there = pc.is_valid(column).to_numpy(zero_copy_only=False)
    filled = pc.fill_null(column.cast(pa.float64()) if pa.types.is_floating(column.type) else column, 0)
    numbers, whole = whole_numbers(filled.to_numpy(zero_copy_only=False))
    return numbers, whole & there


def _mismatch(column: Column, nodes: str) -> InvalidParameterError:
    kind = column.type if isinstance(column, pa.Array) else column.dtype
    return InvalidParameterError(
        f"The ends of edges have the type {str(kind)[:60]}, but the nodes are {nodes}.",
        fix="list the names of the nodes as the edges have them: nodes=[…].",
    )


def _objects(column: Column) -> list[Any]:
    listed: list[Any] = column.to_pylist() if isinstance(column, pa.Array) else column.tolist()
    return listed


def _nameable(name: Any) -> bool:
    """Whether something can name a node: it is there, equals itself, and can be looked up."""
    if name is None or isinstance(name, bool):
        return False
    if isinstance(name, str | int):
        return True
    try:
        hash(name)
        return bool(name == name)  # noqa: PLR0124  # NaN does not equal itself
    except Exception:  # noqa: BLE001  # an object may refuse in any way
        return False


def _number(name: Any, known: dict[Any, int]) -> int:
    return known.get(name, NOBODY) if _nameable(name) else NOBODY
