"""Arithmetic of 64-bit floats as IEEE 754 defines it, in a database that fails where a result overflows or vanishes.

PostgreSQL computes as every engine does, but raises an error where a finite result would be infinite, or a result that
is not zero would be zero. Whether a row is in the table must not be seen from an error, so each operation first asks
whether its result is one of those, by comparing arguments that were multiplied by powers of two, which is exact.

A branch of CASE whose condition comes before it guards it from rows and from the planner, which computes constants
beforehand: it stops at the first condition that is true.
"""

import math
import sys

from sqlglot import exp

from defocus.engines.syntax import constant, fill, hoisted, is_light

__all__ = ["add", "div", "exponential", "mild", "mod", "mul", "power", "rounded", "sub", "to_integer"]


def _float(value: float) -> str:
    word = "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else repr(value)
    return f"CAST('{word}' AS DOUBLE PRECISION)"


_INFINITY, _MINUS = _float(math.inf), _float(-math.inf)
_NAN = "CAST('NaN' AS DOUBLE PRECISION)"
_LARGEST, _LEAST = _float(sys.float_info.max), _float(5e-324)
_ZERO, _ONE, _HALF = _float(0.0), _float(1.0), _float(0.5)
_USUAL = f"BETWEEN {_float(2.0**-500)} AND {_float(2.0**500)}"
_UNUSUAL = f"BETWEEN {_LEAST} AND {_LARGEST}"
_SIGNED = f"CASE WHEN (a < {_ZERO}) = (b < {_ZERO}) THEN {_INFINITY} ELSE {_MINUS} END"


def _sum(sign: str) -> str:
    """Below 2**900 a term cannot carry the other, of less than 2**1024, beyond it; halves of others are exact."""
    large = f"BETWEEN {_float(2.0**900)} AND {_LARGEST}"
    half = f"a * {_HALF} {sign} b * {_HALF}"
    return (
        f"CASE WHEN NOT ABS(a) {large} THEN a {sign} b WHEN NOT ABS(b) {large} THEN a {sign} b"
        f" WHEN {half} >= {_float(2.0**1023)} THEN {_INFINITY} WHEN {half} <= {_float(-(2.0**1023))} THEN {_MINUS}"
        f" ELSE a {sign} b END"
    )


_ADD, _SUB = _sum("+"), _sum("-")
_DOWN, _UP = _float(2.0**-512), _float(2.0**537)
_MUL = (
    f"CASE WHEN ABS(a) {_USUAL} AND ABS(b) {_USUAL} THEN a * b"
    f" WHEN NOT ABS(a) {_UNUSUAL} THEN a * b WHEN NOT ABS(b) {_UNUSUAL} THEN a * b"
    f" WHEN CASE WHEN ABS(a) > {_ONE} THEN CASE WHEN ABS(b) > {_ONE}"
    f" THEN ABS(a * {_DOWN}) * ABS(b * {_DOWN}) >= {_ONE} END END THEN {_SIGNED}"
    f" WHEN CASE WHEN ABS(a) < {_ONE} THEN CASE WHEN ABS(b) < {_ONE}"
    f" THEN CASE WHEN LEAST(ABS(a), ABS(b)) < {_float(2.0**-537)}"
    f" THEN ABS(a * {_UP}) * ABS(b * {_UP}) <= {_HALF} END END END THEN {_ZERO}"
    " ELSE a * b END"
)
_DIV = (
    f"CASE WHEN b = {_ZERO} THEN NULL WHEN ABS(a) {_USUAL} AND ABS(b) {_USUAL} THEN a / b"
    f" WHEN NOT ABS(a) {_UNUSUAL} THEN a / b WHEN NOT ABS(b) {_UNUSUAL} THEN a / b"
    f" WHEN CASE WHEN ABS(b) < {_ONE} THEN CASE WHEN ABS(a) >= {_float(2.0**-50)}"
    f" THEN ABS(a) * {_DOWN} >= ABS(b) * {_float(2.0**512)} END END THEN {_SIGNED}"
    f" WHEN CASE WHEN ABS(b) > {_ONE} THEN CASE WHEN ABS(a) < {_ONE}"
    f" THEN ABS(a) * {_float(2.0**538)} <= ABS(b) * {_float(2.0**-537)} END END THEN {_ZERO}"
    " ELSE a / b END"
)


def add(a: exp.Expression, b: exp.Expression) -> exp.Expression:
    """A + b."""
    return fill("a + b" if is_light(a) or is_light(b) else _ADD, a=a, b=b)


def sub(a: exp.Expression, b: exp.Expression) -> exp.Expression:
    """A - b."""
    return fill("a - b" if is_light(a) or is_light(b) else _SUB, a=a, b=b)


def mul(a: exp.Expression, b: exp.Expression) -> exp.Expression:
    """A * b.

    Error:
        A product within a part in 2**53 above half of the least float is 0 and not that float.
    """
    return fill("a * b" if {constant(a), constant(b)} & {1.0, -1.0} else _MUL, a=a, b=b)


def div(a: exp.Expression, b: exp.Expression) -> exp.Expression:
    """A / b, and NULL where b is 0."""
    return fill(_DIV, a=a, b=b)


def mild(node: exp.Binary) -> exp.Expression:
    """Arithmetic that cannot overflow, and of which only whole parts matter in the end.

    What is divided is 0 below 2**-700, and divisors are at most 2**100. A product has a first factor of 0 or at least
    1, and at most eight others, each of which is 0 below 2**-120. So nothing vanishes.
    """
    tree = exp.Paren(this=node)
    if not isinstance(node, exp.Mul | exp.Div):
        return tree
    small, least = (node.this, 2.0**-700) if isinstance(node, exp.Div) else (node.expression, 2.0**-120)
    if constant(small) is not None:
        return tree
    return fill(f"CASE WHEN a < {_float(least)} THEN {_ZERO} ELSE b END", a=small, later={"b": tree})


_MOST_EXPONENT = math.log(sys.float_info.max)
_LEAST_EXPONENT = -745.1332191019411


def exponential(x: exp.Expression) -> exp.Expression:
    """The exponential: infinite and 0 where it is too large or too small for a float."""
    template = (
        f"CASE WHEN a = {_NAN} THEN a WHEN a > {_float(_MOST_EXPONENT)} THEN {_INFINITY}"
        f" WHEN a < {_float(_LEAST_EXPONENT)} THEN {_ZERO} ELSE EXP(a) END"
    )
    return fill(template, a=x)


def power(a: exp.Expression, b: exp.Expression) -> exp.Expression:
    """A to the power of b, NULL where it is not real; neither is NaN.

    Near the ends of the floats, where one part in 10**13 of the logarithm decides, it is the square of the power of
    half the exponent.
    """
    x, y = hoisted("a"), hoisted("b")
    root = fill(f"POWER(ABS(a), b * {_HALF})", a=x, b=y)
    sized = fill(
        f"CASE WHEN l > {_float(710.0)} THEN s * {_INFINITY} WHEN l < {_float(-746.0)} THEN {_ZERO}"
        f" WHEN ABS(l) < {_float(700.0)} THEN POWER(a, b) ELSE s * r END",
        alone=True,
        a=x,
        b=y,
        s=fill(_SIGN, a=x, b=y),
        l=mul(y, fill("LN(ABS(a))", a=x)),
        later={"r": mul(root, root)},
    )
    return fill(_POWER, alone=True, a=a, b=b, later={"p": sized})


_SIGN = (
    f"CASE WHEN a < {_ZERO} THEN CASE WHEN ABS(b) < {_float(2.0**53)}"
    f" THEN CASE WHEN FLOOR(b / {_float(2.0)}) * {_float(2.0)} <> b THEN {_float(-1.0)} ELSE {_ONE} END"
    f" ELSE {_ONE} END ELSE {_ONE} END"
)
_POWER = (
    f"CASE WHEN a = {_ZERO} AND b < {_ZERO} THEN NULL"
    f" WHEN a < {_ZERO} AND b <> FLOOR(b) THEN"
    f" CASE WHEN a > {_MINUS} THEN NULL WHEN b > {_ZERO} THEN {_INFINITY} ELSE {_ZERO} END"
    f" WHEN a = {_ZERO} OR b = {_ZERO} OR ABS(a) = {_ONE} OR ABS(a) = {_INFINITY} OR ABS(b) = {_INFINITY}"
    " THEN POWER(a, b) ELSE p END"
)


def rounded(x: exp.Expression, digits: int) -> exp.Expression:
    """X rounded to so many decimals, halves away from zero."""
    scale = exp.cast(exp.Literal.number(repr(10.0 ** abs(digits))), "double")
    if not digits:
        return fill(_NEAREST, a=x)
    if digits < 0:
        return mul(fill(_NEAREST, a=div(x, scale)), scale)

    def nearest(a: exp.Expression) -> exp.Expression:
        scaled = div(fill(_NEAREST, a=mul(a, scale)), scale)
        return fill(f"CASE WHEN ABS(r) = {_INFINITY} THEN a ELSE r END", a=a, r=scaled)

    return fill.bind(x, nearest)


_NEAREST = f"CASE WHEN ABS(a - TRUNC(a)) >= {_HALF} THEN TRUNC(a) + SIGN(a) ELSE TRUNC(a) END"


def to_integer(x: exp.Expression) -> exp.Expression:
    """The nearest 64-bit integer, ties to even, and NULL beyond them and for NaN."""
    low, high = _float(-(2.0**63)), _float(2.0**63)
    return fill(f"CASE WHEN a >= {low} AND a < {high} THEN CAST(a AS BIGINT) END", a=x)


def mod(a: exp.Expression, b: exp.Expression) -> exp.Expression:
    """The remainder of a / b with the sign of a, exactly; NULL where b is 0 or a is infinite."""
    whole = f"BETWEEN {_float(-(2.0**53))} AND {_float(2.0**53)}"
    template = (
        f"CASE WHEN a = {_NAN} OR b = {_NAN} OR ABS(a) = {_INFINITY} OR b = {_ZERO} THEN NULL"
        " WHEN ABS(a) < ABS(b) THEN a"
        f" WHEN a {whole} AND b {whole} AND a = TRUNC(a) AND b = TRUNC(b)"
        " THEN CAST(MOD(CAST(a AS BIGINT), CAST(b AS BIGINT)) AS DOUBLE PRECISION)"
        " ELSE CAST(MOD(x, y) AS DOUBLE PRECISION) END"
    )
    later = {"x": _decimal(hoisted("a")), "y": _decimal(hoisted("b"))}
    return fill(template, alone=True, a=a, b=b, later=later)


def _decimal(x: exp.Expression) -> exp.Expression:
    """A finite float as a decimal number, exactly: the database's own cast keeps 15 digits."""
    bits = fill("CAST(CAST('x' || ENCODE(FLOAT8SEND(a), 'hex') AS BIT(64)) AS BIGINT)", a=x)
    exponent = fill("GREATEST((n >> 52) & 2047, 1) - 1075", n=bits)
    digits = fill("(n & 4503599627370495) + CASE WHEN (n >> 52) & 2047 = 0 THEN 0 ELSE 4503599627370496 END", n=bits)
    value = fill(
        "CASE WHEN e >= 0 THEN m * POWER(CAST(2 AS DECIMAL), e)"
        " ELSE m * POWER(CAST(5 AS DECIMAL), -e) * CAST('1e' || CAST(e AS TEXT) AS DECIMAL) END",
        alone=True,
        e=exponent,
        m=digits,
    )
    return fill("CASE WHEN n < 0 THEN -v ELSE v END", n=bits, v=value)
