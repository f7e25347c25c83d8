"""What expressions mean, said again in plain Python on one row: None is NULL, and each operation settles NaN at once.

A tree is a tuple: an operation and its parts. :func:`write` gives its SQL and :func:`value` its value; neither
knows anything of the code under test.
"""

# ruff: noqa: DTZ001 tables hold moments without a zone

import calendar
import math
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

__all__ = ["value", "write"]

Tree = tuple[Any, ...]
Row = dict[str, Any]


def settle(x: Any) -> Any:
    """NaN is missing."""
    return None if isinstance(x, float) and math.isnan(x) else x


def whole(x: float | None) -> int | None:
    """A float as a 64-bit integer, the nearest one, ties to even."""
    if x is None or math.isnan(x) or math.isinf(x):
        return None
    nearest = round(x)
    return nearest if -(2**63) <= nearest < 2**63 else None


def integers(*values: Any) -> bool:
    return all(type(v) is int for v in values)


def arithmetic(function: Callable[[float, float], float]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        result = function(float(a), float(b))
        return whole(result) if integers(a, b) else settle(result)

    return apply


def divide(a: Any, b: Any) -> Any:
    return None if b == 0 else settle(float(a) / float(b))


def remainder(a: Any, b: Any) -> Any:
    if b == 0 or math.isinf(a):
        return None
    result = math.fmod(float(a), float(b))
    return whole(result) if integers(a, b) else settle(result)


def exact_remainder(a: int, b: int) -> int:
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def exact_quotient(a: int, b: int) -> int:
    return (abs(a) // abs(b)) * (-1 if (a < 0) != (b < 0) else 1)


def rough_quotient(a: int, b: int) -> int | None:
    return None if b == 0 else whole(float(math.trunc(float(a) / float(b))))


def half_away(x: float) -> float:
    return float(Decimal(x).to_integral_value(ROUND_HALF_UP)) if math.isfinite(x) else x


def rounded(x: Any, digits: int) -> Any:
    if type(x) is int:
        return x if digits >= 0 else whole(rounded(float(x), digits))
    scale = 10.0 ** abs(digits)
    if digits >= 0:
        result = half_away(x * scale) / scale
        return result if math.isfinite(result) else x
    return half_away(x / scale) * scale


def power(x: Any, y: Any) -> Any:
    x, y = float(x), float(y)
    if x == 0 and y < 0:
        return None
    try:
        return settle(math.pow(x, y))
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        return None


def exponential(x: Any) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def bucket(x: Any, width: Any) -> Any:
    ratio = float(x) / float(width)
    result = (math.floor(ratio) if math.isfinite(ratio) else ratio) * float(width)
    return whole(result) if integers(x, width) else result


def floor(x: Any) -> Any:
    return float(math.floor(x)) if isinstance(x, float) and math.isfinite(x) else x


def ceil(x: Any) -> Any:
    return float(math.ceil(x)) if isinstance(x, float) and math.isfinite(x) else x


def like(text: str, pattern: str) -> bool:
    parts = [{"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern]
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def order(x: Any) -> Any:
    """Text in the order of its bytes, moments in that of time."""
    if isinstance(x, str):
        return x.encode()
    return datetime(x.year, x.month, x.day) if type(x) is date else x


def same_kind(a: Any, b: Any) -> tuple[Any, Any]:
    """An integer beside a float is compared as a float, as every engine does."""
    if isinstance(a, float) or isinstance(b, float):
        return float(a), float(b)
    return order(a), order(b)


def compare(function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: function(*same_kind(a, b))


def part(unit: str, x: Any) -> int:
    parts: dict[str, Callable[[], int]] = {
        "quarter": lambda: (x.month + 2) // 3,
        "week": lambda: int(x.isocalendar()[1]),
        "dow": lambda: int(x.isoweekday() % 7),
        "isodow": lambda: int(x.isoweekday()),
        "doy": lambda: int(x.timetuple().tm_yday),
    }
    return parts[unit]() if unit in parts else int(getattr(x, unit))


def truncated(unit: str, x: Any) -> Any:
    day = date(x.year, x.month, x.day)
    starts = {
        "year": date(x.year, 1, 1),
        "quarter": date(x.year, 3 * ((x.month - 1) // 3) + 1, 1),
        "month": date(x.year, x.month, 1),
        "week": day - timedelta(days=day.weekday()),
        "day": day,
    }
    if unit in starts:
        start = starts[unit]
        return start if type(x) is date else datetime(start.year, start.month, start.day)
    keep = {"hour": (x.hour, 0, 0), "minute": (x.hour, x.minute, 0), "second": (x.hour, x.minute, x.second)}
    return datetime(x.year, x.month, x.day, *keep[unit])


def later(x: Any, number: int, unit: str) -> datetime | None:
    """The moment so many units later; a day that a month lacks is its last."""
    at: datetime = order(x)
    months = {"year": 12, "quarter": 3, "month": 1}
    if unit not in months:
        try:
            return at + timedelta(**{f"{unit}s": number})
        except OverflowError:
            return None
    year, month = divmod(at.year * 12 + at.month - 1 + number * months[unit], 12)
    if not 1 <= year <= 9999:
        return None
    return at.replace(year=year, month=month + 1, day=min(at.day, calendar.monthrange(year, month + 1)[1]))


def days_later(x: date, number: int) -> date | None:
    moved = later(x, number, "day")
    return None if moved is None else moved.date()


def formatted(x: Any, text: str) -> str:
    at = order(x)
    parts = {"Y": f"{at.year:04d}", "B": at.strftime("%B"), "-d": str(at.day), "%": "%"}
    return re.sub(r"%(-?.)", lambda found: parts.get(found[1]) or at.strftime(found[0]), text)


def index(unit: str, x: Any) -> int:
    """How many boundaries of the unit lie before a moment."""
    days = date(x.year, x.month, x.day).toordinal() - 1
    at = order(x)
    seconds = days * 86400 + at.hour * 3600 + at.minute * 60 + at.second
    counts: dict[str, int] = {
        "year": x.year,
        "quarter": x.year * 4 + (x.month - 1) // 3,
        "month": x.year * 12 + x.month,
        "day": days,
        "hour": seconds // 3600,
        "minute": seconds // 60,
        "second": seconds,
    }
    return counts[unit]


def read_number(text: str) -> Any:
    try:
        return settle(float(text))
    except ValueError:
        return None


def read_integer(text: str) -> int | None:
    try:
        number = Decimal(text.strip())
    except ArithmeticError:
        return None
    nearest = round(number) if number.is_finite() else 2**63
    return nearest if -(2**63) <= nearest < 2**63 else None


def read_date(text: str) -> date | None:
    try:
        year, month, day = (int(piece) for piece in text.split("-"))
        return date(year, month, day) if day <= calendar.monthrange(year, month)[1] else None
    except (ValueError, IndexError):
        return None


def cast(x: Any, kind: str) -> Any:
    if isinstance(x, str):
        return {"BIGINT": read_integer, "DOUBLE": read_number, "DATE": read_date}[kind](x)
    if kind == "TEXT":
        return str(x).lower() if type(x) is bool else str(x)
    changes: dict[str, Callable[[], Any]] = {
        "BIGINT": lambda: whole(x) if isinstance(x, float) else int(x),
        "DOUBLE": lambda: float(x),
        "BOOLEAN": lambda: x != 0,
        "DATE": lambda: date(x.year, x.month, x.day),
        "TIMESTAMP": lambda: order(x),
    }
    return changes[kind]()


STRICT: dict[str, tuple[str, Callable[..., Any]]] = {
    "+": ("({0} + {1})", arithmetic(lambda a, b: a + b)),
    "-": ("({0} - {1})", arithmetic(lambda a, b: a - b)),
    "*": ("({0} * {1})", arithmetic(lambda a, b: a * b)),
    "/": ("({0} / {1})", divide),
    "%": ("({0} % {1})", remainder),
    "//": ("({0} // {1})", rough_quotient),
    "exact %": ("({0} % {1})", exact_remainder),
    "exact //": ("({0} // {1})", exact_quotient),
    "negate": ("(-{0})", lambda x: whole(-float(x)) if type(x) is int else -x),
    "abs": ("ABS({0})", lambda x: whole(abs(float(x))) if type(x) is int else abs(x)),
    "sign": ("SIGN({0})", lambda x: (x > 0) - (x < 0)),
    "floor": ("FLOOR({0})", floor),
    "ceil": ("CEIL({0})", ceil),
    "sqrt": ("SQRT({0})", lambda x: math.sqrt(x) if x >= 0 else None),
    "ln": ("LN({0})", lambda x: math.log(x) if x > 0 else None),
    "log10": ("LOG10({0})", lambda x: math.log10(x) if x > 0 else None),
    "exp": ("EXP({0})", exponential),
    "power": ("POWER({0}, {1})", power),
    "=": ("({0} = {1})", compare(lambda a, b: a == b)),
    "<>": ("({0} <> {1})", compare(lambda a, b: a != b)),
    "<": ("({0} < {1})", compare(lambda a, b: a < b)),
    "<=": ("({0} <= {1})", compare(lambda a, b: a <= b)),
    ">": ("({0} > {1})", compare(lambda a, b: a > b)),
    ">=": ("({0} >= {1})", compare(lambda a, b: a >= b)),
    "not": ("(NOT {0})", lambda x: not x),
    "lower": ("LOWER({0})", str.lower),
    "upper": ("UPPER({0})", str.upper),
    "trim": ("TRIM({0})", lambda x: x.strip(" ")),
    "ltrim": ("LTRIM({0})", lambda x: x.lstrip(" ")),
    "rtrim": ("RTRIM({0})", lambda x: x.rstrip(" ")),
    "length": ("LENGTH({0})", len),
    "||": ("({0} || {1})", lambda a, b: a + b),
    "starts_with": ("STARTS_WITH({0}, {1})", lambda a, b: a.startswith(b)),
    "contains": ("CONTAINS({0}, {1})", lambda a, b: b in a),
    "position": ("POSITION({1} IN {0})", lambda a, b: a.find(b) + 1),
    "days between": ("({0} - {1})", lambda a, b: (a - b).days),
    "last day": ("LAST_DAY({0})", lambda x: date(x.year, x.month, calendar.monthrange(x.year, x.month)[1])),
    "month name": ("MONTHNAME({0})", lambda x: calendar.month_name[x.month]),
    "day name": ("DAYNAME({0})", lambda x: calendar.day_name[x.weekday()]),
    "cut": ("TRUNC({0})", lambda x: float(math.trunc(x)) if isinstance(x, float) and math.isfinite(x) else x),
}

WITH_CONSTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "round": ("ROUND({0}, {1})", rounded),
    "bucket": ("BUCKET({0}, {1})", bucket),
    "left": ("LEFT({0}, {1})", lambda x, n: x[:n]),
    "right": ("RIGHT({0}, {1})", lambda x, n: x[-n:] if n else ""),
    "substring": ("SUBSTRING({0}, {1}, {2})", lambda x, start, n: x[start - 1 : start - 1 + n]),
    "replace": ("REPLACE({0}, {1}, {2})", lambda x, old, new: x.replace(old, new)),
    "like": ("({0} LIKE {1})", like),
    "not like": ("({0} NOT LIKE {1})", lambda x, pattern: not like(x, pattern)),
    "ilike": ("({0} ILIKE {1})", lambda x, pattern: like(x.lower(), pattern.lower())),
    "ends_with": ("ENDS_WITH({0}, {1})", lambda x, end: x.endswith(end)),
    "strftime": ("STRFTIME({0}, {1})", formatted),
    "days later": ("({0} + {1})", days_later),
    "extract": ("EXTRACT({1} FROM {0})", lambda x, unit: part(unit, x)),
    "trunc": ("DATE_TRUNC({1}, {0})", lambda x, unit: truncated(unit, x)),
}


def quoted(x: Any) -> str:
    """A constant in SQL."""
    if x is None:
        return "NULL"
    if isinstance(x, bool):
        return "TRUE" if x else "FALSE"
    if isinstance(x, str):
        return "'" + x.replace("'", "''") + "'"
    if isinstance(x, datetime):
        return f"TIMESTAMP '{x.isoformat(sep=' ')}'"
    if isinstance(x, date):
        return f"DATE '{x.isoformat()}'"
    return f"{x!r}" if isinstance(x, int) or "e" in repr(x) or "." in repr(x) else f"{x!r}.0"


def write(tree: Tree) -> str:
    """The SQL of a tree."""
    op, *parts = tree
    if op in WRITTEN:
        return WRITTEN[op](*parts)
    if op in WITH_CONSTANTS:
        return WITH_CONSTANTS[op][0].format(write(parts[0]), *(quoted(x) for x in parts[1:]))
    if op in STRICT:
        return STRICT[op][0].format(*(write(x) for x in parts))
    return f"{op.upper()}({', '.join(write(x) for x in parts)})"


WRITTEN: dict[str, Callable[..., str]] = {
    "column": lambda name: '"' + name.replace('"', '""') + '"',
    "constant": quoted,
    "cast": lambda x, kind: f"CAST({write(x)} AS {kind})",
    "extract": lambda x, unit: f"EXTRACT({unit} FROM {write(x)})",
    "date_diff": lambda unit, a, b: f"DATE_DIFF('{unit}', {write(a)}, {write(b)})",
    "later": lambda x, number, unit: f"({write(x)} {'+' if number >= 0 else '-'} INTERVAL {abs(number)} {unit})",
    "in": lambda x, values: f"({write(x)} IN ({', '.join(quoted(v) for v in values)}))",
    "between": lambda x, low, high: f"({write(x)} BETWEEN {write(low)} AND {write(high)})",
    "is null": lambda x: f"({write(x)} IS NULL)",
    "distinct": lambda a, b: f"({write(a)} IS DISTINCT FROM {write(b)})",
    "and": lambda a, b: f"({write(a)} AND {write(b)})",
    "or": lambda a, b: f"({write(a)} OR {write(b)})",
    "case": lambda test, a, b: f"CASE WHEN {write(test)} THEN {write(a)} ELSE {write(b)} END",
}


def value(tree: Tree, row: Row) -> Any:
    """The value of a tree on a row."""
    op, *parts = tree
    if op == "column":
        return settle(row[parts[0]])
    if op == "constant":
        return parts[0]
    if op in LAZY:
        return LAZY[op](row, *parts)
    if op in WITH_CONSTANTS:
        x = value(parts[0], row)
        return None if x is None else WITH_CONSTANTS[op][1](x, *parts[1:])
    values = [value(x, row) for x in parts]
    return None if None in values else settle(STRICT[op][1](*values))


def both(row: Row, a: Tree, b: Tree) -> bool | None:
    x, y = value(a, row), value(b, row)
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def either(row: Row, a: Tree, b: Tree) -> bool | None:
    x, y = value(a, row), value(b, row)
    if x is True or y is True:
        return True
    return None if x is None or y is None else False


def among(row: Row, a: Tree, constants: list[Any]) -> bool | None:
    x = value(a, row)
    if x is None:
        return None
    found = any(c is not None and STRICT["="][1](x, c) for c in constants)
    return True if found else (None if None in constants else False)


def between(row: Row, a: Tree, low: Tree, high: Tree) -> bool | None:
    return both(row, (">=", a, low), ("<=", a, high))


def distinct(row: Row, a: Tree, b: Tree) -> bool:
    x, y = value(a, row), value(b, row)
    if x is None or y is None:
        return x is not y
    return bool(STRICT["<>"][1](x, y))


def chosen(row: Row, test: Tree, a: Tree, b: Tree) -> Any:
    return value(a, row) if value(test, row) is True else value(b, row)


def coalesce(row: Row, *parts: Tree) -> Any:
    return next((x for x in (value(p, row) for p in parts) if x is not None), None)


def null_if(row: Row, a: Tree, b: Tree) -> Any:
    x, y = value(a, row), value(b, row)
    return None if x is not None and y is not None and STRICT["="][1](x, y) else x


def extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    def apply(row: Row, *parts: Tree) -> Any:
        present = [x for x in (value(p, row) for p in parts) if x is not None]
        return pick(present, key=order) if present else None

    return apply


def casted(row: Row, a: Tree, kind: str) -> Any:
    x = value(a, row)
    return None if x is None else cast(x, kind)


def difference(row: Row, unit: str, a: Tree, b: Tree) -> int | None:
    x, y = value(a, row), value(b, row)
    if x is None or y is None:
        return None
    return math.trunc((index("day", y) - index("day", x)) / 7) if unit == "week" else index(unit, y) - index(unit, x)


def moved(row: Row, a: Tree, number: int, unit: str) -> datetime | None:
    x = value(a, row)
    return None if x is None else later(x, number, unit)


LAZY: dict[str, Callable[..., Any]] = {
    "and": both,
    "or": either,
    "in": among,
    "between": between,
    "is null": lambda row, a: value(a, row) is None,
    "distinct": distinct,
    "case": chosen,
    "coalesce": coalesce,
    "nullif": null_if,
    "least": extreme(min),
    "greatest": extreme(max),
    "concat": lambda row, *parts: "".join(value(p, row) or "" for p in parts),
    "cast": casted,
    "date_diff": difference,
    "later": moved,
}
