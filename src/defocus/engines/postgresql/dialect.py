"""Every difference between what the core writes and what PostgreSQL means by it, as a change of the tree.

The core builds trees whose meaning is DuckDB's. Most of it sqlglot writes in PostgreSQL's words; what is left:

* floats that overflow or vanish (:mod:`~defocus.engines.postgresql.floats`), remainders, powers, halves;
* casts that may fail (:mod:`~defocus.engines.postgresql.types`);
* text, which is compared by its bytes: the collation "C", but upper and lower case as Unicode says;
* whole division, SHA-256, and counts of days and hours between moments.

An operation whose arguments cannot be told (:mod:`~defocus.engines.syntax`) is refused, so none is left
unguarded by mistake.
"""

from collections.abc import Callable

from sqlglot import exp

from defocus.engines.postgresql import floats, types
from defocus.engines.syntax import FLOAT, INTEGER, NUMERIC, TEXT_TYPES, Kinds, Rule, arithmetic, constant, fill, lower

__all__ = ["lowered"]

_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}


def lowered(tree: exp.Expression) -> exp.Expression:
    """The same meaning in PostgreSQL's terms; the tree that was given stays as it is.

    >>> half = exp.IntDiv(this=exp.cast(exp.Literal.number(7), "bigint"), expression=exp.column("n", quoted=True))
    >>> lowered(half).sql("postgres")
    'CAST(7 AS BIGINT) / "n"'
    """
    return lower(tree, _RULES)


def _arithmetic(on_floats: Callable[[exp.Expression, exp.Expression], exp.Expression]) -> Rule:
    return arithmetic("PostgreSQL", lambda node: on_floats(node.this, node.expression), floats.mild)


def _remainder(node: exp.Mod, kinds: Kinds) -> exp.Expression:
    """The remainder of floats; of anything else it is that of integers, since the database has no other."""
    if FLOAT in {*kinds["this"], *kinds["expression"]}:
        return floats.mod(node.this, node.expression)
    return exp.Paren(this=node)


def _whole_quotient(node: exp.IntDiv, _: Kinds) -> exp.Expression:
    """Division of integers, which rounds toward zero there too."""
    return exp.Div(this=node.this, expression=node.expression, typed=True, safe=False)


def _rounded(node: exp.Round, _: Kinds) -> exp.Expression:
    decimals = node.args.get("decimals")
    return floats.rounded(node.this, 0 if decimals is None else int(constant(decimals) or 0))


def _attempt(node: exp.TryCast, kinds: Kinds) -> exp.Expression:
    """A cast that is NULL where it fails, by what it is from and to."""
    to, (given,) = node.to.this, kinds["this"]
    if to in TEXT_TYPES:
        return _cast(exp.Cast(this=node.this, to=node.to), kinds)
    if given == FLOAT and NUMERIC.get(to) == INTEGER:
        return floats.to_integer(node.this)
    if given in {FLOAT, INTEGER}:
        return exp.Cast(this=node.this, to=node.to)
    return types.READERS[to](node.this)


def _cast(node: exp.Cast, _: Kinds) -> exp.Expression:
    return _bytewise(node) if node.to.this in TEXT_TYPES else node


def _bytewise(node: exp.Expression, collation: str = "C") -> exp.Expression:
    """A text that is compared by its bytes."""
    loose = isinstance(node, exp.Binary | exp.Unary | exp.Case) and not isinstance(node, exp.Paren)
    named = exp.to_identifier(collation, quoted=True)
    return exp.Paren(this=exp.Collate(this=exp.Paren(this=node) if loose else node, expression=named))


def _case(node: exp.Expression, _: Kinds) -> exp.Expression:
    """LOWER and UPPER of each character by itself."""
    return _bytewise(type(node)(this=_bytewise(node.this, "pg_c_utf8")))


def _literal(node: exp.Literal, _: Kinds) -> exp.Expression:
    return _bytewise(node) if node.is_string else node


def _hash(node: exp.SHA2, _: Kinds) -> exp.Expression:
    written = _call("CONVERT_TO", node.this, exp.Literal.string("UTF8"))
    return _bytewise(_call("ENCODE", _call("SHA256", written), exp.Literal.string("hex")))


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _between_moments(node: exp.DateDiff, _: Kinds) -> exp.Expression:
    """The days between two dates, or the hours, minutes or seconds between two moments that begin one."""
    unit = node.args["unit"].name
    if unit == "DAY":
        return fill("CAST(a - b AS BIGINT)", a=node.this, b=node.expression)
    seconds = "EXTRACT(EPOCH FROM a) - EXTRACT(EPOCH FROM b)"
    return fill(f"CAST(({seconds}) / {_SECONDS[unit]} AS BIGINT)", a=node.this, b=node.expression)


def _later(node: exp.DateAdd, _: Kinds) -> exp.Expression:
    """A moment so many units later."""
    return fill(f"a + INTERVAL '{int(constant(node.expression) or 0)} {node.args['unit'].name}'", a=node.this)


_RULES: dict[type[exp.Expression], Rule] = {
    exp.Add: _arithmetic(floats.add),
    exp.Sub: _arithmetic(floats.sub),
    exp.Mul: _arithmetic(floats.mul),
    exp.Div: _arithmetic(floats.div),
    exp.Mod: _remainder,
    exp.IntDiv: _whole_quotient,
    exp.Round: _rounded,
    exp.Exp: lambda node, _: floats.exponential(node.this),
    exp.Pow: lambda node, _: floats.power(node.this, node.expression),
    exp.TryCast: _attempt,
    exp.Cast: _cast,
    exp.Lower: _case,
    exp.Upper: _case,
    exp.Literal: _literal,
    exp.SHA2: _hash,
    exp.DateDiff: _between_moments,
    exp.DateAdd: _later,
}
