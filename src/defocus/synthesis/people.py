r"""People with many rows: persons, how many rows each has, and these rows in their order, for one charge.

Two views of the private rows are measured, each as a table of its own (:mod:`defocus.synthesis.views`).

*Persons*: one row for each person, with what is the person's own and the number of rows, up to the bound R.
*Steps*: one row for each row, with its columns, its place 1 … R among the person's rows, the columns of the row before
it (missing for the first one), and what is the person's own.

Synthetic persons are drawn from the model of the first view. Their rows are drawn one after the other from the model of
the second, given the person, the place and the row before: a Markov chain, by Gibbs sampling of the row's columns with
all others held.

Guarantee:
    In the first view a person is one row. In the second, places and rows before are computed from the person's own rows
    (:mod:`defocus.tables.person_features`), so a person who is added or removed changes no row of anybody else; their
    rows weigh at most R full rows together, by weights as in all tables: n > R rows weigh R/n each. So neighbours are
    as far apart in each view as :class:`~defocus.synthesis.views.View` says, and both views are one event.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from defocus.answers import Preview, PreviewColumn, export
from defocus.answers.rules import rules_of
from defocus.engines.schema import ARROW, Column, Kind, Schema
from defocus.errors import (
    InvalidParameterError,
    Number,
    QualityNotReachedError,
    UnknownColumnError,
    probability,
    whole,
)
from defocus.ledger import Ledger, Receipt
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed
from defocus.synthesis.domains import Domain, domain_of
from defocus.synthesis.field import MarkovField
from defocus.synthesis.generator import HOLDS, Generator, codes_within, conditioned, seeded
from defocus.synthesis.measurement import STEPS, Spending, pairs_of
from defocus.synthesis.noise_aware import hold
from defocus.synthesis.saving import saved
from defocus.synthesis.synthesiser import ready
from defocus.synthesis.views import View, bound_of, planned
from defocus.tables import Table
from defocus.tables.consent import consented_purpose
from defocus.tables.contribution import Bound
from defocus.tables.execution import rehearse

__all__ = ["PeopleGenerator", "PeopleSynthesiser", "synthesise_people"]

_FORMAT = "defocus synthetic people 1"
_PARTS = (0.25, 0.75)
"""Which part of the price goes to persons, and which to their rows."""
_ROWS, _PLACE, _BEFORE = "rows of the person", "place of the row", "before: "
_FIT, _SWEEPS, _TRIES = 80, 12, 20


@final
@dataclass(frozen=True, slots=True, eq=False)
class PeopleSynthesiser:
    """Synthetic people with all their rows, from a table in which a person has several. See :func:`synthesise_people`.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> visits = pa.table({"who": [1, 1, 2], "sex": ["f", "f", "m"], "day": [3, 5, 4], "sick": [True, True, False]})
    >>> how = {"unit": dp.user("who"), "budget": dp.Budget(3, 1e-6), "ledger": f"{home.name}/a", "name": "visits"}
    >>> table = dp.open(visits, columns={"sex": ["f", "m"], "day": (0, 30)}, **how).bound(rows=3)
    >>> dp.synthesis.PeopleSynthesiser(table, order="day", person=["sex"]).question
    'synthetic who with sex, each with up to 3 rows of day, sick by day'
    >>> table.close(); home.cleanup()
    """

    table: Table
    order: str
    """The column by which the rows of a person follow each other."""
    person: Sequence[str] = ()
    """Columns that are the person's own: the same in all of the person's rows."""
    persons: str | None = None
    """Another private table, which has these columns and also people without any row here."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    only: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.table.rows.unit is None or self.table.rows.single:
            raise InvalidParameterError(
                "Rows of people are made from a table in which a person may have several.",
                fix='open it with unit=dp.user("…"); leave out order= where each row is a person.',
            )
        if self.table.consent is not None:
            consented_purpose(None)
        if isinstance(self.person, str):
            raise InvalidParameterError("person is a text.", fix='write a list: person=["…"].')
        for name in (self.order, *self.person, *self.columns, *(self.only or ())):
            if name not in self._known:
                raise UnknownColumnError(str(name), tuple(self._known))
        if self.order not in self.row_names or not set(self.person) <= set(self._own.names):
            raise InvalidParameterError(
                "A column is either the person's own or one of the row, which the order is.",
                fix="name in person= what never changes, and in order= what does.",
            )
        for domain in (*self._person_domains, *self._row_domains):
            if domain.found:
                raise InvalidParameterError(
                    f"The values of {domain.name!r:.60} are to be found, which people with many rows cannot have yet.",
                    fix=f'declare them: columns={{"{domain.name:.40}": ["A", "B"]}}.',
                )

    def __repr__(self) -> str:
        return f"PeopleSynthesiser({self.question})"

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        own = f" with {', '.join(self.person)}" if self.person else ""
        rows = f"{self._bound.total} rows of {', '.join(self.row_names)} by {self.order}"
        steps = f"; {'; '.join(self.table.rows.words)}" if self.table.rows.words else ""
        return f"synthetic {self.key}{own}, each with up to {rows}{steps}"

    @property
    def key(self) -> str:
        """The column that names the person."""
        return str(self.table.rows.unit)

    @property
    def row_names(self) -> tuple[str, ...]:
        """The columns of the rows."""
        left_out = {self.key, *self.person}
        usable = (own.name for own in self.table.schema if own.kind is not Kind.OTHER and own.name not in left_out)
        return tuple(name for name in usable if self.only is None or name in self.only)

    def preview(self, *, epsilon: Number, delta: Number | None = None) -> Preview:
        """What it would cost, and the noise of pairs of columns of each view. Free: no row is looked at."""
        asked = spendable(epsilon, delta)
        views = self._views()
        plans, event = planned(views, _PARTS, asked)
        columns = []
        for name, view, plan in zip(("persons", "rows"), views, plans, strict=True):
            part = (sum(view.spending.rounds) ** 0.5) * STEPS
            error = plan.sigma * len(pairs_of(len(view.domains))) ** 0.5 / (part * view.grid)
            how = "counts of pairs of columns, if all were measured alike"
            columns.append(PreviewColumn(name, how, error, 1.96 * error))
        return previewed(
            columns,
            event,
            question=self.question,
            asked=asked,
            replan=lambda other: planned(views, _PARTS, spendable(epsilon, other))[1],
            ledger=self._book,
            rules=rules_of(self._rules()),
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
    ) -> "PeopleGenerator":
        """Charge once, count both views, add noise, and fit."""
        views = self._views()
        plans, event = planned(views, _PARTS, spendable(epsilon, delta))
        asked = spendable(epsilon, delta, self._book)
        least = None if accept is None else float(probability("accept", accept, zero=False))
        ready()
        chance = bits_of(bits)
        for view in views:
            rehearse(view.rows, [domain.name for domain in view.domains], ())

        def compute(receipt: Receipt) -> PeopleGenerator:
            persons, steps = (
                Generator(
                    domains=domains,
                    order=tuple(domain.name for domain in domains),
                    fitted=fitted,
                    question=self.question,
                    rules=self._rules(),
                    receipt=receipt,
                    asked=asked,
                    together=view.together,
                )
                for view, (domains, fitted) in (
                    (view, view.fitted(plan, chance)) for view, plan in zip(views, plans, strict=True)
                )
            )
            return PeopleGenerator(persons, steps, self.key, self.order, tuple(self.person), self.row_names)

        made = perform(
            event,
            compute,
            ledger=self._book,
            purpose=self._book.purpose_of(purpose, self.question),
            description=self.question[:400],
            written=PeopleGenerator.to_json,
            read=PeopleGenerator.from_json,
            facts=repr([(view.rows.facts(), view.domains, view.bound) for view in views]),
            who=who,
            request=request,
            asked=asked,
            replan=lambda other: planned(views, _PARTS, spendable(epsilon, other))[1],
            what="synthetic people",
        )
        if least is not None and made.distance > least:
            entry = 0 if made.receipt is None else made.receipt.sequence
            raise QualityNotReachedError(made, charge=entry, distance=made.distance, wanted=least)
        return made

    @property
    def _book(self) -> Ledger:
        """What is charged: of a table of persons all are counted, whichever part is asked about."""
        return self.table.ledger.about(*(self.table.rows.charged if self.persons is None else ()))

    @property
    def _bound(self) -> Bound:
        bound = bound_of(self.table)
        assert bound is not None  # noqa: S101  # there are people
        return bound

    @property
    def _own(self) -> Schema:
        """The schema of the table that has what is the person's own."""
        return self.table.schema if self.persons is None else self.table.other(self.persons).schema

    @property
    def _known(self) -> dict[str, Column]:
        return {own.name: own for own in (*self._own, *self.table.schema)}

    def _domain(self, name: str) -> Domain:
        return domain_of(self._known[name], self.columns.get(name), told=name in self.columns)

    @property
    def _person_domains(self) -> tuple[Domain, ...]:
        return tuple(map(self._domain, self.person))

    @property
    def _row_domains(self) -> tuple[Domain, ...]:
        return tuple(map(self._domain, self.row_names))

    def _views(self) -> tuple[View, View]:
        most, unit = self._bound.total, self._book.unit
        own, rows = self._person_domains, self._row_domains
        features = {name: f"ANY_VALUE({_quoted(name)})" for name in self.person}
        if self.persons is None:
            persons = self.table.per_person(**features, **{_ROWS: "COUNT(*)"})
            steps = self.table
        else:
            counted = self.table.per_person(**{_ROWS: "COUNT(*)"})
            persons = self.table.other(self.persons).per_person(**features).join(counted, on=self.key)
            steps = self.table.join(self.table.other(self.persons).per_person(**features), on=self.key)
        number = f"LEAST(COALESCE({_quoted(_ROWS)}, 0), {most})"
        persons = persons.derive(**{_PLACE: number})
        window = f"OVER (ORDER BY {_quoted(self.order)})"
        before = {_BEFORE + one.name: f"LAG({_quoted(one.name)}) {window}" for one in rows}
        steps = steps.derive(**{_PLACE: f"ROW_NUMBER() {window}"}, **before)
        places = Domain(_PLACE, Kind.INTEGER, edges=tuple(place - 0.5 for place in range(most + 2)), step=1.0)
        held = (places, *(replace(one, name=_BEFORE + one.name) for one in rows), *own)
        shared: dict[str, Any] = {"unit": unit, "spending": Spending()}
        return (
            View(rows=persons.rows, bound=Bound(rows=1), domains=(places, *own), **shared),
            # What is drawn comes before what it is drawn given: see MarkovField.given.
            View(rows=steps.rows, bound=self._bound, domains=(*rows, *held), **shared),
        )

    def _rules(self) -> tuple[str, ...]:
        return (
            f"one {self.key} is one of the persons, and counts with at most {self._bound} among the rows",
            f"people with more rows than {self._bound.total} count as having {self._bound.total}",
            "rows of a person follow each other as a Markov chain, given what is the person's own",
            "values outside of declared bounds count as the nearest; values that are not declared are missing",
        )


def synthesise_people(
    table: Table,
    *,
    epsilon: Number,
    order: str,
    delta: Number | None = None,
    person: Sequence[str] = (),
    persons: str | None = None,
    columns: Mapping[str, Any] | None = None,
    only: Sequence[str] | None = None,
    accept: Number | None = None,
    purpose: str | None = None,
    who: str | None = None,
    request: str | None = None,
    bits: Bits | None = None,
) -> "PeopleGenerator":
    """Synthetic people with all their rows, for one charge: what ``table.synthesise(…, order=…)`` does.

    Args:
        table: what ``dp.open`` returned, with a person as unit, and a bound on rows of a person.
        epsilon: the price.
        order: the column by which the rows of a person follow each other.
        delta: the price; Gaussian noise needs one.
        person: columns that are the person's own: the same in all of the person's rows.
        persons: another private table that has these columns, and also people without any row.
        columns: what columns may hold, as for :func:`synthesise`; values cannot be found here.
        only: the columns of rows to synthesise; all by default.
        accept: the largest mean distance of pairs to accept.
        purpose: why, in one line.
        who: by whom; the account's name by default.
        request: a name under which the ledger keeps the result, to be recalled free of charge.
        bits: where randomness comes from.

    >>> from defocus import examples
    >>> with examples.stays() as table:
    ...     made = synthesise_people(table.bound(rows=2), epsilon=9, delta=1e-6, order="day")
    >>> made.sample(10).column_names
    ['who', 'day']
    """
    wanted = PeopleSynthesiser(table, order, person, persons, columns or {}, only)
    return wanted.fit(epsilon=epsilon, delta=delta, accept=accept, purpose=purpose, who=who, request=request, bits=bits)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@final
@dataclass(frozen=True, slots=True, eq=False)
class PeopleGenerator:
    """Synthetic people with their rows. Made by :func:`synthesise_people`; everything about it is released.

    >>> from defocus import examples
    >>> with examples.stays() as table:
    ...     made = table.bound(rows=2).synthesise(epsilon=9, delta=1e-6, order="day")
    >>> persons, rows = made.sample_tables(100)
    >>> persons.num_rows, 150 < rows.num_rows <= 200
    (100, True)
    """

    persons: Generator
    """The model of persons and of how many rows they have."""
    steps: Generator
    """The model of a row given the one before it."""
    key: str
    order: str
    person: tuple[str, ...]
    rows: tuple[str, ...]

    def sample_tables(
        self, n: int | None = None, *, where: str | None = None, bits: Bits | None = None
    ) -> tuple[pa.Table, pa.Table]:
        """So many persons, and the rows of all of them, which name their person by the same key.

        Args:
            n: how many persons; about as many as there are by default.
            where: a condition on what is the person's own.
            bits: where randomness comes from.
        """
        random = seeded(bits)
        number = len(self.persons.fitted.records) if n is None else whole("n", n, at_least=0)
        codes, decoded = self._drawn_persons(number, where, random)
        keys = pa.array(np.arange(1, number + 1), pa.int64())
        persons = pa.table({self.key: keys, **{name: decoded[name] for name in self.person}})
        owner, values = self._drawn_rows(codes, random)
        domains = dict(zip(self.rows, self.steps.domains, strict=False))
        columns = {name: domains[name].decode(own, random.random(len(own))) for name, own in values.items()}
        table = pa.table({self.key: pa.array(owner + 1, pa.int64()), **columns})
        return persons, self._in_order(table)

    def sample(self, n: int | None = None, *, where: str | None = None, bits: Bits | None = None) -> pa.Table:
        """The rows of so many persons, with what is the person's own beside each; parameters as for the tables."""
        persons, rows = self.sample_tables(n, where=where, bits=bits)
        owner = pa.array(rows[self.key].to_numpy() - 1, pa.int64())
        for name in self.person:
            rows = rows.append_column(name, persons[name].take(owner))
        return rows

    def infer(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: intervals for people with many rows are not known. Says what to do instead."""
        raise InvalidParameterError(
            "Intervals for analyses of synthetic people with many rows are not known.",
            fix="make one row of each person first, table.per_person(…).synthesise(…), whose infer has intervals.",
        )

    @property
    def quality(self) -> pa.Table:
        """How far pairs of columns are from the data, for persons and for rows with those before them."""
        return pa.concat_tables([self.persons.quality, self.steps.quality])

    @property
    def distance(self) -> float:
        """The mean total variation distance over all pairs of columns of both views, as measured."""
        return float(np.mean(self.quality["distance"].to_numpy()))

    @property
    def receipt(self) -> Receipt | None:
        """The proof of the charge."""
        return self.persons.receipt

    def explain(self, *, html: bool = False) -> str:
        """What was measured for persons and for rows, what is protected, and what it cost."""
        return "\n".join(own.explain(html=html) for own in (self.persons, self.steps))

    def to_json(self) -> dict[str, Any]:
        """Everything but the receipt, with JSON types only."""
        both = {"persons": self.persons.to_json(), "steps": self.steps.to_json()}
        named = {"key": self.key, "order": self.order, "person": list(self.person), "rows": list(self.rows)}
        return {"format": _FORMAT, **both, **named}

    @classmethod
    def from_json(cls, written: Mapping[str, Any], receipt: Receipt | None = None) -> "PeopleGenerator":
        """The generator that :meth:`to_json` wrote."""
        persons, steps = (Generator.from_json(written[name], receipt) for name in ("persons", "steps"))
        person, rows = (tuple(map(str, written[name])) for name in ("person", "rows"))
        key, order = str(written["key"]), str(written["order"])
        own, every = ([domain.name for domain in one.domains] for one in (persons, steps))
        before = [_BEFORE + name for name in rows]
        known = own == [_PLACE, *person] and every == [*rows, _PLACE, *before, *person]
        places = {one.domains[names.index(_PLACE)].edges for one, names in ((persons, own), (steps, every))}
        sizes = [(steps.domains[i].size, steps.domains[len(rows) + 1 + i].size) for i in range(len(rows))]
        if not known or order not in rows or len(places) != 1 or any(one != two for one, two in sizes):
            raise ValueError("persons and rows do not fit together")
        if persons.domains[1:] != steps.domains[2 * len(rows) + 1 :] or next(iter(places))[:1] != (-0.5,):
            raise ValueError("persons and rows do not fit together")
        return cls(persons, steps, key, order, person, rows)

    def save(self, path: str | Path) -> None:
        """Write everything but the receipt to one JSON file, which holds no code."""
        export.write_bytes(path, json.dumps(self.to_json()).encode())

    @classmethod
    def load(cls, path: str | Path) -> "PeopleGenerator":
        """What :meth:`save` wrote."""
        return saved(path, _FORMAT, cls.from_json, "does not hold saved people")

    def _drawn_persons(
        self, number: int, where: str | None, random: np.random.Generator
    ) -> tuple[list[NDArray[np.int64]], pa.Table]:
        """Codes of so many persons, and their values."""
        domains, fitted = self.persons.domains, self.persons.fitted
        schema = Schema(Column(one.name, one.kind) for one in domains)
        kept: list[tuple[NDArray[np.int64], pa.Table]] = []
        there = 0
        with conditioned(schema, {}, (), where) as (_, checked):
            for _ in range(_TRIES):
                places = random.integers(0, len(fitted.records), max(number, 1 if where is None else 1000))
                codes = np.stack(
                    [
                        codes_within(fitted.bins[i], fitted.within[i], fitted.records[places, i], random)
                        for i in range(len(domains))
                    ]
                )
                values = {
                    one.name: one.decode(own, random.random(len(own))) for one, own in zip(domains, codes, strict=True)
                }
                table = checked(pa.table(values))
                chosen = np.ones(len(places), np.bool_) if where is None else table[HOLDS].to_numpy()
                kept.append((codes[:, chosen], table.filter(pa.array(chosen))))
                there += int(chosen.sum())
                if there >= number:
                    break
        if there < number:
            raise InvalidParameterError(
                "Too few synthetic persons meet this condition.", fix="ask for fewer, or for a more frequent condition."
            )
        codes = np.concatenate([own for own, _ in kept], axis=1)[:, :number]
        return list(codes), pa.concat_tables([own for _, own in kept]).slice(0, number)

    def _drawn_rows(
        self, persons: Sequence[NDArray[np.int64]], random: np.random.Generator
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
        """For each row whose it is, and its codes; first rows first."""
        fitted, domains = self.steps.fitted, self.steps.domains
        field_ = MarkovField([int(own.max()) + 1 for own in fitted.bins], len(fitted.records), random)
        hold(field_, fitted.margins, fitted.tables)
        field_.fit(_FIT)
        number, drawn = persons[0], len(self.rows)
        most = self.persons.domains[0].size - 2
        number = np.where(number > most, 0, number)  # a missing number of rows is none
        before = [np.full(len(number), domains[i].missing, np.int64) for i in range(drawn)]
        owners, found = [], []
        for place in range(1, most + 1):
            own = np.flatnonzero(number >= place)
            held = [np.full(len(own), place), *(codes[own] for codes in before), *(codes[own] for codes in persons[1:])]
            start = field_.records[random.integers(0, len(field_.records), len(own))]
            for i, codes in enumerate(held, drawn):
                start[:, i] = fitted.bins[i][codes]
            bins = field_.given(start, range(drawn, len(domains)), _SWEEPS)
            new = [codes_within(fitted.bins[i], fitted.within[i], bins[:, i], random) for i in range(drawn)]
            for i in range(drawn):
                before[i][own] = new[i]
            owners.append(own)
            found.append(np.stack(new))
        every = np.concatenate(found, axis=1)
        return np.concatenate(owners), dict(zip(self.rows, every, strict=True))

    def _in_order(self, table: pa.Table) -> pa.Table:
        """The rows of each person together, as they follow each other, and what orders them rising.

        Rows come place by place. Cells of the order are exchanged among the rows of one person, so that they rise.
        """
        table = table.append_column(_PLACE, pa.array(np.arange(table.num_rows)))
        rows = table.sort_by([(self.key, "ascending"), (_PLACE, "ascending")])
        rising = table.sort_by([(self.key, "ascending"), (self.order, "ascending")])[self.order]
        rows = rows.set_column(rows.schema.get_field_index(self.order), self.order, rising)
        return rows.drop_columns([_PLACE]).cast(
            pa.schema([(self.key, pa.int64()), *((one.name, ARROW[one.kind]) for one in self._row_domains)])
        )

    @property
    def _row_domains(self) -> tuple[Domain, ...]:
        return self.steps.domains[: len(self.rows)]
