"""Where a ledger lives: what every kind of database must offer, and how a place is named."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from defocus.errors import InvalidParameterError, LedgerError, positive

__all__ = ["Place", "patience", "url_of"]


class Place(ABC):
    """One SQLite file or one PostgreSQL schema.

    Guarantee:
        When COMMIT returns, the entry survives the loss of the process, of the machine and of
        power, as far as the disk honours a flush. Two writers never decide at the same time.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The place as it may be shown: no password."""

    @abstractmethod
    def engine(self, *, create: bool = False) -> Engine:
        """A fresh engine whose connections are as durable as the place can be."""

    @abstractmethod
    def missing(self) -> bool:
        """Whether nothing at all is at this place."""

    @abstractmethod
    def mark(self) -> object:
        """Something that changes when the whole ledger is swapped for another; refuses a place that is gone."""

    @abstractmethod
    def lock(self, *, write: bool) -> AbstractContextManager[None]:
        """Keep others away from a transaction where the database's own locks do not suffice."""

    @abstractmethod
    def begin(self, connection: Connection, *, write: bool) -> None:
        """Begin a transaction; a writing one waits for the lock, up to the timeout."""

    @abstractmethod
    def exists(self, connection: Connection) -> bool:
        """Whether there is a ledger here; refuses a place that holds something else."""

    @abstractmethod
    def create(self, connection: Connection, *, divided: bool) -> None:
        """Make the tables and triggers, in the running transaction; one more where the data has parts."""

    @abstractmethod
    def settle(self) -> None:
        """Make a newly created place durable."""

    @abstractmethod
    def faults(self, connection: Connection) -> list[str]:
        """What is wrong with the storage itself: damaged pages, missing tables or triggers."""

    @abstractmethod
    def explain(self, error: SQLAlchemyError) -> LedgerError:
        """The refusal that a database error means."""


def patience(timeout: object) -> float:
    """How many seconds to wait for another writer; at most an hour."""
    return min(float(positive("timeout", timeout)), 3600.0)


def url_of(where: object) -> Any | None:
    """The database address in ``where``, or None if it is the path of a file.

    >>> url_of("visits.ledger") is None
    True
    """
    if isinstance(where, Path):
        return None
    if not isinstance(where, str) or not where.strip() or "\0" in where or where == ":memory:":
        shown = where if where == ":memory:" else type(where).__name__ if not isinstance(where, str) else "empty"
        raise InvalidParameterError(
            f"A ledger needs the path of a file or the address of a PostgreSQL database, but got {shown}.",
            fix='pass for example "visits.ledger" or "postgresql://user@host/database"; a ledger outlives its process.',
        )
    if "://" not in where:
        return None
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.get_backend_name() not in {"postgresql", "postgres"}:
        raise InvalidParameterError(
            "A ledger lives in an SQLite file or in PostgreSQL, and this address names neither.",
            fix='pass a path such as "visits.ledger", or "postgresql://user@host/database?schema=visits".',
        )
    return url
