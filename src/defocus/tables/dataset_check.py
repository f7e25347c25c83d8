"""The data opened as its file says; and whether the file fits the data, as far as schemas tell."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.sources import Source, fits, source
from defocus.errors import DefocusError, LedgerBusyError, LedgerError, LedgerUnavailableError, UnknownColumnError
from defocus.ledger import Ledger
from defocus.tables.contribution import naming
from defocus.tables.dataset_file import Dataset, Facts, OtherTable
from defocus.tables.parts import described, divided, in_ledger, undivided
from defocus.tables.rows import Division

__all__ = ["Checked", "check", "compared", "declared", "ledger_of", "open_dataset"]


def open_dataset(
    dataset: Dataset,
    other: OtherTable | None = None,
    *,
    engine: Any = None,
    memory: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Source:
    """The private rows of a dataset, or the rows of another table it names, with everything declared about them."""
    about: Dataset | OtherTable = dataset if other is None else other
    types = {name: facts.kind for name, facts in about.columns.items() if facts.kind is not None}
    missing = {name: facts.missing for name, facts in about.columns.items() if facts.missing}
    opened = source(
        _where(dataset, about),
        table=about.table,
        types=types,
        missing=missing,
        engine=dataset.engine if engine is None else engine,
        memory=memory,
        threads=threads,
        progress=progress,
    )
    return replace(opened, schema=declared(opened.schema, about.columns))


def declared(schema: Schema, columns: Mapping[str, Facts]) -> Schema:
    """A schema with the bounds and domains that a file declares."""
    bounds = {name: (facts.low, facts.high) for name, facts in columns.items() if facts.low is not None}
    domains = {name: list(facts.values) for name, facts in columns.items() if facts.values}
    return schema.declare(bounds).declare(domains)


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """What a look at schemas found about a file, in words."""

    problems: list[str]
    """What does not fit; nothing if everything does."""
    notes: list[str]
    """What follows from a file that fits, and is easily overlooked."""


def check(dataset: Dataset) -> Checked:
    """Whether a file fits its data. Each table is opened once, and no row is looked at."""
    notes: list[str] = []
    problems = list(_problems(dataset, dataset, dataset.unit.column, notes))
    for group, tables in (("public", dataset.public), ("private", dataset.private)):
        for name, other in tables.items():
            problems += [f"[{group}.{name}] {problem}" for problem in _problems(dataset, other, other.unit, notes)]
    if dataset.consent is not None:
        consents = dataset.consent
        problems += [f"[consent] {problem}" for problem in _problems(dataset, consents, consents.unit, notes)]
    for name, graph in dataset.graphs.items():
        place = dataset.paths(graph.data)[0]
        problems += (
            [] if "://" in place or Path(place).is_file() else [f"[graphs.{name}] There is no file {place!r:.200}."]
        )
    return Checked(problems, [] if problems else notes)


def _problems(dataset: Dataset, about: Dataset | OtherTable, unit: str | None, notes: list[str]) -> Iterator[str]:
    try:
        opened = source(_where(dataset, about), table=about.table, engine=dataset.engine)
    except DefocusError as error:
        yield f"{error.what} {error.fix}"
        return
    try:
        problems = [] if unit is None else list(_unit_problems(unit, opened, about.columns))
        for name, facts in about.columns.items():
            problems += (
                _column_problems(opened.schema[name], facts)
                if name in opened.schema
                else [_absent(name, opened.schema)]
            )
        yield from problems or _problems_together(opened, about, notes)
    finally:
        opened.engine.close()


def _problems_together(opened: Source, about: Dataset | OtherTable, notes: list[str]) -> Iterator[str]:
    """Whether the engine can read all columns as they are declared, and divide the data as the file says."""
    where = ""
    try:
        kinds = {name: facts.kind for name, facts in about.columns.items() if facts.kind is not None}
        schema = declared(opened.engine.schema(opened.engine.canonical(opened.raw, kinds)), about.columns)
        if isinstance(about, Dataset):
            where = "[parts] "
            division = divided(about.parts, schema, about.unit, own=opened.own)
            notes += [] if division is None else [f"the data is in {described(division)}"]
    except DefocusError as error:
        yield f"{where}{error.what} {error.fix}"


def _unit_problems(unit: str, opened: Source, columns: Mapping[str, Facts]) -> Iterator[str]:
    schema = opened.schema
    if unit not in schema:
        yield f"The unit: {_absent(unit, schema)}"
    elif not schema[unit].kind.countable:
        yield f"The unit {unit!r:.60} is a column of kind {schema[unit].kind}, which cannot name a person."
    else:
        kind = columns.get(unit, Facts()).kind or schema[unit].kind
        told = Schema(Column(unit, kind) if column.name == unit else column for column in schema)
        try:
            naming(replace(opened, schema=told), unit)
        except DefocusError as error:
            yield f"The unit: {error.what} {error.fix}"


def _column_problems(column: Column, facts: Facts) -> Iterator[str]:
    kind = facts.kind or column.kind
    if column.kind is Kind.OTHER:
        yield f"{column.name!r:.60} holds values that no question can be about; remove what is declared about it."
        return
    if facts.low is not None and not facts.bounds(kind):
        yield f"{column.name!r:.60} has bounds but is of kind {kind}; declare its kind as integer, number or date."
    if facts.values and not kind.countable:
        yield f"{column.name!r:.60} has a domain but is of kind {kind}; declare low and high instead."
    listed: list[Any] = [*(facts.values or ()), *facts.missing]
    if not all(fits(value, kind) for value in listed):
        yield f"{column.name!r:.60} is of kind {kind}, but values of another kind are listed for it."


def _absent(name: str, schema: Schema) -> str:
    error = UnknownColumnError(name, schema.names)
    return f"{error.what} {error.fix}"


def _where(dataset: Dataset, about: Dataset | OtherTable) -> str | list[str]:
    paths = dataset.paths(about.data)
    return paths[0] if len(paths) == 1 else paths


def ledger_of(dataset: Dataset) -> Ledger | None:
    """The ledger of a dataset file for reading only; None if nobody has made it yet.

    One that was made for something else, or is gone, is refused.
    """
    book = Ledger.find(dataset.ledger_place, anchor_file=dataset.anchor_place)
    try:
        if book is not None:
            book.terms.hold(dataset=dataset.name, unit=dataset.unit, budget=dataset.budget)
    except LedgerError:
        if book is not None:
            book.close()
        raise
    return book


def compared(dataset: Dataset) -> tuple[list[str], list[str]]:
    """What contradicts the ledger, and what should be known beside it, of a file that fits its data.

    Nothing is written, neither is a ledger made. One that cannot be reached is told, not taken for a contradiction.
    """
    try:
        book = ledger_of(dataset)
        if book is None:
            return [], []
        with book:
            division = _division(dataset)
            book.terms.hold(dataset=None, unit=None, budget=None, parts=in_ledger(division))
            return [], undivided(division, book)
    except (LedgerUnavailableError, LedgerBusyError) as error:
        return [], [f"the ledger was not compared: {error.what}"]
    except LedgerError as error:
        return [f"{error.what} {error.fix}"], []


def _division(dataset: Dataset) -> Division | None:
    if dataset.parts is None:
        return None
    opened = open_dataset(dataset)
    try:
        return divided(dataset.parts, opened.schema, dataset.unit, own=opened.own)
    finally:
        opened.engine.close()
