"""Which groups there can be: values that WHERE lists, that a column's owner declared, or that an expression shows."""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from defocus.engines.schema import Column, Kind
from defocus.errors import InvalidParameterError, WrongKindError
from defocus.tables.expressions.terms import as_kind, literal, moment, negated
from defocus.tables.sql.bounds import part
from defocus.tables.sql.parser import canonical

__all__ = ["conjuncts", "domain", "listed"]

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
