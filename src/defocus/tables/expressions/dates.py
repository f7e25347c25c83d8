"""Functions of dates and moments, and arithmetic with them."""

import re
from datetime import date

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, UnsupportedSqlError, WrongKindError
from defocus.tables.expressions.guards import cast, coerced, in_calendar
from defocus.tables.expressions.operators import OPERATORS, Handler, Read
from defocus.tables.expressions.parser import called, only
from defocus.tables.expressions.terms import Term, made, moment, of
from defocus.tables.expressions.texts import appended, as_text

__all__ = ["DAYS", "MOMENTS", "MONTHS", "as_strftime", "date_part"]

_DAYS = ("year", "quarter", "month", "week", "day")
_TIMES = ("hour", "minute", "second")
_PARTS = (*_DAYS, *_TIMES, "dow", "isodow", "doy")
_ALIASES = {
    "dayofweek": "dow", "weekday": "dow", "dayofweek_iso": "isodow", "dayofyear": "doy", "dayofmonth": "day",
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "weekofyear": "week",
}  # fmt: skip
_A_MONDAY = date(1, 1, 1)
_STEPS = {
    "year": ("MONTH", 12), "quarter": ("MONTH", 3), "month": ("MONTH", 1), "week": ("DAY", 7), "day": ("DAY", 1),
    "hour": ("HOUR", 1), "minute": ("MINUTE", 1), "second": ("SECOND", 1),
}  # fmt: skip
_MOST_STEPS = {"MONTH": 48_000, "DAY": 1_460_000, "HOUR": 35_040_000, "MINUTE": 2 * 10**9, "SECOND": 2 * 10**9}
"""At most 4 000 years, which no engine leaves its calendar by, and what 32 bits hold."""
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_SHORT = 3
_DIRECTIVES: dict[str, tuple[str, int]] = {
    "Y": ("year", 4), "m": ("month", 2), "d": ("day", 2), "H": ("hour", 2), "M": ("minute", 2), "S": ("second", 2),
    "j": ("doy", 3), "-m": ("month", 0), "-d": ("day", 0), "-H": ("hour", 0), "-M": ("minute", 0),
}  # fmt: skip
_NAMED_PARTS = {
    "B": ("month", MONTHS, 0),
    "b": ("month", MONTHS, _SHORT),
    "A": ("dow", DAYS, 0),
    "a": ("dow", DAYS, _SHORT),
}
_PATTERN = re.compile(r"%(-?[A-Za-z%])|([^%]+)|(%)", re.DOTALL)
_OF_TO_CHAR = {"YYYY": "%Y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S"}
_PATTERN_OF_TO_CHAR = re.compile("|".join(_OF_TO_CHAR) + r"|([-/:. ,_]+)|(.)", re.DOTALL)


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
    """DATE_DIFF: how many boundaries of the unit lie between the first moment and the second; of weeks, whole ones."""
    only(node, "this", "expression", "unit", "date_part_boundary")
    if node.args.get("unit") is None:
        raise InvalidParameterError("DATE_DIFF takes a unit and two dates.", fix="write DATE_DIFF('day', a, b).")
    a, b = _moment("DATE_DIFF", read(node.expression)), _moment("DATE_DIFF", read(node.this))
    times = Kind.TIMESTAMP in {a.kind, b.kind}
    unit = _unit(node.args["unit"], (*_DAYS, *_TIMES) if times else _DAYS)
    if unit == "day":
        return _days(a, b)
    if unit == "week":
        days = _days(a, b)
        return made(Kind.INTEGER, exp.IntDiv(this=days.sql, expression=exp.Literal.number(7)), days)
    if unit in _TIMES:
        first, last = coerced(a, Kind.TIMESTAMP), coerced(b, Kind.TIMESTAMP)
        starts = [exp.TimestampTrunc(this=x.sql, unit=exp.var(unit.upper())) for x in (first, last)]
        sql = exp.DateDiff(this=starts[1], expression=starts[0], unit=exp.var(unit.upper()), date_part_boundary=True)
        return made(Kind.INTEGER, sql, first, last)
    first, last = _index(unit, a), _index(unit, b)
    return made(Kind.INTEGER, exp.Sub(this=last.sql, expression=exp.Paren(this=first.sql)), first, last)


def _index(unit: str, x: Term) -> Term:
    """The number of the month, quarter or year, counted from the first."""
    year = _part("year", x)
    if unit == "year":
        return year
    part = _part(unit, x)
    per_year = exp.Literal.number(12 if unit == "month" else 4)
    total = exp.Add(this=exp.Mul(this=year.sql, expression=per_year), expression=part.sql.copy())
    return made(Kind.INTEGER, total, year, part)


def _sum(node: exp.Add | exp.Sub, read: Read) -> Term:
    """A date and a number of days, a moment and an interval, the days between two dates; else a sum of numbers."""
    only(node, "this", "expression")
    sign = -1 if isinstance(node, exp.Sub) else 1
    if isinstance(node.expression, exp.Interval):
        return _shifted(read(node.this), node.expression, sign)
    if isinstance(node.this, exp.Interval) and sign > 0:
        return _shifted(read(node.expression), node.this, sign)
    a, b = read(node.this), read(node.expression)
    if a.kind is Kind.DATE and b.kind is Kind.DATE and sign < 0:
        return _days(b, a)
    for x, days in ((a, b), (b, a)):
        if x.kind is Kind.DATE and days.kind is Kind.INTEGER and (sign > 0 or x is a):
            if not days.fixed or not isinstance(days.value, int):
                raise UnsupportedSqlError(
                    "A date and a number of days that is not a constant",
                    why="the day might lie beyond the calendar",
                    fix="add a constant, as in d + 7, or compare DATE_DIFF('day', a, b) with the number.",
                )
            return cast(_moved(x, "DAY", sign * days.value), Kind.DATE)
    terms = {id(node.this): a, id(node.expression): b}
    return OPERATORS[type(node)](node, lambda part: terms[id(part)])


def _added(node: exp.DateAdd, read: Read) -> Term:
    """DATE_ADD(x, INTERVAL 1 DAY)."""
    only(node, "this", "expression")
    if not isinstance(node.expression, exp.Interval):
        raise InvalidParameterError(
            f"{called(node)} takes a date and an interval.", fix="write DATE_ADD(x, INTERVAL 1 DAY)."
        )
    return _shifted(read(node.this), node.expression, 1)


def _shifted(x: Term, interval: exp.Interval, sign: int) -> Term:
    """The moment after or before a constant interval, as DuckDB has it: a day that the month lacks is its last."""
    only(interval, "this", "unit")
    word = "" if interval.args.get("unit") is None else interval.args["unit"].name
    number = interval.this.name if isinstance(interval.this, exp.Literal) else ""
    if not re.fullmatch(r"[+-]?\d{1,10}", number, re.ASCII):
        raise UnsupportedSqlError(
            "An interval other than a whole number of one unit",
            why="engines read others differently",
            fix="write INTERVAL 3 MONTH, say, and add several one after the other.",
        )
    unit, step = _STEPS[_unit(exp.var(word), tuple(_STEPS))]
    return _moved(_moment("An interval beside + or -", x), unit, sign * int(number) * step)


def _moved(x: Term, unit: str, number: int) -> Term:
    """The moment so many units later; NULL beyond the years 1 to 9999."""
    if abs(number) > _MOST_STEPS[unit]:
        raise InvalidParameterError(
            f"An interval is of {number} {unit.lower()}s.", fix="write one of at most 4 000 years, in larger units."
        )
    at = coerced(x, Kind.TIMESTAMP)
    return in_calendar(made(Kind.TIMESTAMP, _later(at.sql, unit, number), at))


def _later(sql: exp.Expression, unit: str, number: int) -> exp.Expression:
    digits = exp.Literal.number(abs(number))
    return exp.Paren(
        this=exp.DateAdd(this=sql, expression=exp.Neg(this=digits) if number < 0 else digits, unit=exp.var(unit))
    )


def _last_day(node: exp.LastDay, read: Read) -> Term:
    """LAST_DAY: the day before the next month; of year 9999, still within what engines hold."""
    only(node, "this")
    at = coerced(_moment("LAST_DAY", read(node.this)), Kind.TIMESTAMP)
    first = exp.TimestampTrunc(this=at.sql, unit=exp.var("MONTH"))
    last = _later(_later(first, "MONTH", 1), "DAY", -1)
    return cast(made(Kind.TIMESTAMP, last, at), Kind.DATE)


def _name_of(unit: str, names: tuple[str, ...], x: Term, length: int = 0) -> Term:
    """The name of the month or the day of the week, or its first letters."""
    part, first = _part(unit, x), 1 if unit == "month" else 0
    ifs = [
        exp.If(this=exp.Literal.number(i + first), true=exp.Literal.string(name[:length] if length else name))
        for i, name in enumerate(names)
    ]
    return made(Kind.TEXT, exp.Case(this=part.sql, ifs=ifs), part, texts=0, extra=max(map(len, names)))


def _name(unit: str, names: tuple[str, ...]) -> Handler:
    """MONTHNAME and DAYNAME."""

    def name(node: exp.Expression, read: Read) -> Term:
        only(node, "this")
        return _name_of(unit, names, _moment(called(node), read(node.this)))

    return name


def _formatted(node: exp.TimeToStr, read: Read) -> Term:
    """STRFTIME with a constant format."""
    only(node, "this", "format")
    return _in_format(called(node), read(node.this), read(node.args["format"]))


def _to_char(node: exp.ToChar, read: Read) -> Term:
    """TO_CHAR of a date, with the words that PostgreSQL has for its parts."""
    plain = as_strftime(node)
    if plain is None:
        given = node.args.get("format")
        raise _unformatted(called(node), "" if given is None else given.name)
    return _formatted(plain, read)


def as_strftime(node: exp.ToChar) -> exp.TimeToStr | None:
    """TO_CHAR(d, 'YYYY-MM') as STRFTIME(d, '%Y-%m'), or None where its format has other words."""
    given = node.args.get("format")
    found = list(_PATTERN_OF_TO_CHAR.finditer(given.name)) if isinstance(given, exp.Literal) and given.is_string else []
    if not found or any(one[2] for one in found):
        return None
    pieces = "".join(one[1] or _OF_TO_CHAR[one[0]] for one in found)
    plain = exp.TimeToStr(this=node.this.copy(), format=exp.Literal.string(pieces))
    plain.meta.update(node.meta)
    return plain


def _in_format(what: str, moment: Term, written: Term) -> Term:
    """The parts of a moment that a format names, with its other characters between them."""
    if not isinstance(written.value, str) or not written.value:
        raise _unformatted(what, "")
    x, total = _moment(what, moment), of("", Kind.TEXT)
    for found in _PATTERN.finditer(written.value):
        word, text, alone = found.groups()
        if alone:
            raise _unformatted(what, written.value)
        piece = of(text, Kind.TEXT) if word is None else _directive(what, word, x)
        total = piece if total.fixed and total.value == "" else appended(total, piece)
    there = exp.Not(this=exp.Is(this=x.sql.copy(), expression=exp.Null()))
    return made(
        Kind.TEXT, exp.Case(ifs=[exp.If(this=there, true=total.sql)]), total, x
    )  # NULL also without a part of x


def _directive(what: str, word: str, x: Term) -> Term:
    if word == "%":
        return of("%", Kind.TEXT)
    if word in _NAMED_PARTS:
        unit, names, length = _NAMED_PARTS[word]
        return _name_of(unit, names, x, length)
    if word not in _DIRECTIVES:
        raise _unformatted(what, f"%{word}")
    unit, width = _DIRECTIVES[word]
    if unit in _TIMES and x.kind is Kind.DATE:
        return of("0" * max(1, width), Kind.TEXT)
    digits = as_text(_part(unit, x))
    if not width:
        return digits
    padded = exp.DPipe(this=exp.Literal.string("0" * (width - 1)), expression=digits.sql, safe=True)
    return made(Kind.TEXT, exp.Right(this=padded, expression=exp.Literal.number(width)), digits, texts=0, extra=width)


def _unformatted(what: str, given: str) -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"{what} with the format {given!r:.40}" if given else f"{what} without a constant format",
        why="not every engine writes it alike",
        fix="write STRFTIME(d, '%Y-%m'), with %Y %m %d %H %M %S %j %B %b %A %a, or use DATE_TRUNC('month', d).",
    )


MOMENTS: dict[type[exp.Expression], Handler] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.DateAdd: _added,
    exp.LastDay: _last_day,
    exp.Monthname: _name("month", MONTHS),
    exp.Dayname: _name("dow", DAYS),
    exp.TimeToStr: _formatted,
    exp.ToChar: _to_char,
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
