"""Every difference between what the core writes and what Spark means by it, as a change of the tree.

The session is set to ANSI (see :mod:`~defocus.engines.spark.sessions`), so nothing wraps silently; floats are
those of IEEE 754, NaN equals itself and is larger than all others, as in DuckDB. What is left:

* FLOOR, CEIL and ROUND, which give integers or go through decimal digits, and fail on large floats;
* casts that may fail (:mod:`~defocus.engines.spark.types`), and those of floats to integers, which truncate;
* upper and lower case of each character by itself; moments, which have no zone here; a power of one;
* windows whose rows are numbered in no order, and sums of integers that fail beyond 64 bits.
"""

from sqlglot import exp

from defocus.engines.schema import cased
from defocus.engines.spark import types
from defocus.engines.syntax import (
    FLOAT,
    INTEGER,
    MOMENTS,
    NUMERIC,
    TEXT_TYPES,
    Kinds,
    Rule,
    constant,
    is_wide,
    lower,
    numbered,
)
from defocus.engines.syntax import fill_spark as fill

__all__ = ["lowered"]

_DType = exp.DataType.Type
_ONE, _HALF = "CAST(1 AS DOUBLE)", "CAST('0.5' AS DOUBLE)"
_FLOOR = f"CASE WHEN RINT(a) > a THEN RINT(a) - {_ONE} ELSE RINT(a) END"
_CEIL = f"CASE WHEN RINT(a) < a THEN RINT(a) + {_ONE} ELSE RINT(a) END"
_TRUNC = f"CASE WHEN a < 0 THEN {_CEIL} ELSE {_FLOOR} END"
_NEAREST = f"CASE WHEN ABS(a - RINT(a)) = {_HALF} THEN a + SIGN(a) * {_HALF} ELSE RINT(a) END"
_INFINITY = "CAST('Infinity' AS DOUBLE)"
_BEYOND = "CAST('9223372036854775808' AS DOUBLE)"


def lowered(tree: exp.Expression) -> exp.Expression:
    """The same meaning in Spark's terms; the tree that was given stays as it is.

    >>> lowered(exp.DateDiff(this=exp.column("b"), expression=exp.column("a"), unit=exp.var("DAY"))).sql("spark")
    'CAST(DATEDIFF(b, a) AS BIGINT)'
    """
    return lower(tree.transform(_whole_floor), _RULES)


def _whole_floor(node: exp.Expression) -> exp.Expression:
    """Spark's FLOOR gives 64-bit integers and fails beyond; the core casts without trying only floors that fit."""
    if type(node) is exp.Cast and node.to.this is _DType.BIGINT and isinstance(node.this, exp.Floor):
        return _call("FLOOR", node.this.this)
    return node


def _rounded(node: exp.Round, _: Kinds) -> exp.Expression:
    """Rounded to so many decimals, halves away from zero, as DuckDB does: scaled, rounded, scaled back."""
    decimals = node.args.get("decimals")
    digits = 0 if decimals is None else int(constant(decimals) or 0)
    scale = exp.cast(exp.Literal.string(repr(10.0 ** abs(digits))), "double")
    if not digits:
        return fill(_NEAREST, a=node.this)
    if digits < 0:
        return fill("r * b", r=fill(_NEAREST, a=fill("a / b", a=node.this, b=scale)), b=scale)

    def scaled(x: exp.Expression) -> exp.Expression:
        rounded = fill("r / b", r=fill(_NEAREST, a=fill("a * b", a=x, b=scale)), b=scale)
        return fill(f"CASE WHEN ABS(r) = {_INFINITY} THEN a ELSE r END", a=x, r=rounded)

    return fill.bind(node.this, scaled)


def _power(node: exp.Pow, _: Kinds) -> exp.Expression:
    """Java has no value for one to the power of infinity; everybody else says one."""
    if constant(node.expression) is not None:
        return node
    template = f"CASE WHEN ABS(a) = {_ONE} AND ABS(b) = {_INFINITY} THEN {_ONE} ELSE POWER(a, b) END"
    return fill(template, a=node.this, b=node.expression)


def _attempt(node: exp.TryCast, kinds: Kinds) -> exp.Expression:
    """A cast that is NULL where it fails, by what it is from and to."""
    to, (given,) = node.to.this, kinds["this"]
    if given == FLOAT and NUMERIC.get(to) == INTEGER:
        return fill(f"TRY_CAST(NULLIF(RINT(a), {_BEYOND}) AS BIGINT)", a=node.this)
    if given in {FLOAT, INTEGER} or to in TEXT_TYPES:
        return exp.Cast(this=node.this, to=node.to)
    return types.READERS[to](node.this)


def _cast(node: exp.Cast, _: Kinds) -> exp.Expression:
    """A cast that cannot fail; moments have no zone."""
    if node.to.this in MOMENTS:
        return exp.Cast(this=node.this, to=exp.DataType(this=_DType.TIMESTAMPNTZ, nested=False))
    return node


def _changed_case(node: exp.Lower | exp.Upper, _: Kinds) -> exp.Expression:
    """LOWER and UPPER of each character by itself; where all are ASCII, Spark's own."""
    name = node.key.upper()
    before, after = (exp.Literal.string(characters) for characters in cased(name))
    template = f"CASE WHEN OCTET_LENGTH(a) = LENGTH(a) THEN {name}(a) ELSE TRANSLATE(a, x, y) END"
    return fill(template, a=node.this, x=before, y=after)


def _start(node: exp.TimestampTrunc, _: Kinds) -> exp.Expression:
    """The beginning of a unit. Spark computes it in the session's zone, UTC."""
    zoned = fill("CAST(a AS TIMESTAMP_LTZ)", a=node.this)
    return fill("CAST(a AS TIMESTAMP_NTZ)", a=_call("DATE_TRUNC", exp.Literal.string(node.args["unit"].name), zoned))


def _between_moments(node: exp.DateDiff, _: Kinds) -> exp.Expression:
    """The days between two dates, or the hours, minutes or seconds between two moments that begin one."""
    unit = node.args["unit"].name
    if unit == "DAY":
        return exp.cast(_call("DATEDIFF", node.this, node.expression), "bigint")
    return _call("TIMESTAMPDIFF", exp.var(unit), node.expression, node.this)


def _later(node: exp.DateAdd, _: Kinds) -> exp.Expression:
    """A moment so many units later."""
    return _call("TIMESTAMPADD", exp.var(node.args["unit"].name), node.expression, node.this)


def _length(node: exp.Length, _: Kinds) -> exp.Expression:
    return exp.cast(_call("CHAR_LENGTH", node.this), "bigint")


def _sum(node: exp.Sum, _: Kinds) -> exp.Expression:
    """A sum that may be beyond 64 bits is one of decimals, where Spark would fail; others are as they are."""
    if is_wide(node):
        node.set("this", exp.cast(node.this, "DECIMAL(38, 0)"))
    return node


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


_RULES: dict[type[exp.Expression], Rule] = {
    exp.Floor: lambda node, _: fill(_FLOOR, a=node.this),
    exp.Ceil: lambda node, _: fill(_CEIL, a=node.this),
    exp.Trunc: lambda node, _: fill(_TRUNC, a=node.this),
    exp.Round: _rounded,
    exp.Pow: _power,
    exp.TryCast: _attempt,
    exp.Cast: _cast,
    exp.Lower: _changed_case,
    exp.Upper: _changed_case,
    exp.TimestampTrunc: _start,
    exp.DateDiff: _between_moments,
    exp.DateAdd: _later,
    exp.Length: _length,
    exp.Window: numbered,
    exp.Sum: _sum,
}
