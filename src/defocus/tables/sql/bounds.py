"""Which groups there can be: values that WHERE lists."""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.tables.expressions.ranges import constants, number
from defocus.tables.sql.parser import canonical

__all__ = ["conjuncts", "listed", "number"]


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


def _values(condition: exp.Expression, wanted: str, kind: Kind) -> list[Any] | None:
    if isinstance(condition, exp.In) and canonical(condition.this) == wanted:
        return constants([option for option in condition.expressions if not isinstance(option, exp.Null)], kind)
    if isinstance(condition, exp.EQ):
        for key, value in ((condition.this, condition.expression), (condition.expression, condition.this)):
            if canonical(key) == wanted:
                return constants([value], kind)
    if isinstance(condition, exp.Between) and kind is Kind.INTEGER and canonical(condition.this) == wanted:
        ends = constants([condition.args["low"], condition.args["high"]], kind, unique=False)
        if ends is not None and 0 <= ends[1] - ends[0] < _MOST_STEPS:
            return list(range(ends[0], ends[1] + 1))
    return None
