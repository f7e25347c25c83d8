"""Pieces of SQL with gaps: read once as a tree, filled with other trees, never pasted together as text."""

from collections.abc import Mapping
from functools import cache

import sqlglot
from sqlglot import exp

__all__ = ["constant", "fill", "hoisted", "is_native", "native"]

_SMALL = 6
"""Arguments of at most so many nodes are written out wherever they are needed; others are computed once."""


def fill(
    template: str,
    *,
    alone: bool = False,
    later: Mapping[str, exp.Expression] | None = None,
    **gaps: exp.Expression,
) -> exp.Expression:
    """A template of PostgreSQL's SQL whose columns ``a``, ``b``, … are replaced by trees.

    Trees that are large are computed once, in a subquery that the planner must not dissolve (OFFSET 0): written out in
    every place they would double at each level of nesting. ``alone`` demands that for small ones too, which keeps the
    planner from computing branches that a row never reaches. Trees in ``later`` stay where the template has them, and
    are computed only where it says so; they may name the columns of the others.

    >>> fill("a + 1", a=exp.column("age", quoted=True)).sql("postgres")
    '("age" + 1)'
    """
    if not alone and all(_small(tree) for tree in gaps.values()):
        return _filled(template, {**gaps, **(later or {})})
    inner = exp.select(*(exp.alias_(tree.copy(), name, quoted=True) for name, tree in gaps.items()))
    body = exp.select(_filled(template, {**{name: hoisted(name) for name in gaps}, **(later or {})}))
    kept = inner.offset(exp.Literal.number(0)).subquery(exp.to_identifier("f", quoted=True))
    return body.from_(kept, copy=False).subquery()


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


def _filled(template: str, gaps: Mapping[str, exp.Expression]) -> exp.Expression:
    made = exp.Paren(this=_tree(template).copy())
    for column in list(made.find_all(exp.Column)):
        if not column.this.quoted and column.name in gaps:  # a tree that fills a gap has quoted names
            part = gaps[column.name].copy()
            column.replace(part if isinstance(part, exp.Column | exp.Literal | exp.Func) else exp.Paren(this=part))
    inner: exp.Expression = made.this
    return made if isinstance(inner, exp.Binary | exp.Unary) and not isinstance(inner, exp.Paren) else inner


@cache
def _tree(template: str) -> exp.Expression:
    tree = sqlglot.parse_one(template, dialect="postgres")
    assert isinstance(tree, exp.Expression)  # noqa: S101 templates are expressions
    return tree


def _small(tree: exp.Expression) -> bool:
    return sum(1 for _ in tree.walk()) <= _SMALL and tree.find(exp.Query) is None
