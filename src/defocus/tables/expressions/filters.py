"""Cheaper SQL for conditions that only filter, where NULL and FALSE are the same.

A guard around a column hides it from an engine's indices and statistics: ``NULLIF(x, NaN) > 3`` reads every
block of a file, ``x > 3 AND x <= infinity`` does not, and is true on the same rows.
"""

from typing import Any

from sqlglot import exp

from defocus.engines.kinds import Kind
from defocus.tables.expressions.constants import DATES, TIMESTAMPS, constant, sql_type
from defocus.tables.expressions.terms import Term

__all__ = ["filtering_all", "filtering_among", "filtering_between", "filtering_comparison"]

_MIRRORED: dict[type[exp.Expression], type[Any]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def filtering_comparison(sign: type[exp.Expression], raw: tuple[Term, Term], made: tuple[Term, Term]) -> Any:
    """A comparison of a column with a constant, or None; ``raw`` as they were read, ``made`` as of one kind."""
    if sign not in _MIRRORED:
        return None
    for column, value, way in ((0, 1, sign), (1, 0, _MIRRORED[sign])):
        if _comparable(raw[column], made[column], made[value]):
            return _compared(way, raw[column], made[value])
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
    limit: exp.Expression | None = None
    if way in {exp.GT, exp.GTE}:
        limit = exp.LTE(this=_bare(raw), expression=_last(raw.kind))
    elif way in {exp.LT, exp.LTE} and raw.kind is not Kind.NUMBER:
        limit = exp.GTE(this=_bare(raw), expression=_first(raw.kind))
    return compared if limit is None else exp.And(this=compared, expression=limit)


def _bare(raw: Term) -> exp.Expression:
    assert raw.bare is not None  # noqa: S101 the callers have seen to it
    return raw.bare.copy()


def _first(kind: Kind | None) -> exp.Expression:
    return constant(DATES[0], Kind.DATE) if kind is Kind.DATE else constant(TIMESTAMPS[0], Kind.TIMESTAMP)


def _last(kind: Kind | None) -> exp.Expression:
    if kind is Kind.NUMBER:
        return exp.Cast(this=exp.Literal.string("Infinity"), to=sql_type(Kind.NUMBER))
    return constant(DATES[1], Kind.DATE) if kind is Kind.DATE else constant(TIMESTAMPS[1], Kind.TIMESTAMP)
