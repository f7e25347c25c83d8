"""PostgreSQL: the rows stay in the server, and only integers for each group leave it."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, final

import pyarrow as pa
from sqlglot import exp

from defocus.engines.postgresql.dialect import lowered
from defocus.engines.postgresql.types import Typed, convert
from defocus.engines.postgresql.views import definition
from defocus.engines.schema import CANONICAL, Kind
from defocus.engines.server import Reason, ServerEngine, kind_of
from defocus.engines.syntax import native, rows_of
from defocus.errors import SourceError

__all__ = ["PostgreSqlEngine", "is_address"]

_SCHEMES = ("postgresql://", "postgres://")
_OLDEST = 170000
_SETTINGS = MappingProxyType(
    {
        "application_name": "defocus",
        "client_min_messages": "error",
        "DateStyle": "ISO, YMD",
        "TimeZone": "UTC",
        "extra_float_digits": "1",
        "standard_conforming_strings": "on",
        "search_path": "pg_catalog",
        "default_transaction_read_only": "on",
    }
)
"""What the meaning of a query must not depend on, and that nothing may be written."""
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_REASONS: tuple[tuple[tuple[str, ...], Reason], ...] = (
    (("57014",), Reason.CANCELLED),
    (("53",), Reason.MEMORY),
    (("42501", "28"), Reason.FORBIDDEN),
    (("08", "57P"), Reason.LOST),
    (("42", "3F", "0A"), Reason.UNKNOWN),
)
"""By the beginning of the state."""
_ARROW = {
    "bool": pa.bool_(),
    **dict.fromkeys(("int2", "int4", "int8"), pa.int64()),
    **dict.fromkeys(("float4", "float8"), pa.float64()),
    "numeric": pa.decimal128(38, 0),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def is_address(data: object) -> bool:
    """Whether this names a PostgreSQL database.

    >>> is_address("postgresql://reader@host/hospital"), is_address("visits.parquet")
    (True, False)
    """
    return isinstance(data, str) and data.startswith(_SCHEMES)


@final
class PostgreSqlEngine(ServerEngine):
    """PostgreSQL 17 or later, on a connection of its own that can only read.

    Every statement runs in a transaction that is read only; within :meth:`snapshot` all of them see the same rows,
    whatever others write meanwhile. Public tables travel with each statement as parameters, so neither the right to
    make temporary tables nor a primary server is needed.

    Assumes:
        The server computes floats as IEEE 754 says, which it does on every usual machine. What a view or a policy on
        rows shows to this user is the table: the guarantee is about those rows. Nobody replaces a view while a
        statement runs; between statements it is noticed.
    """

    name = "PostgreSQL"
    dialect = "postgres"
    reads_once = False
    client = "psql"
    catalogs = True

    def __init__(self, address: str, *, timeout: float | None = None) -> None:
        self._timeout = timeout
        self._types: dict[int, tuple[str, str]] = {}
        super().__init__(address)

    def _connected(self) -> Any:
        settings = dict(_SETTINGS)
        if self._timeout is not None:
            settings["statement_timeout"] = str(max(1, round(self._timeout * 1000)))
        return _connected(self._address, settings)

    def _is_open(self, connection: Any) -> bool:
        return not connection.closed

    def _asked(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._connect().cursor() as cursor:
            return list(cursor.execute(statement, list(values)).fetchall())

    def _definition(self, schema: str, name: str) -> list[Any]:
        return definition(self._asked, schema, name)

    def _converted(self, name: str, type_: Typed, kind: Kind) -> exp.Expression:
        return convert(name, type_, kind)

    def run(self, select: exp.Expression, *, progress: Callable[[float], None] | None = None) -> pa.Table:
        """Compute. PostgreSQL does not say how far it is, so ``progress`` is not called."""
        del progress
        statement, values = self._statement(select)
        with self._turn:
            return self._quietly("compute", lambda: self._checked(statement, values))

    def written(self, select: exp.Expression) -> str:
        """The statement that :meth:`run` would send."""
        return self._statement(select)[0]

    def cancel(self) -> None:
        """Stop what is running, from another thread."""
        for connection in list(self._held):
            with contextlib.suppress(Exception):
                connection.cancel_safe(timeout=10)

    def _begin(self) -> None:
        """Begin to see one state of the rows. A connection that died while nobody asked is made again, once."""
        connection = self._connect()
        try:
            connection.execute(_BEGIN)
        except Exception:
            if not connection.closed:
                raise
            self._connect().execute(_BEGIN)

    def _roll_back(self, connection: Any) -> None:
        connection.execute("ROLLBACK")

    def _reason(self, error: Exception) -> Reason | None:
        state = getattr(error, "sqlstate", None) or ""
        if type(error).__name__ == "OperationalError" and not state:
            return Reason.LOST
        return next((reason for beginnings, reason in _REASONS if state.startswith(beginnings)), None)

    def _statement(self, select: exp.Expression) -> tuple[str, list[Any]]:
        """The text of a query in PostgreSQL's terms, with the public tables it names as parameters."""
        tree = lowered(select)
        named = dict.fromkeys(table.name for table in tree.find_all(exp.Table) if not table.args.get("db"))
        values: list[Any] = []
        for name in [name for name in named if name in self._published]:
            rows = self._published[name]
            assert isinstance(tree, exp.Select | exp.SetOperation)  # noqa: S101  # what engines are asked
            tree = tree.with_(exp.to_identifier(name, quoted=True), as_=_unnested(rows, len(values)), copy=False)
            values += [column.to_pylist() for column in rows.columns]
        return tree.sql(self.dialect, identify=True), values

    def _checked(self, statement: str, values: Sequence[Any]) -> pa.Table:
        """What a statement finds, in tables and views that are as they were when they were opened."""
        self._check_unchanged()
        return self._fetched(statement, values)

    def _fetched(self, statement: str, values: Sequence[Any]) -> pa.Table:
        with self._connect().cursor() as cursor:
            cursor.execute(statement, list(values) or None)
            names = [column.name for column in cursor.description]
            types = [_ARROW.get(type_.name, pa.string()) for _, type_ in self._typed(cursor.description)]
            rows = cursor.fetchall()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        arrays = [pa.array(list(column), type_) for column, type_ in zip(columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, names=names)

    def _columns(self, relation: exp.Expression) -> list[tuple[str, Typed]]:
        empty = exp.select("*").from_(rows_of(relation), copy=False).limit(0)
        statement, values = self._statement(empty)
        with self._turn:
            return self._quietly("read the schema", lambda: self._described(statement, values))

    def _described(self, statement: str, values: Sequence[Any]) -> list[tuple[str, Typed]]:
        with self._connect().cursor() as cursor:
            cursor.execute(statement, list(values) or None)
            return self._typed(cursor.description)

    def _typed(self, description: Sequence[Any]) -> list[tuple[str, Typed]]:
        unknown = [column.type_code for column in description if column.type_code not in self._types]
        if unknown:
            asked = "SELECT oid, typname, typcategory FROM pg_catalog.pg_type WHERE oid = ANY($1::oid[])"
            with self._connect().cursor() as cursor:
                for oid, name, category in cursor.execute(asked, [unknown]).fetchall():
                    builtin = oid < _FIRST_OWN
                    self._types[oid] = (name if builtin else "", category)
        return [(column.name, Typed(*self._types[column.type_code], column.scale)) for column in description]


_FIRST_OWN = 16384
"""Types with lower numbers are PostgreSQL's own; somebody may have made another "text"."""


def _connected(address: str, settings: Mapping[str, str]) -> Any:
    try:
        import psycopg  # noqa: PLC0415  # an extra: only those who use PostgreSQL need it
    except ImportError:
        psycopg = None  # type: ignore[assignment]  # refused below, without the failure as its context
    if psycopg is None:
        raise SourceError("PostgreSQL needs the package psycopg.", fix='pip install "defocus[postgresql]"')
    connection = psycopg.connect(
        address, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor, client_encoding="utf8"
    )
    if connection.info.server_version < _OLDEST or connection.info.parameter_status("server_encoding") != "UTF8":
        connection.close()
        raise SourceError(
            "Tables are read from PostgreSQL 17 or later, with databases in UTF-8.",
            fix="upgrade the server, or copy the table to Parquet and open that.",
        )
    try:
        for setting, value in settings.items():
            connection.execute("SELECT pg_catalog.set_config($1, $2, false)", [setting, value])
    except BaseException:
        connection.close()
        raise
    return connection


def _unnested(table: pa.Table, before: int) -> exp.Select:
    """The rows of a public table from one parameter for each column, numbered after those before."""
    types = [CANONICAL[kind_of(column.type)] for column in table.columns]
    arrays = [
        exp.Cast(
            this=exp.Parameter(this=exp.Literal.number(before + i + 1)),
            to=exp.DataType.build(f"{type_}[]", dialect="postgres"),
        )
        for i, type_ in enumerate(types)
    ]
    names = [exp.to_identifier(name, quoted=True) for name in table.column_names]
    columns: list[exp.Expression] = [exp.Column(this=name.copy()) for name in names]
    shown = [
        exp.Alias(this=exp.Collate(this=column, expression=exp.to_identifier("C", quoted=True)), alias=name.copy())
        if type_ == "TEXT"
        else column
        for column, name, type_ in zip(columns, names, types, strict=True)
    ]
    rows = exp.Unnest(expressions=arrays, alias=exp.TableAlias(this=exp.to_identifier("u", quoted=True), columns=names))
    return native(exp.select(*shown).from_(rows, copy=False))  # type: ignore[return-value]  # the same select
