"""The server's own database: people, data sets, requests, decisions, allowances and what was published.

It holds names, questions, decisions and released answers, and no private value. What was charged stands in the ledgers
alone. SQLite in one file by default; PostgreSQL by its address, where several server processes share it.
"""

import contextlib
import json
import secrets
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from defocus.errors import RecordsError
from defocus.ledger.lock import LockableFile, file_lock

__all__ = [
    "ABOUT",
    "ALLOWANCES",
    "ATTEMPTS",
    "DATASETS",
    "DECISIONS",
    "FORMAT",
    "INVITATIONS",
    "NOTES",
    "PEOPLE",
    "PUBLISHED",
    "REQUESTS",
    "SESSIONS",
    "TABLES",
    "TOKENS",
    "Records",
    "now",
    "token",
]

FORMAT = 3
"""The version of this layout."""
_LATER = {
    1: (
        "ALTER TABLE allowances ADD COLUMN delta FLOAT",
        "ALTER TABLE requests ADD COLUMN declared VARCHAR(32) NOT NULL DEFAULT ''",
        "ALTER TABLE requests ADD COLUMN charging INTEGER NOT NULL DEFAULT 1",
        "UPDATE requests SET charging = 0 WHERE state IN ('waiting', 'asked back')",
    ),
    2: (
        "ALTER TABLE requests ADD COLUMN alike VARCHAR(64)",
        "CREATE INDEX requests_alike ON requests (dataset, alike)",
    ),
}
"""What makes each earlier layout the next one. A request of layout 1 may have been charged, and is declared anew."""

TABLES = MetaData()
_ID = String(32)
_WHEN = String(32)
_NAME = String(200)

ABOUT = Table("about", TABLES, Column("name", String(32), primary_key=True), Column("value", Text, nullable=False))
PEOPLE = Table(
    "people",
    TABLES,
    Column("id", _ID, primary_key=True),
    Column("name", _NAME, nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("password", Text, comment="an argon2 hash; null for who signs in elsewhere"),
    Column("since", _WHEN, nullable=False),
    Column("ended", _WHEN, comment="when access ended"),
)
INVITATIONS = Table(
    "invitations",
    TABLES,
    Column("hash", String(64), primary_key=True, comment="SHA-256 of the link's secret"),
    Column("name", _NAME, nullable=False),
    Column("role", String(16), nullable=False),
    Column("by", _ID),
    Column("until", _WHEN, nullable=False),
    Column("used", _WHEN),
)
SESSIONS = Table(
    "sessions",
    TABLES,
    Column("hash", String(64), primary_key=True),
    Column("person", _ID, nullable=False, index=True),
    Column("until", _WHEN, nullable=False),
)
TOKENS = Table(
    "tokens",
    TABLES,
    Column("hash", String(64), primary_key=True),
    Column("id", _ID, nullable=False, unique=True),
    Column("person", _ID, nullable=False, index=True),
    Column("name", _NAME, nullable=False),
    Column("since", _WHEN, nullable=False),
    Column("until", _WHEN, nullable=False),
)
ATTEMPTS = Table(
    "attempts",
    TABLES,
    Column("number", Integer, primary_key=True),
    Column("what", String(64), nullable=False, comment="a digest of the name or address that guessed wrong"),
    Column("time", _WHEN, nullable=False),
    Index("attempts_by", "what", "time"),
)
DATASETS = Table(
    "datasets",
    TABLES,
    Column("name", String(64), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False, comment="the dataset file"),
    Column("policy", JSON, nullable=False),
    Column("by", _ID),
    Column("why", Text, nullable=False),
    Column("time", _WHEN, nullable=False),
)
REQUESTS = Table(
    "requests",
    TABLES,
    Column("id", _ID, primary_key=True, comment="also the name of the request in the ledger"),
    Column("name", _NAME, nullable=False, comment="as whoever asks calls it"),
    Column("asker", _ID, nullable=False, index=True),
    Column("dataset", String(64), nullable=False, index=True),
    Column("question", JSON, nullable=False),
    Column("alike", String(64), comment="the same for questions that differ in conditions alone; null if unknown"),
    Column("words", Text, nullable=False, comment="the question in one line"),
    Column("epsilon", Float, nullable=False),
    Column("delta", Float, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("why", Text, nullable=False, comment="why it is in this state"),
    Column("time", _WHEN, nullable=False, index=True),
    Column("changed", _WHEN, nullable=False),
    Column("approver", _ID),
    Column("runner", _ID),
    Column("progress", Float, nullable=False, default=0.0),
    Column("declared", String(32), nullable=False, comment="the identity of the declaration that was approved"),
    Column("charging", Integer, nullable=False, default=0, comment="1 once it may have been charged"),
    Column("charge", Integer, comment="the entry of the ledger that paid for it"),
    Column("answer", JSON(none_as_null=True), comment="what was released, which is public"),
    UniqueConstraint("asker", "dataset", "name"),
    Index("requests_alike", "dataset", "alike"),
)
DECISIONS = Table(
    "decisions",
    TABLES,
    Column("number", Integer, primary_key=True),
    Column("request", _ID, nullable=False, index=True),
    Column("by", _ID, nullable=False, comment="empty for the policy"),
    Column("what", String(16), nullable=False),
    Column("words", Text, nullable=False),
    Column("time", _WHEN, nullable=False),
)
ALLOWANCES = Table(
    "allowances",
    TABLES,
    Column("id", _ID, primary_key=True),
    Column("dataset", String(64), nullable=False, index=True),
    Column("person", _ID, comment="null for everybody together"),
    Column("purpose", Text, comment="null for all purposes together"),
    Column("period", String(8), nullable=False),
    Column("epsilon", Float, nullable=False),
    Column("delta", Float, comment="null where it limits epsilon only"),
    Column("by", _ID, nullable=False),
    Column("time", _WHEN, nullable=False),
)
PUBLISHED = Table(
    "published",
    TABLES,
    Column("request", _ID, primary_key=True),
    Column("by", _ID, nullable=False),
    Column("time", _WHEN, nullable=False),
    Column("bundle", Text, nullable=False),
)
NOTES = Table(
    "notes",
    TABLES,
    Column("number", Integer, primary_key=True),
    Column("dataset", String(64), nullable=False, index=True),
    Column("what", String(16), nullable=False, comment="declaration, policy, consent or upload"),
    Column("by", _ID, nullable=False),
    Column("words", Text, nullable=False),
    Column("time", _WHEN, nullable=False),
)


def now() -> str:
    """The time in UTC, in one form that sorts."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def token(size: int = 16) -> str:
    """A random name of so many characters that nobody guesses.

    >>> len(token(16))
    16
    """
    return secrets.token_hex(size // 2)


@final
class Records:
    """The database at ``where``: a path, or the address of a PostgreSQL database.

    :meth:`write` is a transaction; all that write take turns, between threads and processes.
    """

    __slots__ = ("_held", "_reading", "engine", "folder", "runner")

    def __init__(self, where: str | Path, folder: Path) -> None:
        self.engine = _engine(where)
        self._reading = self.engine.execution_options(isolation_level="AUTOCOMMIT")  # two round trips less
        self.folder = folder
        self.runner = token()
        self._held: LockableFile | Connection | None = None
        try:
            with self.engine.begin() as session:
                _one_writer(session)
                TABLES.create_all(session)
                found = session.execute(select(ABOUT.c.value).where(ABOUT.c.name == "format")).scalar()
                if found is None:
                    session.execute(insert(ABOUT), [{"name": "format", "value": str(FORMAT)}])
                while found is not None and found != str(FORMAT) and found.isdecimal() and int(found) in _LATER:
                    for change in _LATER[int(found)]:
                        session.execute(text(change))
                    found = str(int(found) + 1)
                    session.execute(update(ABOUT).where(ABOUT.c.name == "format").values(value=found))
        except SQLAlchemyError:
            self.engine.dispose()
            raise _unreachable() from None
        if found is not None and found != str(FORMAT):
            self.engine.dispose()
            raise RecordsError(
                "The server's database was written by another version.", fix="use the version that wrote it."
            )

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that only reads, each statement by itself."""
        try:
            with self._reading.connect() as session:
                yield session
        except SQLAlchemyError:
            raise _unreachable() from None

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write; there is one at a time."""
        try:
            with self.engine.begin() as session:
                _one_writer(session)
                yield session
        except SQLAlchemyError:
            raise _unreachable() from None

    def about(self, name: str) -> str | None:
        """A fact about this server."""
        with self.read() as session:
            return session.execute(select(ABOUT.c.value).where(ABOUT.c.name == name)).scalar()

    def tell(self, name: str, value: str) -> None:
        """Write a fact about this server."""
        with self.write() as session:
            if session.execute(update(ABOUT).where(ABOUT.c.name == name).values(value=value)).rowcount == 0:
                session.execute(insert(ABOUT), [{"name": name, "value": value}])

    def be_alive(self) -> None:
        """Hold a lock that ends with this process, by which others see that what it runs is not abandoned."""
        if self._held is not None:
            return
        if self.engine.dialect.name == "postgresql":
            session = self.engine.connect()
            session.execute(text("SELECT pg_advisory_lock(:space, :key)"), _key(self.runner))
            session.commit()
            self._held = session
        else:
            self._held = file_lock(self._life(self.runner), timeout=None)

    def is_alive(self, runner: str) -> bool:
        """Whether the process that calls itself so still runs."""
        if runner == self.runner:
            return True
        if self.engine.dialect.name == "postgresql":
            with self.engine.connect() as session:
                had = session.execute(text("SELECT pg_try_advisory_lock(:space, :key)"), _key(runner)).scalar()
                if had:
                    session.execute(text("SELECT pg_advisory_unlock(:space, :key)"), _key(runner))
                session.commit()
            return not had
        had = file_lock(self._life(runner), timeout=0)
        if had is not None:
            had.close()
        return had is None

    def close(self) -> None:
        """Give up the connections and the lock."""
        if self._held is not None:
            if isinstance(self._held, Connection):  # a closed connection is seen only after a while
                with contextlib.suppress(SQLAlchemyError):
                    self._held.execute(text("SELECT pg_advisory_unlock(:space, :key)"), _key(self.runner))
            self._held.close()
        self._life(self.runner).with_name(f"{self.runner}.lock").unlink(missing_ok=True)
        self.engine.dispose()

    def _life(self, runner: str) -> Path:
        place = self.folder / "running"
        place.mkdir(mode=0o700, exist_ok=True)
        return place / runner


def _key(runner: str) -> dict[str, int]:
    return {"space": 0x4465_46, "key": zlib.crc32(runner.encode()) - 2**31}


def _one_writer(session: Connection) -> None:
    """Wait until nobody else writes. SQLite has begun so; PostgreSQL takes a lock until the end of the transaction."""
    if session.dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": 0x44654672})
    else:
        session.exec_driver_sql("BEGIN IMMEDIATE")


def _engine(where: str | Path) -> Engine:
    address = str(where)
    if "://" in address:
        url = address.replace("postgresql://", "postgresql+psycopg://", 1)
        return create_engine(
            url,
            pool_size=20,
            max_overflow=40,
            pool_pre_ping=True,
            hide_parameters=True,
            json_serializer=_json,
            connect_args={"prepare_threshold": None},
        )
    path = Path(address)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    engine = create_engine(
        f"sqlite:///{path}",
        connect_args={"timeout": 30, "check_same_thread": False, "isolation_level": None},
        pool_size=20,
        max_overflow=40,
        hide_parameters=True,
        json_serializer=_json,
    )

    def prepared(connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {pragma}").close()

    event.listen(engine, "connect", prepared)
    return engine


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _unreachable() -> RecordsError:
    return RecordsError(
        "The server's database cannot be used now.", fix="try again; ask the administrator if it stays."
    )
