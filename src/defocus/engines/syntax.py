"""Words of SQL, as trees: every name quoted, every number of one type.

The walk by which an engine changes a tree of the core's into its own terms, knowing what each part holds.

The core builds trees whose meaning is DuckDB's. An engine that means something else by a node has a rule for it. Rules
see nodes whose parts are changed already, and whether each part is a float, an integer or something else, which is
seen from the tree: every float in it is the result of a cast or of a function of floats.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, final

import sqlglot
from sqlglot import exp

from defocus.errors import EngineError, Number

__all__ = [
    "BIGINT",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "MOMENTS",
    "NUMERIC",
    "OTHER",
    "TEXT",
    "TEXT_TYPES",
    "Filler",
    "Kinds",
    "Reader",
    "Rule",
    "arithmetic",
    "bare",
    "column",
    "constant",
    "decimal",
    "fill",
    "fill_mysql",
    "fill_spark",
    "hoisted",
    "is_light",
    "is_mild",
    "is_native",
    "is_wide",
    "lower",
    "mild",
    "named",
    "native",
    "numbered",
    "over",
    "quoted",
    "readers",
    "rows_of",
    "sub",
    "typed",
    "whole",
    "wide",
]


BIGINT, DOUBLE, TEXT = exp.DataType.Type.BIGINT, exp.DataType.Type.DOUBLE, exp.DataType.Type.TEXT
MOMENTS = frozenset({exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ, exp.DataType.Type.DATETIME})


def quoted(name: str) -> exp.Identifier:
    """A name that means itself, whatever is in it.

    >>> quoted("ward 7").sql("duckdb")
    '"ward 7"'
    """
    return exp.to_identifier(name, quoted=True)


def column(name: str, table: str | None = None) -> exp.Column:
    """A column, of a table if it is named."""
    return exp.column(name, table=table, quoted=True)


def named(sql: exp.Expression, name: str) -> exp.Expression:
    """An expression under a name."""
    return exp.Alias(this=sql, alias=quoted(name))


def sub(select: exp.Query, name: str) -> exp.Subquery:
    """A query that stands after FROM, under a name; one that is part of a tree already stands there as a copy.

    >>> rows = exp.select("x").from_("t")
    >>> sub(rows, "a").this is rows, sub(rows, "b").this is rows
    (True, False)
    """
    subquery = select.subquery(quoted(name), copy=select.parent is not None)
    assert isinstance(subquery, exp.Subquery)  # noqa: S101  # what subquery() makes
    return subquery


def rows_of(relation: exp.Expression) -> exp.Expression:
    """What can stand after FROM: a query as a subquery, a table as it is."""
    return sub(relation, "t") if isinstance(relation, exp.Query) else relation.copy()


def typed(sql: exp.Expression, type_: Any) -> exp.Cast:
    """An expression as one of the types that kinds have everywhere."""
    return exp.Cast(this=sql, to=exp.DataType(this=type_))


def whole(value: int) -> exp.Expression:
    """A 64-bit integer.

    >>> whole(7).sql("duckdb")
    'CAST(7 AS BIGINT)'
    """
    return typed(exp.Literal.number(value), BIGINT)


def decimal(value: Number) -> exp.Expression:
    """A 64-bit float, to the last digit.

    >>> decimal(0.1).sql("duckdb")
    'CAST(0.1 AS DOUBLE)'
    """
    return typed(exp.Literal.number(repr(float(value))), DOUBLE)


def over(function: exp.Expression, *names: str) -> exp.Window:
    """A function of all rows that share these columns, beside each of them.

    >>> over(exp.Count(this=exp.Star()), "unit").sql("duckdb")
    'COUNT(*) OVER (PARTITION BY "unit")'
    """
    return exp.Window(this=function.copy(), partition_by=[column(name) for name in names])


def mild(sum_or_product: exp.Expression) -> exp.Expression:
    """The same arithmetic of floats, of which an engine may know that it is harmless.

    It cannot overflow, and comes to an integer in the end, rounded down, in which nothing changes if numbers below
    2**-120 were 0. An engine that fails where floats vanish needs no more than that.
    """
    sum_or_product.meta["mild"] = True
    return sum_or_product


def is_mild(node: exp.Expression) -> bool:
    """Whether arithmetic is known to be harmless."""
    return bool(node.meta.get("mild"))


def wide(total: exp.Expression) -> exp.Expression:
    """The same sum of 64-bit integers, of which an engine must not fail where 64 bits do not hold it."""
    total.meta["wide"] = True
    return total


def is_wide(node: exp.Expression) -> bool:
    """Whether a sum may be beyond 64 bits."""
    return bool(node.meta.get("wide"))


@final
@dataclass(frozen=True, slots=True)
class Filler:
    """Fills templates of one engine's SQL, whose columns ``a``, ``b``, … are replaced by trees.

    Trees that are large and needed in several places are computed once, as the engine can: written out in each they
    would double at every level of nesting.
    """

    dialect: str
    small: int
    """Arguments of at most so many nodes are written out wherever they are needed."""
    once: Callable[[exp.Expression, Mapping[str, exp.Expression]], exp.Expression]
    """A body in which :func:`hoisted` names stand for trees that are computed once."""

    def __call__(
        self,
        template: str,
        *,
        alone: bool = False,
        later: Mapping[str, exp.Expression] | None = None,
        **gaps: exp.Expression,
    ) -> exp.Expression:
        """The template with its gaps filled.

        ``alone`` demands that small trees are computed once too, which keeps a planner from computing branches that a
        row never reaches. Trees in ``later`` stay where the template has them, and are computed only where it says so;
        they may name the columns of the others.
        """
        tree = _tree(template, self.dialect)
        often = {column.name for column in tree.find_all(exp.Column) if _often(tree, column.name)}
        if not alone and all(self._is_small(one) for name, one in gaps.items() if name in often):
            return _filled(tree, {**gaps, **(later or {})})
        return self.once(_filled(tree, {**{name: hoisted(name) for name in gaps}, **(later or {})}), gaps)

    def bind(self, tree: exp.Expression, make: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
        """What ``make`` gives for a tree that it needs in several places."""
        return make(tree) if self._is_small(tree) else self.once(make(hoisted("a")), {"a": tree})

    def _is_small(self, tree: exp.Expression) -> bool:
        return sum(1 for _ in tree.walk()) <= self.small and tree.find(exp.Query) is None


def _in_subquery(body: exp.Expression, gaps: Mapping[str, exp.Expression]) -> exp.Expression:
    """A subquery that the planner must not dissolve: OFFSET 0."""
    inner = exp.select(*(exp.alias_(tree.copy(), name, quoted=True) for name, tree in gaps.items()))
    kept = inner.offset(exp.Literal.number(0)).subquery(exp.to_identifier("f", quoted=True))
    return exp.select(body).from_(kept, copy=False).subquery()


def _in_lambda(body: exp.Expression, gaps: Mapping[str, exp.Expression]) -> exp.Expression:
    """A function of one struct, applied to an array that holds only it."""
    fields = [exp.alias_(tree.copy(), name, quoted=True) for name, tree in gaps.items()]
    one = exp.Array(expressions=[exp.Struct(expressions=fields)])
    function = exp.Lambda(this=body, expressions=[exp.to_identifier("f", quoted=True)])
    mapped = exp.Anonymous(this="TRANSFORM", expressions=[one, function])
    return exp.Anonymous(this="ELEMENT_AT", expressions=[mapped, exp.Literal.number(1)])


fill = Filler("postgres", 6, _in_subquery)
"""Templates of PostgreSQL's SQL.

>>> fill("a + 1", a=exp.column("age", quoted=True)).sql("postgres")
'("age" + 1)'
"""
fill_spark = Filler("spark", 24, _in_lambda)
"""Templates of Spark's SQL.

>>> fill_spark("a + 1", a=exp.column("age", quoted=True)).sql("spark")
'(`age` + 1)'
"""


def _written_out(body: exp.Expression, gaps: Mapping[str, exp.Expression]) -> exp.Expression:
    """Written out wherever it is needed: there is no way to compute a value once for a row."""
    copy = exp.Paren(this=body)
    for place in list(copy.find_all(exp.Column)):
        if place.table == "f" and place.name in gaps:
            place.replace(exp.Paren(this=gaps[place.name].copy()))
    inner: exp.Expression = copy.this
    return inner


fill_mysql = Filler("mysql", 1_000_000, _written_out)
"""Templates of MariaDB's SQL.

>>> fill_mysql("a + 1", a=exp.column("age", quoted=True)).sql("mysql")
'(`age` + 1)'
"""


def native(tree: exp.Expression) -> exp.Expression:
    """The tree marked as being in the engine's own terms already."""
    tree.meta["native"] = True
    return tree


def is_native(tree: exp.Expression) -> bool:
    """Whether a tree is in the engine's own terms already."""
    return bool(tree.meta.get("native"))


def hoisted(name: str) -> exp.Column:
    """What stands for a tree that is computed once."""
    return exp.column(name, table="f", quoted=True)


def bare(node: exp.Expression) -> exp.Expression:
    """What stands in brackets."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def constant(tree: exp.Expression) -> float | None:
    """The number that a tree is, or None if it is not a constant."""
    while isinstance(tree, exp.Paren | exp.Cast):
        tree = tree.this
    if isinstance(tree, exp.Neg):
        inner = constant(tree.this)
        return None if inner is None else -inner
    try:
        return float(tree.name) if isinstance(tree, exp.Literal) else None
    except ValueError:
        return None


def is_light(tree: exp.Expression) -> bool:
    """Whether a constant is too small to carry any float to infinity."""
    value = constant(tree)
    return value is not None and abs(value) < 2.0**900


def _filled(tree: exp.Expression, gaps: Mapping[str, exp.Expression]) -> exp.Expression:
    wrapped = exp.Paren(this=tree.copy())
    for column in list(wrapped.find_all(exp.Column)):
        if not column.this.quoted and column.name in gaps:  # a tree that fills a gap has quoted names
            part = gaps[column.name].copy()
            column.replace(part if isinstance(part, exp.Column | exp.Literal | exp.Func) else exp.Paren(this=part))
    inner: exp.Expression = wrapped.this
    return wrapped if isinstance(inner, exp.Binary | exp.Unary) and not isinstance(inner, exp.Paren) else inner


@cache
def _often(tree: exp.Expression, name: str) -> bool:
    """Whether a template has a gap in several places."""
    return sum(column.name == name for column in tree.find_all(exp.Column)) > 1


@cache
def _tree(template: str, dialect: str) -> exp.Expression:
    tree = sqlglot.parse_one(template, dialect=dialect)
    assert isinstance(tree, exp.Expression)  # noqa: S101 templates are expressions
    return tree


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


Reader: TypeAlias = Callable[[exp.Expression], exp.Expression]
"""What a text says, as a value of another type; NULL where it says none."""


def readers(*, integer: Reader, number: Reader, boolean: Reader, date: Reader, timestamp: Reader) -> dict[Any, Reader]:
    """How a database reads each type from a text."""
    type_ = exp.DataType.Type
    others = {type_.BIGINT: integer, type_.DOUBLE: number, type_.BOOLEAN: boolean, type_.DATE: date}
    return {**others, **dict.fromkeys(MOMENTS, timestamp)}


def arithmetic(
    engine: str, on_floats: Callable[[Any], exp.Expression], on_mild: Callable[[Any], exp.Expression]
) -> Rule:
    """An operation with an own way on floats, and on those that cannot overflow, which on integers is the same."""

    def rule(node: Any, kinds: Kinds) -> exp.Expression:
        both = {*kinds["this"], *kinds["expression"]}
        if FLOAT in both:
            return on_mild(node) if is_mild(node) else on_floats(node)
        if both <= {INTEGER}:
            return exp.Paren(this=node)
        raise EngineError(
            f"A part of the question mixes numbers in a way that {engine} is not known to compute alike.",
            fix="report the question that was asked.",
        )

    return rule


def numbered(node: exp.Window, _: Kinds) -> exp.Expression:
    """Rows that are numbered in no order: some databases want one, and what all rows of a partition share is none."""
    if isinstance(node.this, exp.RowNumber) and node.args.get("order") is None:
        shared = [exp.Ordered(this=one.copy(), nulls_first=True) for one in node.args["partition_by"]]
        node.set("order", exp.Order(expressions=shared))
    return node
