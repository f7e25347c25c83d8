"""Words of SQL, as trees: every name quoted, every number of one type."""

from typing import Any

from sqlglot import exp

from defocus.errors import Number

__all__ = [
    "BIGINT",
    "DOUBLE",
    "TEXT",
    "column",
    "decimal",
    "is_mild",
    "mild",
    "named",
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
    made = select.subquery(quoted(name))
    assert isinstance(made, exp.Subquery)  # noqa: S101  # what subquery() makes
    return made


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
