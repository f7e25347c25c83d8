"""Terms of expressions: columns, constants and literals as SQL.

Public values as SQL: a constant is always a literal, never a piece of a query.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from numbers import Integral
from typing import Any, final

from sqlglot import exp

from defocus.engines.schema import Kind, Value
from defocus.engines.syntax import bare
from defocus.errors import InvalidParameterError, Number, UnsupportedSqlError, WrongKindError, finite
from defocus.privacy.numbers import nearest
from defocus.tables.expressions.parser import refuse_unwritable

__all__ = [
    "DATES",
    "SMALLEST_INTEGER",
    "TIMESTAMPS",
    "Term",
    "as_kind",
    "constant",
    "known",
    "literal",
    "made",
    "moment",
    "negated",
    "null",
    "number",
    "of",
    "sql_type",
]


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
    kept = nearest(number)
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


_MOST_WORK = 2_000
_MOST_TEXTS, _MOST_EXTRA = 64, 16_384
_MOST_BETWEEN = 64 * _MOST_TEXTS, 8 * _MOST_EXTRA


@final
@dataclass(frozen=True, slots=True)
class Term:
    """SQL that has a value of ``kind`` on every row.

    ``nan`` and ``infinite`` say whether a float may still be NaN or infinite: guards are placed where they
    are needed only. ``work`` counts nodes after an engine has written out what stands in two places, as it does
    for NULLIF: nesting could double it at each level. A text is at most ``texts`` times the longest text that the
    data has in the row plus ``extra`` bytes, also where it is made of derived columns, and ``between`` bounds all
    texts made on the way together, so that no row makes an engine run out of memory. ``fixed`` terms are
    constants, and ``value`` is theirs. ``bare`` is a column without its guard, and ``where`` a cheaper condition
    that is true on the same rows; see :mod:`defocus.tables.expressions.guards`.
    """

    kind: Kind | None
    sql: exp.Expression
    columns: frozenset[str] = frozenset()
    work: int = 1
    nan: bool = False
    infinite: bool = False
    texts: int = 0
    extra: int = 0
    between: tuple[int, int] = (0, 0)
    fixed: bool = False
    value: Value = None
    bare: exp.Expression | None = None
    where: exp.Expression | None = None


def of(value: Any, kind: Kind) -> Term:
    """A constant."""
    kept = as_kind(value, kind)
    extra = len(kept.encode()) if isinstance(kept, str) else 0
    return Term(kind, constant(kept, kind), extra=extra, fixed=True, value=kept)


def null() -> Term:
    """NULL, whose kind is that of its place."""
    return Term(None, exp.Null(), fixed=True)


def made(
    kind: Kind,
    sql: exp.Expression,
    *parts: Term,
    twice: Term | None = None,
    nan: bool = False,
    infinite: bool = False,
    texts: int | None = None,
    extra: int | None = None,
) -> Term:
    """A term built of parts, within limits; ``twice`` is a part that stands in a second place.

    The sizes of texts are those of the longest part, unless given.
    """
    textual = [part for part in parts if kind is Kind.TEXT]
    if texts is None:
        texts = max((part.texts for part in textual), default=0)
    if extra is None:
        extra = max((part.extra for part in textual), default=0)
    term = Term(
        kind,
        sql,
        columns=frozenset().union(*(part.columns for part in parts)),
        work=1 + sum(part.work for part in parts) + (twice.work if twice else 0),
        nan=nan,
        infinite=infinite,
        texts=texts,
        extra=extra,
        between=(texts + sum(part.between[0] for part in parts), extra + sum(part.between[1] for part in parts)),
    )
    if term.work > _MOST_WORK:
        raise UnsupportedSqlError(
            "An expression of so many steps",
            why="guards against failing rows double at each level of nesting",
            fix="split it: filter with several where() calls and name parts with derive().",
        )
    if term.texts > _MOST_TEXTS or term.extra > _MOST_EXTRA:
        raise UnsupportedSqlError(
            "A text that can grow so long",
            why=f"with all it is made of, it may exceed {_MOST_TEXTS} times a text of the row and {_MOST_EXTRA} bytes",
            fix="use shorter replacements and fewer concatenations.",
        )
    if term.between[0] > _MOST_BETWEEN[0] or term.between[1] > _MOST_BETWEEN[1]:
        raise UnsupportedSqlError(
            "An expression of so many long texts",
            why="all that are made for one row may together exceed memory",
            fix="use fewer replacements and concatenations, or shorter ones.",
        )
    return term


def known(term: Term, **facts: Any) -> Term:
    """The term with facts that its parts do not show."""
    return replace(term, **facts)


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?", re.ASCII)
_WHOLE = re.compile(r"0*(\d{1,20})", re.ASCII)


def literal(node: exp.Literal) -> Term:
    """A text or a number; numbers with a point or an exponent are floats."""
    return of(node.name, Kind.TEXT) if node.is_string else _number_literal(node.name, negative=False)


def negated(node: exp.Literal) -> Term:
    """A number after a minus sign, so that the smallest integer can be written."""
    return _number_literal(node.name, negative=True)


def moment(text: str, kind: Kind) -> Term:
    """A date or a time written as text."""
    written = text.strip(" ")
    try:
        if _DATE.fullmatch(written):
            day = date.fromisoformat(written)
            return of(day if kind is Kind.DATE else datetime(day.year, day.month, day.day), kind)  # noqa: DTZ001 zoneless
        if kind is Kind.TIMESTAMP and _MOMENT.fullmatch(written):
            return of(datetime.fromisoformat(written), kind)
    except ValueError:
        pass
    example = "'2024-02-29'" if kind is Kind.DATE else "'2024-02-29 13:45:00'"
    raise InvalidParameterError(
        f"{text[:40]!r} is not a {kind} of the years 1 to 9999.",
        fix=f"write it as {example}, without a time zone (UTC is meant).",
    )


def _number_literal(digits: str, *, negative: bool) -> Term:
    if whole := _WHOLE.fullmatch(digits):
        return of(-int(whole[1]) if negative else int(whole[1]), Kind.INTEGER)
    try:
        value = math.inf if digits.isdigit() else float(digits)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise InvalidParameterError(
            f"The number {digits[:40]} is beyond 64-bit integers and floats.", fix="write it with fewer digits."
        )
    return of(-value if negative else value, Kind.NUMBER)


def number(node: exp.Expression) -> Number | None:
    """A constant number, or None."""
    node = bare(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _value(literal(node).value)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _value(negated(node.this).value)
    return None


def _value(value: Any) -> Number | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
