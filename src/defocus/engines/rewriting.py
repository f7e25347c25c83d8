"""The walk by which an engine changes a tree of the core's into its own terms, knowing what each part holds.

The core builds trees whose meaning is DuckDB's. An engine that means something else by a node has a rule for it. Rules
see nodes whose parts are changed already, and whether each part is a float, an integer or something else, which is
seen from the tree: every float in it is the result of a cast or of a function of floats.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.engines.syntax import is_native

__all__ = ["FLOAT", "INTEGER", "NUMERIC", "OTHER", "TEXT_TYPES", "Kinds", "Rule", "lower"]

Kinds: TypeAlias = Mapping[str, list[str]]
"""What the parts of a node are, by the name of the argument."""
Rule: TypeAlias = Callable[[Any, Kinds], exp.Expression]
_DType = exp.DataType.Type
FLOAT, INTEGER, OTHER = "float", "integer", "other"
_NULL = "null"
NUMERIC = {
    **dict.fromkeys((_DType.DOUBLE, _DType.FLOAT), FLOAT),
    **dict.fromkeys((_DType.BIGINT, _DType.INT, _DType.SMALLINT), INTEGER),
}
"""The types of numbers, and what they are."""
TEXT_TYPES = {_DType.TEXT, _DType.VARCHAR}
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


def lower(tree: exp.Expression, rules: Mapping[type[exp.Expression], Rule]) -> exp.Expression:
    """The tree by an engine's rules; the one that was given stays as it is.

    >>> rules = {exp.Sqrt: lambda node, kinds: exp.Anonymous(this="ROOT", expressions=[node.this])}
    >>> lower(exp.Sqrt(this=exp.column("n")), rules).sql()
    'ROOT(n)'
    """
    return _lowered(tree.copy(), rules)[0]


def _lowered(node: exp.Expression, rules: Mapping[type[exp.Expression], Rule]) -> tuple[exp.Expression, str]:
    """A node, parts first, and whether it is a float or an integer. A literal in a cast stays a literal."""
    if is_native(node):
        return node, OTHER
    kinds: dict[str, list[str]] = {}
    if type(node) is not exp.Cast or not isinstance(node.this, exp.Literal):
        for name, value in list(node.args.items()):
            if isinstance(value, exp.Expression):
                part, kind = _lowered(value, rules)
                kinds[name] = [kind]
                node.set(name, part)
            elif isinstance(value, list):
                parts = [_lowered(one, rules) if isinstance(one, exp.Expression) else (one, OTHER) for one in value]
                kinds[name] = [kind for _, kind in parts]
                node.set(name, [part for part, _ in parts])
    kind = _kind(node, kinds)
    rule = rules.get(type(node))
    return (node if rule is None else rule(node, kinds)), kind


def _kind(node: exp.Expression, kinds: Kinds) -> str:  # noqa: PLR0911  # one line for each sort of node
    if isinstance(node, exp.Null):
        return _NULL
    if isinstance(node, exp.Literal):
        return INTEGER if not node.is_string and node.name.isdigit() else OTHER
    if isinstance(node, exp.Cast):
        return NUMERIC.get(node.to.this, OTHER)
    if isinstance(node, exp.If):
        return _common([*kinds["true"], *kinds.get("false", [])])
    if isinstance(node, _ALIKE):
        return _common(
            kind for name, several in kinds.items() if name != "this" or node.key != "case" for kind in several
        )
    if isinstance(node, _FLOATS) or (isinstance(node, exp.Anonymous) and node.name == "LOG10"):
        return FLOAT
    return INTEGER if isinstance(node, _INTEGERS) else OTHER


def _common(kinds: Iterable[str]) -> str:
    distinct = set(kinds) - {_NULL}
    if FLOAT in distinct and distinct <= {FLOAT, INTEGER, OTHER}:
        return FLOAT
    return distinct.pop() if len(distinct) == 1 else (OTHER if distinct else _NULL)
