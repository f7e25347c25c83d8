"""What can be seen in an output: columns with one entry for each run, whatever type the outputs have.

Every entry depends on its own output only, so a column may be computed before anyone
decides which runs choose an event and which runs judge it. Which columns exist is read
from the choosing runs alone.
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

from defocus.audit.running import Outputs, Raised

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
    first, second = (_tidy(side) for side in outputs)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and _alike(first, second):
        return _from_array(np.concatenate([first, second]))
    rows = [*_loose(first), *_loose(second)]
    n = len(rows) // 2
    return _from_rows(rows, [*range(train), *range(n, n + train)])


def views(column: Column) -> list[Column]:
    """More to see in a column of numbers: its float lattice, residues, sign and fraction."""
    x = column.values
    found = [Column(f"lowest set bit of {column.name}", lattice(x), show=_power)]
    usable = np.isfinite(x) if x.dtype.kind == "f" else np.ones(len(x), dtype=bool)
    safe = np.where(usable, x, 0)
    found.append(Column(f"sign of {column.name}", np.where(usable, np.sign(safe), np.nan)))
    is_whole = usable & (np.floor(safe) == safe) if x.dtype.kind == "f" else usable
    if not is_whole.all():
        found.append(Column(f"fraction of {column.name}", np.where(usable, safe - np.floor(safe), np.nan)))
    if is_whole.any():
        found += [
            Column(f"{column.name} mod {k}", np.where(is_whole, np.mod(safe, k), np.nan).astype(np.float64))
            for k in _RESIDUES
        ]
    return found


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


def _alike(first: Array, second: Array) -> bool:
    return first.dtype.kind == second.dtype.kind and first.shape[1:] == second.shape[1:]


def _tidy(outputs: Outputs) -> Array | list[Any]:
    """An array of numbers where every output has the same simple type, a list of outputs otherwise."""
    if isinstance(outputs, np.ndarray):
        return outputs if outputs.dtype.kind in "iufb" else list(outputs)
    kinds = {type(output) for output in outputs}
    if kinds in ({float}, {int}, {bool}):
        array = np.array(outputs)
        return array if array.dtype.kind in "ifb" else list(outputs)
    if kinds == {np.ndarray} and len({(output.dtype, output.shape) for output in outputs}) == 1:
        return np.stack(outputs) if outputs[0].dtype.kind in "iufb" and outputs[0].ndim else list(outputs)
    if len(kinds) == 1 and issubclass(next(iter(kinds)), np.integer | np.floating | np.bool_):
        return np.array(outputs)
    return list(outputs)


def _loose(outputs: Array | list[Any]) -> list[Any]:
    """One plain entry for each run."""
    plain: list[Any] = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
    return plain


def _from_array(rows: Array) -> list[Column]:
    if rows.ndim == 1:
        return [*_kinds("output", rows), Column("output", rows, numeric=True)]
    flat = rows.reshape(len(rows), -1)
    names = [f"output{list(where)}" for where in np.ndindex(rows.shape[1:])]
    columns: list[Column] = []
    for i, name in enumerate(names[:_MOST_LEAVES]):
        columns += [*_kinds(name, flat[:, i]), Column(name, np.ascontiguousarray(flat[:, i]), numeric=True)]
    return columns


def _kinds(name: str, x: Array) -> list[Column]:
    """The class of each number: NaN, infinite, negative zero or none of these; nothing where all are plain."""
    if x.dtype.kind != "f":
        return []
    codes = np.zeros(len(x), dtype=np.int64)
    codes[np.isnan(x)] = 1
    codes[np.isinf(x)] = np.where(x[np.isinf(x)] > 0, 2, 3)
    codes[(x == 0) & np.signbit(x)] = 4
    return [Column(f"kind of {name}", codes, ("a number", "NaN", "inf", "-inf", "-0.0"))] if codes.any() else []


def _from_rows(rows: list[Any], train: list[int]) -> list[Column]:
    """Take outputs apart into leaves, then describe each leaf over all runs."""
    taken = [dict(_leaves("output", output, 0)) for output in rows]
    seen = Counter(name for i in train for name in taken[i])
    columns: list[Column] = []
    for name in sorted(dict(seen.most_common(_MOST_LEAVES)), key=_natural):
        columns += _leaf_columns(name, [row.get(name, _ABSENT) for row in taken])
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


def _leaf_columns(name: str, values: list[Any]) -> list[Column]:
    kinds = _coded(f"kind of {name}", [_kind(value) for value in values])
    columns = [kinds] if name.startswith("output") and len(set(kinds.values.tolist())) > 1 else []
    is_number = [isinstance(value, Real | np.bool_) for value in values]
    if any(is_number):
        columns.append(Column(name, _numbers(values, is_number), numeric=True))
    silent = (int, float, type, type(None), Raised, _Absent)
    texts = ["(none)" if n or isinstance(v, silent) else _text(v) for v, n in zip(values, is_number, strict=True)]
    if len(set(texts)) > 1:
        columns.append(_coded(f"text of {name}" if any(is_number) else name, texts))
    return columns


def _numbers(values: list[Any], is_number: list[bool]) -> Array:
    """As int64 where that is exact, as floats otherwise, NaN where there is no number."""
    if all(is_number) and all(isinstance(v, int | np.integer | np.bool_) for v in values):
        whole = [int(v) for v in values]
        if all(-(2**63) <= v < 2**63 for v in whole):
            return np.array(whole, dtype=np.int64)
    return np.array([_float(v) if n else math.nan for v, n in zip(values, is_number, strict=True)])


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


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


def _coded(name: str, texts: list[str]) -> Column:
    labels, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
    return Column(name, codes.astype(np.int64).reshape(-1), tuple(map(str, labels)))
