"""Pairs of neighbouring data sets, the hostile ones first of all."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.audit import domains
from defocus.errors import choice

__all__ = ["KINDS", "Pair", "neighbours"]

_BIG = 2**53
_INT = 2**63


@final
@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring data sets and what is hostile about them.

    >>> print(Pair("one person more", [30, 40], [30, 40, 50]))
    one person more: [30, 40] and [30, 40, 50]
    """

    name: str
    first: Any
    second: Any

    def __str__(self) -> str:
        return f"{self.name}: {_short(self.first)} and {_short(self.second)}"


def neighbours(kind: "str | domains.Columns", *, replace: bool = False) -> tuple[Pair, ...]:
    """Hostile pairs for mechanisms on ``kind`` of data: one row added, or one row replaced by another.

    ``numbers``: float vectors; ``integers``: int64 vectors; ``keys``: lists of strings, one for each row;
    ``count``: one whole number that differs by one; ``value``: one float that differs by at most one;
    ``edges`` and ``nodes``: lists of edges that differ in one, or in those of one node; ``gradients``: batches of
    gradients, for what clips them to a norm of one. A mapping from names of columns to ``(low, high)`` or a list of
    values makes tables: see :func:`defocus.audit.domains.tables`. A mechanism that promises something for all data of a
    kind promises it for each of these pairs.

    >>> for pair in neighbours("count")[:3]:
    ...     print(pair)
    zero and one: 0 and 1
    around a thousand: 1000 and 1001
    below zero: -1 and 0
    >>> len(neighbours({"age": (0, 99), "ward": ["A", "B"]}))
    78
    """
    if isinstance(kind, Mapping):
        return tuple(Pair(*each) for each in domains.tables(kind, replace=replace))
    return tuple(KINDS[choice("kind of neighbours", kind, sorted(KINDS))](replace))


def _numbers(replace: bool) -> Iterator[Pair]:  # one of several makers with the same signature
    def vector(*values: float) -> Any:
        return np.array(values, dtype=np.float64)

    if replace:
        for name, old, new in (
            ("a zero replaced by a one", 0.0, 1.0),
            ("a number replaced by NaN", 0.5, math.nan),
            ("a number replaced by infinity", 0.5, math.inf),
            ("the largest float replaced by the smallest", 1.7976931348623157e308, -1.7976931348623157e308),
            ("zero replaced by negative zero", 0.0, -0.0),
            ("zero replaced by the least float", 0.0, 5e-324),
            ("2^53 replaced by the next float", float(_BIG), float(_BIG + 2)),
        ):
            yield Pair(name, vector(old), vector(new))
            yield Pair(f"{name}, among others", vector(0.25, 0.5, old, 0.75), vector(0.25, 0.5, new, 0.75))
        return
    yield Pair("empty and one row", vector(), vector(1.0))
    yield Pair("empty and a zero", vector(), vector(0.0))
    yield Pair("one row and two", vector(0.0), vector(0.0, 1.0))
    yield Pair("a NaN added", vector(0.25, 0.5), vector(0.25, 0.5, math.nan))
    yield Pair("only a NaN added", vector(), vector(math.nan))
    yield Pair("infinity added", vector(0.25, 0.5), vector(0.25, 0.5, math.inf))
    yield Pair("minus infinity added to infinity", vector(math.inf), vector(math.inf, -math.inf))
    yield Pair("the largest float added", vector(1.0), vector(1.0, 1.7976931348623157e308))
    yield Pair("the smallest float added", vector(1.0), vector(1.0, -1.7976931348623157e308))
    yield Pair("a sum that overflows", vector(1.7976931348623157e308), vector(*[1.7976931348623157e308] * 2))
    yield Pair("one beyond 2^53", vector(float(_BIG)), vector(float(_BIG), 1.0))
    yield Pair("negative zero added", vector(), vector(-0.0))
    yield Pair("the least float added", vector(0.0), vector(0.0, 5e-324))
    yield Pair("one more of a hundred equal rows", np.full(100, 0.1), np.full(101, 0.1))


def _integers(replace: bool) -> Iterator[Pair]:  # see _numbers
    def vector(*values: int) -> Any:
        return np.array(values, dtype=np.int64)

    if replace:
        yield Pair("a zero replaced by a one", vector(0), vector(1))
        yield Pair("the largest integer replaced by the smallest", vector(_INT - 1), vector(-_INT))
        yield Pair("the largest replaced, among others", vector(1, _INT - 1), vector(1, -_INT))
        yield Pair("2^53 replaced by the next", vector(_BIG), vector(_BIG + 1))
        return
    yield Pair("empty and one row", vector(), vector(1))
    yield Pair("empty and a zero", vector(), vector(0))
    yield Pair("one row and two", vector(0), vector(0, 1))
    yield Pair("a negative row added", vector(0), vector(0, -1))
    yield Pair("the largest integer added", vector(1), vector(1, _INT - 1))
    yield Pair("the smallest integer added", vector(-1), vector(-1, -_INT))
    yield Pair("a sum beyond 2^53", vector(_BIG), vector(_BIG, 1))
    yield Pair("one more of a hundred equal rows", np.full(100, 7), np.full(101, 7))


def _keys(replace: bool) -> Iterator[Pair]:  # see _numbers
    if replace:
        yield Pair("a key replaced by a known one", ["a", "a", "b"], ["a", "b", "b"])
        yield Pair("a key replaced by a new one", ["a", "a", "b"], ["a", "a", "unheard of"])
        return
    yield Pair("empty and one key", [], ["a"])
    yield Pair("a known key added", ["a", "b"], ["a", "b", "b"])
    yield Pair("a new key added", ["a"] * 20, ["a"] * 20 + ["unheard of"])
    yield Pair("the empty key added", ["a"], ["a", ""])
    yield Pair("a key with a quote added", ["a"], ["a", "a'; --"])
    yield Pair("a key that looks alike added", ["é"], ["é", "e\u0301"])
    yield Pair("a very long key added", ["a"], ["a", "k" * 10_000])


def _count(replace: bool) -> Iterator[Pair]:  # noqa: ARG001  # a count changes by one either way
    yield Pair("zero and one", 0, 1)
    yield Pair("around a thousand", 1000, 1001)
    yield Pair("below zero", -1, 0)
    yield Pair("beyond 2^53", _BIG, _BIG + 1)
    yield Pair("at the largest integer", _INT - 2, _INT - 1)
    yield Pair("at the smallest integer", -_INT, -_INT + 1)


def _value(replace: bool) -> Iterator[Pair]:  # noqa: ARG001  # a value changes by at most one either way
    yield Pair("zero and one", 0.0, 1.0)
    yield Pair("a third and the next", 1 / 3, 4 / 3)
    yield Pair("around a thousand", 1000.0, 1001.0)
    yield Pair("negative zero and zero", -0.0, 0.0)
    yield Pair("zero and the least float", 0.0, 5e-324)
    yield Pair("just below 2^53", float(_BIG - 2), float(_BIG - 1))


def _of(make: Callable[..., Iterator[tuple[str, Any, Any]]]) -> Callable[[bool], Iterator[Pair]]:
    return lambda replace: (Pair(*each) for each in make(replace=replace))


KINDS: dict[str, Callable[[bool], Iterator[Pair]]] = {
    "count": _count,
    "edges": _of(domains.edges),
    "gradients": _of(domains.gradients),
    "integers": _integers,
    "keys": _keys,
    "nodes": _of(domains.nodes),
    "numbers": _numbers,
    "value": _value,
}
"""The kinds of data there are hostile neighbours for."""


def _short(data: Any) -> str:
    text = " ".join(repr(data).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
