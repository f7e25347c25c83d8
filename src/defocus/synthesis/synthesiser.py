"""Synthetic data from a private table: what is asked for, what it would cost, and one charge for all of it."""

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from defocus.answers import Effect, Preview, PreviewColumn, Rule
from defocus.answers.rules import rules_of
from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import (
    InvalidParameterError,
    MissingExtraError,
    NotDeclaredError,
    Number,
    QualityNotReachedError,
    UnknownColumnError,
    WrongKindError,
    count,
    probability,
)
from defocus.ledger import Ledger, Receipt
from defocus.ledger.declarations import allowed
from defocus.mechanisms import PartitionSelection
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import Event
from defocus.privacy.units import Adjacency
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed
from defocus.synthesis.counting import counter_of
from defocus.synthesis.domains import Domain, domain_of
from defocus.synthesis.generator import HOLDS, Generator, conditioned, seeded
from defocus.synthesis.measurement import STEPS, Setup, Spending, column_shares, events, fitted, pairs_of
from defocus.tables import Table
from defocus.tables.contribution import DEFAULT_ROWS, Bound
from defocus.tables.execution import rehearse
from defocus.tables.expressions import expression
from defocus.tables.keys import EVERYTHING
from defocus.tables.measurement import Measuring
from defocus.tables.parts import part_rules
from defocus.tables.rows import Rows
from defocus.tables.weights import Groups, RowSampler

__all__ = ["Synthesiser", "synthesise"]

_GRID = 1 << 10
"""What a full row weighs, where people may have several."""
_FINDING = 0.1
"""Which part of epsilon finds the values of columns that are not declared; half of delta does."""
_PLACE = "defocus place"
_COMBINATIONS = 1 << 20
"""For so many combinations of codes it is known beforehand which a constraint allows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The noise of all stages, and what they owe together."""

    sigma: float
    weight: int
    grid: int
    selection: PartitionSelection | None
    event: Event


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

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"age": [30, 40], "smoker": [True, False]})
    >>> table = dp.open(people, unit=dp.rows(), budget=dp.Budget(3, 1e-6), ledger=f"{home.name}/a", name="people")
    >>> wanted = dp.synthesis.Synthesiser(table, columns={"age": (0, 99)})
    >>> wanted.question
    'synthetic rows of age, smoker'
    >>> table.close(); home.cleanup()
    """

    table: Table
    columns: Mapping[str, Any] = field(default_factory=dict)
    """What each column may hold, where the table does not say: see :func:`synthesise`."""
    only: Sequence[str] | None = None
    constraints: Sequence[str] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.table, Table):
            raise InvalidParameterError(
                f"Synthetic data are made from a table, not from {type(self.table).__name__}.",
                fix="open it first: table = dp.open(…).",
            )
        for what, said in (("constraints", self.constraints), ("only", self.only)):
            if isinstance(said, str):
                raise InvalidParameterError(f"{what} is a text.", fix=f'write a list: {what}=["…"].')
        schema = self.table.schema
        for name in (*self.columns, *self.computed, *(self.only or ())):
            if name not in schema:
                raise UnknownColumnError(str(name), schema.names)
        if self.rows is not None:
            count("rows", self.rows)
        if not self.domains:
            raise InvalidParameterError("There is no column to synthesise.", fix="name some with only=[…].")
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
        plan, asked = self._plan(epsilon, delta), spendable(epsilon, delta)
        return previewed(
            self._expected(plan),
            plan.event,
            question=self.question,
            asked=asked,
            replan=lambda other: self._plan(epsilon, other).event,
            ledger=self._book,
            rules=(*self._rules(), *(() if rows is None else self._resolved(plan, count("rows", rows)))),
        )

    def fit(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        accept: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
    ) -> Generator:
        """Charge, count, add noise, and fit; parameters as for :func:`synthesise`."""
        plan, asked = self._plan(epsilon, delta), spendable(epsilon, delta, self._book)
        least = None if accept is None else float(probability("accept", accept, zero=False))
        _ready()
        drawn_from = bits_of(bits)
        rehearse(self._rows, self.order, ())
        known = self._allowed()

        def compute(receipt: Receipt) -> Generator:
            chance = RowSampler.drawn(drawn_from)
            with self._rows.engine.snapshot():
                domains = self._found(plan, chance, drawn_from)
                counter = counter_of(self._rows, domains, bound=self._bound, grid=plan.grid, chance=chance)
                setup = self._setup(plan, domains, known)
                made = fitted(setup, counter.counts, drawn_from, seeded(drawn_from))
            return self._generator(domains, made, receipt, asked)

        made = perform(
            plan.event,
            compute,
            ledger=self._book,
            purpose=allowed(purpose, self._book.purposes, self.question),
            description=self.question[:400],
            written=Generator.to_json,
            read=lambda written, receipt: replace(Generator.from_json(written, receipt), asked=asked),
            facts=repr((self._rows.facts(), self.domains, self._bound, self.constraints, self.computed, self.rows)),
            who=who,
            request=request,
            asked=asked,
            replan=lambda other: self._plan(epsilon, other).event,
            what="synthetic data",
        )
        if least is not None and made.distance > least:
            entry = 0 if made.receipt is None else made.receipt.sequence
            raise QualityNotReachedError(made, charge=entry, distance=made.distance, wanted=least)
        return made

    @property
    def _rows(self) -> Rows:
        return self.table.rows

    @property
    def _book(self) -> Ledger:
        return self.table.ledger.about(*self._rows.charged)

    @property
    def _bound(self) -> Bound | None:
        """What one person may contribute; nothing where each row is a unit."""
        if self._rows.single:
            return Bound(rows=1)
        if self._rows.unit is None:
            return None
        bound = self.table.contribution
        if bound is None:
            return Bound(rows=DEFAULT_ROWS)
        if bound.find:
            raise InvalidParameterError(
                "Synthetic data need a bound that is known.", fix="give it with table.bound(rows=…)."
            )
        return bound

    def _plan(self, epsilon: Number, delta: Number | None) -> _Plan:
        asked = spendable(epsilon, delta)
        if not asked.delta or asked.epsilon is None:
            raise NotDeclaredError(
                "Synthetic data need a delta, since all noise is Gaussian.",
                fix="add one, for example delta=1e-6, below one over the number of people.",
            )
        bound, unit = self._bound, self._book.unit
        grid = 1 if bound is None or self._rows.single else _GRID
        weight = grid * ((unit.per_person or 1) if bound is None else bound.total)
        if unit.adjacency is Adjacency.REPLACE:
            weight *= 2
        found, selection = sum(domain.found for domain in self.domains), None
        owed: tuple[Event, ...] = ()
        if found:
            selection = PartitionSelection(
                epsilon=_FINDING * float(asked.epsilon) / found,
                delta=0.5 * float(asked.delta) / found,
                groups=1 if bound is None else bound.keys_of,
                replace=unit.adjacency is Adjacency.REPLACE,
            )
            owed = (found * selection.event,)

        def stages(ratio: float) -> Event:
            return reduce(operator.add, (*owed, *events(Spending(), ratio * STEPS * weight, weight)))

        ratio = calibrate(stages, Budget(asked.epsilon, asked.delta), method="pld")
        return _Plan(sigma=ratio * STEPS * weight, weight=weight, grid=grid, selection=selection, event=stages(ratio))

    def _setup(
        self, plan: _Plan, domains: Sequence[Domain], known: Mapping[tuple[int, ...], NDArray[np.bool_]]
    ) -> Setup:
        return Setup(
            sizes=tuple(domain.size for domain in domains),
            ordered=tuple(domain.ordered for domain in domains),
            missing=(True,) * len(domains),
            sigma=plan.sigma,
            weight=plan.weight,
            grid=plan.grid,
            spending=Spending(),
            allowed=known,
            records=self.rows,
        )

    def _found(self, plan: _Plan, chance: RowSampler, bits: Bits) -> tuple[Domain, ...]:
        """The domains with the values that enough people have, where they are to be found."""
        domains = []
        for domain in self.domains:
            if domain.found and plan.selection is not None:
                groups = Groups(self._rows, (domain.name,), EVERYTHING, None, self._bound)
                table = Measuring(groups, plan.grid, chance.of(domain.name)).found_keys(plan.selection, bits)
                values = sorted(str(value) for value in table["k0"].to_pylist() if value is not None)
                domains.append(replace(domain, values=tuple(values)))
            else:
                domains.append(domain)
        return tuple(domains)

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

    def _expected(self, plan: _Plan) -> list[PreviewColumn]:
        """The noise of each column's counts, and of pairs if all of them were measured."""
        sizes = column_shares([each.size for each in self.domains], [each.ordered for each in self.domains])
        spending = Spending()
        alone, *_ = spending.deltas()
        columns = []
        for domain, share in zip(self.domains, sizes / sizes.sum(), strict=True):
            error = plan.sigma / (alone * math.sqrt(share) * plan.grid)
            what = "values that are found" if domain.found else f"{domain.size} codes"
            columns.append(PreviewColumn(domain.name, f"counts of {what}, Gaussian noise", error, 1.96 * error))
        error = self._pair_error(plan)
        if len(self.domains) > 1:
            how = "counts of pairs of columns, if all were measured alike"
            columns.append(PreviewColumn("pairs", how, error, 1.96 * error))
        return columns

    def _pair_error(self, plan: _Plan) -> float:
        part = math.sqrt(sum(Spending().rounds)) * STEPS
        return plan.sigma * math.sqrt(len(pairs_of(len(self.domains)))) / (part * plan.grid)

    def _resolved(self, plan: _Plan, rows: int) -> tuple[Rule, ...]:
        """Which pairs noise leaves within five percent, for so many rows."""
        error = self._pair_error(plan) * math.sqrt(2 / math.pi) / 2
        cells = math.floor(0.05 * rows / error)
        fine = [
            pair
            for pair in pairs_of(len(self.domains))
            if math.prod(min(32, self.domains[i].size) for i in pair) <= cells
        ]
        said = (
            f"with {rows} rows, pairs of up to {cells} cells are counted within 5 % by noise, if all are measured:"
            f" {len(fine)} of {len(pairs_of(len(self.domains)))}"
        )
        return (Rule(said, Effect.TOLD),)

    def _rules(self) -> tuple[Rule, ...]:
        said: list[str] = [*part_rules(self._rows)]
        bound = self._bound
        if bound is not None:
            said.append(Rule(f"one {self._rows.unit} counts with at most {bound}", Effect.BOUND))
            said.append(f"the column {self._rows.unit}, which names people, is left out; rows are independent")
        said.append("values outside of declared bounds count as the nearest; values that are not declared are missing")
        if any(domain.found for domain in self.domains):
            said.append('values that few people have are "other"')
        return rules_of(said)


def _ready() -> None:
    """Refuse where loops cannot be compiled, before anything is charged."""
    try:
        import_module("numba")
    except ImportError as error:
        raise MissingExtraError("Synthetic data", package="numba", extra="synth") from error


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
    accept: Number | None = None,
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
        accept: the largest mean total variation distance of pairs to accept; above it, what was made and paid for is in
            the error.
        purpose: why, in one line.
        who: by whom; the account's name by default.
        request: a name under which the ledger keeps the result, to be recalled free of charge.
        bits: where randomness comes from.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"age": [20 + i % 50 for i in range(2000)], "smoker": [i % 50 < 10 for i in range(2000)]})
    >>> table = dp.open(people, unit=dp.rows(), budget=dp.Budget(3, 1e-6), ledger=f"{home.name}/a", name="people")
    >>> made = synthesise(table, epsilon=2, delta=1e-6, columns={"age": (0, 99)})
    >>> 1900 < made.sample().num_rows < 2100, made.distance < 0.1
    (True, True)
    >>> table.close(); home.cleanup()
    """
    wanted = Synthesiser(table, columns or {}, only, constraints, computed or {}, rows)
    return wanted.fit(epsilon=epsilon, delta=delta, accept=accept, purpose=purpose, who=who, request=request, bits=bits)
