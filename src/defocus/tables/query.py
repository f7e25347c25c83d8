"""A question about a table: free to preview, charged once when it is released."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from defocus.answers import Preview, PreviewColumn, Released
from defocus.answers.columns import checked_names
from defocus.errors import InvalidParameterError, Number, in_range
from defocus.ledger import Ledger, Receipt
from defocus.ledger.declarations import allowed
from defocus.mechanisms import Quantiles
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.privacy.units import Adjacency
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed
from defocus.tables.aggregates import Aggregate, Distinct, Statistic, Units
from defocus.tables.answers import answered, from_record, titles, to_record
from defocus.tables.contribution import Bound
from defocus.tables.estimates import Noisy, expected, read
from defocus.tables.execution import Run, rehearse, statements, texts
from defocus.tables.keys import Keys
from defocus.tables.measurement_plan import MeasurementPlan
from defocus.tables.planner import Plan, keys_need_delta, plan
from defocus.tables.rows import Rows
from defocus.tables.weights import RowSampler
from defocus.tables.words import question, rules

__all__ = ["SIZES", "Query"]

SIZES = (100, 1_000, 10_000, 100_000)
"""Group sizes to speak about where the error depends on the size of the group, which is private."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What is asked, of which rows, in which groups. Made by ``agg``; everything in it is public.

    Guarantee:
        :meth:`preview` and :meth:`plan` look at no row. :meth:`release` charges the ledger first, as one event, then
        computes, then adds noise. Whatever fails afterwards keeps the charge and says nothing about a row.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"person": range(1000), "age": [30 + i % 40 for i in range(1000)]})
    >>> visits = dp.open(people, unit=dp.user("person"), budget=dp.Budget(1), ledger=f"{home.name}/a", name="visits")
    >>> question = visits.bound(rows=1).agg(people=dp.count())
    >>> question.release(epsilon=0.5).names
    ['people']
    >>> visits.close(); home.cleanup()
    """

    rows: Rows
    ledger: Ledger
    bound: Bound | None
    by: tuple[str, ...]
    keys: Keys | None
    arrangement: MeasurementPlan
    weights: Mapping[str, Number]
    proposed: bool = False
    """Whether nobody gave a bound, so that the default one is used and said."""

    def __post_init__(self) -> None:
        columns = [title for name, aggregate in self.arrangement.aggregates for title in titles(name, aggregate)]
        if not columns:
            raise InvalidParameterError("Nothing is asked.", fix="write for example agg(visits=dp.count()).")
        checked_names(list(self.by), columns)

    def share(self, **weights: Number) -> "Query":
        """The same question with more of the budget for some columns: ``share(visits=2)`` counts visits twice."""
        names = [name for name, _ in self.arrangement.aggregates]
        for name, weight in weights.items():
            if name not in names:
                raise InvalidParameterError(
                    f"There is no column {name!r:.60} to give a larger share to.",
                    fix=f"choose among {', '.join(names)}.",
                )
            in_range(f"the share of {name}", weight, 1e-6, 10**6)
        return replace(self, weights={**self.weights, **weights})

    def plan(self, *, epsilon: Number, delta: Number | None = None) -> Plan:
        """Which measurements would be made, with which noise, and what the engine would be asked for. Free.

        The statements are made of public facts alone; how the engine goes about them is known to its owner.
        """
        planned = self._planned(epsilon, delta)
        return replace(planned, statements=statements(planned, self.rows, self.by, self.bound, self.keys))

    def _planned(self, epsilon: Number, delta: Number | None) -> Plan:
        if self.keys is None and not delta:
            raise keys_need_delta(self.ledger.remaining().delta)
        return plan(
            self.arrangement,
            self.bound,
            spendable(epsilon, delta),
            replace=self.ledger.unit.adjacency is Adjacency.REPLACE,
            keys=None if self.keys is None else self.keys.number,
            weights=self.weights,
        )

    def preview(self, *, epsilon: Number, delta: Number | None = None) -> Preview:
        """How exact each column would be and what it would cost. Free: no row is looked at."""
        planned = self._planned(epsilon, delta)
        columns = [
            column for name, aggregate in self.arrangement.aggregates for column in _foreseen(name, aggregate, planned)
        ]
        return previewed(
            columns,
            planned.event,
            question=self.question,
            asked=spendable(epsilon, delta),
            replan=lambda other: self._planned(epsilon, other).event,
            ledger=self.ledger,
            rules=self._rules(planned),
        )

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Released:
        """Charge, compute, add noise, and show.

        Args:
            epsilon: what the release may cost.
            delta: likewise; without it only mechanisms that need none are used.
            purpose: why, in one line; the question itself by default.
            who: by whom; the account's name by default.
            request: a name for this request. If an answer to it was recorded, that answer is returned again, free.
            bits: the source of random bits; the system's by default.
            progress: called now and then with the percentage that the engine has done.
        """
        asked, planned = spendable(epsilon, delta, self.ledger), self._planned(epsilon, delta)
        why = allowed(purpose, self.ledger.purposes, self.question)
        drawn_from = bits_of(bits)
        words = self._rules(planned)
        rehearse(self.rows, self.by, texts(self.arrangement.aggregates))

        def compute(receipt: Receipt) -> Released:
            run = Run(planned, self.rows, self.by, self.bound, drawn_from, RowSampler.drawn(drawn_from), progress)
            keys, columns, found = run.answer(self.keys)
            return answered(keys.table, columns, self.question, receipt, (*words, *found), asked=asked)

        return perform(
            planned.event,
            compute,
            ledger=self.ledger,
            purpose=why,
            description=self.question[:400],
            written=to_record,
            read=from_record,
            facts=self._facts(words),
            who=who,
            request=request,
            asked=asked,
            replan=lambda other: self._planned(epsilon, other).event,
        )

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        return question(self.rows, self.by, self.arrangement.aggregates)

    def _facts(self, words: tuple[str, ...]) -> str:
        """Everything public that the answer depends on."""
        keys = "found" if self.keys is None else repr(self.keys.table.to_pydict())
        return repr((self.rows.facts(), words, self.by, keys, self.bound, self.arrangement.aggregates))

    def __repr__(self) -> str:
        return f"Query({self.question})"

    def _rules(self, planned: Plan) -> tuple[str, ...]:
        return rules(self.rows, self.bound, self.keys, planned, proposed=self.proposed)


def _foreseen(name: str, aggregate: Aggregate, planned: Plan) -> list[PreviewColumn]:
    """What is known about a column beforehand."""
    if isinstance(aggregate, Statistic):
        return [_statistic(name, aggregate, planned)]
    mechanism = planned.others[name]
    if isinstance(mechanism, Quantiles):
        rank = mechanism.interval(0.95) / planned.grid
        way = "tree of noisy sums" if mechanism.method == "tree" else "exponential mechanism"
        how = f"{way}; at most {rank:.4g} rows from the true rank, with 95 % probability"
        return [PreviewColumn(title, how, rank=rank) for title in titles(name, aggregate)]
    grid = {Distinct: 1, Units: planned.people_grid}.get(type(aggregate), planned.grid)
    error = float(np.sqrt(mechanism.variance)) / grid
    return [PreviewColumn(title, mechanism.words, error, mechanism.width * error) for title in titles(name, aggregate)]


def _statistic(name: str, statistic: Statistic, planned: Plan) -> PreviewColumn:
    if any(argument.find for argument in statistic.arguments):
        return PreviewColumn(name, "how exact it will be depends on the bounds that are found")
    place = planned.arrangement.source[name]
    split, noise = planned.arrangement.splits[place], planned.splits[place]
    by_size, how = [], ""
    for size in SIZES:
        noisy = Noisy(expected(split, size), noise.variance / planned.grid**2, noise.width, noise.words)
        column = read(name, statistic, split, noisy)
        how = column.how
        by_size.append((size, float(column.errors[0]), float((column.high - column.low)[0] / 2)))
    if statistic.operation in {"count", "sum"}:
        return PreviewColumn(name, how, by_size[0][1], by_size[0][2])
    return PreviewColumn(name, how, by_size=tuple(by_size))
