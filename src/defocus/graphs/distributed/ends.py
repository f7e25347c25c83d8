"""From rows of an engine to numbers of nodes, by the one rule that each value has in memory.

What a value is called as a node is said in :mod:`~defocus.graphs.keys`. A column of an engine holds values of one kind,
so that of all keys only those of that kind can be equal to one of them: a whole number, a text, or a date. Where text
is written, as in CSV, two texts are equal exactly if their keys are, as a whole number has one spelling.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, final

import pyarrow as pa
from sqlglot import exp

from defocus.engines.engine import Engine
from defocus.engines.kinds import Kind
from defocus.engines.syntax import BIGINT, DOUBLE, TEXT, column, named, rows_of, typed, whole
from defocus.errors import InvalidParameterError
from defocus.graphs.keys import Key
from defocus.graphs.naming import Names

__all__ = ["KINDS", "Side", "numbered", "values"]

KINDS = {Kind.INTEGER: pa.int64(), Kind.NUMBER: pa.float64(), Kind.TEXT: pa.string(), Kind.DATE: pa.date32()}
"""The kinds of columns that can hold names of nodes, and the types they have here."""
_FAR = 2**63
_LONGEST = 1000
"""Whole numbers of more digits are text where they are written; see keys."""


@final
@dataclass(frozen=True, slots=True)
class Side:
    """One end of every edge: the name of its column, the kind of its values, and whether they are written."""

    name: str
    kind: Kind
    written: bool = False


def values(rows: exp.Select, side: Side) -> exp.Select:
    """Every value of a side that may be a name, once: ``value``."""
    made = exp.select(named(_key(side), "value")).distinct().from_(rows_of(rows), copy=False)
    there = exp.select(column("value")).from_(rows_of(made), copy=False)
    return there.where(column("value").is_(exp.null()).not_(), copy=False)


def numbered(engine: Engine, rows: exp.Select, sides: Sequence[Side], names: Names) -> exp.Select:
    """A query with the numbers of the two nodes of every row, ``a`` and ``b``. Names are published for it.

    Rows of which an end names no node are left out, or have NULL there.
    """
    keys = [named(_key(side), name) for side, name in zip(sides, "xy", strict=True)]
    keyed = exp.select(*keys).from_(rows_of(rows), copy=False)
    if isinstance(names.labels, range):
        made = [named(_within(column(name), side, len(names.labels)), to) for name, side, to in _named(sides)]
        return exp.select(*made).from_(rows_of(keyed), copy=False)
    tables: dict[tuple[Kind, bool], exp.Table] = {}
    for side in sides:
        sort = (Kind.INTEGER if side.kind is Kind.NUMBER else side.kind, side.written)
        if sort not in tables:
            tables[sort] = engine.publish("nodes", _table(names, side))
    joined = exp.select(*(named(column("node", to), to) for _, _, to in _named(sides))).from_(
        rows_of(keyed), copy=False
    )
    for name, side, to in _named(sides):
        known = tables[(Kind.INTEGER if side.kind is Kind.NUMBER else side.kind, side.written)]
        on = exp.EQ(this=column("name", to), expression=column(name, "t"))
        joined = joined.join(exp.alias_(known.copy(), to, quoted=True, table=True), on=on, copy=False)
    return joined


def _named(sides: Sequence[Side]) -> Iterator[tuple[str, Side, str]]:
    """What the keys of each side are called, and what the numbers of its nodes are."""
    return zip("xy", sides, "ab", strict=True)


def _key(side: Side) -> exp.Expression:
    """What a value is compared by: itself, and a float by the whole number that it is."""
    value = column(side.name)
    if side.kind is not Kind.NUMBER:
        return value
    near = exp.TryCast(this=typed(value, DOUBLE), to=exp.DataType(this=BIGINT))
    return _where(exp.EQ(this=typed(near, DOUBLE), expression=value.copy()), near.copy())


def _within(key: exp.Expression, side: Side, nodes: int) -> exp.Expression:
    """The number of a node where nodes are numbered from 0, else NULL."""
    number = key
    if side.kind is Kind.TEXT:
        read = exp.TryCast(this=key, to=exp.DataType(this=BIGINT))
        number = _where(exp.EQ(this=typed(read, TEXT), expression=key.copy()), read.copy())
    if side.kind is Kind.DATE or (side.kind is Kind.TEXT and not side.written):
        return typed(exp.null(), BIGINT)
    least = exp.GTE(this=number, expression=whole(0))
    return _where(exp.And(this=least, expression=exp.LT(this=number.copy(), expression=whole(nodes))), number.copy())


def _where(condition: exp.Expression, value: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _table(names: Names, side: Side) -> pa.Table:
    """The names that a column of this kind can hold, and the numbers of the nodes they name. Both are public."""
    held = [(value, number) for key, number in names.keyed() if (value := _value(key, side)) is not None]
    kind = KINDS[Kind.INTEGER if side.kind is Kind.NUMBER else side.kind]
    return pa.table(
        {
            "name": pa.array([value for value, _ in held], kind),
            "node": pa.array([number for _, number in held], pa.int64()),
        }
    )


def _value(key: Key, side: Side) -> Any:
    """What a column of this kind holds where it names the node of this key; None if it cannot."""
    if isinstance(key, tuple):
        if key[0] in {"number", "decimal", "ratio"} and side.kind is Kind.NUMBER:
            raise _beyond("a number with a fraction")
        return date.fromordinal(int(key[1])) if key[0] == "date" and side.kind is Kind.DATE else None
    if side.kind is Kind.TEXT:
        return _spelt(key, side)
    if not isinstance(key, int) or side.kind is Kind.DATE:
        return None
    if not -_FAR <= key < _FAR:
        raise _beyond("a whole number beyond 64 bits")
    return key


def _spelt(key: int | str, side: Side) -> str | None:
    if isinstance(key, int):
        return str(key) if side.written and abs(key) < 10**_LONGEST else None
    if "\0" in key:
        raise _beyond("text with a zero byte")
    try:
        key.encode()
    except UnicodeEncodeError:  # half a character: no text of an engine holds one
        return None
    return key


def _beyond(what: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"A node is called by {what}, which engines do not compare alike.",
        fix="leave engine= out, so that edges are read into memory; or call the nodes otherwise.",
    )
