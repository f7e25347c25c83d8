"""Hostile neighbours of whole domains: tables of declared columns, graphs, and gradients that are clipped."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from defocus.errors import InvalidParameterError

__all__ = ["Columns", "edges", "gradients", "nodes", "read_columns", "tables"]

Columns: TypeAlias = Mapping[str, Any]
"""What columns may hold: ``(low, high)`` for numbers, whole ones if both ends are, or a list of values."""
_NODES = 7
_DIMENSION = 4
_RANDOM = 6
_EQUAL = (2, 3, 4, 5, 9, 10, 19, 20, 49, 50, 99)
"""From so many equal rows to one more: rules for small groups often begin at five, ten, twenty, fifty or a hundred."""
_TWICE = ("not a number", "at the largest float", "at the largest integer", "at the smallest integer")
"""What is odd about a number, and odder of two: their sum overflows."""
_LARGEST = 1.7976931348623157e308
_INT = 2**63
_Triple: TypeAlias = tuple[str, Any, Any]
_Pairs: TypeAlias = Iterator[_Triple]
_Kind: TypeAlias = tuple[pa.DataType, Sequence[Any], dict[str, Any]]
"""The type of a column, ordinary values of it in order, and strange ones by what is strange about them."""


def tables(columns: Columns, *, replace: bool) -> Iterator[_Triple]:
    """Pairs of Arrow tables: every odd row added to, or replaced in, data sets that are odd in their own way.

    Data sets are empty, a single row, two that tie, a hundred equal rows, or spread over the domain; rows are at the
    ends of the domain, beyond them, missing, not a number, new keys, nearly known ones, or there already; then two rows
    that are too large together, groups on their way to five, ten, twenty, fifty and a hundred, and pairs at random.

    >>> found = list(tables({"age": (0, 99), "ward": ["A", "B"]}, replace=False))
    >>> found[0][0], found[0][2].to_pylist()
    ('empty, and a row of largest values', [{'age': 99, 'ward': 'B'}])
    """
    kinds = {str(name): _kind(name, said) for name, said in columns.items()}
    if not kinds:
        raise InvalidParameterError("A table needs a column.", fix='write for example {"age": (0, 99)}.')
    schema = pa.schema([(name, kind) for name, (kind, _, _) in kinds.items()])
    least, most = ({name: values[end] for name, (_, values, _) in kinds.items()} for end in (0, -1))
    middle = {name: values[len(values) // 2] for name, (_, values, _) in kinds.items()}
    draw = np.random.default_rng(0)

    def some(number: int) -> list[dict[str, Any]]:
        return [
            {name: values[int(draw.integers(len(values)))] for name, (_, values, _) in kinds.items()}
            for _ in range(number)
        ]

    odd = {"a row of largest values": most, "a row of smallest values": least, "a row of nothing": dict.fromkeys(kinds)}
    for name, (_, _, strange) in kinds.items():
        odd |= {f"{name} {words}": {**middle, name: value} for words, value in strange.items()}
    bases = {
        "empty": [],
        "a single row": [middle],
        "a tie": [least, most],
        "a hundred equal rows": [middle] * 100,
        "rows of all kinds": some(20),
    }
    for where, rows in bases.items():
        for words, row in (odd | ({"a row that is there": rows[0]} if rows else {})).items():
            if not replace:
                yield f"{where}, and {words}", _table(rows, schema), _table([*rows, row], schema)
            elif rows:
                yield f"{where}, and {words} instead", _table(rows, schema), _table([*rows[:-1], row], schema)
    yield from _together(kinds, middle, schema, replace=replace)
    for size in range(1, _RANDOM + 1):
        rows = some(size**2)
        changed = [*(rows[:-1] if replace else rows), *some(1)]
        yield f"{size**2} rows at random", _table(rows, schema), _table(changed, schema)


def _together(kinds: Mapping[str, _Kind], middle: dict[str, Any], schema: pa.Schema, *, replace: bool) -> _Pairs:
    """Rows that are odd because of the others: two that overflow, and groups that become large enough for a rule."""
    for name, (_, _, strange) in kinds.items():
        for words in [each for each in _TWICE if each in strange]:
            row = {**middle, name: strange[words]}
            before = [row, middle] if replace else [row]
            yield f"{name} {words}, and again", _table(before, schema), _table([row, row], schema)
    for size in () if replace else _EQUAL:
        yield f"{size} equal rows, and another", _table([middle] * size, schema), _table([middle] * (size + 1), schema)


def edges(*, replace: bool) -> Iterator[_Triple]:
    """Pairs of graphs, as lists of edges between seven nodes, that differ in an edge.

    >>> [name for name, _, _ in edges(replace=False)][:3]
    ['no edge and one', 'a star grows', 'a star loses a ray']
    """
    star = [(0, i) for i in range(1, _NODES - 1)]
    clique = list(combinations(range(_NODES), 2))
    path = [(i, i + 1) for i in range(_NODES - 1)]
    hubs = [(hub, other) for hub in (0, 1) for other in range(2, _NODES)]
    halves = [pair for pair in clique if (pair[0] < _NODES // 2) == (pair[1] < _NODES // 2)]
    if replace:
        yield "an edge moves along a star", [*star, (1, 2)], [*star, (0, _NODES - 1)]
        yield "an edge leaves a clique", [*clique[:-1], clique[-1]], [*clique[:-1], (0, 0)]
        return
    yield "no edge and one", [], [(0, 1)]
    yield "a star grows", star, [*star, (0, _NODES - 1)]
    yield "a star loses a ray", [*star], star[:-1]
    yield "two rays of a star are joined", star, [*star, (1, 2)]
    yield "a clique lacks an edge", clique[:-1], clique
    yield "a path becomes a ring", path, [*path, (_NODES - 1, 0)]
    yield "a square closes", path[:3], [*path[:3], (3, 0)]
    yield "two hubs are joined", hubs, [*hubs, (0, 1)]
    yield "two hubs share one more", hubs[:-1], hubs
    yield "two cliques are joined", halves, [*halves, (0, _NODES - 1)]
    yield "a loop", path, [*path, (0, 0)]
    yield "an edge that is there", path, [*path, path[0]]
    yield "an edge the other way round", path, [*path, path[0][::-1]]
    yield "an edge to a node that nobody knows", path, [*path, (0, 10**9)]


def nodes(*, replace: bool) -> Iterator[_Triple]:
    """Pairs of graphs, as lists of edges between seven nodes, that differ in all edges of one node.

    >>> [len(second) - len(first) for _, first, second in nodes(replace=False)]
    [1, 6, 6, 6, 3]
    """
    others = range(_NODES - 1)
    hub = [(i, _NODES - 1) for i in others]
    clique = list(combinations(others, 2))
    path = [(i, i + 1) for i in range(_NODES - 2)]
    if replace:
        yield "a hub instead of a lonely node", [], hub
        yield "a node of a clique knows nobody", [*clique, *hub], clique
        return
    yield "a node with an edge", [], hub[:1]
    yield "a hub among strangers", [], hub
    yield "a node that makes a larger clique", clique, [*clique, *hub]
    yield "a hub on a path", path, [*path, *hub]
    yield "a bridge", path[::2], [*path[::2], *hub[::2]]


def gradients(*, replace: bool) -> Iterator[_Triple]:
    """Pairs of batches of gradients, a line for each example, for what clips them to an L2 norm of one.

    >>> [second.shape for _, _, second in gradients(replace=False)][5:7]
    [(1, 4), (2, 4)]
    """

    def along(*lengths: float) -> Any:
        return np.array([[length, *[0.0] * (_DIMENSION - 1)] for length in lengths]).reshape(-1, _DIMENSION)

    everywhere = np.full((1, _DIMENSION), 1 / math.sqrt(_DIMENSION))
    old = {"": (), "after a zero ": (0.0,), "against its opposite ": (-1.0,), "among a hundred alike ": (1.0,) * 100}
    odd = {
        "at the clip": 1.0,
        "far beyond the clip": 1e6,
        "of infinity": math.inf,
        "of NaN": math.nan,
        "next to none": 1e-30,
        "of zero": 0.0,
    }
    for where, own in old.items():
        for words, length in odd.items():
            if not replace:
                yield f"{where}a gradient {words}", along(*own), along(*own, length)
            elif own and own[-1] != length:
                yield f"{where}a gradient {words} instead", along(*own), along(*own[:-1], length)
    if not replace:
        yield "a gradient in all directions", along(0.0), np.vstack([along(0.0), everywhere])
    yield "a gradient turns around", along(1.0), along(-1.0) if replace else along(1.0, -1.0)


def read_columns(text: str) -> Columns:
    """Columns as a command line has them: ``age=0:99; ward=A,B``.

    >>> read_columns("age=0:99; weight=0.5:200; ward=A,B")
    {'age': (0, 99), 'weight': (0.5, 200.0), 'ward': ['A', 'B']}
    """
    found: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, _, said = part.partition("=")
        low, _, high = said.partition(":")
        try:
            whole_ends = "." not in said
            ends: Any = (int(low), int(high)) if high and whole_ends else (float(low), float(high)) if high else None
        except ValueError:
            ends = None
        found[name.strip()] = ends or [value.strip() for value in said.split(",")]
    return found


def _kind(name: object, said: Any) -> _Kind:
    """What a column may hold, as its domain says."""
    if isinstance(said, tuple) and len(said) == 2 and all(isinstance(end, int | float) for end in said):
        low, high = said
        if low <= high and all(isinstance(end, int) for end in said):
            steps = sorted({low + (high - low) * i // 6 for i in range(7)})
            return pa.int64(), steps, {"at the largest integer": _INT - 1, "at the smallest integer": -_INT}
        if low <= high and all(map(math.isfinite, said)):
            strange = {
                "not a number": math.nan,
                "infinite": math.inf,
                "at the largest float": _LARGEST,
                "at minus zero": -0.0,
            }
            return pa.float64(), [low + (high - low) * i / 6 for i in range(7)], strange
    if isinstance(said, Iterable) and not isinstance(said, str | tuple) and (values := list(said)):
        if all(isinstance(value, str) for value in values):
            alike = values[len(values) // 2]
            unknown = {"a new key": "unheard of", "an empty text": "", "a long text": "k" * 5000}
            nearly = {"with a quote": "a'; --", "with a space more": f"{alike} ", "in other letters": alike.swapcase()}
            return pa.string(), values, unknown | nearly
        kinds: list[Callable[[], pa.DataType]] = [pa.bool_, pa.int64, pa.float64]
        types = (bool, int, float)
        for type_, kind in zip(types, kinds, strict=True):
            if all(type(value) is type_ for value in values):
                return kind(), values, {} if type_ is bool else {"a new key": type_(10**9)}
    raise InvalidParameterError(
        f"What the column {str(name)!r:.40} may hold is not understood.",
        fix='write (low, high) for numbers, or a list of values: {"age": (0, 99), "ward": ["A", "B"]}.',
    )


def _table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
