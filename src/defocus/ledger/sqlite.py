"""A ledger in one SQLite file.

Durability. A rollback journal is used with ``synchronous=EXTRA``. A commit flushes the journal
twice, then the file, then blanks the journal's header and flushes that, so a power cut cannot
bring the journal back to life and undo a charge that was already answered. (``DELETE`` with
``FULL`` allows just that, because the directory is not flushed; ``PERSIST`` blanks the journal
where it is, and needs four flushes where ``DELETE`` with ``EXTRA`` needs five.) A write-ahead log
would need one flush, but then the newest charges live in a second file: copying the ledger
without it, or tidying it away after a crash, silently gives spent budget back. Here the file alone
is the whole ledger after every commit, and the blank journal beside it is removed on closing.

Connections are kept between transactions, and are idle there: they hold no lock and no unwritten
page, so a forked child can drop those it inherits and open its own. Before each transaction the
path is compared with the file that the connection has open, so that a file put in the place of
the old one is noticed instead of written past.

Locks are the file system's: keep the file on a local disk. Network file systems often lie about
locks; use PostgreSQL there. SQLite's locks vanish when anything else in the process opens and
closes the file, so each transaction also holds a lock of its own on ``<ledger>.lock``
(:mod:`defocus.ledger.lock`), which stays there, empty.

A new ledger and its lock file can be read and written by their owner only. To share a ledger between accounts, give
both files to a group, or use PostgreSQL.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

from sqlalchemy import Connection, Dialect, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from defocus.errors import LedgerBusyError, LedgerDamagedError, LedgerError, LedgerUnavailableError
from defocus.ledger.lock import file_lock, lock_path, sync_directory
from defocus.ledger.places import Place
from defocus.ledger.store import (
    DIVIDED_FORMAT,
    DIVIDED_TABLES,
    DIVIDED_TRIGGERS,
    FORMAT,
    TABLES,
    TRIGGERS,
    create_tables,
    sqlite_triggers,
)

__all__ = ["SqliteFile"]

_APPLICATION = 0x4465466C  # "DeFl": tells `file` and us whose database it is
_URL = "sqlite+pysqlite://"
_COMPILED: dict[Any, Any] = {}
"""The few statements of a ledger, compiled once for all files: that took longer than to run them."""
_TRUSTED = "restore the ledger from a trusted copy, and check it against an anchor kept elsewhere."


@cache
def _dialect() -> Dialect:
    """What SQLAlchemy knows about the SQLite of this process."""
    engine = create_engine(_URL)
    engine.connect().close()
    engine.dispose()
    return engine.dialect


@final
@dataclass(frozen=True, slots=True)
class SqliteFile(Place):
    """The file at ``path``."""

    path: Path
    timeout: float
    read_only: bool = False

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def engine(self, *, create: bool = False) -> Engine:
        """An engine whose connections follow the path, and never make the file by accident."""
        mode = "ro" if self.read_only else "rwc" if create else "rw"
        uri = f"{self.path.as_uri()}?mode={mode}"

        def connect() -> Any:
            if create:
                self._own()
            connection = sqlite3.connect(
                uri, uri=True, timeout=self.timeout, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            return connection

        pool = QueuePool(connect, max_overflow=-1, dialect=_dialect())
        known = {"compiled_cache": _COMPILED}
        engine = Engine(pool, _dialect(), make_url(_URL), hide_parameters=True, execution_options=known)
        event.listen(engine, "connect", self._connected)
        event.listen(engine, "checkout", self._followed)
        event.listen(engine, "close", self._tidied)
        return engine

    def _own(self) -> None:
        """Make the file for its owner alone: questions and purposes stand in it. SQLite's journal takes after it."""
        with contextlib.suppress(OSError):  # it is there, or SQLite says why it cannot be made
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def _connected(self, _connection: Any, record: Any) -> None:
        record.info["mark"] = self.mark()

    def _followed(self, _connection: Any, record: Any, _proxy: Any) -> None:
        if record.info["mark"] != self.mark():
            raise DisconnectionError("the path names another file now")

    def _tidied(self, connection: Any, _record: Any) -> None:
        """Remove the blank journal, unless someone else is using it."""
        if self.read_only:
            return
        with contextlib.suppress(sqlite3.Error, OSError):
            held = file_lock(self.path, timeout=0)
            if held is not None:
                with contextlib.closing(held):
                    connection.execute("PRAGMA busy_timeout=0").close()
                    connection.execute("PRAGMA journal_mode=DELETE").close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {pragma}").close()
        if self.read_only:
            connection.execute("PRAGMA query_only=ON").close()
            return
        for pragma in ("fullfsync=ON", "synchronous=EXTRA"):
            connection.execute(f"PRAGMA {pragma}").close()
        (mode,) = connection.execute("PRAGMA journal_mode=PERSIST").fetchone()
        if mode != "persist":
            raise sqlite3.OperationalError(f"journal mode is {mode}")

    def missing(self) -> bool:
        """Whether there is no file."""
        return not self.path.exists()

    def mark(self) -> object:
        """Which file it is. Refuses a missing one, and one with several names: SQLite would miss its journal."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise LedgerUnavailableError(
                f"There is no ledger at {self.path}: {error.strerror}.",
                fix="check the path; to make a new ledger, open it with budget=, unit= and dataset=.",
            ) from None
        if not self.path.is_file() or status.st_nlink > 1:
            raise LedgerUnavailableError(
                f"{self.path} is not a regular file with one name.",
                fix="give the ledger one path of its own, without hard links; use copies for backups.",
            )
        return status.st_dev, status.st_ino

    @contextlib.contextmanager
    def lock(self, *, write: bool) -> Iterator[None]:
        """Hold the lock beside the file for the whole transaction; see :mod:`defocus.ledger.lock`."""
        try:
            held = file_lock(self.path, exclusive=write, timeout=self.timeout)
        except OSError as error:
            if self.read_only:  # a directory that cannot be written to has no writers either
                yield
                return
            raise LedgerUnavailableError(
                f"The lock file {lock_path(self.path)} cannot be used: {error.strerror}. No receipt was given.",
                fix="make the directory of the ledger writable for this process.",
            ) from None
        if held is None:
            raise LedgerBusyError(self.name, seconds=self.timeout)
        with contextlib.closing(held):
            yield

    def begin(self, connection: Connection, *, write: bool) -> None:
        """Take the write lock at once, so that what is read stays true until the commit."""
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    def exists(self, connection: Connection) -> bool:
        """Whether the file holds a ledger; a file of no bytes, as a crash while making one leaves it, does not."""
        names = {name for (name,) in connection.exec_driver_sql("SELECT name FROM sqlite_master")}
        application = connection.exec_driver_sql("PRAGMA application_id").scalar()
        version = connection.exec_driver_sql("PRAGMA user_version").scalar()
        if not names and not application and self.path.stat().st_size == 0:
            return False
        if application != _APPLICATION:
            raise LedgerUnavailableError(
                f"{self.path} is an SQLite database, but not a ledger.", fix="choose another path for the ledger."
            )
        if version not in {FORMAT, DIVIDED_FORMAT}:
            raise LedgerUnavailableError(
                f"{self.path} is a ledger of format {version}, and this version reads formats {FORMAT} and"
                f" {DIVIDED_FORMAT}.",
                fix="use the version of Defocus that wrote it, or a newer one.",
            )
        more = DIVIDED_TABLES.tables.keys() if version == DIVIDED_FORMAT else set()
        if not names >= TABLES.tables.keys() | more:
            raise LedgerDamagedError(f"Tables are missing in {self.path}.", fix=_TRUSTED)
        return True

    def create(self, connection: Connection, *, divided: bool) -> None:
        """Make the tables; the caller holds the write lock."""
        connection.exec_driver_sql(f"PRAGMA application_id={_APPLICATION}")
        connection.exec_driver_sql(f"PRAGMA user_version={DIVIDED_FORMAT if divided else FORMAT}")
        create_tables(connection, sqlite_triggers(divided=divided), divided=divided)

    def settle(self) -> None:
        """Flush the directory, so that the file's name is as durable as its content."""
        sync_directory(self.path.parent)

    def faults(self, connection: Connection) -> list[str]:
        """Damaged pages and missing triggers."""
        found = [f"SQLite: {text}" for (text,) in connection.exec_driver_sql("PRAGMA integrity_check(10)")]
        found = [] if found == ["SQLite: ok"] else found
        rows = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        divided = connection.exec_driver_sql("PRAGMA user_version").scalar() == DIVIDED_FORMAT
        missing = sorted((TRIGGERS | DIVIDED_TRIGGERS if divided else TRIGGERS) - {name for (name,) in rows})
        return found + ([f"triggers are missing: {', '.join(missing)}"] if missing else [])

    def explain(self, error: SQLAlchemyError) -> LedgerError:
        """Say what SQLite's error means for a charge."""
        cause = getattr(error, "orig", None)
        code = getattr(cause, "sqlite_errorname", "") or ""
        text = str(cause or error)[:200]
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return LedgerBusyError(self.name, seconds=self.timeout)
        if code == "SQLITE_NOTADB":
            return LedgerDamagedError(
                f"The ledger {self.path} cannot be read: {text}.",
                fix=f"check the path; if it is the right one, {_TRUSTED}",
            )
        if code.startswith(("SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_MISMATCH")):
            return LedgerDamagedError(f"The ledger {self.path} cannot be read: {text}.", fix=_TRUSTED)
        if code.startswith("SQLITE_CONSTRAINT"):
            return LedgerDamagedError(f"The ledger {self.path} contradicts itself: {text}.", fix=_TRUSTED)
        if code == "SQLITE_READONLY_ROLLBACK":
            return LedgerUnavailableError(
                f"A write to {self.path} was interrupted, and its journal must be rolled back before it can be read;"
                " opening it once for writing does that",
                fix="open the ledger once for writing, Ledger.open(path).close(), and try again.",
            )
        return LedgerUnavailableError(
            f"The ledger {self.path} cannot be used: {text}. No receipt was given.",
            fix="check that the disk has space, and that the file and its directory are writable.",
        )
