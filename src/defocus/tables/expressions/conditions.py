"""What a condition tells about the columns of the rows that it keeps. No row is looked at.

A condition is part of the question, so it is public, and so is what follows from it: where ``age BETWEEN 18 AND 90``
holds, age lies between 18 and 90.

Error:
    On every row for which the condition is true, each column lies between the ends that are told for it. NULL and NaN
    make a comparison neither true nor false, so that neither it nor its negation holds for them. Of a column that is
    compared with anything but constants, or within another expression, nothing is told. Values are clipped to what
    is told, so that an end that did not hold would cost accuracy, and never privacy.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.syntax import bare
from defocus.errors import Number
from defocus.tables.expressions.terms import number

__all__ = ["confined", "ends"]

_Ends: TypeAlias = tuple[Number, Number]
_Told: TypeAlias = Mapping[str, _Ends]

_ABOVE, _BELOW = (exp.GT, exp.GTE), (exp.LT, exp.LTE)
_NEGATED: dict[type[Any], type[Any]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.NEQ: exp.EQ,
}
_MIRRORED: dict[type[Any], type[Any]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_LARGEST = 2**53
"""Up to here whole numbers are floats, and one may be added to them."""


def confined(schema: Schema, told: _Told) -> Schema:
    """The schema where columns lie between ends as well; those of which nothing is left stay as they were."""
    return Schema(_narrowed(own, *told[own.name]) if own.name in told else own for own in schema)


def ends(node: exp.Expression, schema: Schema, *, holds: bool = True) -> _Told:
    """Between which ends columns of numbers lie where a condition ``holds``, or where it is false and not NULL.

    >>> from sqlglot import condition
    >>> people = Schema([Column("age", Kind.INTEGER), Column("pay", Kind.NUMBER)])
    >>> ends(condition("age BETWEEN 18 AND 90 AND NOT pay > 5000"), people)
    {'age': (18, 90), 'pay': (-inf, 5000)}
    """
    node = bare(node)
    if isinstance(node, exp.Not):
        return ends(node.this, schema, holds=not holds)
    if isinstance(node, exp.And | exp.Or):
        one, other = (ends(part, schema, holds=holds) for part in (node.this, node.expression))
        if isinstance(node, exp.And) is holds:  # both parts hold, or both are false
            return {name: _both(*(told.get(name) for told in (one, other))) for name in (*one, *other)}
        return {name: _hull(one[name], other[name]) for name in one if name in other}
    if isinstance(node, exp.Between) and holds:
        low, high = number(node.args["low"]), number(node.args["high"])
        return {**_told(node.this, schema, low, high)} if low is not None and high is not None else {}
    if isinstance(node, exp.In) and holds:
        listed = [one for one in map(number, node.expressions) if one is not None]
        full = listed and len(listed) == len(node.expressions) and node.args.get("query") is None
        return _told(node.this, schema, min(listed), max(listed)) if full else {}
    kind = type(node) if holds else _NEGATED.get(type(node))
    return {} if kind is None else _compared(kind, node, schema)


def _compared(kind: type[Any], node: Any, schema: Schema) -> _Told:
    """What a comparison tells that is of this kind, of a column with a constant or the other way round."""
    for way, column, constant in (
        (kind, node.this, node.args.get("expression")),
        (_MIRRORED.get(kind, kind), node.args.get("expression"), node.this),
    ):
        value = None if constant is None else number(constant)
        if value is None or column is None:
            continue
        if way is exp.EQ:
            return _told(column, schema, value, value)
        strict = way in {exp.GT, exp.LT}
        if way in _ABOVE:
            return _told(column, schema, value, math.inf, strict=strict)
        if way in _BELOW:
            return _told(column, schema, -math.inf, value, strict=strict)
    return {}


def _told(node: exp.Expression, schema: Schema, low: Number, high: Number, *, strict: bool = False) -> _Told:
    """These ends of a column of numbers; whole numbers lie between whole numbers."""
    column, own = bare(node), None
    if isinstance(column, exp.Column):
        own = schema.get(column.name)
    if own is None or not own.kind.numeric:
        return {}
    if own.kind is Kind.INTEGER:
        if -_LARGEST < low < _LARGEST:
            low = math.floor(low) + 1 if strict else math.ceil(low)
        if -_LARGEST < high < _LARGEST:
            high = math.ceil(high) - 1 if strict else math.floor(high)
    return {own.name: (low, high)}


def _both(one: _Ends | None, other: _Ends | None) -> _Ends:
    (low, high), (least, most) = (each or (-math.inf, math.inf) for each in (one, other))
    return max(low, least), min(high, most)


def _hull(one: _Ends, other: _Ends) -> _Ends:
    """Of two ways in which a condition may hold; one that cannot hold tells nothing."""
    possible = [each for each in (one, other) if each[0] <= each[1]] or [one]
    return min(low for low, _ in possible), max(high for _, high in possible)


def _narrowed(own: Column, low: Number, high: Number) -> Column:
    """A column between these ends and those that it has; as it was where they leave one value or none."""
    least, most = _both((low, high), _declared(own))
    if least >= most:
        return own
    return replace(own, low=_finite(least), high=_finite(most))


def _declared(own: Column) -> _Ends:
    """The ends that a column has, also those of the values that it can have."""
    values: list[Any] = list(own.values or ()) if own.kind.numeric and own.low is None and own.high is None else []
    low, high = (min(values), max(values)) if values else (own.low, own.high)
    return -math.inf if low is None else low, math.inf if high is None else high


def _finite(end: Number) -> Number | None:
    """An end, if it is one that bounds can have."""
    return end if -1e75 <= end <= 1e75 else None
