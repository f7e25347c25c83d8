"""Functions of dates and moments."""

from datetime import date

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, UnsupportedSqlError, WrongKindError
from defocus.tables.expressions.guards import cast, coerced
from defocus.tables.expressions.operators import Handler, Read
from defocus.tables.expressions.parser import only
from defocus.tables.expressions.terms import Term, made, moment, of

__all__ = ["MOMENTS", "date_part"]

_DAYS = ("year", "quarter", "month", "week", "day")
_TIMES = ("hour", "minute", "second")
_PARTS = (*_DAYS, *_TIMES, "dow", "isodow", "doy")
_ALIASES = {
    "dayofweek": "dow", "weekday": "dow", "dayofweek_iso": "isodow", "dayofyear": "doy", "dayofmonth": "day",
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "weekofyear": "week",
}  # fmt: skip
_A_MONDAY = date(1, 1, 1)


def _moment(what: str, term: Term) -> Term:
    """The term, if it is a date or a moment; literal text is read as one."""
    if term.fixed and isinstance(term.value, str):
        return moment(term.value, Kind.TIMESTAMP if ":" in term.value else Kind.DATE)
    if term.kind not in {Kind.DATE, Kind.TIMESTAMP}:
        given = "NULL" if term.kind is None else str(term.kind)
        raise WrongKindError(
            f"{what} needs a date or a timestamp, but was given {given}.",
            fix="write CAST(x AS DATE), or a date column.",
        )
    return term


def _unit(node: exp.Expression | None, allowed: tuple[str, ...]) -> str:
    name = "" if node is None else node.name.lower()
    unit = _ALIASES.get(name, name)
    if unit not in allowed:
        raise UnsupportedSqlError(
            f"The unit {name[:40] or '(none)'}", why="engines define it differently", fix=f"use {', '.join(allowed)}."
        )
    return unit


def _part(unit: str, x: Term) -> Term:
    """A part of a date as an integer."""
    if unit in _TIMES and x.kind is Kind.DATE:
        raise WrongKindError(f"A date has no {unit}.", fix="use a timestamp, or a part of the date such as month.")
    if unit in {"dow", "isodow"}:
        return _day_of_week(unit, x)
    whole = exp.TimestampTrunc(this=x.sql, unit=exp.var("SECOND")) if unit == "second" else x.sql
    sql = exp.Extract(this=exp.var(unit.upper()), expression=whole)
    return cast(made(Kind.INTEGER, sql, x), Kind.INTEGER)


def _day_of_week(unit: str, x: Term) -> Term:
    """Counted in days from a Monday, since engines number the days differently."""
    days = _days_since_monday(x).sql
    shift = days if unit == "isodow" else exp.Paren(this=exp.Add(this=days, expression=exp.Literal.number(1)))
    sql: exp.Expression = exp.Mod(this=shift, expression=exp.Literal.number(7))
    if unit == "isodow":
        sql = exp.Add(this=sql, expression=exp.Literal.number(1))
    return made(Kind.INTEGER, sql, x)


def _days_since_monday(x: Term) -> Term:
    return _days(of(_A_MONDAY, Kind.DATE), x)


def _days(a: Term, b: Term) -> Term:
    """The days from one date to another; engines agree on it."""
    first, last = (x if x.kind is Kind.DATE else cast(x, Kind.DATE) for x in (a, b))
    return made(Kind.INTEGER, exp.DateDiff(this=last.sql, expression=first.sql, unit=exp.var("DAY")), first, last)


def _extracted(node: exp.Extract, read: Read) -> Term:
    only(node, "this", "expression")
    return _part(_unit(node.this, _PARTS), _moment("EXTRACT", read(node.expression)))


def date_part(arguments: list[exp.Expression], read: Read) -> Term:
    """DATE_PART('year', x), which is EXTRACT(year FROM x)."""
    if len(arguments) != 2:
        raise InvalidParameterError("DATE_PART takes a unit and a date.", fix="write DATE_PART('year', x).")
    return _part(_unit(arguments[0], _PARTS), _moment("DATE_PART", read(arguments[1])))


def _named(unit: str) -> Handler:
    """YEAR(x) and its like."""

    def part(node: exp.Expression, read: Read) -> Term:
        only(node, "this")
        return _part(unit, _moment(unit.upper(), read(node.this)))

    return part


def _truncated(node: exp.Expression, read: Read) -> Term:
    """DATE_TRUNC: the beginning of the unit, of the same kind."""
    only(node, "this", "unit")
    x = _moment("DATE_TRUNC", read(node.this))
    assert x.kind is not None  # noqa: S101 it is a date or a moment
    unit = _unit(node.args.get("unit"), _DAYS if x.kind is Kind.DATE else (*_DAYS, *_TIMES))
    at = coerced(x, Kind.TIMESTAMP)
    start = made(Kind.TIMESTAMP, exp.TimestampTrunc(this=at.sql, unit=exp.var(unit.upper())), at)
    return start if x.kind is Kind.TIMESTAMP else cast(start, Kind.DATE)


def _difference(node: exp.DateDiff, read: Read) -> Term:
    """DATE_DIFF: how many boundaries of the unit lie between the first moment and the second."""
    only(node, "this", "expression", "unit", "date_part_boundary")
    if node.args.get("unit") is None:
        raise InvalidParameterError("DATE_DIFF takes a unit and two dates.", fix="write DATE_DIFF('day', a, b).")
    a, b = _moment("DATE_DIFF", read(node.expression)), _moment("DATE_DIFF", read(node.this))
    times = Kind.TIMESTAMP in {a.kind, b.kind}
    unit = _unit(node.args["unit"], (*_DAYS, *_TIMES) if times else _DAYS)
    if unit == "day":
        return _days(a, b)
    if unit in _TIMES:
        first, last = coerced(a, Kind.TIMESTAMP), coerced(b, Kind.TIMESTAMP)
        starts = [exp.TimestampTrunc(this=x.sql, unit=exp.var(unit.upper())) for x in (first, last)]
        sql = exp.DateDiff(this=starts[1], expression=starts[0], unit=exp.var(unit.upper()), date_part_boundary=True)
        return made(Kind.INTEGER, sql, first, last)
    first, last = _index(unit, a), _index(unit, b)
    return made(Kind.INTEGER, exp.Sub(this=last.sql, expression=exp.Paren(this=first.sql)), first, last)


def _index(unit: str, x: Term) -> Term:
    """The number of the week, month, quarter or year, counted from the first."""
    if unit == "week":
        weeks = exp.IntDiv(this=_days_since_monday(x).sql, expression=exp.Literal.number(7))
        return made(Kind.INTEGER, weeks, x)
    year = _part("year", x)
    if unit == "year":
        return year
    part = _part(unit, x)
    per_year = exp.Literal.number(12 if unit == "month" else 4)
    total = exp.Add(this=exp.Mul(this=year.sql, expression=per_year), expression=part.sql.copy())
    return made(Kind.INTEGER, total, year, part)


MOMENTS: dict[type[exp.Expression], Handler] = {
    exp.Year: _named("year"),
    exp.Quarter: _named("quarter"),
    exp.Month: _named("month"),
    exp.Week: _named("week"),
    exp.WeekOfYear: _named("week"),
    exp.Day: _named("day"),
    exp.DayOfMonth: _named("day"),
    exp.Hour: _named("hour"),
    exp.Minute: _named("minute"),
    exp.Second: _named("second"),
    exp.DayOfWeek: _named("dow"),
    exp.DayOfWeekIso: _named("isodow"),
    exp.DayOfYear: _named("doy"),
    exp.Extract: _extracted,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _difference,
}
