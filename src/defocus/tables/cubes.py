"""Tables of counts over many sets of columns at once, measured together so that they agree and err least."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus import workloads
from defocus.answers import AnswerColumn, Effect, Preview, PreviewColumn, Released, Rule, Tails
from defocus.answers.rules import rules_of
from defocus.engines.schema import Column
from defocus.errors import InvalidParameterError, NotDeclaredError, Number, whole
from defocus.ledger import Ledger, PlannedNoise, Receipt
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed
from defocus.tables.answers import answered, from_record, to_record
from defocus.tables.contribution import Bound
from defocus.tables.execution import rehearse
from defocus.tables.grouping_sets import GroupingSets, Layout
from defocus.tables.keys import Keys, declared_keys
from defocus.tables.measurement import Measuring
from defocus.tables.parts import part_rules
from defocus.tables.rows import Rows
from defocus.tables.splits import PRESENCE
from defocus.tables.weights import RowSampler, published

__all__ = ["Cube"]

_GRID = 1 << 10
"""What a full row weighs; the strategy needs the other bits."""
_CELLS = 1 << 22
_ROWS = 1 << 34
"""A public bound on the rows of any table."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """The counts of all combinations of at most ``ways`` columns. Made by :meth:`~defocus.tables.Table.cube`.

    What is measured is planned by :mod:`defocus.workloads` for the least total error, under one sensitivity. All
    counts then come from one estimate, so those of a table add up to those of every smaller one.

    Guarantee:
        As for a query: one charge, before the engine is asked. One person weighs at most as much as the bound says
        in the cells of all columns together, and the strategy's sensitivity is multiplied by that.

    >>> from defocus import examples
    >>> visits = examples.visits()
    >>> cube = visits.declare(age=list(range(30, 70))).bound(rows=1).cube(["age"], ways=1)
    >>> cube.question
    'number of rows, by all combinations of at most 1 of age'
    >>> visits.close()
    """

    rows: Rows
    ledger: Ledger
    bound: Bound | None
    columns: tuple[Column, ...]
    ways: int

    def __post_init__(self) -> None:
        whole("ways", self.ways, at_least=1)
        if self._domain() is None:
            raise NotDeclaredError(
                "A cube needs the public domain of each column.",
                fix='declare them: declare(ward=["A", "B"]), or in the dataset file.',
            )
        if math.prod(self._sizes) > _CELLS:
            raise InvalidParameterError(
                f"These columns have more than {_CELLS} combinations.", fix="use fewer columns or coarser ones."
            )

    def __repr__(self) -> str:
        return f"Cube({self.question})"

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        names = ", ".join(column.name for column in self.columns)
        steps = f"; {'; '.join(self.rows.words)}" if self.rows.words else ""
        return f"number of rows, by all combinations of at most {min(self.ways, len(self.columns))} of {names}{steps}"

    def plan(self, *, epsilon: Number | None = None, delta: Number | None = None) -> workloads.Plan:
        """What is measured, how exact the counts will be, and what else could have been measured."""
        wanted = workloads.marginals(self._sizes, up_to=min(self.ways, len(self.columns)))
        weight = _GRID * ((self.ledger.unit.per_person or 1) if self.bound is None else self.bound.total)
        return workloads.plan(
            wanted, epsilon=epsilon, delta=delta, unit=self.ledger.unit, contribution=weight, total=_GRID * _ROWS
        )

    def preview(self, *, epsilon: Number | None = None, delta: Number | None = None) -> Preview:
        """How exact the counts would be and what they would cost. Free: no row is looked at."""
        planned = self.plan(epsilon=epsilon, delta=delta)
        half = float(np.sqrt(np.mean(np.square(planned.intervals(0.95))))) / _GRID
        column = PreviewColumn("count", _how(planned), planned.error.rmse / _GRID, half)
        return previewed(
            [column],
            planned.event,
            question=self.question,
            asked=spendable(epsilon, delta),
            replan=lambda other: self.plan(epsilon=epsilon, delta=other).event,
            ledger=self.ledger,
            rules=self._rules(),
        )

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
    ) -> Released:
        """Charge, compute, add noise, and show. The key ``all`` stands for all values of its column."""
        asked, planned = spendable(epsilon, delta, self.ledger), self.plan(epsilon=epsilon, delta=delta)
        drawn_from = bits_of(bits)
        rehearse(self.rows, [column.name for column in self.columns], ())

        def compute(receipt: Receipt) -> Released:
            noisy = planned.measurement.sample(self._histogram(RowSampler.drawn(drawn_from)), drawn_from)
            values = planned.measurement.strategy.answers(planned.workload, noisy) / _GRID
            errors, half = np.sqrt(planned.variances()) / _GRID, planned.intervals(0.95) / _GRID
            low, high, how = values - half, values + half, _how(planned)
            count = AnswerColumn("count", values, errors, low, high, integral=True, how=how, tails=Tails.LOG_CONCAVE)
            layout = self._layout(planned)
            keys, labels = layout.keys()
            rules, counts = (*self._rules(), *labels), (count.taken(layout.order()),)
            plan = (PlannedNoise("cube", planned.event),)
            return answered(keys, counts, self.question, receipt, rules, ordered=True, asked=asked, plan=plan)

        return perform(
            planned.event,
            compute,
            ledger=self.ledger,
            purpose=self.ledger.purpose_of(purpose, self.question),
            description=self.question[:400],
            written=to_record,
            read=from_record,
            facts=repr((self.rows.facts(), self.columns, self.ways, self.bound)),
            who=who,
            request=request,
            asked=asked,
            replan=lambda other: self.plan(epsilon=epsilon, delta=other).event,
        )

    def _histogram(self, chance: RowSampler) -> Any:
        keys = self._domain()
        assert keys is not None  # noqa: S101  # checked when the cube was made
        with published(self.rows, tuple(column.name for column in self.columns), keys, self.bound) as groups:
            return Measuring(groups, _GRID, chance).cells([PRESENCE])[0][:, 0]

    def _layout(self, planned: workloads.Plan) -> Layout:
        """The groups of all tables of counts."""
        marginals, keys = planned.workload, self._domain()
        assert isinstance(marginals, workloads.Marginals) and keys is not None  # noqa: PT018, S101  # what was planned
        return Layout(GroupingSets.placed([column.name for column in self.columns], marginals.sets()), keys)

    @property
    def _sizes(self) -> list[int]:
        return [keys.number for keys in self._domains()]

    def _domains(self) -> list[Keys]:
        domains = [declared_keys([column]) for column in self.columns]
        return [keys for keys in domains if keys is not None]

    def _domain(self) -> Keys | None:
        return declared_keys(self.columns)

    def _rules(self) -> tuple[Rule, ...]:
        said: list[str] = [*part_rules(self.rows)]
        if self.bound is not None:
            said.append(Rule(f"one {self.rows.unit} counts with at most {self.bound}", Effect.BOUND))
        left_out = "rows with other values than the declared ones are left out"
        return rules_of((*said, left_out))


def _how(planned: workloads.Plan) -> str:
    gain = planned.identity_error / planned.error.total
    return f"{planned.measurement.name}, {planned.noise} noise; cell by cell it would vary {gain:.3g} times as much"
