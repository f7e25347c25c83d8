"""What can be seen in an output: columns with one entry for each run, whatever type the outputs have.

Every entry depends on its own output only, and which columns exist is read from the
choosing runs alone: nothing that the judging runs show can change the event they judge.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.audit.runs import Outputs, Raised
from defocus.privacy.numbers import nearest

__all__ = ["Array", "Column", "lattice", "read", "views"]

Array: TypeAlias = NDArray[Any]
_MOST_LEAVES = 256
_DEEPEST = 4
_RESIDUES = (2, 3, 5, 7, 8, 10)
_ZERO = 2048.0


@final
@dataclass(frozen=True, slots=True)
class Column:
    """One thing seen in every output: numbers in order, or codes of ``labels`` that have none."""

    name: str
    values: Array
    labels: tuple[str, ...] | None = None
    show: Callable[[Any], str] = lambda value: f"{value:.6g}" if isinstance(value, float) else str(value)
    numeric: bool = False
    """Whether these are the numbers of the output itself, of which more can be seen."""


def read(outputs: tuple[Outputs, Outputs], train: int) -> list[Column]:
    """The plain columns of all runs on the first data set, then all runs on the second.

    ``train`` is how many runs of each come first and may decide which columns exist.

    >>> [column.name for column in read(([{"a": 1}, None], [{"a": 2}, {"b": 2}]), 2)]
    ['kind of output', 'keys of output', 'order of the keys of output',
     "kind of output['a']", "output['a']", "kind of output['b']", "output['b']"]
    """
    first, second = outputs
    n = len(first)
    chosen = np.r_[0:train, n : n + train]
    if _numeric(first) and _numeric(second) and first.shape[1:] == second.shape[1:]:
        return _from_array(np.concatenate([first, second]), chosen)
    rows = [*_loose(first), *_loose(second)]
    array = _uniform(rows, [rows[i] for i in chosen])
    return _from_rows(rows, chosen) if array is None else _from_array(array, chosen)


def views(column: Column) -> list[Column]:
    """More to see in a column of numbers: its float lattice, residues, sign and fraction."""
    x = column.values
    usable = np.isfinite(x)
    safe = np.where(usable, x, np.zeros_like(x))
    whole = usable & (np.floor(safe) == safe)
    columns = [
        Column(f"lowest set bit of {column.name}", lattice(x), show=_power),
        Column(f"sign of {column.name}", np.where(usable, np.sign(safe), np.nan)),
    ]
    if x.dtype.kind == "f":
        columns.append(Column(f"fraction of {column.name}", np.where(usable, safe - np.floor(safe), np.nan)))
    return columns + [
        Column(f"{column.name} mod {k}", np.where(whole, np.mod(safe, k), np.nan).astype(np.float64)) for k in _RESIDUES
    ]


def lattice(x: Any) -> NDArray[np.float64]:
    """The exponent of the lowest set bit: x is an odd multiple of 2 to that power. Zero is shown as the coarsest.

    Where floating-point noise was added to a number, this tells which number it was.
    Reference: Mironov (2012), On significance of the least significant bits for differential privacy.

    >>> lattice([1.0, 0.75, 6, 0.1, 0.0]).tolist()
    [0.0, -2.0, 1.0, -55.0, 2048.0]
    """
    array = np.asarray(x)
    if array.dtype.kind in "iub":
        whole = array.astype(np.int64) if array.dtype.kind != "u" else array.astype(np.uint64).view(np.int64)
        low = (whole & -whole).view(np.uint64)
        return np.where(whole == 0, _ZERO, np.frexp(low.astype(np.float64))[1] - 1.0)
    values = array.astype(np.float64)
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = np.abs(fraction * 2.0**53).astype(np.int64)
    low = (whole & -whole).astype(np.float64)
    power = exponent - 53.0 + np.frexp(low)[1] - 1.0
    return np.where(finite, np.where(whole == 0, _ZERO, power), np.nan)


def _power(value: float) -> str:
    return "that of zero" if value >= _ZERO else f"2^{value:.0f}"


def _numeric(outputs: Outputs) -> bool:
    return isinstance(outputs, np.ndarray) and outputs.dtype.kind in "iufb"


def _loose(outputs: Outputs) -> list[Any]:
    """One entry for each run, numbers as Python's own: how an array stores them is not part of an output."""
    return [output.item() if isinstance(output, np.generic) else output for output in outputs]


def _uniform(rows: list[Any], seen: list[Any]) -> Array | None:
    """An array of numbers where the choosing runs have one simple type; another type later reads as NaN or zero."""
    kinds = {type(output) for output in seen}
    if kinds == {float}:
        return np.array([output if type(output) is float else math.nan for output in rows])
    if kinds in ({int}, {bool}) and all(_fits(output) for output in seen):
        return np.array([output if isinstance(output, int) and _fits(output) else 0 for output in rows], np.int64)
    if kinds == {np.ndarray} and len({(output.dtype, output.shape) for output in seen}) == 1:
        blank = np.zeros_like(seen[0])
        if blank.dtype.kind in "iufb" and blank.ndim:
            return np.stack([output if _same(output, blank) else blank for output in rows])
    return None


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _same(output: Any, blank: Array) -> bool:
    return isinstance(output, np.ndarray) and (output.dtype, output.shape) == (blank.dtype, blank.shape)


def _from_array(rows: Array, chosen: Array) -> list[Column]:
    if rows.ndim == 1:
        return [*_kinds("output", rows, chosen), Column("output", rows, numeric=True)]
    flat = rows.reshape(len(rows), -1)
    names = [f"output{list(where)}" for where in np.ndindex(rows.shape[1:])]
    columns: list[Column] = []
    for i, name in enumerate(names[:_MOST_LEAVES]):
        entry = np.ascontiguousarray(flat[:, i])
        columns += [*_kinds(name, entry, chosen), Column(name, entry, numeric=True)]
    return columns


def _kinds(name: str, x: Array, chosen: Array) -> list[Column]:
    """The class of each number: NaN, infinite, negative zero or none of these; nothing where all are plain."""
    codes = np.zeros(len(x), dtype=np.int64)
    if x.dtype.kind == "f":
        codes[np.isnan(x)] = 1
        codes[np.isinf(x)] = np.where(x[np.isinf(x)] > 0, 2, 3)
        codes[(x == 0) & np.signbit(x)] = 4
    column = Column(f"kind of {name}", codes, ("a number", "NaN", "inf", "-inf", "-0.0"))
    return [column] if codes[chosen].any() else []


def _from_rows(rows: list[Any], chosen: Array) -> list[Column]:
    """Take outputs apart into leaves, then describe each leaf over all runs."""
    taken = [dict(_leaves("output", output, 0)) for output in rows]
    seen = Counter(name for i in chosen for name in taken[i])
    columns: list[Column] = []
    for name in sorted(dict(seen.most_common(_MOST_LEAVES)), key=_natural):
        columns += _leaf_columns(name, [row.get(name, _ABSENT) for row in taken], chosen)
    return columns


class _Absent:
    """Stands for a leaf that an output does not have."""


_ABSENT = _Absent()


def _natural(name: str) -> tuple[bool, bool, int, str]:
    """The whole output first, then what is said about it, then its parts: the first of equal events is reported."""
    return name != "output", name.startswith("output"), len(name), name


def _leaves(name: str, value: Any, depth: int) -> list[tuple[str, Any]]:
    """Pairs of a name and a number, a text or another plain value, outermost first."""
    if isinstance(value, Raised):
        return [(name, value), (f"text raised by {name}", value.text)]
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        value = {part.name: getattr(value, part.name) for part in fields(value)}
    if depth < _DEEPEST and isinstance(value, Mapping):
        inner = [(name, type(value)), *_keys(name, value), (f"order of the keys of {name}", repr(list(value)))]
        for key, entry in value.items():
            inner += _leaves(f"{name}[{key!r}]", entry, depth + 1)
        return inner
    if isinstance(value, AbstractSet):
        return [(name, type(value)), *_keys(name, value)]
    if depth < _DEEPEST and isinstance(value, list | tuple):
        inner = [(name, type(value)), (f"length of {name}", len(value))]
        for i, entry in enumerate(value[:_MOST_LEAVES]):
            inner += _leaves(f"{name}[{i}]", entry, depth + 1)
        return inner
    return [(name, value)]


def _keys(name: str, value: Mapping[Any, Any] | AbstractSet[Any]) -> list[tuple[str, str]]:
    return [(f"keys of {name}", ", ".join(sorted(map(repr, value))) or "no keys")]


def _leaf_columns(name: str, values: list[Any], chosen: Array) -> list[Column]:
    columns: list[Column] = []
    if name.startswith("output"):
        columns += _coded(f"kind of {name}", [_kind(value) for value in values], chosen)
    is_number = [isinstance(value, Real | np.bool_) for value in values]
    has_numbers = any(is_number[i] for i in chosen)
    if has_numbers:
        columns.append(Column(name, _numbers(values, is_number, chosen), numeric=True))
    silent = (int, float, type, type(None), Raised, _Absent)
    texts = ["(none)" if n or isinstance(v, silent) else _text(v) for v, n in zip(values, is_number, strict=True)]
    return columns + _coded(f"text of {name}" if has_numbers else name, texts, chosen)


def _numbers(values: list[Any], is_number: list[bool], chosen: Array) -> Array:
    """As int64 where the choosing runs fit in it, as floats with NaN for what is no number otherwise."""
    if all(isinstance(values[i], int) and _fits(values[i]) for i in chosen):
        return np.array([v if isinstance(v, int) and _fits(v) else 0 for v in values], dtype=np.int64)
    return np.array([nearest(v) if n else math.nan for v, n in zip(values, is_number, strict=True)])


def _kind(value: Any) -> str:
    if isinstance(value, _Absent):
        return "absent"
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, Raised):
        return f"raised {value.kind}"
    if isinstance(value, float | np.floating):
        plain = math.isfinite(value) and not (value == 0 and math.copysign(1.0, value) < 0)
        return type(value).__name__ if plain else str(float(value)).replace("nan", "NaN")
    return type(value).__name__ if not isinstance(value, Fraction) else "Fraction"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _coded(name: str, texts: list[str], chosen: Array) -> list[Column]:
    """A column of labels, or none where the choosing runs all have the same."""
    labels, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
    codes = codes.astype(np.int64).reshape(-1)
    varies = len(np.unique(codes[chosen])) > 1
    return [Column(name, codes, tuple(map(str, labels)))] if varies else []
