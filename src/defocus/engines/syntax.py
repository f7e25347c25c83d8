"""Words of SQL, as trees: every name quoted, every number of one type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import sqlglot
from sqlglot import exp

from defocus.errors import Number

__all__ = [
    "BIGINT",
    "DOUBLE",
    "TEXT",
    "Filler",
    "column",
    "constant",
    "decimal",
    "fill",
    "fill_spark",
    "hoisted",
    "is_mild",
    "is_native",
    "mild",
    "named",
    "native",
    "over",
    "quoted",
    "rows_of",
    "sub",
    "typed",
    "whole",
]


BIGINT, DOUBLE, TEXT = exp.DataType.Type.BIGINT, exp.DataType.Type.DOUBLE, exp.DataType.Type.TEXT


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
    """A query that stands after FROM, under a name."""
    subquery = select.subquery(quoted(name))
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
