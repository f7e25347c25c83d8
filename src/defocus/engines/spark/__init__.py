"""Spark: the rows stay where Spark reads them, and only integers for each group come to the driver.

What the plan of a Spark data frame says about its rows: whether reading it twice gives them twice.
"""

import contextlib
import hashlib
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, final

import pyarrow as pa
from sqlglot import exp

from defocus.engines.engine import BLOCK, Blocks, Blockwise, interruptible, quietly, watched
from defocus.engines.schema import Column, Kind, Schema, unique
from defocus.engines.spark.dialect import lowered
from defocus.engines.spark.sessions import carried, has_ended, hushed, isolated, kept_active, same_python, stopped
from defocus.engines.spark.types import Typed, convert, sendable
from defocus.engines.syntax import quoted, rows_of
from defocus.errors import DefocusError, EngineError, SourceError
from defocus.noise import system

__all__ = ["SparkEngine", "unsteady"]


_T = TypeVar("_T")
_REASONS: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"SPARK_JOB_CANCELLED", "OPERATION_CANCELED", "INTERRUPTED"}),
        "it was cancelled",
        "ask again; what was charged before stays charged.",
    ),
    (
        frozenset(
            {
                "java.lang.OutOfMemoryError",
                "org.apache.spark.memory.SparkOutOfMemoryError",
                "AGGREGATE_OUT_OF_MEMORY",
                "POINTER_ARRAY_OUT_OF_MEMORY",
                "SPILL_OUT_OF_MEMORY",
            }
        ),
        "memory ran out",
        "give the executors more memory (spark.executor.memory), or more partitions (spark.sql.shuffle.partitions).",
    ),
    (
        frozenset({"java.lang.StackOverflowError"}),
        "the question is nested too deeply",
        "ask a smaller question, or give the driver -Xss8m.",
    ),
    (frozenset({"EXECUTOR_LOST"}), "executors were lost", "check that they have enough memory, and ask again."),
    (
        frozenset({"GONE"}),
        "the connection to it was lost, or it was stopped",
        "start Spark again, and open the table with the new session.",
    ),
    (
        frozenset(
            {
                "ParseException",
                "AnalysisException",
                "org.apache.spark.sql.catalyst.parser.ParseException",
                "org.apache.spark.sql.AnalysisException",
                "org.apache.spark.sql.catalyst.ExtendedAnalysisException",
            }
        ),
        "it does not understand the query, or a table is gone",
        "open the table again; if that does not help, report the question that was asked.",
    ),
)
"""Reasons that say nothing about a value, by the whole names of the failure's classes (Java's with their package, since
others are called alike and speak of values) and by Spark's conditions. Everything else is one reason."""
_LOST = re.compile(
    r"Job aborted due to stage failure: Task \d+ in stage [\d.]+ failed \d+ times, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): ExecutorLostFailure"
)
_STOPPED = ("Cannot call methods on a stopped SparkContext", "Job cancelled because SparkContext was shut down")


@final
class SparkEngine:
    """Spark 4 or later, in a session of its own on the Spark that was given.

    The user's session keeps its settings, views and log. Public tables become small local relations, which Spark
    broadcasts; only what is aggregated leaves the executors.

    Assumes:
        What Spark reads is the table: the rows of a data frame are computed anew by each statement, so what chooses
        them by chance is refused as far as plans show it, and files must not change while a release runs. No row
        makes the frame's own expressions fail, which casts do (TRY_CAST does not), nor chooses its types, as readers
        of JSON without a schema do. Logs, event logs and the pages that Spark shows of its queries are as private as
        the data.
    """

    name = "Spark"
    dialect = "spark"
    reads_once = True

    def __init__(self, session: Any, *, own: bool = False) -> None:
        self._turn = threading.RLock()
        self._tag = f"defocus-{system().integer(64):016x}"
        self._shared: list[str] = []
        """The names of views that all sessions see."""
        self._closed = False
        self._given = session
        with hushed(session):
            self._session = _quietly("start", session, lambda: isolated(session))
        self._finish = weakref.finalize(self, _give_back, session, self._shared, own)

    def __repr__(self) -> str:
        return "SparkEngine(…)"

    def schema(self, relation: exp.Expression) -> Schema:
        """The columns of a relation, read without looking at a row."""
        return Schema(Column(name, type_.kind) for name, type_ in self._columns(relation))

    def canonical(self, relation: exp.Expression, kinds: Mapping[str, Kind]) -> exp.Select:
        """The same rows with every column in the one type its kind has everywhere."""
        columns = self._columns(relation)
        Schema(Column(name, type_.kind) for name, type_ in columns)  # refuses names that cannot be told apart
        converted = [convert(name, type_, kinds.get(name, type_.kind)) for name, type_ in columns]
        return exp.select(*converted).from_(rows_of(relation), copy=False)

    def finer(self, relation: exp.Expression) -> frozenset[str]:
        """Floats, of which 0 is also -0, and moments, which Spark cuts to microseconds while it reads."""
        return frozenset(one.name for one in self.schema(relation) if one.kind in {Kind.NUMBER, Kind.TIMESTAMP})

    def run(self, select: exp.Expression, *, progress: Callable[[float], None] | None = None) -> pa.Table:
        """Compute; ``progress`` is called now and then with a percentage, from another thread."""
        text = self.written(select)
        return self._asked("compute", lambda session: session.sql(text).toArrow(), progress)

    def store(self, result: Blockwise, folder: Path, *, progress: Callable[[float], None] | None = None) -> None:
        """Compute and write on the executors, in as many files as ``spark.sql.shuffle.partitions`` says.

        Rows are divided among so many partitions by a hash of the columns ``by``, which Spark's adaptive execution
        leaves alone since their number was asked for, and are sorted within each. A task that is run again, or twice,
        finds the same rows in the same order, and one attempt of it is committed.
        """
        divided = unique("divided")
        text = self.written(result.rows)
        grouped = self.written(result.grouping(exp.Table(this=quoted(divided))))
        columns = ", ".join(f"{_written(field.name)} {_SQL_TYPES[field.type]}" for field in result.blocks.schema)

        def write(session: Any) -> None:
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BLOCK))
            number = int(session.conf.get("spark.sql.shuffle.partitions"))
            session.sql(text).repartition(number, *result.by).createOrReplaceTempView(_written(divided))
            found = session.sql(grouped).sortWithinPartitions(*result.by)
            with same_python(session):
                passed = found.mapInArrow(partial(_passed, result.blocks), columns)
            passed.write.parquet(f"file://{folder}")

        try:
            self._asked("compute", write, progress)
        finally:
            self.withdraw(exp.Table(this=quoted(divided)))

    def check_store(self) -> None:
        """Refuse executors that lack this version of Defocus, which they need to draw noise."""
        here, there = version("defocus"), None

        def ask(session: Any) -> Any:
            with same_python(session):
                asked = session.range(1, numPartitions=1).mapInArrow(_version, "v STRING")
            return asked.toArrow().column(0)[0].as_py()

        with contextlib.suppress(EngineError):
            there = self._asked("compute", ask)
        if there != here:
            raise EngineError(
                f"The executors of Spark do not have Defocus {here}, which draws the noise there.",
                fix=f'install it where they run: pip install "defocus=={here}";'
                " PYSPARK_PYTHON names the Python that they use.",
            )

    def written(self, select: exp.Expression) -> str:
        """The statement that :meth:`run` would send."""
        return lowered(select).sql(self.dialect, identify=True)

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        """Nothing to do: each statement reads the rows once, and files must not change between two of them."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def kept(self, select: exp.Select) -> Iterator[exp.Select]:
        """The rows of a query, computed once and kept by the executors. Where one that holds some is lost, we fail."""
        kept = exp.Table(this=quoted(unique("kept")))
        text = self.written(select)

        def keep(session: Any) -> None:
            session.sql(text).localCheckpoint().createOrReplaceTempView(_written(kept.name))

        self._asked("compute", keep)
        try:
            yield exp.select("*").from_(kept.copy())
        finally:
            self.withdraw(kept)

    def publish(self, name: str, table: pa.Table) -> exp.Table:
        """Make a table known to the own session, as a local relation, until it is withdrawn."""
        published, ready = unique(name), sendable(table)

        def send(session: Any) -> None:
            with kept_active(session):  # which session is the program's active one must not change
                session.createDataFrame(ready).createOrReplaceTempView(_written(published))

        self._asked("read the table", send)
        return exp.Table(this=quoted(published))

    def withdraw(self, table: exp.Table) -> None:
        """Forget a table that was published."""
        with self._turn, hushed(self._given), contextlib.suppress(Exception):
            self._session.catalog.dropTempView(table.name)

    def attached(self, frame: Any, name: str = "") -> exp.Table:
        """A data frame of any session on the same Spark, as a table that this one can name.

        Its view is called by a digest of the table's ``name``, since the session of the frame may ignore case.
        """
        view = unique(f"table {_digest([name])}" if name else "frame")
        with self._asking() as session:
            what = _quietly("read the table", session, lambda: unsteady(frame))
            if what is not None:
                raise SourceError(
                    f"The rows or types of what Spark reads may differ from one reading to the next: it has {what}.",
                    fix="write it to Parquet or to a table first, and open that;"
                    " or give the reader a schema instead of inferSchema.",
                )
            shared = _quietly("read the table", session, lambda: _share(session, frame, view))
            self._shared.append(view)
        return exp.Table(this=quoted(view), db=quoted(shared))

    def table(self, name: str) -> exp.Table:
        """A table or view that the given session knows, by the name that Spark has for it."""
        frame = None
        with self._asking(), contextlib.suppress(Exception):
            frame = self._given.table(name)
        if frame is None:
            raise SourceError(
                f"Spark knows no table {name!r:.80}, or cannot read it.",
                fix="check the name with session.catalog.listTables(); put names with dots or spaces in backticks.",
            )
        return self.attached(frame, name)

    def read(self, make: Callable[[Any], Any], *, nanoseconds: bool = False) -> exp.Table:
        """What the own session's reader makes of files, as a table; moments in ``nanoseconds`` as integers.

        The list of files is made here and does not grow. The table is called by it.
        """
        with self._asking() as session:
            if nanoseconds:
                _quietly(
                    "read the files", session, lambda: session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
                )
            frame = _quietly("read the files", session, lambda: make(session.read))
            view = unique(f"files {_digest(_quietly('read the files', session, frame.inputFiles))}")
            _quietly("read the files", session, lambda: frame.createOrReplaceTempView(_written(view)))
        return exp.Table(this=quoted(view))

    def cancel(self) -> None:
        """Stop what is running, from another thread."""
        with contextlib.suppress(Exception):
            _tags(self._session)[2](self._tag)

    def close(self) -> None:
        """Drop the views that all sessions see; those of the own session are forgotten with it.

        A Spark that was started here is stopped, a given one is left running.
        """
        with self._turn:
            self._closed = True
            self._finish()

    def _columns(self, relation: exp.Expression) -> list[tuple[str, Typed]]:
        text = self.written(exp.select("*").from_(rows_of(relation), copy=False))
        fields = self._asked("read the schema", lambda session: session.sql(text).schema.fields)
        return [(field.name, Typed(field.dataType.simpleString())) for field in fields]

    def _asked(self, doing: str, work: Callable[[Any], _T], progress: Callable[[float], None] | None = None) -> _T:
        """What the own session gives, for one thread at a time, in silence; an interrupt stops it and is not lost."""

        def tagged() -> _T:
            with self._tagged() as session:
                return work(session)

        with self._asking() as session, watched(self._tasks_done() if progress else None, progress):
            return _quietly(doing, session, lambda: interruptible(carried(session, tagged), self.cancel))

    @contextlib.contextmanager
    def _asking(self) -> Iterator[Any]:
        """The own session, for one thread at a time and in silence."""
        with self._turn, hushed(self._given):
            if self._closed:
                raise EngineError("The table was closed.", fix="open the table again.")
            yield self._session

    @contextlib.contextmanager
    def _tagged(self) -> Iterator[Any]:
        """The own session, whose jobs of this thread have a tag by which they can be stopped."""
        add, remove, _ = _tags(self._session)
        add(self._tag)
        try:
            yield self._session
        finally:
            with contextlib.suppress(Exception):
                remove(self._tag)

    def _tasks_done(self) -> Callable[[], float | None] | None:
        """What tells which percentage of the tasks of the stages known so far is done; Spark Connect has no such."""
        with contextlib.suppress(Exception):
            return partial(_percent, self._session.sparkContext.statusTracker(), {})
        return None


_SQL_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}


def _passed(blocks: Blocks, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What blocks make of batches; a function, since Spark takes nothing else."""
    return blocks(batches)


def _version(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The version of Defocus where this is called."""
    for batch in batches:
        yield pa.record_batch({"v": [version("defocus")] * batch.num_rows})


def _tags(session: Any) -> tuple[Callable[[str], Any], Callable[[str], Any], Callable[[str], Any]]:
    """How to add a tag to this thread's jobs, remove it, and stop the jobs that have it."""
    if getattr(session, "_jvm", None) is None:  # on another machine, through Spark Connect
        return session.addTag, session.removeTag, session.interruptTag
    context = session.sparkContext
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def _percent(tracker: Any, stages: dict[int, tuple[int, int]]) -> float | None:
    """How many tasks of the stages that are ``known``, or run now, are done."""
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        stages[stage] = (info.numCompletedTasks, max(info.numTasks, 1))
    return (
        100.0 * sum(done for done, _ in stages.values()) / sum(all_ for _, all_ in stages.values()) if stages else None
    )


def _digest(texts: Iterable[str]) -> str:
    """What stands for texts in a name, the same each time and for no others."""
    return hashlib.sha256(repr(sorted(texts)).encode()).hexdigest()


def _written(name: str) -> str:
    return quoted(name).sql("spark")


def _share(session: Any, frame: Any, name: str) -> str:
    frame.createGlobalTempView(_written(name))
    return str(session.conf.get("spark.sql.globalTempDatabase", "global_temp"))


def _give_back(session: Any, shared: list[str], own: bool) -> None:
    with hushed(session), contextlib.suppress(Exception):
        for name in shared:
            session.catalog.dropGlobalTempView(name)
    if own:
        with hushed(session), contextlib.suppress(Exception):
            stopped(session)


def _quietly(doing: str, session: Any, work: Callable[[], _T]) -> _T:
    return quietly(work, partial(_refusal, doing, session))


def _refusal(doing: str, session: Any, error: Exception) -> DefocusError:
    kinds = {*_classes(error), *(["GONE"] if has_ended(session) else [])}
    for names, what, fix in _REASONS:
        if names & kinds:
            return EngineError(f"Spark could not {doing}: {what}.", fix=fix)
    return EngineError(
        f"Spark could not {doing}. What it said is not repeated, because it may quote the data.",
        fix="check that Spark can read the table by itself.",
    )


def _classes(error: Exception) -> Iterator[str]:
    """What sort of failure it is, from its classes and its condition, and never from words that may be a value."""
    yield type(error).__name__
    with contextlib.suppress(Exception):
        yield str(error.getCondition())  # type: ignore[attr-defined]  # only Spark's own have it
    if isinstance(error, OSError | EOFError) or type(error).__name__ in {"Py4JNetworkError", "Py4JError"}:
        yield "GONE"
    with contextlib.suppress(Exception):
        cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        for _ in range(20):
            if cause is None:
                break
            yield str(cause.getClass().getName())
            with contextlib.suppress(Exception):
                yield str(cause.getCondition())
            message = str(cause.getMessage())
            if _LOST.match(message):
                yield "EXECUTOR_LOST"
            if message.startswith(_STOPPED):
                yield "GONE"
            cause = cause.getCause()


_CHOSEN = {"Sample": "a sample", **dict.fromkeys(("GlobalLimit", "LocalLimit", "Offset", "Tail"), "a limit")}
"""Parts of plans that keep some rows because of others, in an order that Spark does not promise."""
_ALIKE = "one of several rows that are alike in part"
_CHANCE = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|uniform|randstr|monotonically_increasing_id|spark_partition_id|sample)\("
)
_PART = re.compile(r"^[\s:+|-]*([A-Z]\w+)", re.MULTILINE)
_INFERRED = "inferschema -> true"


def unsteady(frame: Any) -> str | None:
    """What makes the rows or types of a data frame depend on chance, on order or on rows, if its plan shows it.

    Through Spark Connect only the text of the plan is seen, in which functions that are not Spark's own are just names.
    """
    if getattr(frame, "_jdf", None) is None:
        return _told(str(frame._explain_string(extended=True)))  # noqa: SLF001  # the plan, without printing it
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001  # Python's Spark has no other way to it
    if not plan.deterministic():
        return "a function of chance or of where a row is"
    return next(_found(plan), None)


def _found(plan: Any) -> Iterator[str]:
    name = str(plan.getClass().getSimpleName())
    if name in _CHOSEN:
        yield _CHOSEN[name]
    if name == "Deduplicate" and plan.keys().size() < plan.output().size():
        yield _ALIKE
    if name == "LogicalRelation" and _INFERRED in str(getattr(plan.relation(), "options", str)()).lower():
        yield "a schema that is inferred from rows"
    for group in (plan.children(), plan.subqueries()):
        for i in range(group.size()):
            yield from _found(group.apply(i))


def _told(text: str) -> str | None:
    analysed = text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    if _CHANCE.search(analysed):
        return "a function of chance or of where a row is"
    return next((_CHOSEN[part] for part in _PART.findall(analysed) if part in _CHOSEN), None)
