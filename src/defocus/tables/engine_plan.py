"""What an engine is asked to do, read off its statements.

What the engine then makes of a statement is not shown. Optimisers look at statistics of the data: DuckDB's plan for a
filter that no row passes is empty, so an exact maximum could be read off plans, free of charge. A statement is made of
public facts only. Whoever owns the data can send its text to the engine with EXPLAIN.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
from sqlglot import exp

from defocus.tables.aggregates import Aggregate, Distinct, Histogram, Quantile, Statistic, Units
from defocus.tables.contribution import EDGES, Bound
from defocus.tables.keys import EVERYTHING, Keys
from defocus.tables.measurement import Measuring
from defocus.tables.planner import Plan
from defocus.tables.rows import Rows
from defocus.tables.sampling import RowSampler
from defocus.tables.splits import Scaled
from defocus.tables.statements import Statement
from defocus.tables.weights import Groups

__all__ = ["statements"]

_KEYS = "keys"
_MANY = 1000
_SECRET = RowSampler("a key that is drawn for the release")


def statements(
    plan: Plan, rows: Rows, by: tuple[str, ...], bound: Bound | None, keys: Keys | None
) -> tuple[Statement, ...]:
    """The statements of a release in their order.

    Bounds that are yet to be found are shown as 0 and 1, and of keys that are yet to be found there are taken to be
    more than one person may have.
    """
    several = range(1 if bound is None else min(bound.people_in, _MANY) + 1)
    known = keys if keys is not None else Keys(pa.table(dict.fromkeys(by, several)))
    table = exp.to_table(_KEYS) if by else None
    called = {"unit": rows.unit or "row", "g": "group", **{f"k{i}": name for i, name in enumerate(by)}}
    reader = _Reader({**called, "b": "bucket", "v0": "value"})
    return tuple(
        Statement(purpose, rows.engine.written(select), tuple(reader.work(select)))
        for purpose, select in _selects(plan, Groups(rows, by, known, table, bound), found=keys is None)
    )


def _selects(plan: Plan, groups: Groups, *, found: bool) -> Iterator[tuple[str, exp.Select]]:
    measuring = Measuring(groups, plan.grid, _SECRET)
    if found:
        yield "find the keys that enough people have", measuring.keys_sql()
    if plan.contributions is not None:
        yield "find how many rows people have", measuring.contributions_sql(EDGES)
    everybody = Measuring(Groups(groups.rows, (), EVERYTHING, None, groups.bound), plan.grid, _SECRET)
    for text, finding in plan.findings.items():
        yield f"find the bounds of {text}", everybody.between_sql(text, [float(edge) for edge in finding.edges])
    ranges = dict.fromkeys(plan.findings, (0.0, 1.0))
    if plan.arrangement.splits:
        yield "sum", measuring.cells_sql([split.found(ranges) for split in plan.arrangement.splits])
    for name, aggregate in plan.arrangement.aggregates:
        if not isinstance(aggregate, Statistic):
            yield f"compute {name}", _other(aggregate, measuring, ranges)


def _other(aggregate: Aggregate, measuring: Measuring, ranges: Any) -> exp.Select:
    if isinstance(aggregate, Quantile):
        argument = aggregate.argument
        value = Scaled(argument.text, argument.low, argument.high, find=argument.find).found(ranges)
        return measuring.buckets_sql(value, aggregate.buckets)
    if isinstance(aggregate, Distinct):
        return measuring.distinct_sql(aggregate.text, aggregate.at_most)
    if isinstance(aggregate, Histogram):
        return measuring.between_sql(aggregate.text, aggregate.edges)
    assert isinstance(aggregate, Units)  # noqa: S101  # the only one left
    return measuring.people_sql()


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """Puts the work of a statement in words; ``called`` says what people call the columns in it."""

    called: Mapping[str, str]

    def work(self, node: Any, depth: int = 0) -> Iterator[str]:
        """What a query does, then what it does it with; a query that only renames or computes is passed over."""
        if isinstance(node, exp.Subquery):
            yield from self.work(node.this, depth)
        elif not isinstance(node, exp.Select):
            yield f"{'  ' * depth}read the rows"
        else:
            here = list(self._steps(node))
            yield from (f"{'  ' * depth}{step}" for step in here)
            sources = [(node.args.get("from_") or node.args["from"]).this]
            sources += [join.this for join in node.args.get("joins") or () if not _is_keys(join)]
            for each in sources:
                yield from self.work(each, depth + bool(here))

    def _steps(self, select: exp.Select) -> Iterator[str]:
        group = select.args.get("group")
        if group is not None:
            yield f"aggregate by {self._names(group.expressions)}"
        if select.args.get("distinct"):
            yield f"keep each {self._names(select.expressions)} once"
        windows = [window for part in select.expressions for window in part.find_all(exp.Window)]
        for names in dict.fromkeys(self._names(window.args.get("partition_by") or []) for window in windows):
            yield f"bring the rows of each {names} together"
        for join in select.args.get("joins") or ():
            if _is_keys(join):
                yield "keep the rows of the public keys, which are sent along"
            else:
                same = [part.this for part in join.args["on"].find_all(exp.EQ, exp.NullSafeEQ)]
                yield f"join on {self._names(same)}"

    def _names(self, parts: Sequence[exp.Expression]) -> str:
        names = [part.alias_or_name for part in parts]
        return ", ".join(dict.fromkeys(self.called.get(name, name) for name in names))


def _is_keys(join: exp.Expression) -> bool:
    return isinstance(join.this, exp.Table) and join.this.name == _KEYS
