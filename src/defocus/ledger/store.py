"""Where a ledger is stored: its place, its tables, and sessions on it.

The tables of a ledger and the triggers that keep them append-only.

``ledger_entries`` holds the chain. ``ledger_head`` holds one row, the number and hash of the last
entry: it is what PostgreSQL locks while a charge is decided, and a second witness when the tail
of the chain is cut off. Where the data has parts, ``ledger_parts`` says which charges were about a
part, so that its newest one is found at once; the sums are in the chain. The triggers are a seat
belt against accidents (a stray UPDATE, a clean-up job); who can drop tables can drop triggers, and
for that there is the hash chain.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Select,
    SmallInteger,
    String,
    Table,
    Text,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from defocus.errors import LedgerDamagedError, LedgerUnavailableError
from defocus.ledger.anchors import Anchor
from defocus.ledger.entries import DATA, GENESIS, Entry, digest, read_body
from defocus.ledger.parts import key_of
from defocus.ledger.places import Place

__all__ = [
    "DIVIDED_FORMAT",
    "DIVIDED_TABLES",
    "DIVIDED_TRIGGERS",
    "ENTRIES",
    "FORMAT",
    "HEAD",
    "PARTS",
    "TABLES",
    "TRIGGERS",
    "Row",
    "Session",
    "Store",
    "checked",
    "create_tables",
    "postgresql_triggers",
    "sqlite_triggers",
]


FORMAT = 1
"""The version of this layout."""
DIVIDED_FORMAT = 2
"""The version with ``ledger_parts``, which only a ledger of data with parts has; all others stay as they were."""

TABLES = MetaData()
DIVIDED_TABLES = MetaData()
_COUNTER = BigInteger().with_variant(Integer, "sqlite")

ENTRIES = Table(
    "ledger_entries",
    TABLES,
    Column("sequence", _COUNTER, primary_key=True, autoincrement=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("charge", _COUNTER, unique=True, comment="the charge that a release belongs to"),
    Column("request", Text, index=True, comment="the caller's name for a repeatable request"),
    Column("body", Text, nullable=False, comment="canonical JSON, the text that is hashed"),
)
HEAD = Table(
    "ledger_head",
    TABLES,
    Column("one", SmallInteger, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("sequence", _COUNTER, nullable=False),
    Column("hash", String(64), nullable=False),
)
PARTS = Table(
    "ledger_parts",
    DIVIDED_TABLES,
    Column("part", String(64), primary_key=True, comment="SHA-256 of the label of a part"),
    Column("sequence", _COUNTER, primary_key=True, autoincrement=False, comment="a charge about that part"),
)
DIVIDED_TRIGGERS = frozenset({"ledger_parts_insert", "ledger_parts_update", "ledger_parts_delete"})
TRIGGERS = frozenset(
    {
        "ledger_entries_insert",
        "ledger_entries_update",
        "ledger_entries_delete",
        "ledger_head_update",
        "ledger_head_delete",
    }
)


def create_tables(connection: Connection, triggers: Iterable[str], *, divided: bool) -> None:
    """Make the tables of a ledger, those of parts included if it is ``divided``, and their triggers."""
    TABLES.create_all(connection, checkfirst=False)
    if divided:
        DIVIDED_TABLES.create_all(connection, checkfirst=False)
    for statement in triggers:
        connection.exec_driver_sql(statement)


def sqlite_triggers(*, divided: bool) -> Iterable[str]:
    """The statements that create the triggers on SQLite, those of ``ledger_parts`` included if there is one."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    # Checking the number on insert also closes INSERT OR REPLACE, which deletes without firing DELETE triggers.
    next_one = "COALESCE((SELECT sequence + 1 FROM ledger_head), 0)"
    yield (
        "CREATE TRIGGER ledger_entries_insert BEFORE INSERT ON ledger_entries "
        f"WHEN NEW.sequence IS NOT {next_one} {refuse}"
    )
    yield f"CREATE TRIGGER ledger_entries_update BEFORE UPDATE ON ledger_entries {refuse}"
    yield f"CREATE TRIGGER ledger_entries_delete BEFORE DELETE ON ledger_entries {refuse}"
    yield (
        "CREATE TRIGGER ledger_head_update BEFORE UPDATE ON ledger_head "
        f"WHEN NEW.sequence IS NOT OLD.sequence + 1 {refuse}"
    )
    yield f"CREATE TRIGGER ledger_head_delete BEFORE DELETE ON ledger_head {refuse}"
    if divided:
        yield (
            "CREATE TRIGGER ledger_parts_insert BEFORE INSERT ON ledger_parts "
            f"WHEN NEW.sequence IS NOT {next_one} {refuse}"
        )
        yield f"CREATE TRIGGER ledger_parts_update BEFORE UPDATE ON ledger_parts {refuse}"
        yield f"CREATE TRIGGER ledger_parts_delete BEFORE DELETE ON ledger_parts {refuse}"


def postgresql_triggers(*, divided: bool) -> Iterable[str]:
    """The statements that create the triggers on PostgreSQL, those of ``ledger_parts`` included if there is one."""
    yield (
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$"
    )
    yield (
        "CREATE FUNCTION ledger_next() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.sequence IS DISTINCT FROM COALESCE((SELECT sequence + 1 FROM ledger_head), 0) "
        "THEN RAISE EXCEPTION 'a ledger is append-only'; END IF; RETURN NEW; END $$"
    )
    yield (
        "CREATE TRIGGER ledger_entries_insert BEFORE INSERT ON ledger_entries "
        "FOR EACH ROW EXECUTE FUNCTION ledger_next()"
    )
    yield (
        "CREATE TRIGGER ledger_entries_update BEFORE UPDATE ON ledger_entries "
        "FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"
    )
    yield (
        "CREATE TRIGGER ledger_entries_delete BEFORE DELETE OR TRUNCATE ON ledger_entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
    )
    yield (
        "CREATE TRIGGER ledger_head_update BEFORE UPDATE ON ledger_head FOR EACH ROW "
        "WHEN (NEW.sequence IS DISTINCT FROM OLD.sequence + 1) EXECUTE FUNCTION ledger_refuse()"
    )
    yield (
        "CREATE TRIGGER ledger_head_delete BEFORE DELETE OR TRUNCATE ON ledger_head "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
    )
    if divided:
        yield (
            "CREATE TRIGGER ledger_parts_insert BEFORE INSERT ON ledger_parts "
            "FOR EACH ROW EXECUTE FUNCTION ledger_next()"
        )
        yield (
            "CREATE TRIGGER ledger_parts_update BEFORE UPDATE ON ledger_parts "
            "FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"
        )
        yield (
            "CREATE TRIGGER ledger_parts_delete BEFORE DELETE OR TRUNCATE ON ledger_parts "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
        )


class Row(NamedTuple):
    """A stored entry as the database holds it, not yet believed."""

    sequence: Any
    hash: Any
    kind: Any
    charge: Any
    request: Any
    body: Any


@final
class Session:
    """One transaction on a ledger."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def head(self, *, lock: bool = False) -> Anchor | None:
        """Number and hash of the last entry; with ``lock``, nobody else appends until this transaction ends."""
        query = select(HEAD.c.sequence, HEAD.c.hash).where(HEAD.c.one == 1)
        row = self._connection.execute(query.with_for_update() if lock else query).one_or_none()
        return None if row is None else Anchor(row[0], row[1])

    def end(self, *, lock: bool = False) -> tuple[Anchor | None, Row | None]:
        """The head and the entry that it names. A reader asks for both at once; a writer waits for the head first."""
        if lock:
            head = self.head(lock=True)
            return head, None if head is None else self.row(head.sequence)
        joined = HEAD.outerjoin(ENTRIES, ENTRIES.c.sequence == HEAD.c.sequence)
        query = select(HEAD.c.sequence, HEAD.c.hash, ENTRIES).select_from(joined).where(HEAD.c.one == 1)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            return None, None
        return Anchor(row[0], row[1]), None if row[2] is None else Row(*row[2:])

    def row(self, sequence: int) -> Row | None:
        """The entry with this number."""
        return self._first(select(ENTRIES).where(ENTRIES.c.sequence == sequence))

    def release_of(self, charge: int) -> Row | None:
        """The release that belongs to a charge."""
        return self._first(select(ENTRIES).where(ENTRIES.c.charge == charge))

    def requests(self, request: str) -> list[Row]:
        """The charges made for a named request, newest first."""
        query = select(ENTRIES).where(ENTRIES.c.request == request).order_by(ENTRIES.c.sequence.desc())
        return [Row(*row) for row in self._connection.execute(query)]

    def batch(self, after: int, size: int) -> list[Row]:
        """Up to ``size`` entries that follow number ``after``."""
        query = select(ENTRIES).where(ENTRIES.c.sequence > after).order_by(ENTRIES.c.sequence).limit(size)
        return [Row(*row) for row in self._connection.execute(query)]

    def declarations(self, after: int) -> list[Row]:
        """The declarations of data sets that follow number ``after``, in order; the first entry may be one too."""
        declaring = ENTRIES.c.kind.in_((GENESIS, DATA))
        query = select(ENTRIES).where(ENTRIES.c.sequence > after, declaring).order_by(ENTRIES.c.sequence)
        return [Row(*row) for row in self._connection.execute(query)]

    def _newest(self, key: str) -> int | None:
        """The newest charge of a part, found at once however often it was charged."""
        query = select(PARTS.c.sequence).where(PARTS.c.part == key).order_by(PARTS.c.sequence.desc()).limit(1)
        return self._connection.execute(query).scalar()

    def sums(self, labels: Iterable[str]) -> dict[str, tuple[float, ...] | None]:
        """The sum of each part, as its newest charge has it; None for a part that was never charged."""
        keys = {key_of(label): label for label in labels}
        found = {key: sequence for key in keys if (sequence := self._newest(key)) is not None}
        charges = {sequence: self._charge(sequence).parts for sequence in set(found.values())}
        sums: dict[str, tuple[float, ...] | None] = dict.fromkeys(sorted(keys.values()))
        for key, sequence in found.items():
            if keys[key] not in charges[sequence]:
                raise LedgerDamagedError(
                    f"Entry {sequence} is listed as a charge of a part that it does not name.",
                    fix="run ledger.verify() and restore the ledger from a trusted copy.",
                )
            sums[keys[key]] = charges[sequence][keys[key]]
        return sums

    def listed(self, after: int, until: int) -> list[tuple[str, int]]:
        """Which parts are listed with the charges that follow number ``after``, up to ``until``."""
        query = select(PARTS.c.part, PARTS.c.sequence).where(PARTS.c.sequence > after, PARTS.c.sequence <= until)
        return [(part, sequence) for part, sequence in self._connection.execute(query)]

    def count(self) -> int:
        """How many entries are stored, whatever their numbers."""
        return self._connection.execute(select(func.count()).select_from(ENTRIES)).scalar_one()

    def append(self, entry: Entry) -> None:
        """Add an entry at the end of the chain and move the head to it."""
        hashed = entry.hash
        self._connection.execute(
            insert(ENTRIES).values(
                sequence=entry.sequence,
                hash=hashed,
                kind=entry.kind,
                charge=entry.content.get("charge"),
                request=entry.content.get("request"),
                body=entry.body,
            )
        )
        listed = [{"part": key_of(label), "sequence": entry.sequence} for label in entry.content.get("parts", ())]
        if listed:
            self._connection.execute(insert(PARTS), listed)
        if entry.sequence == 0:
            self._connection.execute(insert(HEAD).values(one=1, sequence=0, hash=hashed))
            return
        before = (HEAD.c.one == 1, HEAD.c.sequence == entry.sequence - 1)
        moved = self._connection.execute(update(HEAD).where(*before).values(sequence=entry.sequence, hash=hashed))
        if moved.rowcount != 1:
            raise LedgerDamagedError(
                "The head of the ledger is not where its last entry is; nothing was written.",
                fix="run ledger.verify() and restore the ledger from a trusted copy.",
            )

    def _charge(self, sequence: int) -> Entry:
        row = self.row(sequence)
        if row is None:
            raise LedgerDamagedError(
                f"Entry {sequence} is missing, and a sum depends on it.",
                fix="run ledger.verify() and restore the ledger from a trusted copy.",
            )
        return checked(row)

    def _first(self, query: Select[Any]) -> Row | None:
        row = self._connection.execute(query).first()
        return None if row is None else Row(*row)


@final
class Store:
    """The place, and an engine that belongs to the process that uses it."""

    __slots__ = ("_closed", "_engine", "_process", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self._engine: Engine | None = place.engine()
        self._process = os.getpid()
        self._closed = False

    @contextlib.contextmanager
    def session(self, *, write: bool = False) -> Iterator[Session]:
        """One transaction: committed and durable when the block ends, undone if it raises."""
        with self.connection(write=write) as connection:
            yield Session(connection)

    @contextlib.contextmanager
    def connection(self, *, write: bool = False) -> Iterator[Connection]:
        """The transaction under :meth:`session`, for looking at the storage itself."""
        mark = self.place.mark()
        try:
            with self._transaction(self._own_engine(), write=write) as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self.place.explain(error) from error
        except UnicodeError as error:  # what the driver raises for a damaged name or text
            raise _garbled(self.place.name) from error
        if write and self.place.mark() != mark:
            raise LedgerDamagedError(
                f"The ledger {self.place.name} was replaced by another file while an entry was written to it."
                " No receipt was given.",
                fix="find out who replaced it, put the right file back and run ledger.verify().",
            )

    def create(self, first: Entry) -> bool:
        """Make the ledger with its first entry, unless there is one already; say whether it was made."""
        engine = self.place.engine(create=True)
        try:
            with self._transaction(engine, write=True) as connection:
                if not self.place.exists(connection):
                    self.place.create(connection, divided=first.tally is not None)
                session = Session(connection)
                made = session.head() is None and session.row(0) is None
                if made:
                    session.append(first)
            self.place.settle()
        except SQLAlchemyError as error:
            raise self.place.explain(error) from error
        except UnicodeError as error:
            raise _garbled(self.place.name) from error
        finally:
            engine.dispose()
        return made

    def exists(self) -> bool:
        """Whether there is a ledger at the place."""
        with self.connection() as connection:
            return self.place.exists(connection)

    def close(self) -> None:
        """Give up the connections of this process."""
        if self._engine is not None and self._process == os.getpid():
            self._engine.dispose()
        self._engine, self._closed = None, True

    @contextlib.contextmanager
    def _transaction(self, engine: Engine, *, write: bool) -> Iterator[Connection]:
        with self.place.lock(write=write), self._begun(engine, write=write) as connection:
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                with contextlib.suppress(SQLAlchemyError):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    def _begun(self, engine: Engine, *, write: bool) -> Connection:
        """A connection on which a transaction has begun. One that was lost while it lay in the pool is replaced."""
        try:
            return self._begin(engine, write=write)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        return self._begin(engine, write=write)  # the pool gave up all that are as old; nothing was asked of this one

    def _begin(self, engine: Engine, *, write: bool) -> Connection:
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            self.place.begin(connection, write=write)
        except BaseException:
            connection.close()
            raise
        return connection

    def _own_engine(self) -> Engine:
        """The engine of this process: one inherited through a fork is left to the parent, untouched."""
        if self._closed:
            raise LedgerUnavailableError(
                f"The ledger {self.place.name} is closed.",
                fix="open the table or the graph again, or the ledger itself: Ledger.open(…).",
            )
        engine = self._engine
        if engine is None or self._process != os.getpid():
            if engine is not None:
                engine.dispose(close=False)
            engine = self._engine = self.place.engine()
            self._process = os.getpid()
        return engine


def _garbled(name: str) -> LedgerDamagedError:
    return LedgerDamagedError(
        f"The ledger {name} holds text that cannot be read.", fix="restore the ledger from a trusted copy."
    )


def checked(row: Row) -> Entry:
    """The entry in ``row``, if its hash, number and columns agree with its body."""
    entry = read_body(row.body)
    if digest(row.body) != row.hash:
        why = "its text does not have the hash it is stored with"
    elif entry.sequence != row.sequence:
        why = f"its text says number {entry.sequence}"
    elif (entry.kind, entry.content.get("charge"), entry.content.get("request")) != (row.kind, row.charge, row.request):
        why = "its columns differ from its text"
    else:
        return entry
    raise LedgerDamagedError(
        f"Entry {row.sequence} was altered: {why}.",
        fix="see what else was altered with ledger.verify(), in the terminal defocus ledger verify, and restore the"
        " ledger from a trusted copy.",
    )
