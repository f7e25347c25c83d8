"""Operators: arithmetic, comparisons, logic, and the choice between values."""

from collections.abc import Callable
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.errors import UnsupportedSqlError, WrongKindError
from defocus.tables.expressions.guards import (
    cast,
    coerced,
    double,
    filtering_all,
    filtering_among,
    filtering_between,
    filtering_comparison,
    integer,
    settled,
    unified,
    without,
)
from defocus.tables.expressions.parser import only
from defocus.tables.expressions.terms import Term, known, literal, made, negated, null, of

__all__ = ["OPERATORS", "Handler", "Read", "numeric"]

Read: TypeAlias = Callable[[exp.Expression], Term]
"""What makes a term of a part of the tree."""
Handler: TypeAlias = Callable[[Any, Read], Term]
"""What makes a term of a node, given how to read its parts."""


def numeric(what: str, term: Term) -> Term:
    """The term, if it is a number; NULL becomes one."""
    if term.kind is None:
        return of(None, Kind.NUMBER)
    if not term.kind.numeric:
        dates = term.kind in {Kind.DATE, Kind.TIMESTAMP}
        raise WrongKindError(
            f"{what} needs numbers, but was given {term.kind}.",
            fix="use DATE_DIFF('day', a, b), or compare dates." if dates else "write CAST(x AS DOUBLE), or a column.",
        )
    return term


def _pair(node: exp.Expression, read: Read) -> tuple[Term, Term]:
    what = _SIGNS[type(node)]
    return numeric(what, read(node.this)), numeric(what, read(node.expression))


def _both_integers(a: Term, b: Term) -> bool:
    return a.kind is Kind.INTEGER and b.kind is Kind.INTEGER


def _sum_or_product(node: exp.Expression, read: Read) -> Term:
    only(node, "this", "expression")
    a, b = _pair(node, read)
    x, y = double(a), double(b)
    product = isinstance(node, exp.Mul)
    meets = (x.infinite or y.infinite) if product else (x.infinite and y.infinite)
    sql = type(node)(this=_operand(x), expression=_operand(y))
    term = made(Kind.NUMBER, sql, x, y, nan=x.nan or y.nan or meets, infinite=True)
    return integer(term) if _both_integers(a, b) else term


def _quotient(node: exp.Div, read: Read) -> Term:
    only(node, "this", "expression", "typed", "safe")
    a, b = _pair(node, read)
    x, y = double(a), without(double(b), 0.0)
    sql = exp.Div(this=_operand(x), expression=_operand(y), typed=False, safe=False)
    nan = x.nan or y.nan or (x.infinite and y.infinite)
    return made(Kind.NUMBER, sql, x, y, nan=nan, infinite=not _both_integers(a, b))


def _whole_quotient(node: exp.IntDiv, read: Read) -> Term:
    only(node, "this", "expression")
    a, b = _pair(node, read)
    if not _both_integers(a, b):
        raise WrongKindError("The operator // needs integers, but was given numbers.", fix="write FLOOR(a / b).")
    if _exact_divisor(b):
        return cast(made(Kind.INTEGER, exp.IntDiv(this=_operand(a), expression=_operand(b)), a, b), Kind.INTEGER)
    x, y = double(a), without(double(b), 0.0)
    ratio = made(Kind.NUMBER, exp.Div(this=_operand(x), expression=_operand(y), typed=False, safe=False), x, y)
    return integer(made(Kind.NUMBER, exp.Trunc(this=ratio.sql), ratio))


def _remainder(node: exp.Mod, read: Read) -> Term:
    only(node, "this", "expression")
    a, b = _pair(node, read)
    if _both_integers(a, b) and _exact_divisor(b):
        return made(Kind.INTEGER, exp.Mod(this=_operand(a), expression=_operand(b)), a, b)
    x, y = double(a), without(double(b), 0.0)
    nan = x.nan or y.nan or x.infinite
    term = made(Kind.NUMBER, exp.Mod(this=_operand(x), expression=_operand(y)), x, y, nan=nan)
    return integer(term) if _both_integers(a, b) else term


def _exact_divisor(term: Term) -> bool:
    """Whether nothing divided by it can fail: a constant other than 0, and -1, which takes the smallest too far."""
    return term.fixed and term.value is not None and term.value not in {0, -1}


def _minus(node: exp.Neg, read: Read) -> Term:
    only(node, "this")
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return negated(node.this)
    a = numeric("The minus sign", read(node.this))
    x = double(a)
    term = made(Kind.NUMBER, exp.Neg(this=_operand(x)), x, nan=x.nan, infinite=x.infinite)
    return integer(term) if a.kind is Kind.INTEGER else term


def _comparison(node: exp.Expression, read: Read) -> Term:
    only(node, "this", "expression")
    raw = read(node.this), read(node.expression)
    a, b = unified(f"The comparison {_SIGNS[type(node)]}", *raw)
    term = made(Kind.BOOLEAN, type(node)(this=_operand(a), expression=_operand(b)), a, b)
    return known(term, where=filtering_comparison(type(node), raw, (a, b)))


def _between(node: exp.Between, read: Read) -> Term:
    only(node, "this", "low", "high")
    parts = [read(node.args[name]) for name in ("this", "low", "high")]
    x, low, high = unified("BETWEEN", *parts)
    sql = exp.Between(this=_operand(x), low=_operand(low), high=_operand(high))
    return known(made(Kind.BOOLEAN, sql, x, low, high, twice=x), where=filtering_between(parts[0], x, low, high))


def _among(node: exp.In, read: Read) -> Term:
    only(node, "this", "expressions")
    raw = read(node.this)
    x, *values = unified("IN", raw, *(read(value) for value in node.expressions))
    if not values or not all(value.fixed for value in values):
        raise UnsupportedSqlError(
            "IN with anything but constants",
            why="the list must not depend on the data",
            fix="write constants, as in x IN ('A', 'B'), or x = a OR x = b.",
        )
    sql = exp.In(this=_operand(x), expressions=[value.sql for value in values])
    return known(made(Kind.BOOLEAN, sql, x), where=filtering_among(raw, x, values))


def _is(node: exp.Is, read: Read) -> Term:
    only(node, "this", "expression")
    x = read(node.this)
    if isinstance(node.expression, exp.Null):
        x = settled(x)
        return made(Kind.BOOLEAN, exp.Is(this=_operand(x), expression=exp.Null()), x)
    if isinstance(node.expression, exp.Boolean):
        truth = _truth("IS TRUE", x)
        answer = exp.Boolean(this=node.expression.this)
        return made(Kind.BOOLEAN, exp.Is(this=_operand(truth), expression=answer), truth)
    raise UnsupportedSqlError(
        "IS with another value", why="only NULL, TRUE and FALSE follow IS", fix="write = instead."
    )


def _truth(what: str, term: Term) -> Term:
    if term.kind not in {None, Kind.BOOLEAN}:
        raise WrongKindError(f"{what} needs a condition, but was given {term.kind}.", fix="compare it: x <> 0, say.")
    return coerced(term, Kind.BOOLEAN)


def _connected(node: Any, read: Read) -> Term:
    only(node, "this", "expression")
    return _joined(type(node), [_truth(node.key.upper(), read(part)) for part in _chain(node)])


def _chain(node: Any) -> list[exp.Expression]:
    """The parts of a chain of ANDs or ORs, from left to right, without recursion."""
    parts: list[exp.Expression] = []
    left = [node]
    while left:
        part: Any = left.pop()
        if type(part) is type(node):
            only(part, "this", "expression")
            left += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def _joined(kind: type[Any], parts: list[Term]) -> Term:
    """A balanced tree, so that a long chain is not a deep one."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    a, b = _joined(kind, parts[:middle]), _joined(kind, parts[middle:])
    term = made(Kind.BOOLEAN, kind(this=_operand(a), expression=_operand(b)), a, b)
    return known(term, where=filtering_all(kind, a, b))


def _not(node: exp.Not, read: Read) -> Term:
    only(node, "this")
    x = _truth("NOT", read(node.this))
    return made(Kind.BOOLEAN, exp.Not(this=_operand(x)), x)


def _case(node: exp.Case, read: Read) -> Term:
    only(node, "this", "ifs", "default")
    branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
    default = node.args.get("default")
    results = [read(result) for _, result in branches] + [read(default) if default is not None else null()]
    if node.this is None:
        return _chosen([_truth("CASE WHEN", read(test)) for test, _ in branches], results)
    subject, *values = unified("CASE", read(node.this), *(read(test) for test, _ in branches))
    equal = [
        made(Kind.BOOLEAN, exp.EQ(this=_operand(subject).copy(), expression=_operand(value)), subject, value)
        for value in values
    ]
    return _chosen(equal, results)


def _if(node: exp.If, read: Read) -> Term:
    only(node, "this", "true", "false")
    other = node.args.get("false")
    results = [read(node.args["true"]), read(other) if other is not None else null()]
    return _chosen([_truth("IF", read(node.this))], results)


def _chosen(tests: list[Term], results: list[Term]) -> Term:
    *chosen, default = unified("CASE", *results)
    if default.kind is None:
        return null()
    ifs = [exp.If(this=test.sql, true=result.sql) for test, result in zip(tests, chosen, strict=True)]
    return _one_of(exp.Case(ifs=ifs, default=default.sql), [*chosen, default], tests)


def _one_of(sql: exp.Expression, values: list[Term], others: list[Term] | None = None) -> Term:
    """A term that is one of the values, by rules that look at the others as well."""
    (kind,) = {value.kind for value in values}
    assert kind is not None  # noqa: S101 the callers have seen to it
    return made(
        kind,
        sql,
        *values,
        *(others or []),
        infinite=any(value.infinite for value in values),
        texts=max(value.texts for value in values),
        extra=max(value.extra for value in values),
    )


def _first_of(node: exp.Expression, read: Read) -> Term:
    """COALESCE, LEAST and GREATEST; the latter two pass over NULL."""
    only(node, "this", "expressions", "ignore_nulls")
    values = list(unified(node.key.upper(), read(node.this), *(read(value) for value in node.expressions)))
    if values[0].kind is None:
        return null()
    flags = {} if isinstance(node, exp.Coalesce) else {"ignore_nulls": True}
    sql = type(node)(this=values[0].sql, expressions=[value.sql for value in values[1:]], **flags)
    return values[0] if len(values) == 1 else _one_of(sql, values)


def _null_if(node: exp.Nullif, read: Read) -> Term:
    only(node, "this", "expression")
    x, unwanted = unified("NULLIF", read(node.this), read(node.expression))
    if x.kind is None:
        return null()
    sql = exp.Nullif(this=x.sql, expression=unwanted.sql)
    return made(x.kind, sql, x, unwanted, twice=x, infinite=x.infinite, texts=x.texts, extra=x.extra)


def _operand(term: Term) -> exp.Expression:
    """The SQL of a term in parentheses, where it needs them beside an operator."""
    loose = exp.Binary | exp.Unary | exp.Between | exp.In
    return exp.Paren(this=term.sql) if isinstance(term.sql, loose) and not term.fixed else term.sql


def _in_parentheses(node: exp.Paren, read: Read) -> Term:
    only(node, "this")
    return read(node.this)


def _true_or_false(node: exp.Boolean, _: Read) -> Term:
    return of(node.this, Kind.BOOLEAN)


_SIGNS: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}

OPERATORS: dict[type[exp.Expression], Handler] = {
    exp.Literal: lambda node, _: literal(node),
    exp.Boolean: _true_or_false,
    exp.Null: lambda _node, _read: null(),
    exp.Paren: _in_parentheses,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _sum_or_product),
    exp.Div: _quotient,
    exp.IntDiv: _whole_quotient,
    exp.Mod: _remainder,
    exp.Neg: _minus,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ), _comparison),
    exp.Between: _between,
    exp.In: _among,
    exp.Is: _is,
    exp.And: _connected,
    exp.Or: _connected,
    exp.Not: _not,
    exp.Case: _case,
    exp.If: _if,
    **dict.fromkeys((exp.Coalesce, exp.Least, exp.Greatest), _first_of),
    exp.Nullif: _null_if,
}
