"""Between which ends dates lie, and what follows for their differences, their years and the units they begin.

Each rule is monotone in the moments that it is about: see :mod:`defocus.tables.expressions.ranges`, whose error is that
of these, too.
"""

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from defocus.engines.schema import Kind, Schema
from defocus.engines.syntax import bare
from defocus.tables.expressions.conditions import instant

__all__ = ["MOST", "apart", "beginnings", "year"]

MOST = 1_000
"""At most so many values are listed."""


def _when(node: Any, schema: Schema) -> tuple[datetime, datetime] | None:
    """The first and last moment that a date or moment can be, as far as declared columns and conditions tell."""
    node = bare(node)
    if isinstance(node, exp.Column):
        column = schema.get(node.name)
        known = None if column is None or column.kind not in {Kind.DATE, Kind.TIMESTAMP} else (column.low, column.high)
        return None if known is None or None in known else (_midnight(known[0]), _midnight(known[1]))
    if isinstance(node, exp.Cast) and node.args["to"].is_type("DATE", "TIMESTAMP", "TIMESTAMPNTZ"):
        days = bool(node.args["to"].is_type("DATE"))
        one = instant(node, Kind.DATE if days else Kind.TIMESTAMP)
        found = _when(node.this, schema) if one is None else (_midnight(one), _midnight(one))
        return (_midnight(found[0].date()), _midnight(found[1].date())) if found and days else found
    written = instant(node, Kind.TIMESTAMP)
    return None if written is None else (_midnight(written), _midnight(written))


_NUMBERS: dict[str, Callable[[datetime], int]] = {
    "year": lambda at: at.year,
    "quarter": lambda at: 4 * at.year + (at.month - 1) // 3,
    "month": lambda at: 12 * at.year + at.month,
    "day": lambda at: at.toordinal(),
    "hour": lambda at: 24 * at.toordinal() + at.hour,
    "minute": lambda at: 60 * (24 * at.toordinal() + at.hour) + at.minute,
    "second": lambda at: 60 * (60 * (24 * at.toordinal() + at.hour) + at.minute) + at.second,
}
"""The number of the unit that a moment is in, which grows with it."""


def apart(node: Any, schema: Schema) -> tuple[int, int] | None:
    """DATE_DIFF, and one date less another: it grows with the later one and falls with the earlier one."""
    unit = "day" if isinstance(node, exp.Sub) else _unit(node)
    last, first = _when(node.this, schema), _when(node.expression, schema)
    number = _NUMBERS.get("day" if unit == "week" else unit)
    if last is None or first is None or number is None:
        return None
    low, high = number(last[0]) - number(first[1]), number(last[1]) - number(first[0])
    return (math.trunc(Fraction(low, 7)), math.trunc(Fraction(high, 7))) if unit == "week" else (low, high)


def _unit(node: Any) -> str:
    unit = node.args.get("unit")
    return "" if unit is None else unit.name.lower().removesuffix("s")


def year(node: Any, schema: Schema) -> tuple[int, int] | None:
    """The year grows with the moment."""
    extracted = isinstance(node, exp.Extract)
    if extracted and node.this.name.lower() != "year":
        return None
    ends = _when(node.expression if extracted else node.this, schema)
    return None if ends is None else (ends[0].year, ends[1].year)


def beginnings(node: Any, kind: Kind, schema: Schema) -> tuple[Any, ...] | None:
    """What DATE_TRUNC can give between the ends of a date: the beginning of every unit, if they are not too many."""
    ends, unit = _when(node.this, schema), _unit(node)
    if ends is None or unit not in {"year", "quarter", "month", "week", "day"}:
        return None
    first, last = (at.date() for at in ends)
    first -= timedelta(days=first.weekday()) if unit == "week" and first.toordinal() > 7 else timedelta()
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    if months is None:
        days = range(first.toordinal(), last.toordinal() + 1, 7 if unit == "week" else 1)
        listed = [date.fromordinal(day) for day in days[: MOST + 1]]
    else:
        places = range((12 * first.year + first.month - 1) // months, (12 * last.year + last.month - 1) // months + 1)
        listed = [date(place * months // 12, place * months % 12 + 1, 1) for place in places[: MOST + 1]]
    if len(listed) > MOST:
        return None
    return tuple(listed) if kind is Kind.DATE else tuple(_midnight(day) for day in listed)


def _midnight(day: Any) -> datetime:
    """The first moment of a day; a moment as it is."""
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)  # noqa: DTZ001  # no zone
