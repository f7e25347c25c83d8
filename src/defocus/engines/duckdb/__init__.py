"""DuckDB, embedded: the engine that is always there."""

import contextlib
import shutil
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from defocus.engines.duckdb.types import FINER, convert, kind_of
from defocus.engines.duckdb.views import TABLES, VIEWS, Selections
from defocus.engines.engine import BLOCK, Blockwise, interruptible, quietly, watched, written_blocks
from defocus.engines.schema import Column, Kind, Schema, unique
from defocus.engines.syntax import column, quoted, rows_of, sub
from defocus.engines.views import Names, changed
from defocus.errors import DefocusError, EngineError, SourceError

__all__ = ["DuckDbEngine"]

_T = TypeVar("_T")

_CLOSED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "preserve_insertion_order": "false",
    "python_enable_replacements": "false",
}
_REASONS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    ((duckdb.InterruptException,), "it was cancelled", "ask again; what was charged before stays charged."),
    (
        (duckdb.OutOfMemoryException, MemoryError),
        "memory, or room for temporary files, ran out",
        "give it more memory or free some disk space.",
    ),
    (
        (duckdb.PermissionException, duckdb.IOException),
        "a file is missing, damaged or out of its reach",
        "check that the files are where they were when the table was opened.",
    ),
    ((duckdb.ConnectionException,), "the connection is closed", "open the table again."),
    (
        (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException),
        "it does not understand the query, or a table is gone",
        "open the table again; if that does not help, report the question that was asked.",
    ),
)
"""Reasons that say nothing about a value. Everything else is one reason, so that no row chooses between them."""
_TURNS: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()
"""One lock for each connection that was given, shared by all engines on it: it computes one thing at a time."""
_BYTEWISE = {"", "c", "posix", "binary"}
"""Collations under which text equals only itself."""
_FUNCTIONS = "SELECT function_name FROM system.main.duckdb_functions()"
"""The names of all functions, operators and macros, once for each signature; it calls none that a user could make."""


@final
class DuckDbEngine:
    """DuckDB on a connection of its own, closed to everything but the named files, or on the user's connection.

    An own connection reads ``files`` and ``attached`` database files and nothing else: no other file, no network, no
    extension, no Python variable. It spills to a directory that only this user can read and that goes away with it.
    A connection that was given keeps its own settings, and stays open when the engine is closed. It is refused, when it
    is given and before each computation, while its default collation lets one text equal another: columns are made to
    compare bytes, but constants and public tables would not be, and one row would match several keys. So it is while a
    macro or function on it has the name of a built-in one, since nothing would be clipped if ``least`` were another
    function; while it hands out types that Arrow does not know; and when a table that it stores is no longer the one
    that was opened. Views are read as what they select, see :meth:`named`.

    Assumes:
        Parquet files are what they claim: text in them is UTF-8. A damaged file fails, whoever's row is damaged.

    >>> engine = DuckDbEngine()
    >>> engine.run(exp.select(exp.alias_(exp.Literal.number(1), "one"))).to_pylist()
    [{'one': 1}]
    """

    name = "DuckDB"
    dialect = "duckdb"
    reads_once = False

    def __init__(
        self,
        connection: Any = None,
        *,
        files: Sequence[Path] = (),
        attached: Mapping[str, Path] | None = None,
        memory: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._turn = threading.RLock() if connection is None else _TURNS.setdefault(connection, threading.RLock())
        self._published: set[str] = set()
        self._gone = False
        self._given = connection is not None
        self._shows_progress = connection is None
        self._collates = connection is not None or bool(attached)
        self._read: dict[Names, str | None] = {}
        """The stored tables of a given connection that are read, and how they were made."""
        if connection is not None:
            self._connection = connection
            self._finish: Callable[[], Any] = lambda: None  # a connection that was given stays open
            with self._turn:
                self._check_connection("start")
            return
        config: dict[str, Any] = {**_CLOSED, "memory_limit": memory, "threads": threads}
        config = {name: value for name, value in config.items() if value is not None}
        self._connection = _quietly("start", lambda: duckdb.connect(":memory:", config=config))
        spill = tempfile.mkdtemp(prefix="defocus-")
        self._finish = weakref.finalize(self, _give_back, self._connection, spill)
        for alias, path in (attached or {}).items():
            file, name = exp.Literal.string(str(path)).sql("duckdb"), quoted(alias).sql("duckdb")
            _quietly("attach", partial(self._connection.execute, f"ATTACH {file} AS {name} (READ_ONLY)"))
        _quietly("start", lambda: self._shut(spill, files))

    def _shut(self, spill: str, files: Sequence[Path]) -> None:
        """Close the connection to everything but its files, for good."""
        paths = [exp.Literal.string(str(path)) for path in files]
        settings: dict[str, exp.Expression] = {
            "temp_directory": exp.Literal.string(spill),
            "TimeZone": exp.Literal.string("UTC"),
            "enable_progress_bar_print": exp.false(),
            "enable_progress_bar": exp.true(),
            "allowed_paths": exp.Array(expressions=paths),
            "enable_external_access": exp.false(),
            "lock_configuration": exp.true(),
        }
        for setting, value in settings.items():
            self._connection.execute(f"SET {setting} = {value.sql(self.dialect)}")

    def named(self, names: Names) -> exp.Expression:
        """A stored table, or what a view selects of such; anything else is refused. See :class:`Selections`."""
        with self._turn:
            selections = Selections(self._listed(TABLES), self._listed(VIEWS), self._columns)
            relation = selections.relation(names)
        for table in relation.find_all(exp.Table):
            if self._given and table.catalog:
                key = (table.catalog, table.db, table.name)
                self._read[key] = selections.tables[key]
        return relation

    def _listed(self, asked: str) -> dict[Names, str | None]:
        listed = _quietly("list the tables", lambda: self._connection.sql(asked).fetchall())
        return {(catalog, schema, name): text for catalog, schema, name, text in listed}

    def schema(self, relation: exp.Expression) -> Schema:
        """The columns of a relation, read without looking at a row."""
        return Schema(Column(name, kind_of(type_)) for name, type_ in self._columns(relation))

    def canonical(self, relation: exp.Expression, kinds: Mapping[str, Kind]) -> exp.Select:
        """The same rows with every column in the one type its kind has everywhere."""
        columns = self._columns(relation)
        Schema(Column(name, kind_of(type_)) for name, type_ in columns)  # refuses names that cannot be told apart
        converted = [
            convert(name, type_, kinds.get(name, kind_of(type_)), collated=self._collates) for name, type_ in columns
        ]
        return exp.select(*converted).from_(rows_of(relation), copy=False)

    def finer(self, relation: exp.Expression) -> frozenset[str]:
        """The columns of which :meth:`canonical` may make one value of two that differ."""
        columns = self._columns(relation)
        return frozenset(name for name, type_ in columns if type_.id in FINER and kind_of(type_) is not Kind.INTEGER)

    def run(self, select: exp.Expression, *, progress: Callable[[float], None] | None = None) -> pa.Table:
        """Compute; ``progress`` is called now and then with a percentage, from another thread."""
        text = self.written(select)
        return self._computed(lambda: self._connection.sql(text).to_arrow_table(), progress)

    def store(self, result: Blockwise, folder: Path, *, progress: Callable[[float], None] | None = None) -> None:
        """Compute, sort and write one Parquet file; what does not fit in DuckDB's memory spills."""
        ordered = result.grouping(sub(result.rows, "u")).order_by(*map(column, result.by), copy=False)
        text = self.written(ordered)
        self._computed(
            lambda: written_blocks(self._connection.sql(text).to_arrow_reader(BLOCK), result.blocks, folder), progress
        )

    def check_store(self) -> None:
        """Nothing to do: blocks go through this process."""

    def _computed(self, work: Callable[[], _T], progress: Callable[[float], None] | None = None) -> _T:
        with self._turn, watched(self._percent, progress if self._shows_progress else None):
            self._check_connection("compute")
            return _quietly("compute", lambda: interruptible(lambda: self._minded(work), self.cancel))

    def _minded(self, work: Callable[[], _T]) -> _T:
        """Do the work, and remember if the database gave up."""
        try:
            return work()
        except duckdb.FatalException:
            self._gone = True
            raise

    def written(self, select: exp.Expression) -> str:
        """The statement that :meth:`run` would send, unless the database has given up: that is said before a charge."""
        if self._gone:
            raise EngineError("DuckDB gave up, and answers nothing more.", fix="open the table again.")
        return select.sql(self.dialect, identify=True)

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        """Nothing to do: files do not change, and who passes a connection says when it is written to."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def kept(self, select: exp.Select) -> Iterator[exp.Select]:
        """The rows of a query in a temporary table, which only this connection sees and which spills as others do."""
        kept = exp.Table(this=quoted(unique("kept")))
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        create = exp.Create(this=kept, kind="TABLE", properties=temporary, expression=select.copy())
        text = self.written(create)
        self._computed(lambda: self._connection.execute(text))
        try:
            yield exp.select("*").from_(kept.copy())
        finally:
            with self._turn, contextlib.suppress(duckdb.Error):
                self._connection.execute(exp.Drop(tables=[kept.copy()], kind="TABLE").sql(self.dialect, identify=True))

    def publish(self, name: str, table: Any) -> exp.Table:
        """Make a table known until it is withdrawn, under a name that no other engine or user of a connection has."""
        published = unique(name)
        with self._turn:
            _quietly("read the table", lambda: self._connection.register(published, table))
            self._published.add(published)
        return exp.Table(this=exp.to_identifier(published, quoted=True))

    def withdraw(self, table: exp.Table) -> None:
        """Forget a table that was published, and give its memory back."""
        with self._turn, contextlib.suppress(duckdb.Error):
            self._connection.unregister(table.name)
            self._published.discard(table.name)

    def cancel(self) -> None:
        """Stop what is running, from another thread."""
        with contextlib.suppress(duckdb.Error):
            self._connection.interrupt()

    def close(self) -> None:
        """Close an own connection and remove what it spilled; leave a given one open, as it was."""
        with self._turn:
            for name in sorted(self._published):
                self.withdraw(exp.Table(this=exp.to_identifier(name, quoted=True)))
            self._finish()

    def _check_connection(self, doing: str) -> None:
        """Refuse a given connection that is not as it was; an own one stays as it is, and its tables are only read.

        Functions may be others than DuckDB's own, text may equal other text, results may have types that are not
        Arrow's, or a table may have become a view or have columns of other types.
        """
        if not self._given:
            return
        functions = _quietly(doing, lambda: _functions(self._connection))
        if any(functions[name] != count for name, count in _built_in().items()):
            raise SourceError(
                "A macro or function on the DuckDB connection has the name of a built-in one, so what is computed there"
                " is not what was asked.",
                fix="drop or rename it, or pass a connection without it and without the extension that brought it.",
            )
        asked = "SELECT current_setting('default_collation'), current_setting('arrow_lossless_conversion')"
        collation, lossless = _quietly(doing, lambda: self._connection.sql(asked).fetchall()[0])
        if str(collation or "").lower() not in _BYTEWISE:
            raise SourceError(
                "The default collation of the DuckDB connection makes different texts equal,"
                " so one row could count under several keys.",
                fix="run RESET default_collation on the connection and open the table again.",
            )
        if lossless:
            raise SourceError(
                "The DuckDB connection hands out types that are not Arrow's own.",
                fix="run RESET arrow_lossless_conversion on the connection and open the table again.",
            )
        if self._read and not self._read.items() <= self._listed(TABLES).items():
            raise changed("DuckDB")

    def _columns(self, relation: exp.Expression) -> list[tuple[str, Any]]:
        text = exp.select("*").from_(rows_of(relation), copy=False).sql(self.dialect, identify=True)
        with self._turn:
            described = _quietly("read the schema", lambda: self._connection.sql(text))
            return list(zip(described.columns, described.types, strict=True))

    def _percent(self) -> float | None:
        """How far the query is, or None before DuckDB knows."""
        percent = float(self._connection.query_progress())
        return None if percent < 0 else percent


def _functions(connection: Any) -> Counter[str]:
    """How many signatures the functions of each name have; DuckDB does not tell upper from lower case."""
    functions: Counter[str] = Counter()
    for found in pc.value_counts(connection.sql(_FUNCTIONS).to_arrow_table().column(0)).to_pylist():
        functions[found["values"].lower()] += found["counts"]
    return functions


@cache
def _built_in() -> Counter[str]:
    """What :func:`_functions` finds on a connection on which nobody has made any."""
    with duckdb.connect(":memory:") as connection:
        return _functions(connection)


def _give_back(connection: Any, spill: str) -> None:
    with contextlib.suppress(duckdb.Error):
        connection.close()
    shutil.rmtree(spill, ignore_errors=True)


def _quietly(doing: str, work: Callable[[], _T]) -> _T:
    return quietly(work, partial(_refusal, doing))


def _refusal(doing: str, failure: Exception) -> DefocusError:
    if doing == "attach":
        return SourceError(
            "The database file could not be opened for reading.",
            fix="check that it is a DuckDB file and that nobody else writes to it;"
            " if this program has it open already, pass that connection instead of the path.",
        )
    for classes, what, fix in _REASONS:
        if isinstance(failure, classes):
            return EngineError(f"DuckDB could not {doing}: {what}.", fix=fix)
    return EngineError(
        f"DuckDB could not {doing}. What it said is not repeated, because it may quote the data.",
        fix="check that the data can be read with the same version of DuckDB.",
    )
