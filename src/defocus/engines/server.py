"""What engines on a database server share: one connection, one state of the rows, public tables that travel."""

import contextlib
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
from sqlglot import exp

from defocus.engines.engine import WholeResults, quietly
from defocus.engines.schema import Column, Kind, Schema, unique
from defocus.engines.syntax import rows_of
from defocus.engines.views import Names, changed
from defocus.errors import DefocusError, EngineError, SourceError

__all__ = ["Reason", "ServerEngine", "give_back", "kind_of"]

_T = TypeVar("_T")


class Reason(Enum):
    """Why a server failed, and what helps: reasons that say nothing about a value. Everything else is one reason."""

    CANCELLED = "it was cancelled, or took too long", "ask again; what was charged before stays charged."
    MEMORY = "memory, disk space or connections ran out", "give the server more, or ask when it is less busy."
    FORBIDDEN = (
        "this user may not read the table",
        "GRANT SELECT on it, and SHOW VIEW where there is such a right, to the user in the address.",
    )
    LOST = "the connection was lost", "check that the server runs, and open the table again."
    UNKNOWN = (
        "it does not understand the query, or a table is gone",
        "open the table again; if that does not help, report the question that was asked.",
    )


class ServerEngine(WholeResults, ABC):
    """A database server, on a connection of its own that can only read.

    Every statement runs in a transaction that is read only; within :meth:`snapshot` all of them see the same rows,
    whatever others write meanwhile. Public tables travel with each statement that names them.
    """

    name: str
    client: ClassVar[str]
    """The program in a terminal that connects with the same address."""
    catalogs: ClassVar[bool]
    """Whether names of tables begin with that of the database."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._turn = threading.RLock()
        self._held: list[Any] = []
        """The connection, if there is one, where it can be closed without the engine."""
        self._finish = weakref.finalize(self, give_back, self._held)
        self._within = 0
        self._published: dict[str, pa.Table] = {}
        self._closed = False
        self._read: dict[Names, list[Any]] = {}
        """The tables and views that are read, and what the catalogue said of them."""
        with self._turn:
            self._quietly("connect", self._connect)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    @abstractmethod
    def _connected(self) -> Any:
        """A new connection."""

    @abstractmethod
    def _is_open(self, connection: Any) -> bool:
        """Whether a connection can be used."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin to see one state of the rows. A connection that died while nobody asked is made again, once."""

    @abstractmethod
    def _roll_back(self, connection: Any) -> None:
        """End the transaction of a connection."""

    @abstractmethod
    def _asked(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """What the catalogue answers."""

    @abstractmethod
    def _definition(self, schema: str, name: str) -> list[Any]:
        """What the catalogue says of a relation and of those it reads, if all are stored tables or plain selections."""

    @abstractmethod
    def _converted(self, name: str, type_: Any, kind: Kind) -> exp.Expression:
        """A column in the type of its kind, under its own name."""

    @abstractmethod
    def _columns(self, relation: exp.Expression) -> list[tuple[str, Any]]:
        """The columns of a relation with their types, without a look at a row."""

    @abstractmethod
    def _reason(self, error: Exception) -> Reason | None:
        """Why something failed, where that says nothing about a value."""

    def named(self, names: Names) -> exp.Table:
        """A stored table or a view that is a plain selection; anything else is refused. See ``views.definition``."""
        with self._turn:
            self._read[names] = self._defined(names)
        catalog, db, this = (exp.to_identifier(part, quoted=True) for part in names)
        return exp.Table(this=this, db=db, catalog=catalog if self.catalogs else None)

    def _defined(self, names: Names) -> list[Any]:
        """What the catalogue says of a table or view, unless it is refused."""
        return self._quietly("list the tables", lambda: self._definition(names[1], names[2]))

    def schema(self, relation: exp.Expression) -> Schema:
        """The columns of a relation, read without looking at a row."""
        return Schema(Column(name, type_.kind) for name, type_ in self._columns(relation))

    def canonical(self, relation: exp.Expression, kinds: Mapping[str, Kind]) -> exp.Select:
        """The same rows with every column in the one type its kind has everywhere."""
        columns = self._columns(relation)
        Schema(Column(name, type_.kind) for name, type_ in columns)  # refuses names that cannot be told apart
        converted = [self._converted(name, type_, kinds.get(name, type_.kind)) for name, type_ in columns]
        return exp.select(*converted).from_(rows_of(relation), copy=False)

    def finer(self, relation: exp.Expression) -> frozenset[str]:  # noqa: ARG002  # it is so for every relation
        """None: moments are stored in microseconds, and numbers with a fraction name nobody."""
        return frozenset()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All statements within see the same rows. A connection that is lost within is not made again."""
        with self._turn:
            if not self._within:
                self._quietly("begin", self._begin)
            self._within += 1
            try:
                yield
            finally:
                self._within -= 1
                if not self._within:
                    self._end()

    @contextlib.contextmanager
    def kept(self, select: exp.Select) -> Iterator[exp.Select]:
        """The query itself: within a snapshot it finds the same rows each time."""
        with self.snapshot():
            yield select

    def publish(self, name: str, table: pa.Table) -> exp.Table:
        """Keep a table that travels with every statement that names it, until it is withdrawn."""
        published = unique(name)
        with self._turn:
            self._published[published] = table
        return exp.Table(this=exp.to_identifier(published, quoted=True))

    def withdraw(self, table: exp.Table) -> None:
        """Forget a table that was published."""
        with self._turn:
            self._published.pop(table.name, None)

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            self._closed = True
            self._published.clear()
            self._finish()

    def _connect(self) -> Any:
        if self._closed:
            raise EngineError("The table was closed.", fix="open the table again.")
        if not self._held or not self._is_open(self._held[0]):
            self._held[:] = [self._connected()]
        return self._held[0]

    def _end(self) -> None:
        """End the transaction, and the connection if that fails."""
        for connection in [one for one in self._held if self._is_open(one)]:
            try:
                self._roll_back(connection)
            except Exception:  # noqa: BLE001 - whatever it is, it may quote a value
                give_back([connection])

    def _check_unchanged(self) -> None:
        """Refuse to compute in a lost snapshot, or from tables and views that are not as they were when opened."""
        if self._within and (not self._held or not self._is_open(self._held[0])):
            raise self._refusal(Reason.LOST, "compute")
        for names, before in self._read.items():
            with contextlib.suppress(SourceError):
                if self._defined(names) == before:
                    continue
            raise changed(self.name)

    def _quietly(self, doing: str, work: Callable[[], _T]) -> _T:
        return quietly(work, lambda error: self._refusal(self._reason(error), doing))

    def _refusal(self, reason: Reason | None, doing: str) -> DefocusError:
        """What is said of an error: by a reason, or not at all."""
        if doing == "connect":
            return SourceError(
                f"{self.name} could not be reached with this address, which is not repeated: it may hold a password.",
                fix=f"check host, port, database, user and password; {self.client} with the same should connect.",
            )
        if reason is not None:
            what, fix = reason.value
            return EngineError(f"{self.name} could not {doing}: {what}.", fix=fix)
        return EngineError(
            f"{self.name} could not {doing}. What it said is not repeated, because it may quote the data.",
            fix=f"check that the table can be read with {self.client} and the same address.",
        )


def give_back(held: list[Any]) -> None:
    """Close connections, whatever state they are in."""
    for connection in held:
        with contextlib.suppress(Exception):
            connection.close()


def kind_of(type_: pa.DataType) -> Kind:
    """The kind of a column of a public table."""
    checks: tuple[tuple[Callable[[pa.DataType], bool], Kind], ...] = (
        (pa.types.is_boolean, Kind.BOOLEAN),
        (pa.types.is_integer, Kind.INTEGER),
        (pa.types.is_floating, Kind.NUMBER),
        (pa.types.is_date, Kind.DATE),
        (pa.types.is_timestamp, Kind.TIMESTAMP),
    )
    return next((kind for check, kind in checks if check(type_)), Kind.TEXT)
