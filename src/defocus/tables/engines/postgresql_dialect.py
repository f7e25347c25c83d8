"""Every difference between what the core writes and what PostgreSQL means by it, as a change of the tree.

The core builds trees whose meaning is DuckDB's. Most of it sqlglot writes in PostgreSQL's words; what is left:

* floats that overflow or vanish (:mod:`~defocus.tables.engines.postgresql_floats`), remainders, powers, halves;
* casts that may fail (:mod:`~defocus.tables.engines.postgresql_texts`);
* text, which is compared by its bytes: the collation "C", but upper and lower case as Unicode says;
* whole division, SHA-256, and counts of days and hours between moments.

Which operations are on floats is seen from the tree: every float in it is the result of a cast or of a function of
floats. An operation whose arguments cannot be told is refused, so none is left unguarded by mistake.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.errors import EngineError
from defocus.tables.engines import postgresql_floats as floats
from defocus.tables.engines import postgresql_texts as texts
from defocus.tables.engines.templates import constant, fill, is_native

__all__ = ["lowered"]

_Kinds: TypeAlias = Mapping[str, list[str]]
"""What the parts of a node are, by the name of the argument."""
_Rule: TypeAlias = Callable[[Any, _Kinds], exp.Expression]
_DType = exp.DataType.Type
_FLOAT, _INTEGER, _NULL, _OTHER = "float", "integer", "null", "other"
_CASTS = {
    **dict.fromkeys((_DType.DOUBLE, _DType.FLOAT), _FLOAT),
    **dict.fromkeys((_DType.BIGINT, _DType.INT, _DType.SMALLINT), _INTEGER),
}
_TEXT_TYPES = {_DType.TEXT, _DType.VARCHAR}
_ALIKE = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Mod,
    exp.Neg,
    exp.Abs,
    exp.Paren,
    exp.Nullif,
    exp.Coalesce,
    exp.Least,
    exp.Greatest,
    exp.Case,
)
_FLOATS = (exp.Div, exp.Floor, exp.Ceil, exp.Round, exp.Sqrt, exp.Ln, exp.Exp, exp.Pow, exp.Trunc, exp.Sign)
_INTEGERS = (exp.IntDiv, exp.Count, exp.DateDiff, exp.Length)
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}


def lowered(tree: exp.Expression) -> exp.Expression:
    """The same meaning in PostgreSQL's terms; the tree that was given stays as it is.

    >>> half = exp.IntDiv(this=exp.cast(exp.Literal.number(7), "bigint"), expression=exp.column("n", quoted=True))
    >>> lowered(half).sql("postgres")
    'CAST(7 AS BIGINT) / "n"'
    """
    return _lowered(tree.copy())[0]


def _lowered(node: exp.Expression) -> tuple[exp.Expression, str]:
    """A node, parts first, and whether it is a float or an integer."""
    if is_native(node):
        return node, _OTHER
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        kind = _CASTS.get(node.to.this, _OTHER)
        return (_bytewise(node) if node.to.this in _TEXT_TYPES else node), kind
    kinds: dict[str, list[str]] = {}
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            part, kind = _lowered(value)
            kinds[name] = [kind]
            node.set(name, part)
        elif isinstance(value, list):
            parts = [_lowered(one) if isinstance(one, exp.Expression) else (one, _OTHER) for one in value]
            kinds[name] = [kind for _, kind in parts]
            node.set(name, [part for part, _ in parts])
    rule = _RULES.get(type(node))
    return (node if rule is None else rule(node, kinds)), _kind(node, kinds)


def _kind(node: exp.Expression, kinds: _Kinds) -> str:  # noqa: PLR0911  # one line for each sort of node
    if isinstance(node, exp.Null):
        return _NULL
    if isinstance(node, exp.Literal):
        return _INTEGER if not node.is_string and node.name.isdigit() else _OTHER
    if isinstance(node, exp.Cast):
        return _CASTS.get(node.to.this, _OTHER)
    if isinstance(node, exp.If):
        return _common([*kinds["true"], *kinds.get("false", [])])
    if isinstance(node, _ALIKE):
        return _common(kind for name, each in kinds.items() if name != "this" or node.key != "case" for kind in each)
    if isinstance(node, _FLOATS) or (isinstance(node, exp.Anonymous) and node.name == "LOG10"):
        return _FLOAT
    return _INTEGER if isinstance(node, _INTEGERS) else _OTHER


def _common(kinds: Iterable[str]) -> str:
    found = set(kinds) - {_NULL}
    if _FLOAT in found and found <= {_FLOAT, _INTEGER, _OTHER}:
        return _FLOAT
    return found.pop() if len(found) == 1 else (_OTHER if found else _NULL)


def _arithmetic(on_floats: Callable[[exp.Expression, exp.Expression], exp.Expression]) -> _Rule:
    """An operation with an own way on floats, which on integers is the same everywhere."""

    def rule(node: Any, kinds: _Kinds) -> exp.Expression:
        both = {*kinds["this"], *kinds["expression"]}
        if _FLOAT in both:
            return on_floats(node.this, node.expression)
        if both <= {_INTEGER}:
            return exp.Paren(this=node)
        raise EngineError(
            "A part of the question mixes numbers in a way that PostgreSQL is not known to compute alike.",
            fix="report the question that was asked.",
        )

    return rule


def _remainder(node: exp.Mod, kinds: _Kinds) -> exp.Expression:
    """The remainder of floats; of anything else it is that of integers, since the database has no other."""
    if _FLOAT in {*kinds["this"], *kinds["expression"]}:
        return floats.mod(node.this, node.expression)
    return exp.Paren(this=node)


def _whole_quotient(node: exp.IntDiv, _: _Kinds) -> exp.Expression:
    """Division of integers, which rounds toward zero there too."""
    return exp.Div(this=node.this, expression=node.expression, typed=True, safe=False)


def _rounded(node: exp.Round, _: _Kinds) -> exp.Expression:
    decimals = node.args.get("decimals")
    return floats.rounded(node.this, 0 if decimals is None else int(constant(decimals) or 0))


def _attempt(node: exp.TryCast, kinds: _Kinds) -> exp.Expression:
    """A cast that is NULL where it fails, by what it is from and to."""
    to, (given,) = node.to.this, kinds["this"]
    if to in _TEXT_TYPES:
        return _cast(exp.Cast(this=node.this, to=node.to), kinds)
    if given == _FLOAT and _CASTS.get(to) == _INTEGER:
        return floats.to_integer(node.this)
    if given in {_FLOAT, _INTEGER}:
        return exp.Cast(this=node.this, to=node.to)
    return _READERS[to](node.this)


_READERS: dict[Any, Callable[[exp.Expression], exp.Expression]] = {
    _DType.BIGINT: texts.to_integer,
    _DType.DOUBLE: texts.to_float,
    _DType.DATE: texts.to_date,
    _DType.TIMESTAMP: texts.to_timestamp,
    _DType.TIMESTAMPNTZ: texts.to_timestamp,
    _DType.BOOLEAN: texts.to_boolean,
}


def _cast(node: exp.Cast, _: _Kinds) -> exp.Expression:
    return _bytewise(node) if node.to.this in _TEXT_TYPES else node


def _bytewise(node: exp.Expression, collation: str = "C") -> exp.Expression:
    """A text that is compared by its bytes."""
    loose = isinstance(node, exp.Binary | exp.Unary | exp.Case) and not isinstance(node, exp.Paren)
    named = exp.to_identifier(collation, quoted=True)
    return exp.Paren(this=exp.Collate(this=exp.Paren(this=node) if loose else node, expression=named))


def _case(node: exp.Expression, _: _Kinds) -> exp.Expression:
    """LOWER and UPPER of each character by itself."""
    return _bytewise(type(node)(this=_bytewise(node.this, "pg_c_utf8")))


def _literal(node: exp.Literal, _: _Kinds) -> exp.Expression:
    return _bytewise(node) if node.is_string else node


def _hash(node: exp.SHA2, _: _Kinds) -> exp.Expression:
    written = _call("CONVERT_TO", node.this, exp.Literal.string("UTF8"))
    return _bytewise(_call("ENCODE", _call("SHA256", written), exp.Literal.string("hex")))


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _between_moments(node: exp.DateDiff, _: _Kinds) -> exp.Expression:
    """The days between two dates, or the hours, minutes or seconds between two moments that begin one."""
    unit = node.args["unit"].name
    if unit == "DAY":
        return fill("CAST(a - b AS BIGINT)", a=node.this, b=node.expression)
    seconds = "EXTRACT(EPOCH FROM a) - EXTRACT(EPOCH FROM b)"
    return fill(f"CAST(({seconds}) / {_SECONDS[unit]} AS BIGINT)", a=node.this, b=node.expression)


_RULES: dict[type[exp.Expression], _Rule] = {
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
}
