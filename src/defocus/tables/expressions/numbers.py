"""Functions of numbers."""

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.guards import double, integer, kept, settled, without
from defocus.tables.expressions.operators import Handler, Read, numeric
from defocus.tables.expressions.parser import only
from defocus.tables.expressions.terms import Term, made, of

__all__ = ["NUMBERS", "bucket"]

_MOST_DIGITS = 15


def _zero() -> exp.Expression:
    return of(0.0, Kind.NUMBER).sql


def _absolute(node: exp.Abs, read: Read) -> Term:
    only(node, "this")
    a = numeric("ABS", read(node.this))
    x = double(a)
    term = made(Kind.NUMBER, exp.Abs(this=x.sql), x, nan=x.nan, infinite=x.infinite)
    return integer(term) if a.kind is Kind.INTEGER else term


def _sign(node: exp.Sign, read: Read) -> Term:
    only(node, "this")
    x = settled(numeric("SIGN", read(node.this)))
    return integer(made(Kind.NUMBER, exp.Sign(this=x.sql), x))


def _to_whole(node: exp.Expression, read: Read) -> Term:
    """FLOOR and CEIL: integers stay as they are."""
    only(node, "this")
    a = numeric(node.key.upper(), read(node.this))
    if a.kind is Kind.INTEGER:
        return a
    x = settled(a)
    return made(Kind.NUMBER, type(node)(this=x.sql), x, infinite=x.infinite)


def _rounded(node: exp.Round, read: Read) -> Term:
    """ROUND, halves away from zero, to a constant number of decimal digits."""
    only(node, "this", "decimals")
    a = numeric("ROUND", read(node.this))
    decimals = node.args.get("decimals")
    digits = of(0, Kind.INTEGER) if decimals is None else read(decimals)
    if not digits.fixed or not isinstance(digits.value, int) or abs(digits.value) > _MOST_DIGITS:
        raise InvalidParameterError(
            "ROUND takes a constant number of digits.",
            fix=f"write a whole number from -{_MOST_DIGITS} to {_MOST_DIGITS}.",
        )
    if a.kind is Kind.INTEGER and digits.value >= 0:
        return a
    x = settled(double(a))
    places = {"decimals": digits.sql} if digits.value else {}
    term = made(Kind.NUMBER, exp.Round(this=x.sql, **places), x, infinite=x.infinite)
    return integer(term) if a.kind is Kind.INTEGER else term


def _cut(node: exp.Trunc, read: Read) -> Term:
    """TRUNC: the whole number next to it on the side of zero."""
    only(node, "this")
    a = numeric("TRUNC", read(node.this))
    if a.kind is Kind.INTEGER:
        return a
    x = settled(a)
    return made(Kind.NUMBER, exp.Trunc(this=x.sql), x, infinite=x.infinite)


def _square_root(node: exp.Sqrt, read: Read) -> Term:
    only(node, "this")
    x = _where("SQRT", node.this, read, exp.GTE)
    return made(Kind.NUMBER, exp.Sqrt(this=x.sql), x, nan=x.nan, infinite=x.infinite)


def _logarithm(node: exp.Expression, read: Read) -> Term:
    """LN, and LOG10 or LOG, which are the same."""
    only(node, "this", "expression")
    if isinstance(node, exp.Ln):
        x = _where("LN", node.this, read, exp.GT)
        return made(Kind.NUMBER, exp.Ln(this=x.sql), x, nan=x.nan, infinite=x.infinite)
    base = node.this if node.expression is not None else None
    if base is not None and not (isinstance(base, exp.Literal) and base.name == "10"):
        raise UnsupportedSqlError(
            "A logarithm to another base", why="engines round it differently", fix="write LN(x) / LN(2), say."
        )
    x = _where("LOG10", node.this if base is None else node.expression, read, exp.GT)
    return made(Kind.NUMBER, exp.Anonymous(this="LOG10", expressions=[x.sql]), x, nan=x.nan, infinite=x.infinite)


def _where(what: str, part: exp.Expression, read: Read, sign: type[exp.GT | exp.GTE]) -> Term:
    """A number, or NULL where it is not on the given side of zero."""
    return _beyond(double(numeric(what, read(part))), sign)


def _beyond(x: Term, sign: type[exp.GT | exp.GTE]) -> Term:
    if x.fixed and isinstance(x.value, float) and x.value > 0:
        return x
    return kept(x, sign(this=_in_case(x), expression=_zero()))


def _in_case(x: Term) -> exp.Expression:
    sql = x.sql.copy()
    return exp.Paren(this=sql) if isinstance(sql, exp.Binary | exp.Unary) else sql


def _exponential(node: exp.Exp, read: Read) -> Term:
    only(node, "this")
    x = double(numeric("EXP", read(node.this)))
    return made(Kind.NUMBER, exp.Exp(this=x.sql), x, nan=x.nan, infinite=True)


def _power(node: exp.Pow, read: Read) -> Term:
    only(node, "this", "expression")
    x = settled(double(numeric("POWER", read(node.this))))
    y = settled(double(numeric("POWER", read(node.expression))))
    if y.fixed and isinstance(y.value, float):
        if not y.value.is_integer():
            x = _beyond(x, exp.GTE if y.value > 0 else exp.GT)
        elif y.value < 0:
            x = without(x, 0.0)
        return made(Kind.NUMBER, exp.Pow(this=x.sql, expression=y.sql), x, y, infinite=True)
    positive = x.fixed and isinstance(x.value, float) and x.value > 0
    base = x if positive else _nonzero_base(x, y)
    return made(Kind.NUMBER, exp.Pow(this=base.sql, expression=y.sql), base, y, nan=not positive, infinite=True)


def _nonzero_base(x: Term, y: Term) -> Term:
    """The base, but NULL where it is zero and the exponent negative."""
    nonzero = without(x, 0.0)
    branch = exp.If(this=exp.LT(this=_in_case(y), expression=_zero()), true=nonzero.sql)
    return made(Kind.NUMBER, exp.Case(ifs=[branch], default=x.sql.copy()), nonzero, x, y, infinite=x.infinite)


def bucket(arguments: list[exp.Expression], read: Read) -> Term:
    """BUCKET(x, width): the lower edge of the bucket of that width, a positive constant, in which x lies."""
    wrong = InvalidParameterError("BUCKET takes a number and a constant width.", fix="write BUCKET(age, 10), say.")
    if len(arguments) != 2:
        raise wrong
    a, width = numeric("BUCKET", read(arguments[0])), read(arguments[1])
    if not width.fixed or isinstance(width.value, bool) or not isinstance(width.value, int | float) or width.value <= 0:
        raise wrong
    x, step = double(a), double(width)
    ratio = made(Kind.NUMBER, exp.Div(this=_in_case(x), expression=step.sql, typed=False, safe=False), x, nan=x.nan)
    lower = settled(ratio)
    floor = exp.Floor(this=lower.sql)
    term = made(Kind.NUMBER, exp.Mul(this=floor, expression=step.sql.copy()), lower, infinite=True)
    return integer(term) if a.kind is width.kind is Kind.INTEGER else term


NUMBERS: dict[type[exp.Expression], Handler] = {
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.Floor: _to_whole,
    exp.Ceil: _to_whole,
    exp.Round: _rounded,
    exp.Trunc: _cut,
    exp.Sqrt: _square_root,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.Exp: _exponential,
    exp.Pow: _power,
}
