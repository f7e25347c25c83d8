"""The engine: what a place that computes on tables must promise, and calls that can be interrupted."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from defocus.engines.schema import Kind, Schema
from defocus.errors import DefocusError, EngineError

__all__ = [
    "BLOCK",
    "Blocks",
    "Blockwise",
    "Engine",
    "Grouping",
    "WholeResults",
    "integers",
    "interruptible",
    "quietly",
    "watched",
    "written_blocks",
]

BLOCK = 1 << 16
"""About how many rows are passed on at once where a result is too large for memory."""
Grouping = Callable[[exp.Expression], exp.Select]
"""A query over a relation that stands after FROM."""


class Blocks(Protocol):
    """What becomes of blocks of rows on their way to a file. It is called where the rows are, perhaps far away."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that come out."""
        ...

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is written instead of the batches, one by one."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class Blockwise:
    """A result that may be too large for memory: ``grouping`` over the rows, passed through ``blocks``.

    No two of its rows agree in the columns ``by``.
    """

    rows: exp.Select
    grouping: Grouping
    by: Sequence[str]
    blocks: Blocks


class Engine(Protocol):
    """A place that holds private rows and computes exact integers from them.

    Guarantee:
        *Exact integers.* Sums and counts of 64-bit integers are computed without rounding and without wrapping, or
        fail where 64 bits do not hold them, and arrive as Arrow integers or as ``decimal128(38, 0)``;
        :func:`integers` reads both. What one row adds never
        depends on the order in which rows are read.

        *Total functions.* Reading a column that :meth:`canonical` gave has an outcome for every row: a value that
        its kind cannot hold is NULL. Nothing about a table's schema is inferred from its rows.

        *No data in errors.* Every failure becomes an :class:`~defocus.errors.EngineError` that neither repeats what
        the engine said nor carries it as a cause or context. Only reasons that say nothing about a value are told
        apart: cancelled, out of memory, out of reach, a query that the engine does not understand.

        *Values are values.* Names and constants reach the engine as syntax trees or parameters, never as text that
        was pasted together.
    Assumes:
        Nobody else changes the rows while a release runs, or the engine keeps a :meth:`snapshot` of them. Time and
        progress depend on the data; both are shown to the owner who runs the query and are no part of a release.

    >>> from defocus.engines import DuckDbEngine
    >>> engine = DuckDbEngine()
    >>> engine.name, engine.dialect
    ('DuckDB', 'duckdb')
    >>> engine.close()
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def dialect(self) -> str:
        """What sqlglot calls the SQL it speaks."""
        ...

    @property
    def reads_once(self) -> bool:
        """Whether a person's rows are best counted beside each of them, by a window: a statement then reads them once.

        Where reading is cheap and windows are not, what was counted is joined to the rows instead.
        """
        ...

    def schema(self, relation: exp.Expression) -> Schema:
        """The columns of a relation, read without looking at a row."""
        ...

    def canonical(self, relation: exp.Expression, kinds: Mapping[str, Kind]) -> exp.Select:
        """The same rows with every column in the one type its kind has everywhere, by conversions that cannot fail.

        A boolean is BOOLEAN, an integer BIGINT, a number DOUBLE, text TEXT, a date DATE, a timestamp TIMESTAMP
        without a zone, in UTC. ``kinds`` declares columns to be of another kind than their type suggests.
        """
        ...

    def finer(self, relation: exp.Expression) -> frozenset[str]:
        """The columns that may hold one value where the source holds two that differ, by their types alone.

        Reading may have made one of them, or :meth:`canonical` may; whether a source's own footer or schema says
        more about a column is not known here. Columns of kind number can be left out: they name nobody anyway.
        """
        ...

    def run(self, select: exp.Expression, *, progress: Callable[[float], None] | None = None) -> pa.Table:
        """Compute; ``progress`` is called now and then with a percentage."""
        ...

    def store(self, result: Blockwise, folder: Path, *, progress: Callable[[float], None] | None = None) -> None:
        """Compute a result, pass it through its blocks, and write Parquet to a new folder.

        Guarantee:
            Each row of the result goes through ``blocks`` in one block, in the order of the columns ``by``. How many
            files there are, and which rows are in which of them and in which order, depends on these columns and on
            settings alone, never on the others nor on what the rows were computed from. Nothing but blocks is in memory
            here. What is computed anew, since a machine was lost or was slow, is the same result in the same blocks
            unless the rows have changed.
        """
        ...

    def check_store(self) -> None:
        """Refuse what would make :meth:`store` fail whatever the rows are, before anything is charged."""
        ...

    def written(self, select: exp.Expression) -> str:
        """The statement that :meth:`run` would send. Nothing is sent."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """While this lasts, every statement sees the same rows, whatever others write. May be nested."""
        ...

    def kept(self, select: exp.Select) -> AbstractContextManager[exp.Select]:
        """The rows that a query finds now, for statements that must agree about them, until this ends.

        Guarantee:
            Statements that name what this gives see the same rows, also where there is no :meth:`snapshot`. The rows
            stay with the engine.
        """
        ...

    def publish(self, name: str, table: Any) -> exp.Table:
        """Make a table known under a name of the engine's choice that contains ``name``, until it is withdrawn."""
        ...

    def withdraw(self, table: exp.Table) -> None:
        """Forget a table that was published; withdrawing it twice is harmless."""
        ...

    def cancel(self) -> None:
        """Stop what is running, from another thread; it then fails with an EngineError."""
        ...

    def close(self) -> None:
        """Give everything back. Closing twice is harmless."""
        ...


def integers(column: Any) -> npt.NDArray[np.int64]:
    """Exact integers from a column that an engine computed, however wide the engine's type was.

    >>> integers(pa.chunked_array([[1, 2]])).tolist()
    [1, 2]
    """
    whole = None
    kind = column.type
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        try:
            whole = column.cast(pa.int64())
        except pa.ArrowInvalid:
            whole = None
    if whole is None or whole.null_count:
        raise EngineError(
            "The engine gave something other than 64-bit integers where exact integers were due.",
            fix="report this; nothing was released.",
        )
    return np.asarray(whole.to_numpy(), dtype=np.int64)


class WholeResults:
    """An engine whose results come as a whole, so that none is written in blocks."""

    name: str

    def store(self, result: Blockwise, folder: Path, *, progress: Callable[[float], None] | None = None) -> None:
        """Not here."""
        del result, folder, progress
        self.check_store()

    def check_store(self) -> None:
        """Refuse it, before anything is charged."""
        raise EngineError(
            f"{self.name} gives its results as a whole, so none is written in blocks.",
            fix="ask with release(…); or export the table to Parquet, and open that.",
        )


def written_blocks(batches: Iterable[pa.RecordBatch], blocks: Blocks, folder: Path) -> None:
    """Pass batches through ``blocks`` to one Parquet file in a new folder, one at a time."""
    folder.mkdir()
    with pq.ParquetWriter(folder / "part-00000.parquet", blocks.schema) as writer:
        for batch in blocks(batches):
            writer.write_batch(batch)


_T = TypeVar("_T")
_AGAIN = 0.05
"""Seconds between two attempts to stop: what has not begun yet cannot be stopped."""


def interruptible(work: Callable[[], _T], stop: Callable[[], object]) -> _T:
    """What ``work`` gives. On an interrupt ``stop`` is called until the work has ended; then the interrupt is raised.

    Python tells the main thread alone of an interrupt, and only between two of its own steps, so the work is done in
    another thread while the main one waits. A computation that looks for interrupts by itself may do it late, or take
    one for a failure of its own.

    >>> interruptible(lambda: 6 * 7, lambda: None)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[_T] = []
    failures: list[BaseException] = []
    begun, given_up = threading.Event(), threading.Event()  # whichever comes second sees the first
    ended = threading.Event()  # joining a thread is no test of its end: an interrupted join takes it for ended

    def run() -> None:
        begun.set()
        try:
            if not given_up.is_set():
                results.append(work())
        except BaseException as failure:  # noqa: BLE001  # raised in the thread that asked
            failures.append(failure)
        finally:
            ended.set()

    worker = threading.Thread(target=run, name="defocus-engine", daemon=True)
    try:
        worker.start()
        ended.wait()
    except BaseException:
        given_up.set()
        if begun.is_set():
            _stopped(ended, stop)
        raise
    if failures:
        raise failures.pop()
    return results.pop()


def _stopped(ended: threading.Event, stop: Callable[[], object]) -> None:
    """Wait until the work has ended, however often somebody interrupts the waiting."""
    while not ended.is_set():
        try:
            stop()
            ended.wait(_AGAIN)
        except KeyboardInterrupt:
            continue


def quietly(work: Callable[[], _T], refusal: Callable[[Exception], DefocusError]) -> _T:
    """Do the work, or refuse without quoting: the failure is gone when the refusal is raised, so it is no context.

    >>> from defocus.errors import EngineError
    >>> quietly(lambda: int("secret"), lambda problem: EngineError("It failed.", fix="ask again."))
    Traceback (most recent call last):
    ...
    defocus.errors.rooms.EngineError: It failed.
    To fix: ask again.
    """
    try:
        return work()
    except DefocusError as refused:
        shown = refused
    except Exception as error:  # noqa: BLE001 - whatever it is, it may quote a value
        shown = refusal(error)
    raise shown


_POLL = 0.1
"""Seconds between two looks."""


@contextlib.contextmanager
def watched(percent: Callable[[], float | None] | None, progress: Callable[[float], None] | None) -> Iterator[None]:
    """Look at ``percent`` now and then, from another thread, and tell ``progress``, never less than before.

    Where either is None nobody looks. A look that fails is left out: it is no reason to stop the query.

    >>> import time
    >>> told = []
    >>> with watched(lambda: 250.0, told.append):
    ...     time.sleep(0.3)
    >>> set(told)
    {100.0}
    """
    if percent is None or progress is None:
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(percent, progress, done), name="defocus-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(percent: Callable[[], float | None], progress: Callable[[float], None], done: threading.Event) -> None:
    most = 0.0
    while not done.wait(_POLL):
        with contextlib.suppress(Exception):
            percentage = percent()
            if percentage is not None:
                most = max(most, min(percentage, 100.0))
                progress(most)
