"""Aggregates as they are written in SQL, as what the table can be asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, final

from sqlglot import exp

from defocus.answers.columns import SUFFIXES
from defocus.engines.schema import Kind, bounds, retyped
from defocus.errors import InvalidParameterError, NotDeclaredError, UnsupportedSqlError, WrongKindError
from defocus.tables.aggregates import (
    Aggregate,
    Units,
    max,  # noqa: A004  # the aggregate
    median,
    min,  # noqa: A004  # the aggregate
    quantile,
)
from defocus.tables.contribution import FIND
from defocus.tables.distinct_values import count_distinct
from defocus.tables.expressions.parser import at, called
from defocus.tables.expressions.ranges import clamp, number
from defocus.tables.splits import Argument, apart
from defocus.tables.sql.parser import only
from defocus.tables.sql.query import Scope
from defocus.tables.statistics import MOMENTS, Statistic, count

__all__ = ["Asked", "Calls", "free", "is_aggregate"]


_REFUSED = {"histogram", "favg", "fsum", "kahan_sum", "sumkahan", "count_star", "product", "geomean"}
"""Aggregates that sqlglot does not know and that have no private form."""
_STATISTICS: dict[type[exp.Expr] | str, str] = {
    function: name for name, moments in MOMENTS.items() for function in moments.sql
}
"""The functions that follow from sums, by the class of sqlglot, or by name where it knows none."""
_SAMPLED = (exp.Variance, exp.Stddev, exp.StddevSamp, exp.CovarSamp)
_EXTREMES: dict[type[exp.Expression], tuple[Callable[..., Any], str]] = {
    exp.Min: (min, "min"),
    exp.Max: (max, "max"),
    exp.Median: (median, "median"),
}
_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
_KNOWN = (
    "COUNT, COUNT(DISTINCT x), COUNT_IF, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, QUANTILE_CONT(x, 0.9),"
    " PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x), CORR and COVAR_POP"
)


@final
@dataclass(frozen=True, slots=True)
class Calls:
    """Reads the aggregates of one query, over the rows of a scope."""

    scope: Scope
    find: bool
    """Whether bounds that nobody declared are found privately."""
    at_most: int | None
    """How many different values one person may bring to a COUNT(DISTINCT …); found where nobody says."""
    intervals: bool
    """Whether quantiles have intervals."""

    def read(self, node: exp.Expression) -> tuple[Aggregate, str, tuple[str, ...]]:
        """The aggregate, a name for it, and what it means where SQL means something else."""
        with at(node):
            return self._read(node)

    def _read(self, node: exp.Expression) -> tuple[Aggregate, str, tuple[str, ...]]:
        layers = _layers(node)
        if any(is_aggregate(part) and not any(part is layer for layer in layers) for part in node.walk()):
            raise UnsupportedSqlError(
                "An aggregate inside an aggregate",
                why="aggregates are about single rows",
                fix="ask for each by itself.",
            )
        condition = None
        if isinstance(node, exp.Filter):
            only(node, "FILTER", "this", "expression")
            condition, node = node.expression.this, node.this
        if isinstance(node, exp.Count | exp.CountIf | exp.ApproxDistinct):
            return (*self._count(node, condition), ())
        operation = _STATISTICS.get(_function(node))
        operands = [] if operation is None else _operands(node, len(MOMENTS[operation].degrees))
        if operation is not None and operands:
            moments = MOMENTS[operation]
            truth = moments.degrees == (1,)
            arguments = tuple(self._argument(operand, condition, truth=truth) for operand in operands)
            name = self._name(moments.sql_name or operation, *operands)
            return Statistic(operation, arguments), name, _sampled(node)
        if type(node) in _EXTREMES:
            return self._extreme(node, condition)
        return self._quantile(node, condition)

    def _count(self, node: exp.Expression, condition: exp.Expression | None) -> tuple[Aggregate, str]:
        only(node, "COUNT", "this", "big_int")
        inner = node.this
        if isinstance(node, exp.CountIf):
            test: Any = inner if condition is None else exp.and_(exp.paren(condition.copy()), exp.paren(inner.copy()))
            return count(self._text(exp.Literal.number(1), test)), "count_if"
        if isinstance(node, exp.ApproxDistinct):
            inner = exp.Distinct(expressions=[inner.copy()])
        if isinstance(inner, exp.Distinct):
            return self._distinct(inner, condition)
        if isinstance(inner, exp.Star) or inner is None or isinstance(inner, exp.Literal):
            if isinstance(inner, exp.Star):
                only(inner, "COUNT(*)")
            return count(None if condition is None else self._text(exp.Literal.number(1), condition)), "count"
        return count(self._text(inner, condition)), self._name("count", inner)

    def _distinct(self, inner: exp.Distinct, condition: exp.Expression | None) -> tuple[Aggregate, str]:
        only(inner, "DISTINCT", "expressions")
        if len(inner.expressions) != 1:
            raise UnsupportedSqlError(
                "COUNT(DISTINCT x, y)", why="one value is counted at a time", fix="write COUNT(DISTINCT x || '/' || y)."
            )
        value = inner.expressions[0]
        name = self._name("count_distinct", value)
        person = isinstance(value, exp.Column) and self.scope.column(value).name == self.scope.rows.unit
        if person and condition is None:
            return Units(), name
        return count_distinct(self._text(value, condition), at_most=self.at_most), name

    def _extreme(
        self, node: exp.Expression, condition: exp.Expression | None
    ) -> tuple[Aggregate, str, tuple[str, ...]]:
        make, word = _EXTREMES[type(node)]
        only(node, word.upper(), "this")
        aggregate = self._bounded(partial(make, intervals=self.intervals), node.this, condition)
        share = {"min": "0.5 %", "max": "99.5 %"}.get(word)
        note = f"{word.upper()} is the quantile of {share}: the very last value belongs to one person"
        return aggregate, self._name(word, node.this), (note,) if share else ()

    def _quantile(
        self, node: exp.Expression, condition: exp.Expression | None
    ) -> tuple[Aggregate, str, tuple[str, ...]]:
        value, level = self._leveled(node)
        make = partial(quantile, level=level, intervals=self.intervals)
        aggregate = self._bounded(make, value, condition)
        return aggregate, self._name(f"p{float(100 * level):g}".replace(".", "_"), value), ()

    def _leveled(self, node: exp.Expression) -> tuple[exp.Expression, Fraction]:
        """The value and the level of a quantile in any of its spellings."""
        if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
            only(node, "WITHIN GROUP", "this", "expression")
            only(node.this, "A quantile", "this")
            orders = node.expression.expressions if isinstance(node.expression, exp.Order) else []
            if len(orders) != 1:
                raise InvalidParameterError("A quantile is about one column.", fix="write WITHIN GROUP (ORDER BY x).")
            share = _level(node.this.this)
            return orders[0].this, 1 - share if orders[0].args.get("desc") else share
        if isinstance(node, _QUANTILES):
            only(node, "A quantile", "this", "expression", "quantile")
            level = node.args.get("expression") or node.args.get("quantile")
            if isinstance(level, exp.Order) and [order.this for order in level.expressions] == [node.this]:
                down = level.expressions[0].args.get("desc")  # QUANTILE_CONT(x, 0.9 ORDER BY x), as DuckDB writes it
                return node.this, 1 - _level(level.this) if down else _level(level.this)
            return node.this, _level(level)
        if isinstance(node, exp.AggFunc | exp.Anonymous | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
            raise _unknown(node)
        raise UnsupportedSqlError(
            f"FILTER after {node.key.upper()[:40]}", why="it is no aggregate", fix=f"use {_KNOWN}."
        )

    def _bounded(self, make: Callable[..., Any], node: exp.Expression, condition: exp.Expression | None) -> Any:
        argument = self._argument(node, condition)
        if argument.find:
            return make(argument.text, bounds=FIND)
        return make(argument.text, low=argument.low, high=argument.high)

    def _argument(
        self, node: exp.Expression, condition: exp.Expression | None = None, *, truth: bool = False
    ) -> Argument:
        """What an aggregate is about, with its bounds."""
        if isinstance(node, exp.Distinct):
            raise UnsupportedSqlError(
                "DISTINCT inside SUM, AVG and the like",
                why="which of equal values counts would depend on other people",
                fix="leave DISTINCT out.",
            )
        if isinstance(node, exp.Order):
            raise UnsupportedSqlError("ORDER BY inside an aggregate", why="raw rows have no order", fix="leave it out.")
        clamped = clamp(node)
        inner, low, high = (node, None, None) if clamped is None else clamped
        text = self._text(inner, condition)
        value = self.scope.rows.values(text)
        kind = value.kind
        if truth and clamped is None and kind is Kind.BOOLEAN:
            inner = exp.Cast(this=inner.copy(), to=exp.DataType.build("BIGINT"))
            text, low, high = self._text(inner, condition), 0, 1
        elif not kind.numeric:
            raise WrongKindError(
                f"{text!r:.60} is of kind {kind}, but this aggregate needs numbers.",
                fix="write CAST(x AS DOUBLE), DATE_DIFF('day', DATE '2000-01-01', x), or COUNT(x)"
                f"{retyped(inner.name or text, kind)}.",
            )
        if low is None:
            low, high = (None, None) if value.bounds is None else apart(*value.bounds)
        if low is not None and high is not None:
            return Argument(text, *bounds(text, low, high))
        if self.find:
            return Argument(text, find=True)
        raise NotDeclaredError(
            f"Nobody declared between which bounds {text!r:.60} lies.",
            fix=f"write CLAMP({text}, low, high) with bounds chosen without looking at the data; declare them for the"
            ' columns, declare(x=(low, high)) or in the dataset file; or pass bounds="find" to pay for finding them.',
        )

    def _text(self, node: exp.Expression, condition: exp.Expression | None) -> str:
        if condition is None:
            return self.scope.text(node)
        return self.scope.text(exp.Case(ifs=[exp.If(this=condition.copy(), true=node.copy())]))

    def _name(self, word: str, *nodes: exp.Expression) -> str:
        """A readable name: the aggregate and its columns."""
        columns = dict.fromkeys(column.name for node in nodes for column in node.find_all(exp.Column))
        return "_".join([word, *list(columns)[:3]])[:60]


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node looks at several rows."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _REFUSED or _function(node) in _STATISTICS
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls)


def _function(node: exp.Expr) -> type[exp.Expr] | str:
    """The class of a function, or its name where sqlglot knows none."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else type(node)


def _operands(node: exp.Expression, number: int) -> list[exp.Expression]:
    """What a function of so many columns is applied to; nothing where it has others."""
    if isinstance(node, exp.Anonymous):
        return node.expressions if len(node.expressions) == number else []
    only(node, node.key.upper(), *("this", "expression")[:number])
    return [node.this, node.expression][:number]


def _layers(node: exp.Expression) -> list[exp.Expression]:
    """An aggregate and the function inside its FILTER, WITHIN GROUP and the like, which is the same aggregate."""
    layers = [node]
    while isinstance(layers[-1], exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        layers.append(layers[-1].this)
    return layers


def _level(node: exp.Expression | None) -> Fraction:
    value = None if node is None else number(node)
    if value is None:
        raise UnsupportedSqlError(
            "A quantile without one constant level",
            why="its level must be public, and one number",
            fix="write QUANTILE_CONT(x, 0.5), once for each level; those of one column share one cost.",
        )
    if not 0 < value < 1:
        raise InvalidParameterError(f"The level of a quantile is {value}.", fix="write a level between 0 and 1.")
    return Fraction(str(value))


def _sampled(node: exp.Expression) -> tuple[str, ...]:
    if not isinstance(node, _SAMPLED):
        return ()
    return (f"{called(node)} divides by the number of rows, not by that number less one",)


def _unknown(node: exp.Expression) -> UnsupportedSqlError:
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node = node.this
    if isinstance(node, exp.Mode):
        return UnsupportedSqlError(
            "The aggregate MODE",
            why="an answer holds a number for each group, and the most frequent value may be text",
            fix='write SELECT x, COUNT(*) … GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1, or ask table.mode("x").',
        )
    return UnsupportedSqlError(
        f"The aggregate {called(node)[:40].upper()}",
        why="no private form of it is known here",
        fix=f"the aggregates are {_KNOWN}.",
    )


class Asked:
    """Collects aggregates under references a0, a1, … while a query is read."""

    def __init__(self) -> None:
        self._wanted: dict[Aggregate, tuple[str, str]] = {}
        self.notes: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def reference(self, aggregate: Aggregate, name: str, notes: Sequence[str]) -> str:
        """By what the released column will be known."""
        self.notes.update(dict.fromkeys(notes))
        return self._wanted.setdefault(aggregate, (f"a{len(self._wanted)}", name))[0]

    def known(self, name: str) -> exp.Column | None:  # noqa: ARG002  # columns of rows are not released
        """The released column that a name stands for, if it is one."""
        return None

    def arranged(self, keys: Sequence[str]) -> tuple[dict[str, Aggregate], dict[str, str]]:
        """The aggregates to ask by name, and for each reference the column of the answer that holds it."""
        taken = [key.casefold() for key in keys]
        asked: dict[str, Aggregate] = {}
        held: dict[str, str] = {}
        for aggregates in self._together():
            first = aggregates[0]
            merged, ordered = first.together(aggregates)
            wanted = self._wanted[first][1]
            name = free(wanted if merged is first else f"quantiles_{wanted.partition('_')[2] or wanted}", taken, merged)
            asked[name] = merged
            columns = merged.titles(name)
            taken += [(column + suffix).casefold() for column in columns for suffix in SUFFIXES]
            held.update(zip((self._wanted[one][0] for one in ordered), columns, strict=True))
        return asked, held

    def _together(self) -> list[list[Aggregate]]:
        groups: dict[object, list[Aggregate]] = {}
        for aggregate in self._wanted:
            groups.setdefault(aggregate.shared, []).append(aggregate)
        return list(groups.values())


def free(name: str, taken: Sequence[str], aggregate: Aggregate | None = None) -> str:
    """The name, with a number behind it if its columns would meet others; ``taken`` is in lower case."""
    number, candidate = 1, name
    while any(
        (column + suffix).casefold() in taken
        for column in ([candidate] if aggregate is None else aggregate.titles(candidate))
        for suffix in SUFFIXES
    ):
        number += 1
        candidate = f"{name}_{number}"
    return candidate
