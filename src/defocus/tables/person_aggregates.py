"""Aggregates of one person's rows: exact, total, and the same on every engine, as columns of one statement.

Why that is private is said in :mod:`defocus.tables.person_features`, which makes rows of it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, final

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.syntax import BIGINT, column, named, sub, typed, whole, wide
from defocus.errors import UnsupportedSqlError, WrongKindError
from defocus.tables.expressions import Expression, constant
from defocus.tables.expressions import typed as read
from defocus.tables.expressions.parser import only
from defocus.tables.expressions.terms import SMALLEST_INTEGER

__all__ = ["MAKERS", "Parts", "feature_name", "plainly"]

_STEP = 2.0**-20
"""On which grid floats are added."""
_AGGREGATES = "COUNT, COUNT(DISTINCT x), COUNT_IF, SUM, AVG, MIN, MAX, ANY_VALUE, BOOL_OR and BOOL_AND"


def plainly(function: exp.Expression) -> exp.Expression:
    """The function of a group, which needs no window."""
    return function


@final
class Parts:
    """Collects what one statement computes: arguments of aggregates, and columns made of them."""

    def __init__(self, schema: Schema, taken: Iterable[str]) -> None:
        self.schema = schema
        self.read: list[Expression] = []
        self._plain: dict[str, exp.Expression] = {}
        self._taken = {name.casefold() for name in (*schema.names, *taken)}
        self._arguments: dict[str, tuple[str, exp.Expression]] = {}
        self._held: dict[str, tuple[Column, exp.Expression, bool]] = {}
        self._later: dict[str, tuple[Column, exp.Expression]] = {}
        self._shown: dict[str, Column] = {}

    def plain(self, names: Iterable[str] | None = None) -> list[exp.Expression]:
        """Columns under their names, or all that are arguments: as they are read, which no expression can tell."""
        chosen = self._plain if names is None else names
        return [named(self._plain[name].copy(), name) if name in self._plain else column(name) for name in chosen]

    @property
    def arguments(self) -> list[exp.Expression]:
        """What aggregates are applied to, each under its name."""
        return [named(sql.copy(), name) for name, sql in self._arguments.values()]

    @property
    def columns(self) -> list[Column]:
        """The columns that are made."""
        return list(self._shown.values())

    def sql(self) -> list[exp.Expression]:
        """What makes them, or what they are made of."""
        return [named(sql, own.name) for own, sql, _ in self._held.values()]

    def finished(self, select: exp.Select, others: Sequence[str]) -> exp.Select:
        """The columns, beside others, out of the statement that makes them or what they are made of."""
        if any(big for _, _, big in self._held.values()):
            kept = [
                named(_saturated(own.name), own.name) if big else column(own.name)
                for own, _, big in self._held.values()
            ]
            select = exp.select(*map(column, others), *kept).from_(sub(select, "b"), copy=False)
        if not self._later:
            return select
        schema = Schema(own for own, _, _ in self._held.values())
        values = {own.name: read(tree, schema).sql for own, tree in self._later.values()}
        shown = [named(values[name], name) if name in values else column(name) for name in self._shown]
        return exp.select(*map(column, others), *shown).from_(sub(select, "c"), copy=False)

    def name(self, wanted: str) -> str:
        """A name that no column has yet."""
        number, free = 1, wanted
        while free.casefold() in self._taken:
            number += 1
            free = f"{wanted}_{number}"
        self._taken.add(free.casefold())
        return free

    def argument(self, tree: exp.Expression) -> tuple[exp.Column, Expression]:
        """An expression over one row, as a column that can be named later."""
        value = read(tree, self.schema)
        self.read.append(value)
        if isinstance(tree, exp.Column):
            self._plain[tree.name] = value.sql
            return column(tree.name), value
        key = value.sql.sql("duckdb")
        if key not in self._arguments:
            self._arguments[key] = self.name("argument"), value.sql
        return column(self._arguments[key][0]), value

    def hold(
        self, sql: exp.Expression, own: Column, wanted: str, *, big: bool = False, inner: bool = False
    ) -> exp.Column:
        """A column that is computed so, under the name that is wanted or one like that of ``own``.

        ``big`` sums are beyond 64 bits, perhaps; others may be made of ``inner`` columns, which are not shown.
        """
        key = f"{sql.sql('duckdb')} {own.kind}"
        if key not in self._held:
            self._held[key] = replace(own, name=wanted or self.name(own.name)), sql, big
        held = self._held[key][0]
        if not inner:
            self._shown[held.name] = held
        return column(held.name)

    def later(self, tree: exp.Expression, own: Column, wanted: str) -> exp.Column:
        """A column that is computed of columns that are held."""
        key = tree.sql("duckdb")
        if key not in self._later:
            self._later[key] = replace(own, name=wanted or self.name(own.name)), tree
        made = self._later[key][0]
        self._shown[made.name] = made
        return column(made.name)

    def aggregate(
        self, node: Any, over: Callable[[exp.Expression], exp.Expression], wanted: str = ""
    ) -> exp.Expression:
        """An aggregate in terms of columns; ``over`` makes of a function the one that is computed."""
        condition = None
        if isinstance(node, exp.Filter):
            only(node, "this", "expression")
            condition, node = node.expression.this, node.this
        if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):  # as DuckDB's is read
            node = node.this
        if isinstance(node, exp.Count | exp.CountIf):
            return self._count(node, condition, over, wanted)
        make = MAKERS.get(type(node))
        if make is None:
            word = node.sql_name() if isinstance(node, exp.Func) else str(node.key).upper()
            raise UnsupportedSqlError(
                f"{word[:40]} of one person's rows",
                why="it is not among those that every engine computes alike",
                fix=f"use {_AGGREGATES}; the first or last value is"
                " ANY_VALUE(FIRST_VALUE(x) OVER (PARTITION BY person ORDER BY t)).",
            )
        only(node, "this")
        if isinstance(node.this, exp.Distinct | exp.Order):
            raise UnsupportedSqlError(
                f"DISTINCT or ORDER BY inside {node.key.upper()}", why="only COUNT takes it", fix="leave it out."
            )
        return make(self, node, _where(node.this, condition), over, wanted)

    def _count(self, node: Any, condition: Any, over: Any, wanted: str) -> exp.Expression:
        only(node, "this", "big_int")
        inner = node.this
        if isinstance(node, exp.CountIf):
            condition = inner if condition is None else exp.and_(exp.paren(condition.copy()), exp.paren(inner.copy()))
            inner = None
        if isinstance(inner, exp.Distinct):
            return self._distinct(inner, condition, over, wanted)
        if inner is None or isinstance(inner, exp.Star | exp.Literal):
            if isinstance(inner, exp.Star):
                only(inner)
            if condition is None:
                every = exp.Count(this=exp.Star(), big_int=True)
                return self.hold(over(every), Column("count", Kind.INTEGER), wanted)
            inner = exp.Literal.number(1)
        value, _ = self.argument(_where(inner, condition))
        own = Column(feature_name("count", inner), Kind.INTEGER)
        return self.hold(over(exp.Count(this=value, big_int=True)), own, wanted)

    def _distinct(self, inner: exp.Distinct, condition: Any, over: Any, wanted: str) -> exp.Expression:
        only(inner, "expressions")
        if len(inner.expressions) != 1 or over is not plainly:
            raise UnsupportedSqlError(
                "COUNT(DISTINCT …) of several values or over a window",
                why="engines do not count them alike",
                fix="count one value, with GROUP BY the person.",
            )
        (counted,) = inner.expressions
        value, found = self.argument(_where(counted, condition))
        if not found.kind.countable:
            raise WrongKindError(
                "COUNT(DISTINCT …) was given floats, which are never quite equal.",
                fix="round them to whole numbers: CAST(x AS BIGINT).",
            )
        values = None if not isinstance(counted, exp.Column) else self.schema[counted.name].values
        own = Column(feature_name("count_distinct", counted), Kind.INTEGER)
        if values:
            own = replace(own, low=0, high=len(values))
        return self.hold(exp.Count(this=exp.Distinct(expressions=[value]), big_int=True), own, wanted)

    def sum(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """SUM: integers exactly, floats on a grid."""
        value, step = self._summed(tree, node.key)
        name, total = feature_name("sum", node.this), wide(exp.Sum(this=value))
        if step is None:
            return self.hold(over(total), Column(name, Kind.INTEGER), wanted, big=True)
        steps = self.hold(over(total), Column(f"steps_{name}", Kind.INTEGER), "", big=True, inner=True)
        return self.later(exp.Mul(this=steps, expression=step), Column(name, Kind.NUMBER), wanted)

    def mean(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """AVG: the quotient of a sum and a count."""
        value, step = self._summed(tree, node.key)
        name = feature_name("avg", node.this)
        total: exp.Expression = self.hold(
            over(wide(exp.Sum(this=value))), Column(f"sum_{name}", Kind.INTEGER), "", big=True, inner=True
        )
        counted = exp.Count(this=value.copy(), big_int=True)
        number = self.hold(over(counted), Column(f"count_{name}", Kind.INTEGER), "", inner=True)
        if step is not None:
            total = exp.paren(exp.Mul(this=total, expression=step))
        own = self.like(name, node.this, read(node.this, self.schema))
        ends = (0, 1) if own.kind is Kind.BOOLEAN else (own.low, own.high)
        known = Column(name, Kind.NUMBER, *ends)
        return self.later(exp.Div(this=total, expression=number), known, wanted)

    def extreme(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """MIN, MAX, and ANY_VALUE, which is the least; of truth values FALSE is the least."""
        value, found = self.argument(tree)
        most = isinstance(node, exp.Max)
        if found.kind is Kind.BOOLEAN:
            function: exp.Expression = exp.LogicalOr(this=value) if most else exp.LogicalAnd(this=value)
        else:
            function = exp.Max(this=value) if most else exp.Min(this=value)
        return self.hold(over(function), self.like(feature_name(node.key, node.this), node.this, found), wanted)

    def truth(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """BOOL_OR and BOOL_AND."""
        value, found = self.argument(tree)
        if found.kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"{node.sql_name()} needs a condition, but was given {found.kind}.", fix="compare it: x <> 0, say."
            )
        word = "any" if isinstance(node, exp.LogicalOr) else "all"
        return self.hold(over(type(node)(this=value)), Column(feature_name(word, node.this), Kind.BOOLEAN), wanted)

    def like(self, name: str, tree: exp.Expression, value: Expression) -> Column:
        """A column that holds values of an expression, with what was declared about them."""
        growth = value.growth if value.kind is Kind.TEXT else None
        if not isinstance(tree, exp.Column):
            return Column(name, value.kind, growth=growth)
        return replace(self.schema[tree.name], name=name, kind=value.kind, growth=growth)

    def _summed(self, tree: exp.Expression, word: str) -> tuple[exp.Column, exp.Expression | None]:
        """What is added, in integers: truth values as 0 and 1, and floats in steps of the grid, then with that step."""
        kind = read(tree, self.schema).kind
        if not kind.numeric and kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"{word.upper()} needs numbers, but was given {kind}.",
                fix="write CAST(x AS DOUBLE), or DATE_DIFF('day', a, b).",
            )
        if kind is Kind.BOOLEAN:
            tree = exp.Cast(this=exp.paren(tree.copy()), to=exp.DataType.build("BIGINT"))
        if kind is not Kind.NUMBER:
            return self.argument(tree)[0], None
        return self.argument(_on_grid(tree))[0], exp.Literal.number(repr(_STEP))


MAKERS: dict[type[Any], Callable[[Parts, Any, exp.Expression, Any, str], exp.Expression]] = {
    exp.Sum: Parts.sum,
    exp.Avg: Parts.mean,
    exp.Min: Parts.extreme,
    exp.Max: Parts.extreme,
    exp.AnyValue: Parts.extreme,
    exp.LogicalOr: Parts.truth,
    exp.LogicalAnd: Parts.truth,
}


def _saturated(name: str) -> exp.Expression:
    """A sum as a 64-bit integer: beyond these, the last of them."""
    low, high, value = constant(SMALLEST_INTEGER, Kind.INTEGER), whole(2**63 - 1), column(name)
    return (
        exp.case()
        .when(exp.GT(this=value.copy(), expression=high.copy()), high.copy())
        .when(exp.LT(this=value.copy(), expression=low.copy()), low.copy())
        .else_(typed(value.copy(), BIGINT))
    )


def _where(tree: exp.Expression, condition: Any) -> exp.Expression:
    """The value where a condition holds, and NULL elsewhere."""
    if condition is None:
        return tree
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=tree.copy())])


def _on_grid(tree: exp.Expression) -> exp.Expression:
    """A float as the nearest multiple of the grid's step, in integers; beyond 64 bits it is missing."""
    steps = exp.Mul(this=exp.paren(tree.copy()), expression=exp.Literal.number(repr(1 / _STEP)))
    return exp.Cast(this=steps, to=exp.DataType.build("BIGINT"))


def feature_name(word: str, *nodes: exp.Expression | None) -> str:
    """A readable name: the function and the first columns it is about."""
    names = dict.fromkeys(own.name for node in nodes if node is not None for own in node.find_all(exp.Column))
    return "_".join([word, *list(names)[:2]])[:60]
