"""Whose session it is, who stops it, and what is left of us in one that was given."""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.engines.visits import opened
from tests.waiting import HANGS

from defocus import count
from defocus.engines.spark import SparkEngine, sessions
from defocus.errors import SourceError
from defocus.noise.testing import seeded

pytestmark = pytest.mark.slow


def test_the_users_session_stays_as_it_is_and_means_nothing(spark: Any, visits: Any, tmp_path: Path) -> None:
    hostile = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.caseSensitive": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.parser.escapedStringLiterals": "true",
    }
    before = {name: spark.conf.get(name) for name in hostile}
    try:
        for name, value in hostile.items():
            spark.conf.set(name, value)
        seen = spark.conf.getAll, [table.name for table in spark.catalog.listTables()], type(spark).getActiveSession()
        shared = spark.catalog.listTables("global_temp")
        table = opened(visits, tmp_path)
        found = table.group_by("ward", keys=["A", "b\\"]).agg(n=count()).release(epsilon=50, bits=seeded(1)).to_arrow()
        table.close()
        assert (spark.conf.getAll, [one.name for one in spark.catalog.listTables()]) == seen[:2]
        assert type(spark).getActiveSession() is seen[2]
        assert spark.catalog.listTables("global_temp") == shared
        assert spark.range(3).count() == 3
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    table = opened(visits, tmp_path)
    again = table.group_by("ward", keys=["A", "b\\"]).agg(n=count()).release(epsilon=50, bits=seeded(1)).to_arrow()
    table.close()
    assert found.equals(again)


def elsewhere(work: Callable[[], Any]) -> Any:
    """What a thread of its own finds, for which no session is the active one."""
    with ThreadPoolExecutor(1) as one:
        return one.submit(work).result()


def test_a_session_of_the_user_is_not_taken_for_an_own_one_in_another_thread(spark: Any) -> None:
    session, own = elsewhere(lambda: sessions.started("spark"))
    assert not own
    assert session.sparkContext is spark.sparkContext
    with pytest.raises(SourceError, match="with another master"):
        elsewhere(lambda: sessions.started("local[7]"))


def test_tables_that_share_a_spark_are_counted_from_all_threads(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary({spark.sparkContext: 2})
    monkeypatch.setattr(sessions, "_STARTED_HERE", held)
    session, own = elsewhere(lambda: sessions.started("spark"))
    assert own
    assert list(held.values()) == [3]
    sessions.stopped(session)
    sessions.stopped(spark.newSession())  # on the same Spark, in another object
    assert list(held.values()) == [1]
    assert spark.range(3).count() == 3


def test_no_own_session_stays_active_in_a_thread_that_had_none(spark: Any, spark_engine: SparkEngine) -> None:
    def publish() -> Any:
        spark_engine.withdraw(spark_engine.publish("keys", pa.table({"a": [1]})))
        return type(spark).getActiveSession()

    before = type(spark).getActiveSession()
    assert elsewhere(publish) is None
    assert type(spark).getActiveSession() is before


def test_a_table_may_be_closed_by_garbage_collection_while_another_begins() -> None:
    def nested() -> None:
        with sessions._HUSHING, sessions.hushed(None):
            pass

    thread = threading.Thread(target=nested, daemon=True)
    thread.start()
    thread.join(HANGS)
    assert not thread.is_alive()


def test_loggers_have_no_more_levels_of_their_own_than_before(spark: Any) -> None:
    log4j = spark._jvm.org.apache.logging.log4j
    known = log4j.core.LoggerContext.getContext(False)
    core, storage = "org.apache.spark.scheduler", "org.apache.spark.storage"

    def levels() -> dict[str, str]:
        return {name: one.getLevel().toString() for name, one in known.getConfiguration().getLoggers().items()}

    log4j.core.config.Configurator.setLevel(core, log4j.Level.INFO)
    try:
        before = levels()
        with sessions.hushed(spark):
            assert (levels()[core], levels()[storage]) == ("OFF", "OFF")
        assert levels() == before
        assert log4j.LogManager.getLogger(storage).getLevel().toString() == before[""]
    finally:
        known.getConfiguration().removeLogger(core)
        known.updateLoggers()
