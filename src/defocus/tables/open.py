"""Opening a private table: its rows, its unit, and the ledger that answers for it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import pyarrow as pa

from defocus.engines.origins import is_address
from defocus.engines.sources import Source, source, together
from defocus.engines.untested import UntestedEngine
from defocus.errors import InvalidParameterError, LedgerMismatchError, NotDeclaredError, UnknownColumnError
from defocus.ledger import Ledger, Parts
from defocus.ledger.anchors import AnchorFile
from defocus.ledger.creation import beside, check_kinds, exists
from defocus.ledger.declarations import commitment, purposes_of
from defocus.ledger.identity import identity
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit
from defocus.tables import dataset_file
from defocus.tables.consent import PURPOSE, Consent
from defocus.tables.contribution import Bound, fitting, naming
from defocus.tables.dataset_check import open_dataset
from defocus.tables.dataset_file import OtherTable
from defocus.tables.hierarchy import Invariants, checked_invariants
from defocus.tables.parts import Declared, divided, in_ledger, in_periods
from defocus.tables.rows import Rows
from defocus.tables.table import Table

__all__ = ["open"]


def open(  # noqa: A001  # reads as dp.open
    data: Any,
    *,
    unit: Unit | None = None,
    budget: Budget | None = None,
    ledger: Ledger | str | Path | None = None,
    name: str | None = None,
    table: str | None = None,
    columns: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
    bound: Bound | None = None,
    purposes: str | Sequence[str] | None = None,
    private: Mapping[str, Any] | None = None,
    public: Mapping[str, Any] | None = None,
    consent: Any = None,
    parts: str | Declared | None = None,
    invariants: Invariants | None = None,
    anchor_file: str | Path | None = None,
    engine: Any = None,
    memory: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Table:
    """Open a table about people. No row is read.

    Args:
        data: a path, a glob or a list of Parquet or CSV files; a DuckDB file or connection, a Spark session, or the
            address of a PostgreSQL or MariaDB database (``postgresql://…``, ``mysql://…``), with ``table=``; a pandas,
            polars, Arrow or Spark table; or a dataset file, ``defocus.toml``, which says all the rest, or what was read
            of one.
        unit: what one person is: ``dp.user("patient_id")``, or ``dp.rows()`` where each row is one; or what one
            person has in one period, ``dp.user("patient_id", period="month", of="day")``, each with the whole budget.
        budget: how much may ever be lost about one of them, by all releases together.
        ledger: where every charge is written down: a path, a PostgreSQL URL or an open ledger. Beside the data unless
            told, called after its file or table. Where it exists, it must have been made for the same unit, budget and
            name.
        name: what the data is called in the ledger; the name of the file by default.
        table: which table of a database.
        columns: public facts: bounds ``(low, high)`` of numbers or dates, or a list of all values, never looked up in
            the data.
        types: the kind of columns whose source does not say, such as those of a CSV file, which are text otherwise:
            "boolean", "integer", "number", "text", "date" or "timestamp", as in ``{"age": "integer"}``. People
            whose text is declared an integer count only where it is written as one: "1", and neither "01" nor "1.4".
        bound: what one person may contribute unless a question says otherwise.
        purposes: what the data may be used for; then every release must name one of them. This is the owner's rule
            for those who ask through this table or this file, not a lock: who can read the data itself can open it
            without the rule, or without Defocus. Let them reach a service that asks, and not the data.
        private: other tables about the same people, by name, which can be joined on the person.
        public: public tables, by name, which can be joined on anything.
        consent: a table of who consents to which purpose, with the column that names the person and one called
            ``purpose``. Questions are then asked of :meth:`Table.for_purpose`, and are about those who consent when
            they are released.
        parts: the column that divides the table, such as its day: then :meth:`Table.part` asks about one part, which
            is charged alone where each unit is in one part only. Rows and events that are added or removed are; of
            people it must be declared, ``dp.parts("hospital", people="in one part")``.
        invariants: which totals :meth:`.Table.hierarchy` may hold exactly, without any protection; none by default.
        anchor_file: a file that notices a deleted ledger or an older copy; beside the ledger by default, better on
            another disk.
        engine: a Spark session, or where Spark runs (``"spark://host:7077"``, ``"local[4]"``, ``"spark"``), which then
            reads files itself, also those with paths such as ``s3a://…``. Unless told, the data decides. For trials,
            ``"untested:snowflake"``, ``"untested:bigquery"``, ``"untested:sqlserver"`` or ``"untested:trino"`` with a
            connection of yours as ``data``.
        memory: how much memory the engine may use, such as "2GB".
        threads: how many threads the engine may use.
        progress: called with percentages where opening takes a while, as where Spark is started.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> from defocus import Budget, user
    >>> home = tempfile.TemporaryDirectory()
    >>> stays = pa.table({"patient": [1, 1, 2, 3], "days": [2.0, 5.0, 1.0, 9.0]})
    >>> visits = open(stays, unit=user("patient"), budget=Budget(1), ledger=f"{home.name}/visits.ledger", name="visits")
    >>> print(visits)
    visits: patient (integer), days (number)
    protects everything about one patient, added or removed; ...
    >>> visits.close()
    >>> home.cleanup()
    """
    filed = isinstance(data, dataset_file.Dataset)
    if filed or (isinstance(data, str | Path) and Path(data).suffix.lower() == ".toml" and not is_address(data)):
        said = {"unit": unit, "budget": budget, "name": name, "table": table, "columns": columns, "types": types}
        more = {"bound": bound, "purposes": purposes, "private": private, "public": public, "anchor_file": anchor_file}
        more["consent"] = consent
        twice = [key for key, value in {**said, **more, "parts": parts}.items() if value is not None]
        if twice:
            raise InvalidParameterError(
                f"{', '.join(twice)} cannot be given beside a dataset file, which says it.", fix="write it in the file."
            )
        settings = {"engine": engine, "memory": memory, "threads": threads, "progress": progress}
        held = checked_invariants(invariants)
        return _from_file(data if filed else dataset_file.read(data), ledger, held, settings)
    check_kinds(budget=budget, unit=unit)
    wanted = purposes_of(purposes)
    settings = {"engine": engine, "memory": memory, "threads": threads, "progress": progress}
    first = partial(source, data, table=table, types=types, **settings)
    with ExitStack() as undo:
        beside = [*(private or {}).values(), *([] if consent is None else [consent])]
        sources = _sources([first, *(partial(source, one) for one in beside)], memory, threads)
        undo.callback(sources[0].engine.close)
        sources[0] = replace(sources[0], schema=sources[0].schema.declare(columns or {}))
        called = name if name is not None else _called(sources[0], ledger)
        facts = _Said(
            name=called,
            named=name is not None,
            unit=unit,
            budget=budget,
            ledger=_place(data, sources[0], unit, budget) if ledger is None else ledger,
            identity=None if parts is not None or _has_periods(unit) else identity(data, table),  # parts grow
            anchor_file=anchor_file,
            bound=bound,
            purposes=wanted,
            private=dict.fromkeys(private or ()),
            joined={key: identity(one) for key, one in (private or {}).items()},
            public=dict(public or {}),
            consent=None if consent is None else OtherTable(()),
            parts=parts,
            invariants=checked_invariants(invariants),
        )
        opened = _table(facts, sources)
        undo.pop_all()
    return opened


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What is said about the data, in a file or by whoever opens it."""

    name: str
    named: bool = True
    """Whether somebody chose the name."""
    unit: Unit | None
    budget: Budget | None
    ledger: Ledger | str | Path
    identity: str | None
    """Which data it is."""
    anchor_file: str | Path | AnchorFile | None
    bound: Bound | None
    purposes: tuple[str, ...] | None
    private: Mapping[str, str | None] = field(default_factory=dict)
    """Other private tables, and what they call the person where that is said."""
    joined: Mapping[str, str | None] = field(default_factory=dict)
    """Which data those are."""
    public: Mapping[str, Any] = field(default_factory=dict)
    consent: OtherTable | None = None
    """Where consents are, which are the last source then, and what they call the person and the purpose."""
    parts: str | Declared | None = None
    invariants: Invariants | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger is to know about the data."""
        exact = None if self.invariants is None else str(self.invariants)
        return {"unit": self.unit, "purposes": self.purposes, "identity": self.identity, "invariants": exact}


def _from_file(
    dataset: dataset_file.Dataset,
    ledger: Ledger | str | Path | None,
    invariants: Invariants | None,
    settings: Mapping[str, Any],
) -> Table:
    """The table of a dataset file, which says everything but perhaps another place of the ledger."""
    said = _Said(
        name=dataset.name,
        unit=dataset.unit,
        budget=dataset.budget,
        ledger=dataset.ledger_place if ledger is None else ledger,
        identity=None
        if dataset.parts is not None or _has_periods(dataset.unit)
        else identity(dataset.paths(), dataset.table),
        anchor_file=dataset.anchor_place if ledger is None else None,
        bound=dataset.bound,
        purposes=dataset.purposes or None,
        private={key: other.unit for key, other in dataset.private.items()},
        joined={key: identity(dataset.paths(other.data), other.table) for key, other in dataset.private.items()},
        public={key: _public(open_dataset(dataset, other)) for key, other in dataset.public.items()},
        consent=dataset.consent,
        parts=dataset.parts,
        invariants=invariants,
    )
    about = (None, *dataset.private.values(), *([] if dataset.consent is None else [dataset.consent]))
    with ExitStack() as undo:
        sources = _sources(
            [partial(open_dataset, dataset, one, **settings) for one in about], settings["memory"], settings["threads"]
        )
        undo.callback(sources[0].engine.close)
        opened = _table(said, sources)
        undo.pop_all()
    return opened


def _table(said: _Said, sources: Sequence[Source]) -> Table:
    """The table, if everything that was said fits. A ledger is made last, so a mistake leaves none behind."""
    with ExitStack() as undo:
        book = None
        if said.unit is None:  # then only a ledger that is there can say whom it protects
            book = _book(said, undo)
        unit = said.unit if book is None else book.unit
        assert unit is not None  # noqa: S101  # one of the two said it
        rows = _rows(sources[0], unit, None)
        rows = replace(rows, division=divided(said.parts, rows.schema, unit, sources[0].origin.files, sources[0].own))
        _about_persons(said, rows, unit)
        consent = None
        if said.consent is not None:
            *sources, last = sources
            consent = Consent(_rows(last, unit, said.consent.unit), said.consent.purpose or PURPOSE)
        persons = zip(said.private.items(), sources[1:], strict=True)
        others = {
            key: replace(_rows(one, unit, person), words=(f"of the table {key}",)) for (key, person), one in persons
        }
        fitting(said.bound, people=rows.unit is not None)
        parts = in_ledger(rows.division)
        book = _book(said, undo, parts) if book is None else book
        book.terms.hold(dataset=None, unit=None, budget=None, parts=parts)
        for key, told in said.joined.items():
            _same_purposes(key, told, book)
        book = book.data(said.name, **said.facts)  # declared when nothing can be refused any more
        opened = Table(
            rows=rows,
            ledger=book,
            name=said.name,
            contribution=said.bound,
            others=others,
            public=said.public,
            consent=consent,
            invariants=said.invariants,
        )
        undo.pop_all()
    return opened


def _about_persons(said: _Said, rows: Rows, unit: Unit) -> None:
    """Refuse other tables about persons, and consents, where the table is not about persons as a whole."""
    if not said.private and said.consent is None:
        return
    if unit.period is not None:
        raise InvalidParameterError(
            f"This table protects {unit}, and another private table does not say in which {unit.period} a row is.",
            fix="leave private tables and consents out, or protect people without a period.",
        )
    if rows.unit is None:
        raise InvalidParameterError(
            f"This table protects {unit}, so no other private table is about the same people.",
            fix='leave private tables and consents out, or protect people: unit=dp.user("patient_id").',
        )


def _book(said: _Said, undo: ExitStack, parts: Parts | None = None) -> Ledger:
    """The ledger, which must have been made for this budget, and for this data or its persons, or is made now."""
    try:
        book = said.ledger
        if isinstance(book, Ledger):
            book.terms.hold(dataset=None, unit=None, budget=said.budget)
        else:
            known = exists(book) and (said.unit is None or "://" not in str(book))
            made = {} if known else {"dataset": said.name, "parts": parts, **said.facts}
            terms: dict[str, Any] = {"budget": said.budget, **made}
            book = undo.enter_context(Ledger.open(book, anchor_file=said.anchor_file, **terms))
        return book.data(said.name, **said.facts, declare=False)
    except LedgerMismatchError as problem:
        if said.named or "dataset: " not in problem.what:
            raise
        hint = f"nobody named the data, so it was taken for {said.name!r:.80}: pass name= if the ledger calls it"
        raise LedgerMismatchError(problem.what, fix=f"{hint} otherwise; or {problem.fix}") from None


def _same_purposes(key: str, told: str | None, book: Ledger) -> None:
    """Refuse a private table that the ledger knows for other purposes than the table it is joined to."""
    for declared in book.datasets() if told is not None else ():
        same = declared.identity is not None and declared.identity == commitment(told or "", declared.identity)
        if same and declared.purposes is not None and set(declared.purposes) != set(book.purposes or ()):
            raise LedgerMismatchError(
                f"The private table {key!r:.60} may be used for {'; '.join(declared.purposes)} only.",
                fix="open the table that it is joined to for the same purposes=.",
            )


def _has_periods(unit: Unit | None) -> bool:
    return unit is not None and unit.period is not None


def _sources(make: Iterable[Callable[[], Source]], memory: str | None, threads: int | None) -> list[Source]:
    """The sources on one engine; no other stays open, also where one of them cannot be opened."""
    with ExitStack() as engines:
        sources = []
        for one in make:
            sources.append(one())
            engines.callback(sources[-1].engine.close)
        if len(sources) > 1:
            return together(*sources, memory=memory, threads=threads)
        engines.pop_all()
    return sources


def _called(opened: Source, ledger: object) -> str:
    """What the data is called where nobody says: as its file or table is, and a frame as in its ledger."""
    in_memory = opened.origin.frame is not None or opened.origin.spark is not None
    if isinstance(ledger, Ledger) and (in_memory or ledger.terms.person is not None):
        return ledger.dataset
    return opened.name


def _public(opened: Source) -> pa.Table:
    """A public table as it was declared, whole."""
    try:
        return opened.engine.run(opened.relation)
    finally:
        opened.engine.close()


def _rows(opened: Source, unit: Unit, person: str | None) -> Rows:
    """The rows with the column that names the person, which another table may call ``person``."""
    if unit.kind in {"rows", "event"}:
        return Rows(opened.engine, opened.relation, opened.schema, None, words=_warned(opened))
    if unit.kind != "user" or unit.column is None:
        raise InvalidParameterError(
            f"A table protects rows or people, not {unit}.", fix='pass unit=dp.user("patient_id") or unit=dp.rows().'
        )
    column = unit.column if person is None else person
    try:
        named = naming(opened, column)
    except UnknownColumnError as problem:
        problem.fix += ' Where the person has another name here, say so: unit=dp.user("…").' if person is None else ""
        raise
    rows = Rows(named.engine, named.relation, named.schema, column, words=_warned(opened))
    return rows if unit.period is None else in_periods(rows, unit)


def _warned(opened: Source) -> tuple[str, ...]:
    """What is said in every preview and answer of a table that is computed where nothing was tested."""
    return (opened.engine.warning,) if isinstance(opened.engine, UntestedEngine) else ()


def _place(data: Any, opened: Source, unit: Unit | None, budget: Budget | None) -> Path:
    """Beside the data, called after its file or table and not by a name that somebody chose."""
    place = beside(data, table=opened.origin.table and opened.name, unit=unit, budget=budget)
    if place is not None:
        return place
    raise NotDeclaredError(
        "This table has no place of its own, so nobody knows where its ledger is.",
        fix='pass ledger="visits.ledger" and name="visits", the same each time, or the budget would start anew.',
    )
