"""A ledger in one schema of a PostgreSQL database.

A charge locks the single row of ``ledger_head`` (``SELECT … FOR UPDATE``) and only then reads the
last entry, so writers take turns. ``synchronous_commit`` is set to ``on`` for every transaction,
whatever the role's default, and a server that runs without ``fsync`` is refused. Settings are made
with SET LOCAL, so they hold behind a connection pooler as well.

A standby that is not synchronous can lose the last charges when it takes over: make it
synchronous, or keep an anchor file, which notices.
"""

import importlib.util
import math
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError

from defocus.errors import (
    InvalidParameterError,
    LedgerBusyError,
    LedgerDamagedError,
    LedgerError,
    LedgerUnavailableError,
    MissingExtraError,
)
from defocus.ledger.places import Place
from defocus.ledger.store import DIVIDED_TRIGGERS, TRIGGERS, create_tables, postgresql_triggers

__all__ = ["PostgresqlSchema", "postgresql_schema"]

_BUSY = {"55P03", "57014", "40001", "40P01"}  # lock timeout, cancelled, serialization, deadlock
_DAMAGED = {"42P01", "42703", "XX001", "XX002", "23505", "23514", "P0001"}
_TRUSTED = "restore the ledger from a trusted copy, and check it against an anchor kept elsewhere."


def postgresql_schema(url: Any, *, timeout: float, read_only: bool) -> "PostgresqlSchema":
    """The place that ``url`` names; ``?schema=`` chooses the schema, "defocus" by default."""
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtraError("A ledger in PostgreSQL", package="psycopg", extra="postgresql")
    schema = url.query.get("schema", "defocus")
    if not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise InvalidParameterError(
            "The schema in the address must be one plain lower-case name.", fix="write for example ?schema=visits."
        )
    plain = url.difference_update_query(["schema"]).set(drivername="postgresql+psycopg")
    return PostgresqlSchema(plain, schema, timeout, read_only)


@final
@dataclass(frozen=True, slots=True)
class PostgresqlSchema(Place):
    """The schema ``schema`` of the database at ``url``."""

    url: URL
    schema: str
    timeout: float
    read_only: bool = False

    @property
    def name(self) -> str:
        """The address without its password, which may also hide among the options."""
        host = self.url.host or self.url.query.get("host") or "localhost"
        shown = URL.create(
            "postgresql", self.url.username, host=str(host), port=self.url.port, database=self.url.database
        )
        return f"{shown.render_as_string()} (schema {self.schema})"

    def engine(self, *, create: bool = False) -> Engine:  # noqa: ARG002  # a schema is made inside a transaction
        """An engine with a small pool. A connection of it that was lost is noticed where a transaction begins."""
        return create_engine(
            self.url,
            max_overflow=-1,
            hide_parameters=True,
            # Prepared statements belong to a session, which a pooler may swap between two transactions.
            connect_args={"connect_timeout": max(10, math.ceil(self.timeout)), "prepare_threshold": None},
        )

    def missing(self) -> bool:
        """Only the server can tell."""
        return False

    def mark(self) -> object:
        """Nothing: a server's tables are not swapped by renaming a file."""
        return None

    def lock(self, *, write: bool) -> AbstractContextManager[None]:
        """Nothing: the server's locks belong to its sessions."""
        del write
        return nullcontext()

    def begin(self, connection: Connection, *, write: bool) -> None:
        """Begin, and set what this transaction's durability and waiting depend on."""
        wait = math.ceil(self.timeout * 1000)
        # A writer must see what was committed while it waited for the head; a reader wants one moment in time.
        mode = "READ COMMITTED READ WRITE" if write else "REPEATABLE READ READ ONLY"
        begun = f'BEGIN ISOLATION LEVEL {mode}; SET LOCAL search_path TO "{self.schema}", pg_temp'
        if write:
            begun += f"; SET LOCAL lock_timeout = {wait}; SET LOCAL synchronous_commit = on"
        connection.exec_driver_sql(begun)  # one round trip

    def exists(self, connection: Connection) -> bool:
        """Whether the schema holds a ledger. Refuses a server that may forget what it committed."""
        if connection.exec_driver_sql("SHOW fsync").scalar() != "on":
            raise LedgerUnavailableError(
                f"The PostgreSQL server of {self.name} runs with fsync = off: a power cut could lose a charge.",
                fix="set fsync = on in postgresql.conf, or use another server.",
            )
        names = connection.exec_driver_sql("SELECT to_regclass('ledger_entries'), to_regclass('ledger_head')").one()
        if None not in names:
            return True
        if any(names):
            raise LedgerDamagedError(f"Tables are missing in {self.name}.", fix=_TRUSTED)
        return False

    def create(self, connection: Connection, *, divided: bool) -> None:
        """Make the schema and its tables; creators take turns."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock(hashtext('defocus ledger {self.schema}'))")
        if self.exists(connection):
            return
        connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{self.schema}"')
        create_tables(connection, postgresql_triggers(divided=divided), divided=divided)

    def settle(self) -> None:
        """The server flushes its own files."""

    def faults(self, connection: Connection) -> list[str]:
        """Triggers that are missing or switched off."""
        rows = connection.exec_driver_sql(
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') "
            "AND tgrelid IN ('ledger_entries'::regclass, 'ledger_head'::regclass, to_regclass('ledger_parts'))"
        )
        divided = connection.exec_driver_sql("SELECT to_regclass('ledger_parts')").scalar() is not None
        missing = sorted((TRIGGERS | DIVIDED_TRIGGERS if divided else TRIGGERS) - {name for (name,) in rows})
        return [f"triggers are missing or switched off: {', '.join(missing)}"] if missing else []

    def explain(self, error: SQLAlchemyError) -> LedgerError:
        """Say what the server's error means for a charge."""
        cause = getattr(error, "orig", None)
        code = getattr(cause, "sqlstate", None)
        text = " ".join(str(cause or error).split())[:200]
        if code in _BUSY:
            return LedgerBusyError(self.name, seconds=self.timeout)
        if code in _DAMAGED:
            return LedgerDamagedError(f"The ledger {self.name} cannot be read: {text}.", fix=_TRUSTED)
        return LedgerUnavailableError(
            f"The ledger {self.name} cannot be used: {text}. No receipt was given; "
            "if the connection was lost while committing, the charge may have been made, and stays.",
            fix="check that the server runs, that it accepts the role, and that its disk has space.",
        )
