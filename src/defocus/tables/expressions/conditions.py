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
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.syntax import bare
from defocus.errors import InvalidParameterError, Number, UnsupportedSqlError, WrongKindError
from defocus.tables.expressions.terms import DATES, TIMESTAMPS, moment, number

__all__ = ["confined", "ends", "instant"]

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
_DATED = (Kind.DATE, Kind.TIMESTAMP)
_A_DAY = len("2024-02-29")
_FIRST, _STEP = TIMESTAMPS[0], timedelta(microseconds=1)
_LARGEST = 2**53
"""Up to here whole numbers are floats, and one may be added to them."""


def confined(schema: Schema, told: _Told) -> Schema:
    """The schema where columns lie between ends as well; those of which nothing is left stay as they were."""
    return Schema(_narrowed(own, *told[own.name]) if own.name in told else own for own in schema)


def ends(node: exp.Expression, schema: Schema, *, holds: bool = True) -> _Told:
    """Between which ends columns lie where a condition ``holds``, or where it is false and not NULL.

    Those of a date are counted in days, and those of a moment in microseconds, as :func:`confined` reads them.

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
    if isinstance(node, exp.Between | exp.In):
        own = _column(node.this, schema)
        wanted = [node.args["low"], node.args["high"]] if isinstance(node, exp.Between) else node.expressions
        values = [] if own is None or not holds else [_value(one, own) for one in wanted]
        known = [one for one in values if one is not None]
        if own is None or not known or len(known) < len(wanted):
            return {}
        return _told(own, *known) if isinstance(node, exp.Between) else _told(own, min(known), max(known))
    kind = type(node) if holds else _NEGATED.get(type(node))
    return {} if kind is None else _compared(kind, node, schema)


def _compared(kind: type[Any], node: Any, schema: Schema) -> _Told:
    """What a comparison tells that is of this kind, of a column with a constant or the other way round."""
    sides = (node.this, node.args.get("expression"))
    for way, (side, constant) in ((kind, sides), (_MIRRORED.get(kind, kind), sides[::-1])):
        own = _column(side, schema)
        value = None if own is None else _value(constant, own)
        if own is None or value is None:
            continue
        if way is exp.EQ:
            return _told(own, value, value)
        if way in _ABOVE:
            return _told(own, value, math.inf, strict=way is exp.GT)
        if way in _BELOW:
            return _told(own, -math.inf, value, strict=way is exp.LT)
    return {}


def _column(node: Any, schema: Schema) -> Column | None:
    """The column of numbers or dates that a side of a comparison is."""
    column = None if node is None else bare(node)
    own = schema.get(column.name) if isinstance(column, exp.Column) else None
    return own if own is not None and (own.kind.numeric or own.kind in _DATED) else None


def _value(node: Any, own: Column) -> Number | None:
    """A constant, as it is compared with the column."""
    if own.kind not in _DATED:
        return number(node)
    found = instant(node, own.kind)
    return None if found is None else _place(found)


def instant(node: Any, kind: Kind) -> date | None:
    """A constant date or moment, as it is compared with one of that kind: a date beside moments as its midnight."""
    node, date_alone = bare(node), kind is Kind.DATE
    if isinstance(node, exp.Cast):
        if not node.args["to"].is_type("DATE", "TIMESTAMP", "TIMESTAMPNTZ"):
            return None
        date_alone = date_alone or bool(node.args["to"].is_type("DATE"))
        node = bare(node.this)
    if not isinstance(node, exp.Literal) or not node.is_string or (date_alone and len(node.name) > _A_DAY):
        return None
    try:
        read: Any = moment(node.name, kind).value
    except (InvalidParameterError, WrongKindError, UnsupportedSqlError):
        return None
    return read if isinstance(read, date) else None


def _told(own: Column, low: Number, high: Number, *, strict: bool = False) -> _Told:
    """These ends of a column; whole numbers, and days, lie between whole numbers."""
    if own.kind is not Kind.NUMBER:
        most = _LARGEST if own.kind is Kind.INTEGER else math.inf
        if -most < low < most:
            low = math.floor(low) + 1 if strict else math.ceil(low)
        if -most < high < most:
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
    return replace(own, low=_end(least, own.kind), high=_end(most, own.kind))


def _declared(own: Column) -> _Ends:
    """The ends that a column has, also those of the values that it can have."""
    numeric = own.kind.numeric and own.low is None and own.high is None
    values: list[Any] = list(own.values or ()) if numeric else []
    low, high = (min(values), max(values)) if values else (own.low, own.high)
    return -math.inf if low is None else _place(low), math.inf if high is None else _place(high)


def _place(value: Any) -> Any:
    """Days since year 1 of a date, and microseconds of a moment; a number as it is."""
    if isinstance(value, datetime):
        return (value - _FIRST) // _STEP
    return value.toordinal() if isinstance(value, date) else value


def _end(place: Any, kind: Kind) -> Number | date | None:
    """An end, if it is one that bounds can have."""
    if kind.numeric:
        return place if -1e75 <= place <= 1e75 else None
    first, last = (_place(end) for end in (DATES if kind is Kind.DATE else TIMESTAMPS))
    if not first <= place <= last:
        return None
    return date.fromordinal(place) if kind is Kind.DATE else _FIRST + place * _STEP
