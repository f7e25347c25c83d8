"""Declared data sets: a dataset file each, checked by the rules of ``defocus check``, and the tables that are open."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, final

from sqlalchemy import Connection, insert, select, update

from defocus import tables
from defocus.errors import DatasetFileError, DefocusError, InvalidParameterError, NotFoundError, SourceError
from defocus.ledger import Ledger
from defocus.ledger.lock import sync_directory
from defocus.privacy.units import node
from defocus.server.operations import Settings
from defocus.server.people import amount, one_line
from defocus.server.questions import Source
from defocus.server.records import DATASETS, NOTES, Records, now, token
from defocus.server.roles import Action, Person, demand
from defocus.tables import dataset_file
from defocus.tables.dataset_check import check as check_schema

__all__ = ["POLICY", "Datasets", "Described", "identity_of"]

POLICY: dict[str, float | None] = {"automatic": 0.0, "automatic_delta": 0.0, "most": None, "most_delta": None}
"""Without a policy every request needs an officer: ``automatic`` are the epsilon and the delta up to which none does,
and ``most`` those above which a request is refused."""
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}\.(?:parquet|csv)")


@final
@dataclass(frozen=True, slots=True)
class Described:
    """What is declared about a data set."""

    name: str
    version: int
    text: str
    policy: dict[str, float | None]
    by: str | None
    why: str
    time: str

    @property
    def identity(self) -> str:
        """Which declaration it is: the same for the same text, and for no other."""
        return identity_of(self.text)


def identity_of(text: str) -> str:
    """The identity of a declaration.

    >>> len(identity_of('name = "visits"'))
    32
    """
    return sha256(text.encode()).hexdigest()[:32]


@final
@dataclass(frozen=True)
class Datasets:
    """The data sets of a server. A table is opened once for each version of what is declared, and kept."""

    records: Records
    settings: Settings
    _open: dict[str, tuple[int, tables.Table]] = field(default_factory=dict)
    _graphs: dict[tuple[str, str], tuple[tables.Table, Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _old: list[tables.Table] = field(default_factory=list)

    def all(self) -> list[Described]:
        """Every data set, by name."""
        with self.records.read() as session:
            return [_described(row) for row in session.execute(select(DATASETS).order_by(DATASETS.c.name)).mappings()]

    def described(self, name: str, session: Connection | None = None) -> Described:
        """What is declared about one; read by a connection that is open, if there is one."""
        with nullcontext(session) if session is not None else self.records.read() as reading:
            row = reading.execute(select(DATASETS).where(DATASETS.c.name == name)).mappings().first()
        if row is None:
            raise NotFoundError("There is no such data set.", fix="look at the list of data sets.")
        return _described(row)

    def table(self, name: str) -> tables.Table:
        """The table of a data set as it is declared now."""
        return self._at(self.described(name))

    def _at(self, declared: Described) -> tables.Table:
        name = declared.name
        with self._lock:
            version, opened = self._open.get(name, (0, None))
            if opened is None or version != declared.version:
                fresh = self._opened(declared.text, name)
                if opened is not None:
                    self._old.append(opened)  # somebody may still be asking it
                self._open[name] = declared.version, fresh
                opened = fresh
        return opened

    def source(self, declared: Described) -> Source:
        """What questions are put to: the table and the graphs of a data set under this declaration, and no other."""
        table = self._at(declared)
        return Source(table, lambda graph: self._graph(declared, graph, table))

    def graphs(self, name: str) -> list[str]:
        """The graphs of a data set."""
        return list(self._read(self.described(name).text).graphs)

    def _graph(self, declared: Described, graph: str, table: tables.Table) -> Any:
        name, dataset = declared.name, self._read(declared.text)
        if graph not in dataset.graphs:
            known = ", ".join(dataset.graphs)
            fix = f"name one of {known}." if known else "let a steward declare one: [graphs.contacts] in its file."
            raise NotFoundError("The data set has no such graph.", fix=fix)
        with self._lock:
            of, opened = self._graphs.get((name, graph), (None, None))
            if of is not table:
                opened = _network(dataset, graph, table)
                self._graphs[name, graph] = table, opened
        return opened

    def check(self, person: Person, text: str) -> tuple[list[str], list[str]]:
        """What is wrong with a dataset file, and what follows from it; no row is looked at."""
        demand(person, Action.DECLARE)
        try:
            dataset = self._read(text)
        except DefocusError as problem:
            return [f"{problem.what} {problem.fix}"], []
        found = check_schema(dataset)
        return found.problems, found.notes

    def declare(self, person: Person, text: str, why: str) -> str:
        """Declare a data set, or change what is declared; its name is returned.

        Unit and budget stay as the ledger has them. New purposes become an entry of the ledger, with who and why.
        """
        demand(person, Action.DECLARE)
        said = one_line("why", why, longest=1000)
        dataset = self._read(text)
        found = check_schema(dataset)
        if found.problems:
            raise DatasetFileError(" ".join(found.problems)[:2000], fix="correct the file.")
        name = dataset.name
        with self._lock:
            self._repurposed(dataset, person, said)
            with self._opened(text, name) as table:  # refuses what contradicts the ledger, which is made if it is new
                for graph in dataset.graphs:
                    _network(dataset, graph, table)
        with self.records.write() as session:
            row = {"text": text, "by": person.id, "why": said, "time": now()}
            known = session.execute(select(DATASETS.c.version).where(DATASETS.c.name == name)).scalar()
            if known is None:
                session.execute(insert(DATASETS), [{"name": name, "version": 1, "policy": dict(POLICY), **row}])
            else:
                session.execute(update(DATASETS).where(DATASETS.c.name == name).values(version=known + 1, **row))
            _noted(session, name, "declaration", person, said)
        return name

    def set_policy(self, person: Person, name: str, *, why: str, **limits: float | None) -> None:
        """Up to which epsilon and delta a request needs no officer, and above which it is refused; see ``POLICY``."""
        demand(person, Action.DECLARE)
        said = one_line("why", why, longest=1000)
        told = {key: limits.pop(key, usual) for key, usual in POLICY.items()}
        if limits:
            raise InvalidParameterError(
                f"A policy has no {next(iter(limits))!r:.40}.", fix=f"write {', '.join(POLICY)}."
            )
        if None in (told["automatic"], told["automatic_delta"]):
            raise InvalidParameterError("What is approved at once is a number.", fix="write 0 for nothing.")
        policy = {key: None if value is None else amount(key, value) for key, value in told.items()}
        with self.records.write() as session:
            if not session.execute(update(DATASETS).where(DATASETS.c.name == name).values(policy=policy)).rowcount:
                raise NotFoundError("There is no such data set.", fix="declare it first.")
            words = ", ".join(f"{key} = {'never' if value is None else f'{value:g}'}" for key, value in policy.items())
            _noted(session, name, "policy", person, f"{said} ({words})")

    def upload(self, person: Person, name: str, filename: str, write: Callable[[Any], int]) -> str:
        """Keep a Parquet or CSV file in the folder of a data set, for its file to name; a new one replaces an old one.

        ``write`` is called with an open file and returns how many bytes it wrote.
        """
        demand(person, Action.DECLARE)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name):
            raise InvalidParameterError("The name of a data set is letters, digits, - and _.", fix="choose another.")
        if not _FILE.fullmatch(filename):
            raise InvalidParameterError(
                "An upload is a Parquet or CSV file with a plain name.", fix="call it for example visits.parquet."
            )
        folder = self.settings.folder(name)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = folder / f".{token()}.part"
        try:
            with partial.open("xb") as file:
                partial.chmod(0o600)
                write(file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(folder / filename)
            sync_directory(folder)
        finally:
            partial.unlink(missing_ok=True)
        with self.records.write() as session:
            _noted(session, name, "upload", person, f"uploaded {filename}")
            version = DATASETS.c.version
            session.execute(update(DATASETS).where(DATASETS.c.name == name).values(version=version + 1))
        return filename

    def record_consent(self, person: Person, name: str, write: Callable[[Any], int]) -> None:
        """Replace the file of consents that a data set declares."""
        consent = self._read(self.described(name).text).consent
        if consent is None:
            raise InvalidParameterError(
                "This data set declares no table of consents.",
                fix='add [consent] with data = "consent.csv" to its file.',
            )
        self.upload(person, name, consent.data[0], write)

    def notes(self, name: str) -> list[dict[str, Any]]:
        """What stewards did to a data set, newest first."""
        with self.records.read() as session:
            rows = session.execute(select(NOTES).where(NOTES.c.dataset == name).order_by(NOTES.c.number.desc()))
            return [dict(row) for row in rows.mappings()]

    def close(self) -> None:
        """Close all tables."""
        with self._lock:
            for table in [*self._old, *(table for _, table in self._open.values())]:
                table.close()
            self._open.clear()
            self._old.clear()

    def _read(self, text: str) -> dataset_file.Dataset:
        """The dataset of a text, if the server may reach what it names and keeps its ledger itself."""
        draft = dataset_file.parsed(text)
        dataset = dataset_file.parsed(text, file=self.settings.folder(draft.name) / "defocus.toml")
        for key in ("ledger", "anchor_file", "engine"):
            if getattr(dataset, key) is not None:
                raise DatasetFileError(f"The server itself decides about {key}.", fix=f"remove {key} from the file.")
        for place in _places(dataset):
            if not self.settings.reaches(place, dataset.name):
                raise SourceError(
                    "The file names data that this server may not reach.",
                    fix="upload the data, or let the administrator allow its folder or database (--source).",
                )
        return dataset

    def _opened(self, text: str, name: str) -> tables.Table:
        self.settings.folder(name).mkdir(parents=True, exist_ok=True, mode=0o700)
        return tables.open(self._read(text), ledger=self.settings.ledger_place(name))

    def _repurposed(self, dataset: dataset_file.Dataset, person: Person, why: str) -> None:
        """Tell a ledger that is there of new purposes."""
        place, wanted = self.settings.ledger_place(dataset.name), dataset.purposes or None
        found = Ledger.find(place)
        if found is None or wanted is None:
            return
        with found:
            named = (dataset.name, *dataset.graphs)
            others = [one.name for one in found.datasets() if one.name in named and one.purposes != wanted]
        if others:
            with Ledger.open(place) as book:
                for name in others:
                    book.declare(name, why=why, purposes=wanted, who=person.name)


def _network(dataset: dataset_file.Dataset, name: str, table: tables.Table) -> Any:
    """A graph about the people of a table, charged to the same ledger; no edge is looked at."""
    from defocus.graphs import open_graph  # noqa: PLC0415  # slow to load

    declared = dataset.graphs[name]
    return open_graph(
        dataset.paths(declared.data)[0],
        unit=node(max_degree=declared.max_degree),
        ledger=table.ledger,
        name=name,
        ends=declared.ends or None,
        directed=declared.directed,
        purposes=dataset.purposes or None,
    )


def _places(dataset: dataset_file.Dataset) -> Iterator[str]:
    consent = [] if dataset.consent is None else [dataset.consent]
    others = [one.data for one in (*dataset.public.values(), *dataset.private.values(), *consent)]
    for about in (None, *others, *(one.data for one in dataset.graphs.values())):
        yield from dataset.paths(about)


def _described(row: Any) -> Described:
    found = {name: row[name] for name in Described.__dataclass_fields__}
    return Described(**{**found, "policy": {**POLICY, **found["policy"]}})


def _noted(session: Any, dataset: str, what: str, person: Person, words: str) -> None:
    session.execute(insert(NOTES), [{"dataset": dataset, "what": what, "by": person.id, "words": words, "time": now()}])
