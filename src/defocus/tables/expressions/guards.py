"""What makes an operation total: each guard in one place, so that an engine without it can have its own.

:func:`attempt` is the only use of TRY_CAST, which PostgreSQL lacks. There, a float becomes an integer by
``CAST(NULLIF(NULLIF(GREATEST(LEAST(x, 2^63), -2^63 - 2048), 2^63), -2^63 - 2048) AS BIGINT)``, and a text needs a
pattern first. :func:`kept` and :func:`without` write their argument twice, which :class:`Term` counts.

Cheaper SQL for conditions that only filter, where NULL and FALSE are the same.

A guard around a column hides it from an engine's indices and statistics: ``NULLIF(x, NaN) > 3`` reads every
block of a file, ``x > 3 AND x <= infinity`` does not, and is true on the same rows.
"""

import math
from typing import Any

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.errors import WrongKindError
from defocus.tables.expressions.terms import DATES, TIMESTAMPS, Term, constant, made, moment, of, sql_type

__all__ = [
    "attempt",
    "cast",
    "coerced",
    "double",
    "filtering_all",
    "filtering_among",
    "filtering_between",
    "filtering_comparison",
    "in_calendar",
    "integer",
    "kept",
    "settled",
    "unified",
    "without",
]


def cast(term: Term, kind: Kind) -> Term:
    """A cast that cannot fail."""
    sql = exp.Cast(this=term.sql, to=sql_type(kind))
    return made(kind, sql, term, nan=term.nan, infinite=term.infinite)


def attempt(term: Term, kind: Kind) -> Term:
    """A cast that is NULL where it fails. A float becomes the nearest integer, ties to even."""
    sql = exp.TryCast(this=term.sql, to=sql_type(kind))
    unsure = kind is Kind.NUMBER
    return made(kind, sql, term, nan=unsure, infinite=unsure)


def without(term: Term, value: float) -> Term:
    """The term, or NULL where it is ``value``; NaN counts as one value."""
    if term.fixed and term.value is not None and term.value != value:
        return term
    unwanted = _nan() if math.isnan(value) else constant(value, Kind.NUMBER)
    sql = exp.Nullif(this=term.sql, expression=unwanted)
    nan = term.nan and not math.isnan(value)
    return made(Kind.NUMBER, sql, term, twice=term, nan=nan, infinite=term.infinite)


def kept(term: Term, condition: exp.Expression, *parts: Term) -> Term:
    """The term where the condition, written in terms of it and other parts, holds, and NULL elsewhere."""
    assert term.kind is not None  # noqa: S101 only typed terms are guarded
    sql = exp.Case(ifs=[exp.If(this=condition, true=term.sql.copy())])
    return made(term.kind, sql, term, *parts, twice=term, nan=term.nan, infinite=term.infinite)


def in_calendar(term: Term) -> Term:
    """A date or a moment of the years 1 to 9999, and NULL beyond: engines differ there."""
    if term.fixed:
        return term
    assert term.kind is not None  # noqa: S101 only dates and moments come here
    low, high = (constant(end, term.kind) for end in (DATES if term.kind is Kind.DATE else TIMESTAMPS))
    return kept(term, exp.Between(this=term.sql.copy(), low=low, high=high))


def settled(term: Term) -> Term:
    """The term with NULL for NaN."""
    return without(term, math.nan) if term.nan else term


def double(term: Term) -> Term:
    """A number as a 64-bit float."""
    if term.kind is Kind.NUMBER:
        return term
    if term.fixed and isinstance(term.value, int):
        return of(float(term.value), Kind.NUMBER)
    return cast(term, Kind.NUMBER)


def integer(term: Term) -> Term:
    """A float that is whole as an integer, and NULL beyond 64 bits and where it is NaN."""
    return attempt(term, Kind.INTEGER)


def coerced(term: Term, kind: Kind) -> Term:
    """The term as another kind, where nothing is lost or guessed."""
    if term.kind is kind:
        return term
    if term.kind is None:
        return of(None, kind)
    match term.kind, kind:
        case Kind.INTEGER, Kind.NUMBER:
            return double(term)
        case Kind.DATE, Kind.TIMESTAMP:
            return cast(term, kind)
        case Kind.TEXT, Kind.DATE | Kind.TIMESTAMP if term.fixed and isinstance(term.value, str):
            return moment(term.value, kind)
    raise WrongKindError(f"A value of kind {term.kind} stands where {kind} belongs.", fix=f"write CAST(... AS {kind}).")


def unified(what: str, *terms: Term) -> tuple[Term, ...]:
    """The terms as one kind, and without NaN: the widest of theirs. All may be NULL, without a kind."""
    kinds = {term.kind for term in terms if term.kind is not None}
    if not kinds:
        return terms
    if kinds == {Kind.INTEGER, Kind.NUMBER}:
        kind = Kind.NUMBER
    elif kinds == {Kind.DATE, Kind.TIMESTAMP}:
        kind = Kind.TIMESTAMP
    elif Kind.TEXT in kinds and all(term.fixed for term in terms if term.kind is Kind.TEXT):
        kind = _moments(what, kinds - {Kind.TEXT})
        if kind is Kind.DATE and any(_has_time(term) for term in terms):
            kind = Kind.TIMESTAMP
    elif len(kinds) == 1:
        (kind,) = kinds
    else:
        raise _mixed(what, kinds)
    return tuple(settled(coerced(term, kind)) for term in terms)


def _moments(what: str, kinds: set[Kind]) -> Kind:
    """The kind of a set of others compared with literal text: only dates and times are written as text."""
    if not kinds:
        return Kind.TEXT
    if not kinds <= {Kind.DATE, Kind.TIMESTAMP}:
        raise _mixed(what, {*kinds, Kind.TEXT})
    return Kind.DATE if kinds == {Kind.DATE} else Kind.TIMESTAMP


def _has_time(term: Term) -> bool:
    return isinstance(term.value, str) and len(term.value.strip()) > len("2024-02-29")


def _mixed(what: str, kinds: set[Kind]) -> WrongKindError:
    return WrongKindError(
        f"{what} was given {' and '.join(sorted(kinds))} together.",
        fix="make them one kind: CAST(x AS BIGINT), CAST(x AS DOUBLE), CAST(x AS TEXT) or CAST(x AS DATE).",
    )


def _nan() -> exp.Expression:
    return exp.Cast(this=exp.Literal.string("NaN"), to=sql_type(Kind.NUMBER))


_MIRRORED: dict[type[exp.Expression], type[Any]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def filtering_comparison(sign: type[exp.Expression], raw: tuple[Term, Term], guarded: tuple[Term, Term]) -> Any:
    """A comparison of a column with a constant, or None; ``raw`` as they were read, ``made`` as of one kind."""
    if sign not in _MIRRORED:
        return None
    for column, value, way in ((0, 1, sign), (1, 0, _MIRRORED[sign])):
        if _comparable(raw[column], guarded[column], guarded[value]):
            return _compared(way, raw[column], guarded[value])
    return None


def filtering_between(raw: Term, x: Term, low: Term, high: Term) -> Any:
    """BETWEEN constants, or None."""
    if not _comparable(raw, x, low) or not _comparable(raw, x, high):
        return None
    return exp.Between(this=_bare(raw), low=low.sql.copy(), high=high.sql.copy())


def filtering_among(raw: Term, x: Term, values: list[Term]) -> Any:
    """IN, or None."""
    if raw.bare is None or raw.kind is not x.kind:
        return None
    return exp.In(this=_bare(raw), expressions=[value.sql.copy() for value in values])


def filtering_all(kind: type[Any], a: Term, b: Term) -> Any:
    """AND or OR of conditions of which one is cheaper, or None."""
    if a.where is None and b.where is None:
        return None
    parts = [exp.Paren(this=(part.sql if part.where is None else part.where).copy()) for part in (a, b)]
    return kind(this=parts[0], expression=parts[1])


def _comparable(raw: Term, column: Term, value: Term) -> bool:
    return raw.bare is not None and raw.kind is column.kind and value.fixed and value.value is not None


def _compared(way: type[Any], raw: Term, value: Term) -> exp.Expression:
    compared: exp.Expression = way(this=_bare(raw), expression=value.sql.copy())
    if way not in {exp.GT, exp.GTE}:
        return compared
    largest = exp.Cast(this=exp.Literal.string("Infinity"), to=sql_type(Kind.NUMBER))
    return exp.And(this=compared, expression=exp.LTE(this=_bare(raw), expression=largest))


def _bare(raw: Term) -> exp.Expression:
    assert raw.bare is not None  # noqa: S101 the callers have seen to it
    return raw.bare.copy()
