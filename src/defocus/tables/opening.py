"""Opening a private table: its rows, its unit, and the ledger that answers for it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from defocus.errors import InvalidParameterError, NotDeclaredError, WrongKindError
from defocus.ledger import Ledger
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit
from defocus.tables import datasets
from defocus.tables.bounding import Bound
from defocus.tables.checking import open_dataset
from defocus.tables.columns import Schema
from defocus.tables.rows import Rows
from defocus.tables.sources import Source, source, together
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
    purposes: Sequence[str] | None = None,
    private: Mapping[str, Any] | None = None,
    public: Mapping[str, Any] | None = None,
    anchor_file: str | Path | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Table:
    """Open a table about people. No row is read.

    Args:
        data: a path, a glob or a list of Parquet or CSV files; a DuckDB file or connection with ``table=``; a pandas,
            polars or Arrow table; or a dataset file, ``defocus.toml``, which says all the rest.
        unit: what one person is: ``dp.user("patient_id")``, or ``dp.rows()`` where each row is one.
        budget: how much may ever be lost about one of them, by all releases together.
        ledger: where every charge is written down: a path, a PostgreSQL URL or an open ledger. Beside the data unless
            told.
        name: what the data is called in the ledger; the name of the file unless told.
        table: which table of a database.
        columns: public facts: bounds ``(low, high)`` or a list of all values, never looked up in the data.
        types: the kind of columns whose source does not say, such as those of a CSV file.
        bound: what one person may contribute unless a question says otherwise.
        purposes: what the data may be used for; then every release must name one of them.
        private: other tables about the same people, by name, which can be joined on the person.
        public: public tables, by name, which can be joined on anything.
        anchor_file: a file, best on another disk, that notices an older copy of the ledger.
        memory: how much memory the engine may use, such as "2GB".
        threads: how many threads the engine may use.

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
    if isinstance(data, str | Path) and Path(data).suffix.lower() == ".toml":
        given = {"unit": unit, "budget": budget, "name": name, "table": table, "columns": columns, "types": types}
        return _from_file(data, {**given, "private": private, "public": public}, ledger, memory, threads)
    opened = source(data, table=table, types=types, memory=memory, threads=threads)
    others = {key: source(one) for key, one in (private or {}).items()}
    called = opened.name if name is None else name
    if isinstance(ledger, Ledger):
        if unit is not None and unit != ledger.unit:
            raise InvalidParameterError(
                f"The ledger protects {ledger.unit}, but the table was opened for {unit}.", fix="leave unit= out."
            )
        book = ledger
    else:
        where = _place(data, called) if ledger is None else ledger
        book = Ledger.open(where, budget=budget, unit=unit, dataset=called, anchor_file=anchor_file)
    first, *rest = together(opened, *others.values(), memory=memory, threads=threads) if others else [opened]
    rows = {key: _rows(one, book.unit, {}) for key, one in zip(others, rest, strict=True)}
    wanted = None if purposes is None else tuple(purposes)
    return Table(
        rows=_rows(first, book.unit, columns or {}),
        ledger=book,
        name=called,
        contribution=bound,
        purposes=wanted,
        others=rows,
        public=dict(public or {}),
    )


def _from_file(
    path: str | Path, given: Mapping[str, Any], ledger: Any, memory: str | None, threads: int | None
) -> Table:
    """The table of a dataset file, which says everything but perhaps another place of the ledger."""
    twice = [key for key, value in given.items() if value is not None]
    if twice:
        raise InvalidParameterError(
            f"{', '.join(twice)} cannot be given beside a dataset file, which says it.", fix="write it in the file."
        )
    dataset = datasets.read(path)
    how: dict[str, Any] = {"memory": memory, "threads": threads}
    main = open_dataset(dataset, **how)
    opened = [main, *(open_dataset(dataset, other, **how) for other in dataset.private.values())]
    first, *rest = together(*opened, memory=memory, threads=threads)
    book = ledger
    if not isinstance(ledger, Ledger):
        where = dataset.ledger_place if ledger is None else ledger
        terms: dict[str, Any] = {"budget": dataset.budget, "unit": dataset.unit, "dataset": dataset.name}
        book = Ledger.open(where, anchor_file=dataset.anchor_place, **terms)
    others = {
        key: _person_rows(one, other.unit or "")
        for (key, other), one in zip(dataset.private.items(), rest, strict=True)
    }
    return Table(
        rows=_rows(first, book.unit, {}),
        ledger=book,
        name=dataset.name,
        contribution=dataset.bound,
        purposes=dataset.purposes or None,
        others=others,
        public={key: _public(open_dataset(dataset, other)) for key, other in dataset.public.items()},
    )


def _public(opened: Source) -> pa.Table:
    """A public table as it was declared, whole."""
    try:
        return opened.engine.run(opened.relation)
    finally:
        opened.engine.close()


def _rows(opened: Source, unit: Unit, columns: Mapping[str, Any]) -> Rows:
    schema = opened.schema.declare(columns)
    if unit.kind in {"rows", "event"}:
        return Rows(opened.engine, opened.relation, schema, None)
    if unit.kind != "user" or unit.column is None:
        raise InvalidParameterError(
            f"A table protects rows or people, not {unit}.", fix='pass unit=dp.user("patient_id") or unit=dp.rows().'
        )
    return Rows(opened.engine, opened.relation, schema, _person(schema, unit.column))


def _person_rows(opened: Source, unit: str) -> Rows:
    return Rows(opened.engine, opened.relation, opened.schema, _person(opened.schema, unit))


def _person(schema: Schema, name: str) -> str:
    """The column that names the person, if its kind can."""
    column = schema.usable(name)
    if not column.kind.countable:
        raise WrongKindError(
            f"{column.name!r} is of kind {column.kind}, which cannot name a person exactly.",
            fix="use a whole number or text.",
        )
    return column.name


def _place(data: Any, called: str) -> Path:
    """Beside the data."""
    if isinstance(data, str | Path) and not any(sign in str(data) for sign in "*?["):
        return Path(data).with_name(f"{called}.ledger")
    raise NotDeclaredError(
        "This table has no place of its own, so nobody knows where its ledger is.",
        fix='pass ledger="visits.ledger" and name="visits", the same each time, or the budget would start anew.',
    )
