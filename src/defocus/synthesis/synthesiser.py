"""Synthetic data from a private table: what is asked for, what it would cost, and one charge for all of it."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from defocus.answers import Effect, Preview, PreviewColumn, Released, Rule
from defocus.answers.rules import rules_of
from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import (
    InvalidParameterError,
    Number,
    QualityNotReachedError,
    UnknownColumnError,
    WrongKindError,
    choice,
    count,
    probability,
)
from defocus.ledger import Ledger, Receipt
from defocus.machine_code import compiler
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed
from defocus.synthesis.domains import Domain, domain_of
from defocus.synthesis.generator import HOLDS, Generator, conditioned
from defocus.synthesis.measurement import STEPS, Spending, column_shares, pairs_of
from defocus.synthesis.released import measurements
from defocus.synthesis.targets import Noisy
from defocus.synthesis.views import Plan, View, bound_of, planned
from defocus.tables import Table
from defocus.tables.consent import consented_purpose
from defocus.tables.execution import rehearse
from defocus.tables.expressions import expression
from defocus.tables.parts import part_rules
from defocus.tables.rows import Rows

__all__ = ["METHODS", "Synthesiser", "ready", "synthesise"]

METHODS: Mapping[str, Spending] = {
    "marginals": Spending(),
    "bayesian network": Spending(columns=0.2, scores=0.08, rounds=(0.7,), tree=True),
    "independent": Spending(columns=0.98, scores=0.0, rounds=()),
}
"""The models of a table, by what is measured for them."""

_PLACE = "defocus place"
_MOST_TOGETHER = 3
_NAMED = 8
"""So many pairs are named at most."""
_COMBINATIONS = 1 << 20
"""For so many combinations of codes it is known beforehand which a constraint allows."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Synthesiser:
    """What synthetic data are asked for. :meth:`preview` is free; :meth:`fit` charges once and makes a generator.

    All columns are counted alone, then those pairs of columns that the model has most wrong, in two rounds. Records
    are fitted to all noisy counts (:mod:`defocus.synthesis.field`). A part of the budget is held back, and measures how
    good the result is.

    Guarantee:
        One charge, before the engine is asked. Everything is decided by public facts and noisy counts; one row more
        changes no column, type or rule. See :mod:`defocus.synthesis.measurement`.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> table = examples.people()
    >>> wanted = dp.synthesis.Synthesiser(table, columns={"age": (0, 99)})
    >>> wanted.question
    'synthetic rows of age, smoker'
    >>> table.close()
    """

    table: Table
    columns: Mapping[str, Any] = field(default_factory=dict)
    """What each column may hold, where the table does not say: see :func:`synthesise`."""
    only: Sequence[str] | None = None
    constraints: Sequence[str] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    method: str = "marginals"
    focus: Sequence[str | Sequence[str]] = ()
    released: Sequence[Released] = ()
    predict: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.table, Table):
            raise InvalidParameterError(
                f"Synthetic data are made from a table, not from {type(self.table).__name__}.",
                fix="open it first: table = dp.open(…).",
            )
        if self.table.consent is not None:
            consented_purpose(None)
        choice("method", self.method, METHODS)
        for what, said in (("constraints", self.constraints), ("only", self.only), ("focus", self.focus)):
            if isinstance(said, str):
                raise InvalidParameterError(f"{what} is a text.", fix=f'write a list: {what}=["…"].')
        schema = self.table.schema
        for name in (*self.columns, *self.computed, *(self.only or ()), *((self.predict,) if self.predict else ())):
            if name not in schema:
                raise UnknownColumnError(str(name), schema.names)
        if self.rows is not None:
            count("rows", self.rows)
        if not self.domains:
            raise InvalidParameterError("There is no column to synthesise.", fix="name some with only=[…].")
        _ = self._sets, self._before, self._target
        self._check_conditions()

    def __repr__(self) -> str:
        return f"Synthesiser({self.question})"

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        steps = f"; {'; '.join(self._rows.words)}" if self._rows.words else ""
        return f"synthetic rows of {', '.join(self.order)}{steps}"

    @property
    def order(self) -> tuple[str, ...]:
        """The columns of the synthetic table: all but the one that names people, unless told otherwise."""
        names = [name for name in self.table.schema.names if name != self._rows.unit]
        if self.only is not None:
            names = [name for name in names if name in self.only]
        return tuple(name for name in names if self.table.schema[name].kind is not Kind.OTHER)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What each column that is modelled may hold."""
        schema = self.table.schema
        return tuple(
            domain_of(schema[name], self.columns.get(name), told=name in self.columns)
            for name in self.order
            if name not in self.computed
        )

    def preview(self, *, epsilon: Number, delta: Number | None = None, rows: int | None = None) -> Preview:
        """What it would cost and how exactly columns and pairs would be counted. Free: no row is looked at.

        Args:
            epsilon: the price.
            delta: the price; Gaussian noise needs one.
            rows: about how many rows there are, if that is public; then it is said which pairs can be resolved.
        """
        asked = spendable(epsilon, delta)
        (plan,), event = planned([self._view()], [1.0], asked)
        return previewed(
            self._expected(plan),
            event,
            question=self.question,
            asked=asked,
            replan=lambda other: self._event(epsilon, other),
            ledger=self._book,
            rules=(*self._rules(), *(() if rows is None else self._resolved(plan, count("rows", rows)))),
        )

    def fit(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        accept: Number | None = None,
        accept_auc: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
    ) -> Generator:
        """Charge, count, add noise, and fit; parameters as for :func:`synthesise`."""
        (plan,), event = planned([self._view()], [1.0], spendable(epsilon, delta))
        asked = spendable(epsilon, delta, self._book)
        least = None if accept is None else float(probability("accept", accept, zero=False))
        wanted = None if accept_auc is None else float(probability("accept_auc", accept_auc, zero=False))
        if wanted is not None and self.predict is None:
            raise InvalidParameterError(
                "accept_auc needs a column to predict.", fix='name one of two values: predict="…".'
            )
        ready()
        drawn_from = bits_of(bits)
        rehearse(self._rows, self.order, ())
        view = replace(self._view(), allowed=self._allowed())

        def compute(receipt: Receipt) -> Generator:
            return self._generator(*view.fitted(plan, drawn_from), receipt, asked)

        made = perform(
            event,
            compute,
            ledger=self._book,
            purpose=self._book.purpose_of(purpose, self.question),
            description=self.question[:400],
            written=Generator.to_json,
            read=lambda written, receipt: replace(Generator.from_json(written, receipt), asked=asked),
            facts=self._facts(),
            who=who,
            request=request,
            asked=asked,
            replan=lambda other: self._event(epsilon, other),
            what="synthetic data",
        )
        if least is not None and made.distance > least:
            entry = 0 if made.receipt is None else made.receipt.sequence
            raise QualityNotReachedError(made, charge=entry, distance=made.distance, wanted=least)
        if wanted is not None and made.prediction is not None and made.prediction.auc < wanted:
            entry = 0 if made.receipt is None else made.receipt.sequence
            raise QualityNotReachedError(made, charge=entry, auc=made.prediction.auc, wanted=wanted)
        return made

    @property
    def _rows(self) -> Rows:
        return self.table.rows

    @property
    def _book(self) -> Ledger:
        return self.table.ledger.about(*self._rows.charged)

    def _facts(self) -> str:
        usual = (self._rows.facts(), self.domains, bound_of(self.table), self.constraints, self.computed, self.rows)
        before = tuple(answer.receipt.hash for answer in self.released)
        chosen = (self.method, self._sets, *before, *(() if self.predict is None else (("predict", self.predict),)))
        return repr(usual if chosen == ("marginals", ()) else (*usual, *chosen))

    @property
    def _sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of columns that must be good, by number."""
        names = [domain.name for domain in self.domains]
        sets = []
        for said in self.focus:
            own = (said,) if isinstance(said, str) else tuple(dict.fromkeys(said))
            for name in own:
                if name not in names:
                    raise UnknownColumnError(str(name), names)
            if not 1 <= len(own) <= _MOST_TOGETHER:
                raise InvalidParameterError(
                    f"A set of {len(own)} columns cannot be in focus.", fix=f"name one to {_MOST_TOGETHER} columns."
                )
            sets.append(tuple(sorted(map(names.index, own))))
        target = self._target
        if target is not None:
            sets += [(min(i, target), max(i, target)) for i in range(len(names)) if i != target]
        return tuple(dict.fromkeys(sets))

    @property
    def _target(self) -> int | None:
        """The column that is to be predicted, by number."""
        if self.predict is None:
            return None
        domains = self.domains
        places = [i for i, domain in enumerate(domains) if domain.name == self.predict]
        if not places or len(domains[places[0]].values) != 2 or domains[places[0]].other or len(domains) < 2:
            raise InvalidParameterError(
                f"{self.predict!r:.60} cannot be predicted.",
                fix="name a column of two declared values or of truth values, beside others; one that is not computed.",
            )
        return places[0]

    @property
    def _spending(self) -> Spending:
        spending = METHODS[self.method]
        return spending if self.predict is None else spending.with_prediction()

    @property
    def _before(self) -> dict[tuple[int, ...], list[Noisy]]:
        """What answers that were released before say about sets of columns."""
        return measurements(self.released, self.table, self.domains)

    def _view(self) -> View:
        return View(
            rows=self._rows,
            unit=self._book.unit,
            bound=bound_of(self.table),
            domains=self.domains,
            spending=self._spending,
            target=self._target,
            records=self.rows,
            focus=self._sets,
            released=self._before,
        )

    def _event(self, epsilon: Number, delta: Number | None) -> Event:
        return planned([self._view()], [1.0], spendable(epsilon, delta))[1]

    def _generator(self, domains: Sequence[Domain], made: Any, receipt: Receipt, asked: Budget) -> Generator:
        return Generator(
            domains=tuple(domains),
            order=self.order,
            fitted=made,
            question=self.question,
            rules=tuple(map(str, self._rules())),
            constraints=tuple(self.constraints),
            computed=dict(self.computed),
            receipt=receipt,
            asked=asked,
            together=self._view().together,
        )

    def _check_conditions(self) -> None:
        """Refuse constraints and computed columns that cannot be read, or that make a column of another kind."""
        with conditioned(self._modelled, self.computed, self.constraints) as (schema, _):
            for name in self.computed:
                own, told = schema[name].kind, self.table.schema[name].kind
                if own is not told:
                    raise WrongKindError(
                        f"What {name!r:.60} is computed as is of kind {own}, but the column is of kind {told}.",
                        fix=f"cast it to {told}.",
                    )

    @property
    def _modelled(self) -> Schema:
        return Schema(Column(domain.name, domain.kind) for domain in self.domains)

    def _allowed(self) -> dict[tuple[int, ...], NDArray[np.bool_]]:
        """For constraints on two columns, which combinations of codes they allow, as far as can be told.

        A cell that holds several values is tried at its ends, and is allowed if one of them is.
        """
        names = [domain.name for domain in self.domains]
        known: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        with conditioned(self._modelled, self.computed, self.constraints) as (schema, _):
            read = [sorted(expression(text, schema).columns) for text in self.constraints]
        for text, used in zip(self.constraints, read, strict=True):
            own = sorted(names.index(name) for name in used if name in names)
            sizes = [self.domains[i].size for i in own]
            settled = len(own) == len(used) == 2 and not any(self.domains[i].found for i in own)
            if not settled or math.prod(sizes) > _COMBINATIONS:
                continue
            found = np.zeros(math.prod(sizes), np.bool_)
            for ends in itertools.product((0.0, 1.0), repeat=2):
                found |= self._holds(text, own, np.indices(sizes).reshape(2, -1), ends)
            pair = (own[0], own[1])
            known[pair] = known.get(pair, np.ones(sizes, np.bool_)) & found.reshape(sizes)
        return known

    def _holds(self, text: str, own: Sequence[int], codes: Any, ends: Sequence[float]) -> NDArray[np.bool_]:
        """For each combination of codes whether a constraint holds, at these ends of their cells."""
        domains = [self.domains[i] for i in own]
        schema = Schema([*(Column(one.name, one.kind) for one in domains), Column(_PLACE, Kind.INTEGER)])
        columns = {
            one.name: one.decode(each, np.full(len(each), end))
            for one, each, end in zip(domains, codes, ends, strict=True)
        }
        with conditioned(schema, {}, [text]) as (_, checked):
            table = checked(pa.table({**columns, _PLACE: pa.array(np.arange(codes.shape[1]))}))
        held = np.zeros(codes.shape[1], np.bool_)
        held[table[_PLACE].to_numpy()] = table[HOLDS].to_numpy()
        return held

    def _expected(self, plan: Plan) -> list[PreviewColumn]:
        """The noise of each column's counts, and of pairs if all of them were measured."""
        sizes = column_shares([each.size for each in self.domains], [each.ordered for each in self.domains])
        alone, *_ = self._spending.deltas()
        grid, columns = self._view().grid, []
        for domain, share in zip(self.domains, sizes / sizes.sum(), strict=True):
            error = plan.sigma / (alone * math.sqrt(share) * grid)
            what = "values that are found" if domain.found else f"{domain.size} codes"
            columns.append(PreviewColumn(domain.name, f"counts of {what}, Gaussian noise", error, 1.96 * error))
        if len(self.domains) > 1 and self._spending.rounds:
            error = self._pair_error(plan)
            how = "counts of pairs of columns, if all were measured alike"
            columns.append(PreviewColumn("pairs", how, error, 1.96 * error))
        return columns

    def _pair_error(self, plan: Plan) -> float:
        part = math.sqrt(sum(self._spending.rounds)) * STEPS
        return plan.sigma * math.sqrt(len(pairs_of(len(self.domains)))) / (part * self._view().grid)

    def _resolved(self, plan: Plan, rows: int) -> tuple[Rule, ...]:
        """Which pairs noise leaves within five percent, for so many rows."""
        pairs = pairs_of(len(self.domains))
        if not self._spending.rounds or len(self.domains) == 1:
            return ()
        cells = math.floor(0.05 * rows / (self._pair_error(plan) * math.sqrt(2 / math.pi) / 2))
        lost = [pair for pair in pairs if math.prod(min(32, self.domains[i].size) for i in pair) > cells]
        fine = f"{len(pairs) - len(lost)} of {len(pairs)}"
        said = [f"with {rows} rows, pairs of up to {cells} cells are within 5 % by noise, if all are measured: {fine}"]
        if lost:
            names = [" × ".join(self.domains[i].name[:40] for i in pair) for pair in lost[:_NAMED]]
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            said.append(f"coarser than that, or not at all: {', '.join(names)}{more}")
        return tuple(Rule(one, Effect.TOLD) for one in said)

    def _rules(self) -> tuple[Rule, ...]:
        said: list[str] = [*part_rules(self._rows)]
        bound = bound_of(self.table)
        if bound is not None:
            said.append(Rule(f"one {self._rows.unit} counts with at most {bound}", Effect.BOUND))
            said.append(f"the column {self._rows.unit}, which names people, is left out; rows are independent")
        if self.method != "marginals":
            said.append(f"the model is: {self.method}")
        if self._sets:
            names = [" × ".join(self.domains[i].name for i in own) for own in self._sets]
            said.append(f"what must be good is measured in any case, and alone is checked: {', '.join(names)}")
        said.append("values outside of declared bounds count as the nearest; values that are not declared are missing")
        if self.predict is not None:
            said.append(f"budget is held back to measure how well {self.predict} is predicted")
        if self.released:
            said.append(f"{len(self.released)} answers that were released before are used, free of charge")
        if any(domain.found for domain in self.domains):
            said.append('values that few people have are "other"')
        return rules_of(said)


def ready() -> None:
    """Refuse where loops cannot be compiled, before anything is charged."""
    compiler("Synthetic data", extra="synth")


def synthesise(
    table: Table,
    *,
    epsilon: Number,
    delta: Number | None = None,
    columns: Mapping[str, Any] | None = None,
    only: Sequence[str] | None = None,
    constraints: Sequence[str] = (),
    computed: Mapping[str, str] | None = None,
    rows: int | None = None,
    method: str = "marginals",
    focus: Sequence[str | Sequence[str]] = (),
    released: Sequence[Released] = (),
    predict: str | None = None,
    accept: Number | None = None,
    accept_auc: Number | None = None,
    purpose: str | None = None,
    who: str | None = None,
    request: str | None = None,
    bits: Bits | None = None,
) -> Generator:
    """Synthetic rows of a private table, for one charge.

    Args:
        table: what ``dp.open`` returned.
        epsilon: the price.
        delta: the price; Gaussian noise needs one.
        columns: what columns may hold, beside what the table declares: a list of values; bounds ``(low, high)`` of
            numbers, days or moments; bounds with the distance of neighbouring values, ``(0, 100, 0.5)``; None to find
            the frequent values of a text privately, all others being ``"other"``.
        only: the columns to synthesise; all by default.
        constraints: conditions that every synthetic row meets: ``["age >= 15 OR married = 'no'"]``.
        computed: columns that follow from others: ``{"decade": "age // 10"}``. They are computed, not measured.
        rows: how many records to fit; as many as there are rows, and at most 400 000, by default.
        method: the model: "marginals", or, to compare with, "bayesian network" (a tree of pairs) or "independent".
        focus: what must be good, ``["age", ("age", "ward")]``: sets of one to three columns. The pairs in them are
            measured in any case and with more budget, and what is held back checks them alone.
        released: answers that this ledger has paid for: counts of all rows by columns, cubes, and such counts by SQL.
            They are used with their errors, free of charge. Each row must be a unit.
        predict: a column of two values that models are to predict: its pairs with all others are in focus, and a part
            of the budget measures how well a logistic model of synthetic rows predicts it in private ones.
        accept: the largest mean total variation distance to accept, of pairs or of what is in focus; above it, what was
            made and paid for is in the error.
        accept_auc: the least area under the curve of ``predict`` to accept.
        purpose: why, in one line.
        who: by whom; the account's name by default.
        request: a name under which the ledger keeps the result, to be recalled free of charge.
        bits: where randomness comes from.

    >>> from defocus import examples
    >>> table = examples.people()
    >>> made = synthesise(table, epsilon=2, delta=1e-6, columns={"age": (0, 99)})
    >>> 1900 < made.sample().num_rows < 2100, made.distance < 0.1
    (True, True)
    >>> table.close()
    """
    wanted = Synthesiser(
        table, columns or {}, only, constraints, computed or {}, rows, method, focus, released, predict
    )
    return wanted.fit(
        epsilon=epsilon,
        delta=delta,
        accept=accept,
        accept_auc=accept_auc,
        purpose=purpose,
        who=who,
        request=request,
        bits=bits,
    )
