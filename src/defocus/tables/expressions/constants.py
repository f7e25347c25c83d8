"""Public values as SQL: a constant is always a literal, never a piece of a query."""

import math
from collections.abc import Callable
from datetime import date, datetime
from numbers import Integral
from typing import Any

from sqlglot import exp

from defocus.engines.kinds import Kind, Value
from defocus.errors import InvalidParameterError, WrongKindError, finite
from defocus.tables.expressions.limits import refuse_unwritable

__all__ = ["DATES", "SMALLEST_INTEGER", "TIMESTAMPS", "as_kind", "constant", "sql_type"]

SMALLEST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**63 - 1
DATES = (date(1, 1, 1), date(9999, 12, 31))
TIMESTAMPS = (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001 a moment without a zone
_TYPES = {
    Kind.BOOLEAN: exp.DataType.Type.BOOLEAN,
    Kind.INTEGER: exp.DataType.Type.BIGINT,
    Kind.NUMBER: exp.DataType.Type.DOUBLE,
    Kind.TEXT: exp.DataType.Type.TEXT,
    Kind.DATE: exp.DataType.Type.DATE,
    Kind.TIMESTAMP: exp.DataType.Type.TIMESTAMPNTZ,
}


def sql_type(kind: Kind) -> exp.DataType:
    """The type in which engines hold a kind."""
    return exp.DataType(this=_TYPES[kind], nested=False)


def constant(value: Value, kind: Kind) -> exp.Expression:
    """A public value as a literal of its kind; None is NULL.

    >>> constant("O'Hara", Kind.TEXT).sql("duckdb")
    "'O''Hara'"
    >>> constant(date(2024, 2, 29), Kind.DATE).sql("duckdb")
    "CAST('2024-02-29' AS DATE)"
    """
    kept: Any = as_kind(value, kind)
    if kind is Kind.BOOLEAN and kept is not None:
        return exp.Boolean(this=kept)
    if kind is Kind.TEXT and kept is not None:
        return exp.Literal.string(kept)
    if kind is Kind.INTEGER and kept not in {None, SMALLEST_INTEGER}:
        digits = exp.Literal.number(str(abs(kept)))
        return exp.Neg(this=digits) if kept < 0 else digits
    written = exp.Null() if kept is None else exp.Literal.string(str(kept))
    return exp.Cast(this=written, to=sql_type(kind))


def as_kind(value: Any, kind: Kind) -> Value:
    """The value as Python holds its kind, or a refusal: no rounding, no guessing, no NaN.

    >>> as_kind(3, Kind.NUMBER)
    3.0
    """
    read, wanted = _READERS.get(kind, (_nothing, "another kind"))
    kept = None if value is None else read(value)
    if kept is None and (value is not None or kind is Kind.OTHER):
        raise WrongKindError(f"A constant for {kind} was given as {type(value).__name__}.", fix=f"pass {wanted}.")
    return kept


def _nothing(_: Any) -> None:
    return None


def _boolean(value: Any) -> bool | None:
    return bool(value) if type(value).__name__ in {"bool", "bool_"} else None


def _integer(value: Any) -> int | None:
    if not isinstance(value, Integral) or _boolean(value) is not None:
        return None
    if not SMALLEST_INTEGER <= int(value) <= _LARGEST_INTEGER:
        raise InvalidParameterError(
            f"An integer constant has {int(value).bit_length()} bits.", fix="use integers between -2**63 and 2**63 - 1."
        )
    return int(value)


def _number(value: Any) -> float | None:
    if _boolean(value) is not None or isinstance(value, str):
        return None
    number = finite("a constant", value)
    try:
        kept = float(number)
    except OverflowError:
        kept = math.inf
    if kept != number or math.isinf(kept):
        raise InvalidParameterError(
            "A constant is not exactly a 64-bit float.", fix="round it first, as float(value), or use fewer digits."
        )
    return kept + 0.0  # -0.0 is 0


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    refuse_unwritable("A constant", value)
    return str(value)


def _date(value: Any) -> date | None:
    if not isinstance(value, date) or isinstance(value, datetime):
        return None
    return date(value.year, value.month, value.day)


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is not None:
        raise InvalidParameterError(
            "A constant is a moment with a time zone.",
            fix="pass value.astimezone(timezone.utc).replace(tzinfo=None): tables are read in UTC.",
        )
    if getattr(value, "nanosecond", 0):
        raise InvalidParameterError("A constant is finer than a microsecond.", fix="round it to microseconds.")
    return datetime(  # noqa: DTZ001 a moment without a zone
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
    )


_READERS: dict[Kind, tuple[Callable[[Any], Value], str]] = {
    Kind.BOOLEAN: (_boolean, "True or False"),
    Kind.INTEGER: (_integer, "an int"),
    Kind.NUMBER: (_number, "a finite float or an int"),
    Kind.TEXT: (_text, "a str"),
    Kind.DATE: (_date, "a datetime.date"),
    Kind.TIMESTAMP: (_moment, "a datetime.datetime without a time zone"),
}
