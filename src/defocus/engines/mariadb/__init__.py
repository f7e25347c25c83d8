"""MariaDB: the rows stay in the server, and only integers for each group leave it."""

import contextlib
import decimal
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from defocus.engines.engine import interruptible
from defocus.engines.kinds import Columns, output
from defocus.engines.mariadb.dialect import lowered
from defocus.engines.mariadb.types import Typed, convert
from defocus.engines.mariadb.views import definition
from defocus.engines.schema import ARROW, Column, Kind, Schema
from defocus.engines.server import Reason, ServerEngine, give_back, kind_of
from defocus.engines.syntax import native
from defocus.errors import EngineError, SourceError

__all__ = ["MariaDbEngine", "is_address"]

_SCHEMES = ("mysql://", "mariadb://")
_OLDEST = (10, 11)
_SETTINGS = (
    "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin",
    "SET SESSION sql_mode = 'NO_UNSIGNED_SUBTRACTION,NO_ZERO_IN_DATE,NO_ZERO_DATE', old_mode = ''",
    "SET SESSION time_zone = '+00:00', sql_select_limit = DEFAULT, sql_auto_is_null = 0, max_error_count = 0",
    "SET SESSION max_sort_length = 66000, sort_buffer_size = 8388608",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
)
"""What the meaning of a query must not depend on, and that nothing may be written."""
_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_REASONS: tuple[tuple[tuple[int, ...], Reason], ...] = (
    ((1317, 1969, 3024), Reason.CANCELLED),
    ((1021, 1037, 1038, 1041, 1114, 1135, 1203, 1226), Reason.MEMORY),
    ((1044, 1045, 1142, 1143, 1227), Reason.FORBIDDEN),
    ((1053, 1152, 1159, 1160, 1161, 1927, 2003, 2006, 2013, 2055), Reason.LOST),
    ((1046, 1049, 1051, 1054, 1064, 1109, 1146, 1267, 1305), Reason.UNKNOWN),
)
"""By the number of the error."""
_PATHS = {
    Kind.BOOLEAN: "SMALLINT",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "DATETIME(6)",
}


_MOST = sys.float_info.max
"""What stands for infinity."""


def is_address(data: object) -> bool:
    """Whether this names a MariaDB database.

    >>> is_address("mysql://reader@host/hospital"), is_address("visits.parquet")
    (True, False)
    """
    return isinstance(data, str) and data.startswith(_SCHEMES)


@final
class MariaDbEngine(ServerEngine):
    """MariaDB 10.11 or later, on a connection of its own that can only read.

    Every statement runs in a transaction that is read only; within :meth:`snapshot` all of them see the same rows,
    whatever others write meanwhile. Public tables travel with each statement as a text, so the right to make temporary
    tables is not needed.

    Assumes:
        The server computes floats as IEEE 754 says, but for results beyond the largest float, which are that one. What
        a view shows to this user is the table: the guarantee is about those rows. Nobody replaces a view while a
        statement runs; between statements it is noticed.
    """

    name = "MariaDB"
    dialect = "mysql"
    reads_once = True
    client = "mariadb"
    catalogs = False

    @property
    def database(self) -> str | None:
        """The database that the address names; others are reached by ``table="other.visits"``."""
        return unquote(urlsplit(self._address).path.strip("/")) or None

    def _connected(self) -> Any:
        return _connected(self._address)

    def _is_open(self, connection: Any) -> bool:
        return bool(connection.open)

    def _asked(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._connect().cursor() as cursor:
            cursor.execute(statement, list(values))
            return list(cursor.fetchall())

    def schema(self, relation: exp.Expression) -> Schema:
        """The columns of a relation, from the catalogue and from what is done to them."""
        if isinstance(relation, exp.Table):
            return super().schema(relation)
        columns = output(relation, self._stored(relation))
        return Schema(Column(name, kind or Kind.OTHER) for name, kind in columns.items())

    def _definition(self, schema: str, name: str) -> list[Any]:
        return definition(self._asked, schema, name)

    def _converted(self, name: str, type_: Typed, kind: Kind) -> exp.Expression:
        return convert(name, type_, kind)

    def run(self, select: exp.Expression, *, progress: Callable[[float], None] | None = None) -> pa.Table:
        """Compute. MariaDB does not say how far it is, so ``progress`` is not called."""
        del progress
        statement = self.written(select)
        columns = output(select, self._stored(select))
        with self._turn:
            return self._quietly(
                "compute", lambda: interruptible(lambda: self._checked(statement, columns), self.cancel)
            )

    def written(self, select: exp.Expression) -> str:
        """The statement that :meth:`run` would send, with the public tables that it names."""
        tree = lowered(select, self._stored(select))
        for table in list(tree.find_all(exp.Table)):
            if not table.args.get("db") and table.name in self._published:
                called = exp.to_identifier(table.alias or _alias(table.name), quoted=True)
                table.replace(_rows(self._published[table.name]).subquery(called))
        _check_names(tree)
        with contextlib.suppress(UnsupportedError):  # sqlglot would leave out what it has no word for, and warn
            return tree.sql(self.dialect, identify=True, unsupported_level=ErrorLevel.RAISE)
        raise EngineError("MariaDB has no words for a part of this question.", fix="ask it without that part.")

    def _stored(self, tree: exp.Expression) -> dict[str, Columns]:
        """What the tables that a query names hold, as they are read."""
        known: dict[str, Columns] = {}
        for table in tree.find_all(exp.Table):
            if table.args.get("db") or table.name in self._published:
                with contextlib.suppress(KeyError):
                    known[table.name] = {name: type_.kind for name, type_ in self._columns(table)}
        return known

    def cancel(self) -> None:
        """Stop what is running, from another thread, by a connection of its own."""
        for running in list(self._held):
            with contextlib.suppress(Exception), contextlib.closing(_connected(self._address)) as other:
                other.query(f"KILL QUERY {int(running.thread_id())}")

    def _begin(self) -> None:
        """Begin to see one state of the rows. A connection that died while nobody asked is made again, once."""
        try:
            self._connect().query(_BEGIN)
        except Exception:  # noqa: BLE001 - whatever it is, the second attempt says it
            give_back(self._held)
            self._connect().query(_BEGIN)

    def _roll_back(self, connection: Any) -> None:
        connection.rollback()

    def _reason(self, error: Exception) -> Reason | None:
        if type(error).__name__ == "InterfaceError":
            return Reason.LOST
        return next((reason for numbers, reason in _REASONS if error.args[:1] and error.args[0] in numbers), None)

    def _checked(self, statement: str, columns: Mapping[str, Kind | None]) -> pa.Table:
        """What a statement finds, in tables and views that are as they were when they were opened."""
        self._check_unchanged()
        with self._connect().cursor() as cursor:
            cursor.execute(statement)
            rows = cursor.fetchall()
            told = [one[0] for one in cursor.description]
        called = list(columns) if len(columns) == len(told) else told
        values = list(zip(*rows, strict=True)) if rows else [()] * len(called)
        arrays = [_array(list(column), columns.get(name)) for column, name in zip(values, called, strict=True)]
        return pa.Table.from_arrays(arrays, names=called)

    def _columns(self, relation: exp.Expression) -> list[tuple[str, Typed]]:
        """The columns of a table with their types, and those that are read by a ``SELECT *``."""
        if not isinstance(relation, exp.Table):
            kinds = {column.name: column.kind for column in self.schema(relation)}
            return [(name, _typed(kind)) for name, kind in kinds.items()]
        if relation.name in self._published and not relation.db:
            table = self._published[relation.name]
            return [(name, _typed(kind_of(table.schema.field(name).type))) for name in table.column_names]
        described = {names[1:]: found[0] for names, found in self._read.items()}[relation.db, relation.name]
        return [
            (name, Typed(type_.lower(), scale))
            for name, type_, scale, extra in described
            if "INVISIBLE" not in extra.upper()
        ]


_TYPED = {
    Kind.BOOLEAN: "tinyint(1)",
    Kind.INTEGER: "bigint",
    Kind.NUMBER: "double",
    Kind.TEXT: "longtext",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "datetime",
}


def _typed(kind: Kind) -> Typed:
    return Typed(_TYPED.get(kind, "blob"))


def _check_names(tree: exp.Expression) -> None:
    for name in {one.name for one in tree.find_all(exp.Identifier)}:
        if len(name) > _LONGEST_NAME or name != name.rstrip():
            raise EngineError(
                f"MariaDB cannot name a column {name!r:.80}.",
                fix=f"use names of at most {_LONGEST_NAME} characters that do not end with a space.",
            )


_LONGEST_NAME = 64


def _alias(name: str) -> str:
    """A name that MariaDB can hold: what was drawn at random tells it apart."""
    return name[-60:].strip()


def _array(values: list[Any], kind: Kind | None) -> pa.Array:
    """A column of a result; sums of integers come as decimals."""
    if kind is Kind.INTEGER or (kind is None and any(isinstance(one, decimal.Decimal) for one in values)):
        if any(isinstance(one, decimal.Decimal) for one in values):
            return pa.array([None if one is None else decimal.Decimal(one) for one in values], pa.decimal128(38, 0))
        return pa.array(values, pa.int64())
    if kind is Kind.BOOLEAN:
        return pa.array([None if one is None else bool(one) for one in values], pa.bool_())
    if kind is Kind.NUMBER:
        values = [math.copysign(math.inf, one) if one in {_MOST, -_MOST} else one for one in values]
    if kind is Kind.TEXT:
        values = [one.decode() if isinstance(one, bytes) else one for one in values]
    return pa.array(values, None if kind is None or kind is Kind.OTHER else ARROW[kind])


def _rows(table: pa.Table) -> exp.Select:
    """The rows of a public table, from a text of JSON that is read once: what has a limit is not merged into a join."""
    kinds = [kind_of(field.type) for field in table.schema]
    columns = [
        [_plain(value, kind) for value in column.to_pylist()] for column, kind in zip(table.columns, kinds, strict=True)
    ]
    lines = json.dumps(list(zip(*columns, strict=True)))
    names = [exp.to_identifier(name, quoted=True).sql("mysql") for name in table.column_names]
    types = [_path(kind, values) for kind, values in zip(kinds, columns, strict=True)]
    paths = ", ".join(f"{name} {type_} PATH '$[{i}]'" for i, (name, type_) in enumerate(zip(names, types, strict=True)))
    text = exp.Literal.string(lines).sql("mysql")
    written = f"JSON_TABLE({text}, '$[*]' COLUMNS ({paths})) AS `u`"
    select = exp.select("*").from_(exp.Table(this=exp.Var(this=written)), copy=False)
    return native(select.limit(2**63 - 1))  # type: ignore[return-value]  # the same select


def _path(kind: Kind, values: Sequence[Any]) -> str:
    """The type of a public column; a text that is not too long can have an index."""
    if kind is not Kind.TEXT:
        return _PATHS[kind]
    longest = max((len(one) for one in values if one), default=0) + 1
    type_ = f"VARCHAR({longest})" if longest < _INDEXED else "LONGTEXT"
    return f"{type_} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"


_INDEXED = 700


def _plain(value: Any, kind: Kind) -> Any:
    """A value as JSON and MariaDB have it: no NaN, and the largest float for infinity."""
    if value is None or kind is Kind.TEXT or kind is Kind.INTEGER:
        return value
    if kind is Kind.NUMBER:
        return None if math.isnan(value) else max(-_MOST, min(_MOST, value))
    return int(value) if kind is Kind.BOOLEAN else str(value)


_OPTIONS = {"unix_socket", "ssl_ca", "ssl_cert", "ssl_key"}


def _connected(address: str) -> Any:
    try:
        import pymysql  # noqa: PLC0415  # an extra: only those who use MariaDB need it
    except ImportError:
        pymysql = None
    if pymysql is None:
        raise SourceError("MariaDB needs the package pymysql.", fix='pip install "defocus[mysql]"')
    parts = urlsplit(address)
    options = dict(parse_qsl(parts.query))
    if set(options) - _OPTIONS:
        raise SourceError(
            "The address of MariaDB holds an option that is not known.",
            fix=f"use {', '.join(sorted(_OPTIONS))}, and name the table by table=.",
        )
    connection = pymysql.connect(
        host=parts.hostname or "localhost",
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or os.environ.get("MYSQL_PWD", "")),
        database=unquote(parts.path.strip("/")) or None,
        charset="utf8mb4",
        autocommit=True,
        local_infile=False,
        connect_timeout=10,
        conv={**pymysql.converters.conversions},
        **options,
    )
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchone()[0])
        numbers = tuple(int(part) for part in version.split("-", maxsplit=1)[0].split(".")[:2])
        if "mariadb" not in version.lower() or numbers < _OLDEST:
            raise SourceError(
                "Tables are read from MariaDB 10.11 or later. MySQL has other collations and patterns.",
                fix="upgrade the server, or copy the table to Parquet and open that.",
            )
        for statement in _SETTINGS:
            cursor.execute(statement)
