"""Every difference between what the core writes and what MariaDB means by it, as a change of the tree.

The core builds trees whose meaning is DuckDB's. Most of it sqlglot writes in MySQL's words; what is left:

* floats, of which none is infinite or NaN: MariaDB fails where a result would be, so each operation first asks whether
  it would, and gives the largest float instead. NaN is NULL;
* casts, which never fail but read what is no number as one (:mod:`~defocus.engines.mariadb.types`);
* LEAST and GREATEST, which are NULL where one of their arguments is;
* truth values, which are the integers 0 and 1 (:mod:`~defocus.engines.kinds`);
* halves, which it rounds to even; upper and lower case; weeks; starts of units; moments with microseconds.

Nothing can be computed once and named within an expression, so what a guard needs twice is written twice. A tree that
grows too large by that is refused, before anything is charged.
"""

import math
import sys
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from defocus.engines.kinds import Columns, kind_of, noted
from defocus.engines.mariadb import types
from defocus.engines.schema import Kind
from defocus.engines.syntax import (
    FLOAT,
    INTEGER,
    MOMENTS,
    NUMERIC,
    TEXT_TYPES,
    Kinds,
    Rule,
    arithmetic,
    constant,
    fill_mysql,
    is_light,
    lower,
    native,
)
from defocus.errors import EngineError

__all__ = ["lowered"]

_DType = exp.DataType.Type
_LARGEST = sys.float_info.max
_MOST_NODES = 10_000


def lowered(tree: exp.Expression, stored: Mapping[str, Columns]) -> exp.Expression:
    """The same meaning in MariaDB's terms; ``stored`` says what tables hold. The tree that was given stays as it is.

    >>> half = exp.IntDiv(this=exp.cast(exp.Literal.number(7), "bigint"), expression=exp.column("n", quoted=True))
    >>> lowered(half, {}).sql("mysql")
    'CAST(7 AS SIGNED) DIV `n`'
    """
    changed = tree.transform(_last_day)
    assert isinstance(changed, exp.Expression)  # noqa: S101  # what it was
    return lower(noted(changed, stored), _RULES)


def _last_day(node: exp.Expr) -> exp.Expr:
    """The day before the next month, which of December 9999 is none in MariaDB."""
    if isinstance(node, exp.DateAdd) and node.args["unit"].name == "DAY" and constant(node.expression) == -1:
        next_month = node.this.unnest()
        if isinstance(next_month, exp.DateAdd) and isinstance(next_month.this, exp.TimestampTrunc):
            return exp.cast(exp.Anonymous(this="LAST_DAY", expressions=[next_month.this]), "timestamp")
    return node


def _fill(template: str, **gaps: Any) -> exp.Expression:
    """A template whose gaps are filled, unless what it needs in several places makes it too large."""
    made = fill_mysql(template, **gaps)
    if sum(1 for _ in made.walk()) > _MOST_NODES:
        raise EngineError(
            "An expression takes too many steps in MariaDB, where what a guard needs twice is written twice.",
            fix="store a part of it as a column, cast numbers that are whole to BIGINT, or use a simpler expression.",
        )
    return made


def _number(value: float) -> str:
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _literal_float(value: float) -> exp.Expression:
    return native(exp.Neg(this=_positive(-value)) if value < 0 else _positive(value))


def _positive(value: float) -> exp.Expression:
    return native(exp.Literal.number(_number(min(value, _LARGEST))))


def _within(x: exp.Expression, most: float) -> exp.Expression:
    return _fill(f"LEAST(GREATEST(a, -{_number(most)}), {_number(most)})", a=x)


_HALF_OF_ALL = _LARGEST / 2
_DOWN, _UP = _number(2.0**-512), _number(2.0**512)
_SIGNED = f"SIGN(a) * SIGN(b) * {types.LARGEST}"
_MUL = f"CASE WHEN ABS((a * {_DOWN}) * (b * {_DOWN})) >= 1e0 THEN {_SIGNED} ELSE a * b END"
_DIV = f"CASE WHEN b = 0e0 THEN NULL WHEN ABS(a) * {_DOWN} >= LEAST(ABS(b), 1e0) * {_UP} THEN {_SIGNED} ELSE a / b END"
_MOST_EXPONENT = 709.7
_POWER = (
    "CASE WHEN a < 0e0 AND b <> FLOOR(b) THEN NULL WHEN a = 0e0 AND b < 0e0 THEN NULL"
    f" WHEN LEAST(GREATEST(b, -1e300), 1e300) * LN(ABS(a)) > {_number(_MOST_EXPONENT)}"
    f" THEN CASE WHEN a < 0e0 AND b MOD 2e0 <> 0e0 THEN -{types.LARGEST} ELSE {types.LARGEST} END"
    " ELSE POWER(a, b) END"
)
_NEAREST = f"SIGN(a) * FLOOR(ABS(a) + {_number(math.nextafter(0.5, 0))})"
"""Halves away from zero: the sum with the float below one half reaches the next whole number from one half on."""


def _sum(node: Any) -> exp.Expression:
    """Below half of the largest float a sum is as it is; larger terms count as that half."""
    if _bits(node) < _FEW:
        return exp.Paren(this=node)
    a, b = (
        one if is_light(other) else _within(one, _HALF_OF_ALL)
        for one, other in ((node.this, node.expression), (node.expression, node.this))
    )
    return exp.Paren(this=type(node)(this=a, expression=b))


def _bits(tree: Any) -> float:  # noqa: PLR0911  # one line for each sort of node
    """How many bits a number has before its point at most, where that is known from the tree: integers have 64."""
    value = constant(tree) if isinstance(tree, exp.Expression) else None
    if value is not None:
        return math.frexp(value)[1]
    if isinstance(tree, exp.Cast):
        return 64 if kind_of(tree.this) in {Kind.INTEGER, Kind.BOOLEAN} or tree.to.this is _DType.BIGINT else math.inf
    if isinstance(tree, exp.Paren | exp.Neg | exp.Abs | exp.Nullif | exp.Floor | exp.Ceil):
        return _bits(tree.this) + 1
    if isinstance(tree, exp.Add | exp.Sub):
        return max(_bits(tree.this), _bits(tree.expression)) + 1
    if isinstance(tree, exp.Mul):
        return _bits(tree.this) + _bits(tree.expression)
    if isinstance(tree, exp.Div):
        divisor = constant(tree.expression)
        return _bits(tree.this) if divisor is not None and abs(divisor) >= 1 else math.inf
    return math.inf


_FEW = 1000


def _product(node: exp.Mul) -> exp.Expression:
    a, b = node.this, node.expression
    if _bits(node) < _FEW:
        return exp.Paren(this=node)
    for x, other in ((a, b), (b, a)):
        factor = constant(x)
        if factor is not None and factor != 0 and math.isfinite(factor):
            return _scaled(other, abs(factor), x)
    return _fill(_MUL, a=a, b=b)


def _scaled(x: exp.Expression, factor: float, written: exp.Expression) -> exp.Expression:
    """X times a constant; what would be larger than all floats is the largest that x times it can be."""
    most = math.nextafter(_LARGEST / factor, 0) if factor > 1 else None
    return _fill("a * b", a=x if most is None else _within(x, most), b=written)


def _quotient(node: exp.Div) -> exp.Expression:
    divisor = constant(node.expression)
    whole = kind_of(getattr(node.expression, "this", None)) is Kind.INTEGER and isinstance(node.expression, exp.Cast)
    if (divisor is not None and abs(divisor) >= 1) or whole:  # a division by 0 is NULL
        return _fill("a / b", a=node.this, b=node.expression)
    return _fill(_DIV, a=node.this, b=node.expression)


def _bracketed(node: exp.Expression) -> exp.Expression:
    return exp.Paren(this=node)


def _rounded(node: exp.Round, _: Kinds) -> exp.Expression:
    decimals = node.args.get("decimals")
    digits = 0 if decimals is None else int(constant(decimals) or 0)
    scale, x = 10.0 ** abs(digits), node.this
    if not digits:
        return _fill(_NEAREST, a=x)
    written = _literal_float(scale)
    if digits < 0:
        return _scaled(_fill(_NEAREST, a=_fill("a / b", a=x, b=written)), scale, written)
    nearest = _fill("r / b", r=_fill(_NEAREST, a=_fill("a * b", a=x, b=written)), b=written)
    return _fill(f"CASE WHEN ABS(a) <= {_number(_LARGEST / scale)} THEN r ELSE a END", a=x, r=nearest)


_LOW, _HIGH = "-9223372036854777856e0", "9223372036854775807"
_TO_INTEGER = f"NULLIF(CAST(NULLIF(GREATEST(a, {_LOW}), {_LOW}) AS SIGNED), {_HIGH})"
"""The nearest integer, ties to even. From 2**63 on a cast gives the largest integer, which no float below comes to."""


def _attempt(node: exp.TryCast, kinds: Kinds) -> exp.Expression:
    """A cast that is NULL where it cannot be read, by what it is from and to."""
    to, (given,) = node.to.this, kinds["this"]
    if to in TEXT_TYPES:
        return _to_text(node)
    if given == FLOAT and NUMERIC.get(to) == INTEGER:
        return _fill(_TO_INTEGER, a=node.this)
    if given in {FLOAT, INTEGER}:
        return _cast(exp.Cast(this=node.this, to=node.to), kinds)
    if to in NUMERIC and kind_of(node.this) in {Kind.INTEGER, Kind.NUMBER}:
        exact = kind_of(node.this) is Kind.INTEGER or NUMERIC[to] == FLOAT
        return exp.Cast(this=node.this, to=node.to) if exact else _fill(_TO_INTEGER, a=node.this)
    return types.READERS[to](node.this)


def _cast(node: exp.Cast, _: Kinds) -> exp.Expression:
    """A cast that loses nothing; truth values are integers, moments have microseconds."""
    to, x = node.to.this, node.this
    if to is _DType.DOUBLE and isinstance(x, exp.Literal | exp.Null):
        value = math.nan if isinstance(x, exp.Null) else float(x.name)
        return exp.Null() if math.isnan(value) else _literal_float(value)
    if to is _DType.BOOLEAN:
        return x if kind_of(x) is Kind.BOOLEAN else _fill("a <> 0", a=x)
    if to in MOMENTS:
        return _fill("CAST(a AS DATETIME(6))", a=x)
    return _to_text(node) if to in TEXT_TYPES else node


def _to_text(node: exp.Cast) -> exp.Expression:
    kind = kind_of(node.this)
    if kind is Kind.TEXT:
        return node.this  # type: ignore[no-any-return]  # a tree
    if kind is Kind.BOOLEAN:
        return _fill("ELT(a + 1, 'false', 'true')", a=node.this)
    if kind is Kind.TIMESTAMP:
        return _fill(
            "TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(CAST(a AS DATETIME(6)) AS CHAR)))", a=node.this
        )
    return _fill("CAST(a AS CHAR)", a=node.this)


def _nullif(node: exp.Nullif, _: Kinds) -> exp.Expression:
    return node.this if isinstance(node.expression, exp.Null) else node


def _extreme(node: exp.Least | exp.Greatest, _: Kinds) -> exp.Expression:
    """The least or the greatest of those that are not NULL."""
    parts = [node.this, *node.expressions]
    places = range(len(parts))
    sure = [constant(one) is not None or isinstance(one, exp.Neg) for one in parts]
    filled = [
        parts[i] if sure[i] else exp.Coalesce(this=parts[i], expressions=[parts[j].copy() for j in places if j != i])
        for i in places
    ]
    return type(node)(this=filled[0], expressions=filled[1:])


def _changed_case(node: exp.Lower | exp.Upper, _: Kinds) -> exp.Expression:
    """LOWER and UPPER of each character by itself, as Unicode says and the bytewise collation does not know."""
    x = "REPLACE(a, 'ß', 'ẞ')" if isinstance(node, exp.Upper) else "a"
    name = node.key.upper()
    return _fill(f"{name}({x} COLLATE utf8mb4_uca1400_as_cs) COLLATE utf8mb4_nopad_bin", a=node.this)


def _trim(node: exp.Trim, _: Kinds) -> exp.Expression:
    """Of one character: MariaDB trims a whole text where others trim any of its characters."""
    characters = node.args.get("expression")
    if characters is not None and len(characters.name) > 1:
        raise EngineError(
            "TRIM of several characters is not what MariaDB means by it.", fix="trim one character after the other."
        )
    return node


_STARTS = {
    "YEAR": "CAST(DATE_FORMAT(a, '%Y-01-01') AS DATETIME(6))",
    "QUARTER": (
        "CAST(CAST(a AS DATE) - INTERVAL (DAYOFMONTH(a) - 1) DAY - INTERVAL ((MONTH(a) - 1) MOD 3) MONTH"
        " AS DATETIME(6))"
    ),
    "MONTH": "CAST(DATE_FORMAT(a, '%Y-%m-01') AS DATETIME(6))",
    "WEEK": "CAST(CAST(a AS DATE) - INTERVAL WEEKDAY(a) DAY AS DATETIME(6))",
    "DAY": "CAST(CAST(a AS DATE) AS DATETIME(6))",
    "HOUR": "CAST(DATE_FORMAT(a, '%Y-%m-%d %H:00:00') AS DATETIME(6))",
    "MINUTE": "CAST(DATE_FORMAT(a, '%Y-%m-%d %H:%i:00') AS DATETIME(6))",
    "SECOND": "CAST(DATE_FORMAT(a, '%Y-%m-%d %H:%i:%s') AS DATETIME(6))",
}


def _start(node: exp.TimestampTrunc, _: Kinds) -> exp.Expression:
    """The beginning of a unit; weeks begin on Monday."""
    return _fill(_STARTS[node.args["unit"].name], a=node.this)


_PARTS = {"WEEK": "WEEK(a, 3)", "DOY": "DAYOFYEAR(a)"}


def _part(node: exp.Extract, _: Kinds) -> exp.Expression:
    unit = node.name.upper()
    return _fill(_PARTS.get(unit, f"{unit}(a)"), a=node.expression)


def _between_moments(node: exp.DateDiff, _: Kinds) -> exp.Expression:
    """The days between two dates, or the hours, minutes or seconds between two moments that begin one."""
    unit = node.args["unit"].name
    template = "CAST(DATEDIFF(a, b) AS SIGNED)" if unit == "DAY" else f"TIMESTAMPDIFF({unit}, b, a)"
    return _fill(template, a=node.this, b=node.expression)


def _later(node: exp.DateAdd, _: Kinds) -> exp.Expression:
    """A moment so many units later."""
    return _fill(f"a + INTERVAL {int(constant(node.expression) or 0)} {node.args['unit'].name}", a=node.this)


def _filtered(node: exp.Filter, _: Kinds) -> exp.Expression:
    """An aggregate of some rows: of NULL in the others."""
    function, condition = node.this, node.expression.this
    inner = exp.Literal.number(1) if isinstance(function.this, exp.Star) else function.this
    function.set("this", exp.Case(ifs=[exp.If(this=condition, true=inner)]))
    return function  # type: ignore[no-any-return]  # a tree


def _order(node: exp.Order, _: Kinds) -> exp.Expression:
    """An order that says where NULL is: MariaDB has it below everything, and no words for anything else."""
    keys: list[exp.Expression] = []
    for one in node.expressions:
        descending = bool(one.args.get("desc"))
        if bool(one.args.get("nulls_first")) == descending:
            keys.append(_ordered(_fill("a IS NULL", a=one.this), descending=descending))
        keys.append(_ordered(one.this, descending=descending))
    return exp.Order(expressions=keys)


def _ordered(x: exp.Expression, *, descending: bool) -> exp.Expression:
    return exp.Ordered(this=x, desc=descending, nulls_first=not descending)


_RULES: dict[type[exp.Expression], Rule] = {
    exp.Add: arithmetic("MariaDB", _sum, _bracketed),
    exp.Sub: arithmetic("MariaDB", _sum, _bracketed),
    exp.Mul: arithmetic("MariaDB", _product, _bracketed),
    exp.Div: arithmetic("MariaDB", _quotient, _bracketed),
    exp.Mod: lambda node, _: exp.Paren(this=node),
    exp.Round: _rounded,
    exp.Exp: lambda node, _: _fill(f"EXP(LEAST(a, {_number(math.log(_LARGEST))}))", a=node.this),
    exp.Pow: lambda node, _: _fill(_POWER, a=node.this, b=node.expression),
    exp.TryCast: _attempt,
    exp.Cast: _cast,
    exp.Nullif: _nullif,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
    exp.Lower: _changed_case,
    exp.Upper: _changed_case,
    exp.Trim: _trim,
    exp.StartsWith: lambda node, _: _fill("LEFT(a, CHAR_LENGTH(b)) = b", a=node.this, b=node.expression),
    exp.TimestampTrunc: _start,
    exp.Extract: _part,
    exp.DateDiff: _between_moments,
    exp.DateAdd: _later,
    exp.Filter: _filtered,
    exp.Order: _order,
}
