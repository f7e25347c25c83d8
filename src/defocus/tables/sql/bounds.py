"""Between which bounds an expression lies, as far as declared columns and constants tell. No row is looked at.

A wrong guess here would cost accuracy only: whatever lies outside is clipped.

Which groups there can be: values that WHERE lists, that a column's owner declared, or that an expression shows.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import InvalidParameterError, Number, WrongKindError
from defocus.tables.expressions.terms import as_kind, literal, moment, negated
from defocus.tables.sql.parser import canonical

__all__ = ["clamp", "conjuncts", "domain", "interval", "listed", "number", "part"]


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


def clamp(node: exp.Expression) -> tuple[exp.Expression, Number, Number] | None:
    """What is inside CLAMP(x, low, high), LEAST(GREATEST(x, low), high) or the other way round, and the bounds."""
    while isinstance(node, exp.Paren):
        node = node.this
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


def number(node: exp.Expression) -> Number | None:
    """A constant number, or None."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return _value(literal(node).value)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _value(negated(node.this).value)
    return None


def interval(node: exp.Expression, schema: Schema) -> _Range | None:
    """The bounds of an expression over columns of the schema, or None where nothing is known."""
    if isinstance(node, exp.Column):
        return _declared(schema.get(node.name))
    constant = number(node)
    if constant is not None:
        return constant, constant
    moment = part(node)
    if moment is not None:
        return moment
    rule = _RULES.get(type(node))
    return None if rule is None else rule(node, lambda part: interval(part, schema))


def _declared(column: Column | None) -> _Range | None:
    if column is None or column.kind is Kind.BOOLEAN:
        return None if column is None else (0, 1)
    return None if column.low is None or column.high is None else (column.low, column.high)


def part(node: exp.Expression) -> tuple[int, int] | None:
    """The bounds of a part of a date, such as its month."""
    if isinstance(node, exp.Extract):
        return _PARTS.get(node.this.name.lower())
    return _PARTS.get(_NAMED.get(type(node), ""))


_Find: TypeAlias = Callable[[exp.Expression], _Range | None]


def _inner(node: Any, find: _Find) -> _Range | None:
    return find(node.this)


def _cast(node: Any, find: _Find) -> _Range | None:
    return find(node.this) if node.args["to"].is_type(*exp.DataType.NUMERIC_TYPES) else None


def _truth(_: Any, __: _Find) -> _Range:
    """Truth values count as 0 and 1 once they are cast."""
    return 0, 1


def _negative(node: Any, find: _Find) -> _Range | None:
    ends = find(node.this)
    return None if ends is None else (-ends[1], -ends[0])


def _absolute(node: Any, find: _Find) -> _Range | None:
    ends = find(node.this)
    if ends is None:
        return None
    low, high = (Fraction(x) for x in ends)
    return _tidy(abs(max(low, min(high, Fraction(0)))), max(abs(low), abs(high)))


def _whole(node: Any, find: _Find) -> _Range | None:
    ends = find(node.this)
    return None if ends is None else (math.floor(ends[0]), math.ceil(ends[1]))


def _arithmetic(node: Any, find: _Find) -> _Range | None:
    a, b = find(node.this), find(node.expression)
    if a is None or b is None:
        return None
    a0, a1, b0, b1 = (Fraction(x) for x in (*a, *b))
    if isinstance(node, exp.Add):
        return _tidy(a0 + b0, a1 + b1)
    if isinstance(node, exp.Sub):
        return _tidy(a0 - b1, a1 - b0)
    if isinstance(node, exp.Div):
        if b0 <= 0 <= b1:
            return None
        b0, b1 = 1 / b1, 1 / b0
    products = [x * y for x in (a0, a1) for y in (b0, b1)]
    return _tidy(min(products), max(products))


def _case(node: Any, find: _Find) -> _Range | None:
    results = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return _hull([find(result) for result in (*results, *([] if default is None else [default])) if not _null(result)])


def _if(node: Any, find: _Find) -> _Range | None:
    results = [node.args["true"], *([node.args["false"]] if node.args.get("false") is not None else [])]
    return _hull([find(result) for result in results if not _null(result)])


def _any_of(node: Any, find: _Find) -> _Range | None:
    return _hull([find(option) for option in (node.this, *node.expressions) if not _null(option)])


def _extreme(node: Any, find: _Find) -> _Range | None:
    """LEAST and GREATEST: one side may be known where the other is not, but both are needed."""
    return _any_of(node, find)


_RULES: dict[type[exp.Expression], Callable[[Any, _Find], _Range | None]] = {
    exp.Paren: _inner,
    **dict.fromkeys((exp.Boolean, exp.Not, exp.And, exp.Or, exp.In, exp.Between, exp.Is, exp.Like), _truth),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _truth),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Floor: _whole,
    exp.Ceil: _whole,
    exp.Round: _whole,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Div: _arithmetic,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _any_of,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
}


def _one_constant(node: exp.Expression, kind: type[Any]) -> tuple[exp.Expression, Number] | None:
    """The two arguments of LEAST or GREATEST, if one is a constant."""
    while isinstance(node, exp.Paren):
        node = node.this
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


def _null(node: exp.Expression) -> bool:
    return isinstance(node, exp.Null)


def _tidy(low: Fraction, high: Fraction) -> _Range | None:
    """Whole numbers as such, others as floats; None beyond what engines compute with."""
    if max(abs(low), abs(high)) > _LARGEST:
        return None
    bottom, top = (int(x) if x.denominator == 1 else float(x) for x in (low, high))
    return bottom, top


def _value(value: Any) -> Number | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_MOST_STEPS = 1_000
"""BETWEEN two integers lists at most so many keys."""


def conjuncts(condition: exp.Expression | None) -> list[exp.Expression]:
    """The parts of a condition that must all hold."""
    if condition is None:
        return []
    parts: list[exp.Expression] = []
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            parts.append(node)
    return parts


def listed(key: exp.Expression, kind: Kind, conditions: Sequence[exp.Expression]) -> list[Any] | None:
    """The values that conditions leave to an expression: x IN (…), x = …, integers between two; None if they do not.

    Trees are compared as they are written, so the names in them must have been resolved.
    """
    wanted = canonical(key)
    common: list[Any] | None = None
    for condition in conditions:
        values = _values(condition, wanted, kind)
        if values is not None:
            common = values if common is None else [value for value in common if value in values]
    return common


def domain(node: exp.Expression, column: Column) -> list[Any] | None:
    """All values besides NULL that an expression can have, where declared facts or its form show them."""
    while isinstance(node, exp.Paren):
        node = node.this
    if column.values is not None:
        return list(column.values)
    ends = part(node)
    if ends is not None:
        return list(range(ends[0], ends[1] + 1))
    if isinstance(node, exp.Case | exp.If):
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        default = node.args.get("default" if isinstance(node, exp.Case) else "false")
        results = [branch.args["true"] for branch in branches] + ([] if default is None else [default])
        return _constants([result for result in results if not isinstance(result, exp.Null)], column.kind)
    return [False, True] if column.kind is Kind.BOOLEAN else None


def _values(condition: exp.Expression, wanted: str, kind: Kind) -> list[Any] | None:
    if isinstance(condition, exp.In) and canonical(condition.this) == wanted:
        return _constants([option for option in condition.expressions if not isinstance(option, exp.Null)], kind)
    if isinstance(condition, exp.EQ):
        for key, value in ((condition.this, condition.expression), (condition.expression, condition.this)):
            if canonical(key) == wanted:
                return _constants([value], kind)
    if isinstance(condition, exp.Between) and kind is Kind.INTEGER and canonical(condition.this) == wanted:
        ends = _constants([condition.args["low"], condition.args["high"]], kind, unique=False)
        if ends is not None and 0 <= ends[1] - ends[0] < _MOST_STEPS:
            return list(range(ends[0], ends[1] + 1))
    return None


def _constants(nodes: Sequence[exp.Expression], kind: Kind, *, unique: bool = True) -> list[Any] | None:
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
    while isinstance(node, exp.Paren):
        node = node.this
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
