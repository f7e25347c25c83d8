r"""Between which bounds an expression lies, and which values it can have at all. No row is looked at.

Error:
    Bounds are those of interval arithmetic: if each column lies within what was declared about it, the value of the
    expression lies within the bounds, wherever it is not NULL, up to the rounding of floats. What does not keep to the
    declared bounds is clipped, so that a bound that is too tight costs accuracy and never privacy.

Each rule is a monotone function of its ends, or the hull of such functions on parts of the interval on which they are;
its docstring says which. NULL, as of ``SQRT(-1)`` and ``x / 0``, has no value to bound.

Reference: Moore, Kearfott, Cloud (2009), Introduction to Interval Analysis, chapter 5.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.syntax import bare
from defocus.errors import InvalidParameterError, Number, WrongKindError
from defocus.tables.expressions.conditions import confined, ends
from defocus.tables.expressions.date_ranges import MOST, apart, beginnings, year
from defocus.tables.expressions.dates import DAYS, MONTHS
from defocus.tables.expressions.terms import as_kind, literal, moment, negated, number

__all__ = ["clamp", "constants", "domain", "interval", "is_whole", "may_be_null", "number", "part"]


_Range: TypeAlias = tuple[Number, Number]
_LARGEST = 10**100
_PARTS = {
    "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "hour": (0, 23), "minute": (0, 59),
    "second": (0, 59), "dow": (0, 6), "dayofweek": (0, 6), "isodow": (1, 7), "doy": (1, 366), "dayofyear": (1, 366),
}  # fmt: skip
_NAMED: dict[type[exp.Expression], str] = {
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "doy",
}
_FORMATS = {
    "%B": MONTHS,
    "%b": tuple(name[:3] for name in MONTHS),
    "%A": DAYS,
    "%a": tuple(name[:3] for name in DAYS),
    "%m": tuple(f"{i:02d}" for i in range(1, 13)),
    "%d": tuple(f"{i:02d}" for i in range(1, 32)),
    "%H": tuple(f"{i:02d}" for i in range(24)),
}


def clamp(node: exp.Expression) -> tuple[exp.Expression, Number, Number] | None:
    """What is inside CLAMP(x, low, high), LEAST(GREATEST(x, low), high) or the other way round, and the bounds."""
    node = bare(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "clamp" and len(node.expressions) == 3:
        low, high = number(node.expressions[1]), number(node.expressions[2])
        return None if low is None or high is None else (node.expressions[0], low, high)
    for outer, inner in ((exp.Least, exp.Greatest), (exp.Greatest, exp.Least)):
        outside = _one_constant(node, outer)
        within = None if outside is None else _one_constant(outside[0], inner)
        if outside is not None and within is not None:
            ends = (within[1], outside[1]) if outer is exp.Least else (outside[1], within[1])
            return within[0], *ends
    return None


def interval(node: exp.Expression, schema: Schema) -> _Range | None:
    """The bounds of an expression over columns of the schema, or None where nothing is known.

    >>> from sqlglot import parse_one
    >>> interval(parse_one("SQRT(x) + x % 7"), Schema([Column("x", Kind.INTEGER, 0, 100)]))
    (0, 16)
    """
    if isinstance(node, exp.Column):
        return _declared(schema.get(node.name))
    constant = number(node)
    if constant is not None:
        return constant, constant
    moment = part(node)
    if moment is not None:
        return moment
    rule = _RULES.get(type(node))
    try:
        return None if rule is None else rule(node, _Known(schema))
    except (OverflowError, ValueError):
        return None


class _Known:
    """What is known of the parts of an expression."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __call__(self, node: exp.Expression) -> _Range | None:
        return interval(node, self.schema)

    def is_whole(self, node: exp.Expression) -> bool:
        return is_whole(node, self.schema)

    def where(self, condition: exp.Expression) -> "_Known":
        """What is known where a condition holds."""
        return _Known(confined(self.schema, ends(condition, self.schema)))


_Find: TypeAlias = _Known


def _declared(column: Column | None) -> _Range | None:
    """The bounds or the domain that somebody declared; truth values count as 0 and 1."""
    if column is None or column.kind is Kind.BOOLEAN:
        return None if column is None else (0, 1)
    if not column.kind.numeric:
        return None
    low: Any = column.low
    high: Any = column.high
    if low is not None and high is not None:
        return low, high
    values: list[Any] = list(column.values or ())
    return (min(values), max(values)) if values else None


def part(node: exp.Expression) -> tuple[int, int] | None:
    """The bounds of a part of a date, such as its month."""
    if isinstance(node, exp.Extract):
        return _PARTS.get(node.this.name.lower())
    return _PARTS.get(_NAMED.get(type(node), ""))


def is_whole(node: exp.Expression, schema: Schema) -> bool:
    """Whether an expression has whole numbers only, also where they are held as floats: FLOOR(x / 500) * 500."""
    node = bare(node)
    constant = number(node)
    if constant is not None:
        return constant == int(constant)
    if isinstance(node, exp.Column):
        column = schema.get(node.name)
        return column is not None and column.kind is Kind.INTEGER
    if isinstance(node, exp.Round | exp.Trunc):
        places = node.args.get("decimals")
        return places is None or (number(places) or 0) <= 0
    to_integer = isinstance(node, exp.Cast) and bool(node.args["to"].is_type(*exp.DataType.INTEGER_TYPES))
    if to_integer or isinstance(node, exp.Floor | exp.Ceil | exp.Sign | exp.IntDiv | exp.Length | exp.DateDiff):
        return True
    parts = _whole_parts(node)
    return bool(parts) and all(is_whole(one, schema) for one in parts)


def _whole_parts(node: exp.Expression) -> list[exp.Expression]:
    """The parts of which a value is made so that it is whole if they are; none where that does not follow."""
    if isinstance(node, exp.Anonymous):
        return node.expressions[1:] if node.name.lower() == "bucket" else []
    if isinstance(node, exp.Neg | exp.Abs | exp.Nullif | exp.Cast):
        return [node.this]
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return [node.this, node.expression]
    return _results(node)


def _results(node: exp.Expression) -> list[exp.Expression]:
    """What a choice between values can come to, but for NULL."""
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        results = [*(branch.args["true"] for branch in node.args["ifs"]), *([] if default is None else [default])]
    elif isinstance(node, exp.If):
        results = [node.args["true"], *([node.args["false"]] if node.args.get("false") is not None else [])]
    elif isinstance(node, exp.Coalesce | exp.Least | exp.Greatest):
        results = [node.this, *node.expressions]
    else:
        results = []
    return [result for result in results if not isinstance(result, exp.Null)]


def may_be_null(node: exp.Expression) -> bool:
    """Whether a choice between values says that there may be none: a CASE without ELSE, or with NULL."""
    node = bare(node)
    if not isinstance(node, exp.Case | exp.If):
        return False
    default = node.args.get("default" if isinstance(node, exp.Case) else "false")
    branches = [] if isinstance(node, exp.If) else node.args["ifs"]
    results = [default, *(branch.args["true"] for branch in branches)]
    return any(result is None or isinstance(result, exp.Null) for result in results)


def _inner(node: Any, find: _Find) -> _Range | None:
    """Parentheses and NULLIF: the value itself, or none."""
    return find(node.this)


def _cast(node: Any, find: _Find) -> _Range | None:
    """A float keeps its value; integers and decimals are the nearest, which is monotone."""
    to = node.args["to"]
    if not to.is_type(*exp.DataType.NUMERIC_TYPES):
        return None
    if to.is_type(*exp.DataType.INTEGER_TYPES):
        return _to_places(find(node.this), 0)
    places = [one.name for one in to.expressions]
    return _to_places(find(node.this), int(places[1]) if len(places) > 1 else 0) if places else find(node.this)


def _truth(_: Any, __: _Find) -> _Range:
    """Truth values count as 0 and 1 once they are cast."""
    return 0, 1


def _negative(node: Any, find: _Find) -> _Range | None:
    ends = find(node.this)
    return None if ends is None else (-ends[1], -ends[0])


def _absolute(node: Any, find: _Find) -> _Range | None:
    """Decreasing up to 0 and increasing from there."""
    ends = find(node.this)
    if ends is None:
        return None
    low, high = (Fraction(x) for x in ends)
    return _tidy(abs(max(low, min(high, Fraction(0)))), max(abs(low), abs(high)))


def _floor(node: Any, find: _Find) -> _Range | None:
    """FLOOR is increasing; so are CEIL and TRUNC."""
    ends = find(node.this)
    return None if ends is None else (math.floor(ends[0]), math.floor(_beyond(ends[1], 1)))


def _ceiling(node: Any, find: _Find) -> _Range | None:
    ends = find(node.this)
    return None if ends is None else (math.ceil(_beyond(ends[0], -1)), math.ceil(ends[1]))


def _trunc(node: Any, find: _Find) -> _Range | None:
    ends = find(node.this)
    return None if ends is None else _toward_zero(*ends)


def _toward_zero(low: Number, high: Number) -> _Range:
    bottom = Fraction(low) if low >= 0 else _beyond(low, -1)
    return math.trunc(bottom), math.trunc(Fraction(high) if high <= 0 else _beyond(high, 1))


def _beyond(end: Number, way: int) -> Fraction:
    """A little further, so that a float which rounds to the next whole number is still within."""
    return Fraction(end) + way * max(Fraction(1), abs(Fraction(end))) / 2**40


def _rounded(node: Any, find: _Find) -> _Range | None:
    places = node.args.get("decimals")
    digits = 0 if places is None else number(places)
    return _to_places(find(node.this), digits) if isinstance(digits, int) and abs(digits) <= 15 else None


def _to_places(ends: _Range | None, digits: int) -> _Range | None:
    """Rounding is monotone; its ends are those of the grid around the interval's, whatever becomes of halves."""
    if ends is None:
        return None
    unit = Fraction(10) ** -digits
    return _tidy(math.floor(Fraction(ends[0]) / unit) * unit, math.ceil(Fraction(ends[1]) / unit) * unit)


def _sign(node: Any, find: _Find) -> _Range:
    ends = find(node.this) or (-1, 1)
    return (ends[0] > 0) - (ends[0] < 0), (ends[1] > 0) - (ends[1] < 0)


def _arithmetic(node: Any, find: _Find) -> _Range | None:
    """Sums are monotone in each side; products are extreme at corners; a quotient is a product with 1 / b."""
    a, b = find(node.this), find(node.expression)
    if a is None or b is None:
        return apart(node, find.schema) if isinstance(node, exp.Sub) else None
    a0, a1, b0, b1 = (Fraction(x) for x in (*a, *b))
    if isinstance(node, exp.Add):
        return _tidy(a0 + b0, a1 + b1)
    if isinstance(node, exp.Sub):
        return _tidy(a0 - b1, a1 - b0)
    if isinstance(node, exp.Div | exp.IntDiv):
        inverse = _inverse(b0, b1, whole=find.is_whole(node.expression))
        if inverse is None:
            return None
        b0, b1 = inverse
    products = [x * y for x in (a0, a1) for y in (b0, b1)]
    low, high = min(products), max(products)
    return _toward_zero(low, high) if isinstance(node, exp.IntDiv) else _tidy(low, high)


def _inverse(low: Fraction, high: Fraction, *, whole: bool) -> tuple[Fraction, Fraction] | None:
    """1 / b, decreasing on each side of 0; a whole number other than 0, by which nothing is divided, is 1 at least."""
    if low > 0 or high < 0:
        return 1 / high, 1 / low
    if not whole or low == high:
        return None
    return (Fraction(-1) if low < 0 else 1 / high), (Fraction(1) if high > 0 else 1 / low)


def _remainder(node: Any, find: _Find) -> _Range | None:
    """It has the sign of a, is no further from 0 than a, and nearer than b; for whole numbers by 1 at least."""
    a, b = find(node.this), find(node.expression)
    if b is None:
        return None
    most = max(abs(Fraction(end)) for end in b)
    if find.is_whole(node.this) and find.is_whole(node.expression):
        most -= 1
    low, high = (Fraction(x) for x in a) if a is not None else (-most, most)
    return _tidy(max(low, -most) if low < 0 else Fraction(0), min(high, most) if high > 0 else Fraction(0))


def _root(node: Any, find: _Find) -> _Range | None:
    """Increasing, and NULL below 0."""
    ends = find(node.this)
    if ends is None or ends[1] < 0:
        return None
    return _tidy(Fraction(math.sqrt(max(ends[0], 0))), Fraction(math.sqrt(ends[1])))


def _logarithm(node: Any, find: _Find) -> _Range | None:
    """Increasing, and without a lower bound near 0."""
    base10 = not isinstance(node, exp.Ln)
    ends = find(node.expression if base10 and node.args.get("expression") is not None else node.this)
    log = math.log10 if base10 else math.log
    return None if ends is None or ends[0] <= 0 else _tidy(Fraction(log(ends[0])), Fraction(log(ends[1])))


def _exponential(node: Any, find: _Find) -> _Range | None:
    ends = find(node.this)
    return None if ends is None else _tidy(Fraction(math.exp(ends[0])), Fraction(math.exp(ends[1])))


def _power(node: Any, find: _Find) -> _Range | None:
    """X to the c-th: monotone on each side of 0, and NULL below 0 unless c is whole; c to the x-th: monotone."""
    base, exponent = number(node.this), number(node.expression)
    if exponent is None:
        ends = find(node.expression)
        if ends is None or base is None or base <= 0:
            return None
        powers = sorted(Fraction(math.pow(base, end)) for end in ends)
        return _tidy(powers[0], powers[1])
    ends = find(node.this)
    if ends is None:
        return None
    low, high = ends
    if exponent != int(exponent):
        low = max(low, 0)
    if high < low or (exponent < 0 and low <= 0 <= high):
        return None
    turning = [0] if low < 0 < high else []
    powers = sorted(Fraction(math.pow(end, exponent)) for end in (low, high, *turning))
    return _tidy(powers[0], powers[-1])


def _bucket(node: Any, find: _Find) -> _Range | None:
    """FLOOR(x / w) * w, increasing for the positive constant w."""
    if node.name.lower() != "bucket" or len(node.expressions) != 2:
        return None
    ends, width = find(node.expressions[0]), number(node.expressions[1])
    if ends is None or width is None or width <= 0:
        return None
    step = Fraction(width)
    return _tidy(*(math.floor(Fraction(end) / step) * step for end in ends))


def _any_of(node: Any, find: _Find) -> _Range | None:
    """One of several values: the hull of their bounds."""
    return _hull([find(option) for option in _results(node)])


def _chosen(node: Any, find: _Find) -> _Range | None:
    """One of several values, each but the last where its condition holds: the hull of their bounds there."""
    branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
    if isinstance(node, exp.Case) and node.this is not None:
        return _any_of(node, find)
    chosen = [(find.where(branch.this), branch.args["true"]) for branch in branches]
    chosen.append((find, node.args.get("false" if isinstance(node, exp.If) else "default")))
    return _hull([known(option) for known, option in chosen if not isinstance(option, exp.Null | None)])


def _extreme(node: Any, find: _Find) -> _Range | None:
    """LEAST and GREATEST pass over NULL, so they may come to any of their parts; but constants are never NULL."""
    clamped = clamp(node)
    if clamped is not None and clamped[1] < clamped[2]:
        return clamped[1], clamped[2]
    ends = _any_of(node, find)
    fixed = [one for one in map(number, _results(node)) if one is not None]
    if ends is None or not fixed:
        return ends
    return (ends[0], min(ends[1], *fixed)) if isinstance(node, exp.Least) else (max(ends[0], *fixed), ends[1])


_RULES: dict[type[exp.Expression], Callable[[Any, _Find], _Range | None]] = {
    exp.Paren: _inner,
    **dict.fromkeys((exp.Boolean, exp.Not, exp.And, exp.Or, exp.In, exp.Between, exp.Is, exp.Like, exp.ILike), _truth),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ), _truth),
    **dict.fromkeys((exp.Contains, exp.StartsWith, exp.EndsWith, exp.Escape), _truth),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Floor: _floor,
    exp.Ceil: _ceiling,
    exp.Trunc: _trunc,
    exp.Round: _rounded,
    exp.Sign: _sign,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv), _arithmetic),
    exp.Mod: _remainder,
    exp.DateDiff: lambda node, find: apart(node, find.schema),
    **dict.fromkeys((exp.Year, exp.Extract), lambda node, find: year(node, find.schema)),
    exp.Sqrt: _root,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.Exp: _exponential,
    exp.Pow: _power,
    exp.Anonymous: _bucket,
    exp.Nullif: _inner,
    **dict.fromkeys((exp.Case, exp.If), _chosen),
    exp.Coalesce: _any_of,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
}


def _one_constant(node: exp.Expression, kind: type[Any]) -> tuple[exp.Expression, Number] | None:
    """The two arguments of LEAST or GREATEST, if one is a constant."""
    node = bare(node)
    if not isinstance(node, kind) or len(node.expressions) != 1:
        return None
    pair = node.this, node.expressions[0]
    for x, end in (pair, pair[::-1]):
        constant = number(end)
        if constant is not None and number(x) is None:
            return x, constant
    return None


def _hull(ranges: list[_Range | None]) -> _Range | None:
    bounded = [one for one in ranges if one is not None]
    if not bounded or len(bounded) != len(ranges):
        return None
    return _tidy(min(Fraction(low) for low, _ in bounded), max(Fraction(high) for _, high in bounded))


def _tidy(low: Fraction, high: Fraction) -> _Range | None:
    """Whole numbers as such, others as floats; None beyond what engines compute with."""
    if max(abs(low), abs(high)) > _LARGEST:
        return None
    bottom, top = (int(x) if x.denominator == 1 else float(x) for x in (low, high))
    return bottom, top


def domain(node: exp.Expression, kind: Kind, schema: Schema) -> tuple[Any, ...] | None:
    """All values besides NULL that an expression can have, where declared facts or its form show them."""
    node = bare(node)
    if isinstance(node, exp.Column):
        column = schema.get(node.name)
        if column is not None and column.values is not None:
            return column.values
    ends = part(node) or (year(node, schema) if isinstance(node, exp.Year | exp.Extract) else None)
    if ends is not None:
        return tuple(range(ends[0], ends[1] + 1)) if ends[1] - ends[0] < MOST else None
    rule = next((rule for kinds, rule in _DOMAINS if isinstance(node, kinds)), None)
    if rule is not None:
        return rule(node, kind, schema)
    return (False, True) if kind is Kind.BOOLEAN else None


def _constant_results(node: Any, kind: Kind, _: Schema) -> tuple[Any, ...] | None:
    values = constants(_results(node), kind)
    return None if values is None else tuple(values)


_DOMAINS: tuple[tuple[Any, Callable[[Any, Kind, Schema], tuple[Any, ...] | None]], ...] = (
    (exp.Monthname, lambda *_: MONTHS),
    (exp.Dayname, lambda *_: DAYS),
    (exp.TimeToStr, lambda node, *_: _FORMATS.get(node.args["format"].name)),
    ((exp.Case, exp.If), _constant_results),
    ((exp.TimestampTrunc, exp.DateTrunc), beginnings),
)


def constants(nodes: Sequence[exp.Expression], kind: Kind, *, unique: bool = True) -> list[Any] | None:
    """The values of constants, each once, or None if one is no constant of that kind."""
    values = []
    for node in nodes:
        try:
            value = as_kind(_constant(node, kind), kind)
        except (InvalidParameterError, WrongKindError):
            value = None
        if value is None:
            return None
        values.append(value)
    return (list(dict.fromkeys(values)) if unique else values) or None


def _constant(node: exp.Expression, kind: Kind) -> Any:
    node = bare(node)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return negated(node.this).value
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and kind in {Kind.DATE, Kind.TIMESTAMP}:
        return moment(node.this.name, kind).value
    if isinstance(node, exp.Literal):
        dated = node.is_string and kind in {Kind.DATE, Kind.TIMESTAMP}
        return moment(node.name, kind).value if dated else literal(node).value
    return None
