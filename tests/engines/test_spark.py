"""The Spark engine: what it promises, on a real Spark in this process."""

import math
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.tables.expressions.asking import answer

import defocus as dp
from defocus import Budget, count, count_units, mean, median, user
from defocus.engines import spark_sessions
from defocus.engines.choosing import engine_for
from defocus.engines.kinds import Kind
from defocus.engines.origins import origin_of
from defocus.engines.sources import source
from defocus.engines.spark import SparkEngine
from defocus.engines.syntax import column, named
from defocus.errors import DatasetFileError, EngineError, NotDeclaredError, QuestionFailedError, SourceError
from defocus.noise.testing import seeded
from defocus.tables.table import Table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[SparkEngine]:
    made = SparkEngine(spark)
    yield made
    made.close()


@pytest.fixture(scope="module")
def visits(spark: Any) -> Any:
    return spark.range(1, 1001).selectExpr(
        "id % 50 AS patient", "CHAR(65 + id % 3) AS ward", "CASE WHEN id % 7 > 0 THEN DOUBLE(id % 30) END AS days"
    )


def opened(data: Any, folder: Path, **more: Any) -> Table:
    return dp.open(data, unit=user("patient"), budget=Budget(1000), ledger=folder / "v.ledger", name="v", **more)


def test_published_tables_are_known_until_they_are_withdrawn(engine: SparkEngine) -> None:
    given = pa.table({"a": [1, None], "b `%s`.x": ["é'\\", None], "c": [math.inf, None], "d": [True, None]})
    table = engine.publish('a "name`.', given)
    asked = exp.select("*").from_(table)
    assert engine.run(asked).to_pydict() == given.to_pydict()
    engine.withdraw(table)
    engine.withdraw(table)
    with pytest.raises(EngineError, match="a table is gone") as caught:
        engine.run(asked)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_sum_beyond_64_bits_fails_and_does_not_wrap(engine: SparkEngine) -> None:
    table = engine.publish("big", pa.table({"x": [2**63 - 1, 1]}))
    with pytest.raises(EngineError):
        engine.run(exp.select(named(exp.Sum(this=column("x")), "s")).from_(table))


EVERY_TYPE: list[tuple[str, str, Kind, Any]] = [
    ("tinyint", "CAST(-7 AS TINYINT)", Kind.INTEGER, -7),
    ("smallint", "CAST(-7 AS SMALLINT)", Kind.INTEGER, -7),
    ("int", "7", Kind.INTEGER, 7),
    ("bigint", "9223372036854775807", Kind.INTEGER, 2**63 - 1),
    ("whole", "CAST('9223372036854775807' AS DECIMAL(38, 0))", Kind.INTEGER, 2**63 - 1),
    ("too large", "CAST('9223372036854775808' AS DECIMAL(38, 0))", Kind.INTEGER, None),
    ("decimal", "CAST(1.25 AS DECIMAL(9, 2))", Kind.NUMBER, 1.25),
    ("float", "CAST(0.1 AS FLOAT)", Kind.NUMBER, 0.10000000149011612),
    ("double", "CAST('-Infinity' AS DOUBLE)", Kind.NUMBER, -math.inf),
    ("string", "'é ; --'", Kind.TEXT, "é ; --"),
    ("collated", "'Straße' COLLATE UTF8_LCASE", Kind.TEXT, "Straße"),
    ("broken", "CAST(X'61FF62' AS STRING)", Kind.TEXT, None),
    ("boolean", "TRUE", Kind.BOOLEAN, True),
    ("date", "DATE'0001-01-01'", Kind.DATE, date(1, 1, 1)),
    ("far date", "DATE'+10000-01-01'", Kind.DATE, None),
    ("old date", "DATE'-0044-03-15'", Kind.DATE, None),
    ("ntz", "TIMESTAMP_NTZ'2024-06-01 12:00:00.123456'", Kind.TIMESTAMP, datetime(2024, 6, 1, 12, 0, 0, 123456)),  # noqa: DTZ001
    ("ltz", "TIMESTAMP_LTZ'2024-06-01 12:00:00+02:00'", Kind.TIMESTAMP, datetime(2024, 6, 1, 10)),  # noqa: DTZ001
    ("far moment", "TIMESTAMP_NTZ'+10000-01-01 00:00:00'", Kind.TIMESTAMP, None),
    ("binary", "X'FF'", Kind.OTHER, None),
    ("list", "ARRAY(1)", Kind.OTHER, None),
    ("map", "MAP('a', 1)", Kind.OTHER, None),
    ("struct", "STRUCT(1)", Kind.OTHER, None),
    ("nothing", "NULL", Kind.OTHER, None),
    ("interval", "INTERVAL '1' DAY", Kind.OTHER, None),
]


def test_every_type_becomes_the_one_of_its_kind(spark: Any, engine: SparkEngine) -> None:
    frame = spark.sql("SELECT " + ", ".join(f"{sql} AS `{name}`" for name, sql, _, _ in EVERY_TYPE))
    table = engine.attached(frame)
    known = engine.schema(table)
    assert {column.name: column.kind for column in known} == {name: kind for name, _, kind, _ in EVERY_TYPE}
    usable = [name for name, _, kind, _ in EVERY_TYPE if kind is not Kind.OTHER]
    relation = engine.canonical(table, {})
    assert [column.kind for column in engine.schema(relation)] == [kind for _, _, kind, _ in EVERY_TYPE]
    found = engine.run(exp.select(*map(column, usable)).from_(relation.subquery("t"))).to_pylist()[0]
    assert found == {name: value for name, _, kind, value in EVERY_TYPE if kind is not Kind.OTHER}
    written = [name for name, _, kind, _ in EVERY_TYPE if kind not in {Kind.OTHER, Kind.NUMBER}]
    as_text = engine.canonical(table, dict.fromkeys(written, Kind.TEXT))
    texts = engine.run(exp.select(*map(column, written)).from_(as_text.subquery("t"))).to_pylist()[0]
    assert (texts["boolean"], texts["ntz"], texts["int"]) == ("true", "2024-06-01 12:00:00.123456", "7")
    with pytest.raises(SourceError, match="cannot be read as text alike"):
        engine.canonical(table, {"double": Kind.TEXT})


def test_a_collated_column_is_compared_by_its_bytes(spark: Any, engine: SparkEngine) -> None:
    frame = spark.sql("SELECT x COLLATE UTF8_LCASE AS x FROM VALUES ('a'), ('A'), ('b') AS t(x)")
    relation = engine.canonical(engine.attached(frame), {})
    equal = exp.EQ(this=column("x"), expression=exp.Literal.string("a"))
    number = exp.select(named(exp.Count(this=exp.Star()), "n")).from_(relation.subquery("t")).where(equal)
    assert engine.run(number)["n"].to_pylist() == [1]


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


def test_a_query_is_cancelled_from_another_thread_and_another_can_be_asked(spark: Any, engine: SparkEngine) -> None:
    long = engine.attached(spark.range(10**13).selectExpr("id % 7 AS x"))
    timer = threading.Timer(1.5, engine.cancel)
    timer.start()
    began = time.monotonic()
    with pytest.raises(EngineError, match="it was cancelled"):
        engine.run(exp.select(column("x"), exp.Count(this=exp.Star())).from_(long).group_by(column("x")))
    assert time.monotonic() - began < 60
    assert engine.run(exp.select(named(exp.Literal.number(1), "one"))).num_rows == 1


def test_an_error_quotes_neither_values_nor_what_spark_said(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    failing = spark.range(1).selectExpr("id AS patient", "CAST(CONCAT('secret-', 4711 + id) AS INT) AS x")
    table = opened(failing, tmp_path)
    capfd.readouterr()
    with pytest.raises(QuestionFailedError, match="What it said is not repeated") as caught:
        table.agg(x=mean("x", 0, 1)).release(epsilon=1)
    shown = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr()) + caplog.text
    assert "4711" not in shown
    assert "secret" not in shown
    found = table.ledger.verify()
    assert found.ok
    assert (found.charges, found.releases) == (1, 0)
    table.close()


@pytest.mark.parametrize("name", ["a`b", "a'; DROP TABLE t; --", "é%s${env:HOME}", "x\\y", "漢字.{0}"])
def test_names_of_views_and_columns_are_names_and_nothing_else(spark: Any, tmp_path: Path, name: str) -> None:
    quoted = exp.to_identifier(name, quoted=True).sql("spark")
    spark.sql("SELECT 1 AS patient, 'x' AS y").withColumnRenamed("y", name).createOrReplaceTempView(quoted)
    table = opened(spark, tmp_path, table=quoted)
    found = table.group_by(name, keys=[name, "x"]).agg(n=count()).release(epsilon=50, bits=seeded(1))
    assert set(found.to_arrow().column(name).to_pylist()) == {name, "x"}
    table.close()
    spark.catalog.dropTempView(name)


def test_one_statement_reads_the_rows_once_and_shuffles_them_once(spark: Any, tmp_path: Path) -> None:
    spark.range(100).selectExpr("id % 9 AS patient", "id % 3 AS ward", "DOUBLE(id) AS days").write.parquet(
        str(tmp_path / "rows")
    )
    statements: list[str] = []
    table = opened(spark.read.parquet(str(tmp_path / "rows")), tmp_path)
    engine = table.rows.engine
    assert isinstance(engine, SparkEngine)
    plans: list[str] = []
    original = engine.run

    def run(select: exp.Expression, **more: Any) -> pa.Table:
        statements.append(engine.written(select))
        plans.append(engine._session.sql(statements[-1])._jdf.queryExecution().executedPlan().toString())
        return original(select, **more)

    engine.run = run  # type: ignore[method-assign]  # to look at what is asked
    table.bound(rows=5).group_by("ward", keys=[0, 1, 2]).agg(n=count(), stay=mean("days", 0, 30)).release(epsilon=1)
    table.close()
    (plan,) = plans
    assert plan.count("FileScan parquet") == 1
    assert plan.count("Exchange hashpartitioning(unit") == 1
    assert plan.count("Exchange hashpartitioning") == 2  # the other is of sums by group
    assert plan.count("BroadcastExchange") == 1


def exactly(data: Any, wanted: str, **more: Any) -> Any:
    """What a statement over a whole source gives, before any noise."""
    made = source(data, **more)
    try:
        where = exp.select("*").from_(made.relation.subquery("t")).where(wanted, dialect="duckdb")
        return made.schema, sorted(str(row).replace("-0.0", "0.0") for row in made.engine.run(where).to_pylist())
    finally:
        made.engine.close()


def both(spark: Any, path: Any, wanted: str = "TRUE", **more: Any) -> tuple[list[str], list[str]]:
    """The rows as DuckDB and as Spark read them."""
    (own, there), (schema, here) = exactly(path, wanted, **more), exactly(path, wanted, engine=spark, **more)
    assert own == schema
    return there, here


def test_parquet_is_read_as_duckdb_reads_it(spark: Any, tmp_path: Path) -> None:
    moments = pa.array([-1, 0, 1_700_000_000_123_456_789, None, -(2**62)])
    table = pa.table(
        {
            "i": pa.array([1, None, -(2**63), 2**63 - 1, 0]),
            "u": pa.array([1, None, 2**64 - 1, 0, 5], pa.uint64()),
            "x": pa.array([math.nan, -0.0, math.inf, None, 5e-324]),
            "f": pa.array([0.1, None, math.nan, -math.inf, 1.0], pa.float32()),
            "s": pa.array(["é", "", None, "a\x00b", "\\"]),
            "b": pa.array([True, False, None, True, False]),
            "d": pa.array([0, -719162, 2932896, 2932897, None], pa.int32()).cast(pa.date32()),
            "ns": moments.cast(pa.timestamp("ns")),
            "us": pa.array([0, -62135596800000000, 253402300799999999, 253402300800000000, None]).cast(
                pa.timestamp("us")
            ),
            "tz": pa.array([0, 1, None, 3, 4]).cast(pa.timestamp("us", "Europe/Paris")),
            "dec": pa.array([1, None, 3, 4, 5], pa.int64()).cast(pa.decimal128(19, 0)),
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    there, here = both(spark, tmp_path / "t.parquet")
    assert there == here


def test_a_filter_on_floats_does_not_look_at_what_other_rows_hold(spark: Any, tmp_path: Path) -> None:
    """A dictionary or a range of a file that holds -0 only, or NaN, must not decide about rows."""
    for i, values in enumerate(([-0.0, 5.0], [math.nan, 1.0], [0.0, -0.0])):
        pa.parquet.write_table(pa.table({"x": values * 3}), tmp_path / f"{i}.parquet")
    for wanted in ("x = 0", "x >= 0", "x < 2", "x > 4", "NOT x <= 4"):
        there, here = both(spark, tmp_path, wanted)
        assert [len(there), there] == [len(here), here]


def test_folders_called_key_and_value_add_columns_of_text(spark: Any, tmp_path: Path) -> None:
    home = tmp_path / "odd [name]"
    for day, value in (("2024-01-01", 1), ("01", 2), ("__HIVE_DEFAULT_PARTITION__", 3), ("a%20b", 4)):
        (home / f"day={day}").mkdir(parents=True)
        pa.parquet.write_table(pa.table({"x": [value]}), home / f"day={day}" / "a*b.parquet")
    there, here = both(spark, home)
    assert there == here
    assert len(both(spark, home, "day = '01'")[1]) == 1
    remote = source(f"file://{tmp_path}/odd*/day=*", engine=spark)
    assert remote.schema.names == ["x", "day"]
    remote.engine.close()


CSV = b'a,"b c",x\n1,2,3\n4,5\n6,7,8,9\n\n"x""y","two\nlines",z\n\xff\xfe,1,2\n"",,""\n\xc3\xa9,  sp ,\n'


def test_csv_is_read_as_duckdb_reads_it(spark: Any, tmp_path: Path) -> None:
    for name, content in {"a.csv": CSV, "b.tsv": CSV.replace(b",", b"\t"), "c.csv": b"\xef\xbb\xbf" + CSV}.items():
        (tmp_path / name).write_bytes(content)
        there, here = both(spark, tmp_path / name, types={"x": "integer"})
        assert there == here, name
    (tmp_path / "wide.csv").write_bytes(b"a,b\n" + b"," * 30_000 + b"\n1,2\n")
    assert exactly(tmp_path / "wide.csv", "TRUE", engine=spark)[1] == ["{'a': '1', 'b': '2'}"]
    remote = source(f"file://{tmp_path}/a.csv", engine=spark)
    assert remote.schema.names == ["a", "b c", "x"]
    remote.engine.close()


def test_files_whose_columns_differ_are_refused(spark: Any, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"x": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="is not the same in"):
        source(tmp_path, engine=spark)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError):
        source(f"file://{tmp_path}/broken.parquet", engine=spark)
    with pytest.raises(SourceError):
        source("s3a://nowhere/visits/", engine=spark)


def test_a_table_can_be_opened_in_every_way(spark: Any, visits: Any, tmp_path: Path) -> None:
    visits.createOrReplaceTempView("all_visits")
    visits.write.parquet(str(tmp_path / "visits"))
    ways: list[tuple[Any, dict[str, Any]]] = [
        (visits, {}),
        (spark, {"table": "all_visits"}),
        ("spark", {"table": "all_visits"}),
        (str(tmp_path / "visits"), {"engine": spark}),
        (f"file://{tmp_path}/visits", {"engine": "spark"}),
        (str(tmp_path / "visits" / "*.parquet"), {"engine": "local[2]"}),
        (visits.toArrow(), {"engine": spark}),
    ]
    answers = []
    for data, more in ways:
        table = opened(data, tmp_path, **more)
        asked = table.group_by("ward", keys=["A", "B"]).agg(
            n=count(), people=count_units(), stay=mean("days", 0, 30), half=median("days", 0, 30)
        )
        answers.append(str(asked.release(epsilon=10, bits=seeded(3)).to_arrow().to_pydict()))
        table.close()
        assert type(spark).getActiveSession() is spark  # a session that was given, or ran, is left running
    assert len(set(answers)) == 1
    duck = duckdb.connect()
    rows = visits.toArrow()
    duck.register("rows", rows)
    duck.execute("CREATE TABLE v AS SELECT * FROM rows")
    table = opened(duck, tmp_path, table="v")
    here = table.group_by("ward", keys=["A", "B"]).agg(
        n=count(), people=count_units(), stay=mean("days", 0, 30), half=median("days", 0, 30)
    )
    assert str(here.release(epsilon=10, bits=seeded(3)).to_arrow().to_pydict()) == answers[0]
    table.close()


def test_a_dataset_file_names_spark_and_joins_work(spark: Any, visits: Any, tmp_path: Path) -> None:
    visits.write.parquet(str(tmp_path / "visits"))
    spark.range(50).selectExpr("id AS patient", "id % 2 = 0 AS even").write.parquet(str(tmp_path / "patients"))
    file = tmp_path / "defocus.toml"
    file.write_text(
        'name = "visits"\ndata = "visits"\nengine = "spark"\nunit.column = "patient"\n'
        "budget = { epsilon = 400, delta = 1e-3 }\n[columns]\ndays = { low = 0, high = 30 }\n"
        '[private.patients]\ndata = "patients"\nunit = "patient"\n'
    )
    table = dp.open(file)
    wards = pa.table({"ward": ["A", "B"], "floor": [1, 2]})
    floors = table.join(wards, on="ward", how="inner").group_by("floor", keys=None).agg(n=count())
    assert set(floors.release(epsilon=50, delta=1e-5).to_arrow().column("floor").to_pylist()) == {1, 2}
    assert table.join("patients", on="patient").group_by("even").agg(n=count()).release(epsilon=50).to_arrow().num_rows
    found = table.sql("SELECT ward, COUNT(*) AS n FROM visits WHERE days > 3 GROUP BY ward", epsilon=50, delta=1e-5)
    assert found.to_arrow().num_rows == 3
    table.close()
    file.write_text(file.read_text().replace('engine = "spark"', 'engine = "flink"'))
    with pytest.raises(DatasetFileError, match="There is no engine 'flink'"):
        dp.open(file)


def test_progress_is_told(spark: Any, engine: SparkEngine) -> None:
    told: list[float] = []
    rows = engine.attached(spark.range(0, 100_000_000, 1, 20).selectExpr("id % 7 AS x"))
    engine.run(
        exp.select(column("x"), exp.Count(this=exp.Star())).from_(rows).group_by(column("x")), progress=told.append
    )
    assert told
    assert told == sorted(told)
    assert all(0 <= one <= 100 for one in told)


def test_what_cannot_be_is_refused(spark: Any, visits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="none was named"):
        source(spark)
    with pytest.raises(SourceError, match="knows no table 'nowhere'"):
        source(spark, table="nowhere")
    with pytest.raises(SourceError, match="with another master"):
        source(visits.toArrow(), engine="spark://127.0.0.1:1")
    with pytest.raises(SourceError, match="no place where Spark runs"):
        source(visits, engine="duckdb")
    with pytest.raises(SourceError, match="Spark is set where it is started"):
        source(visits, memory="1GB")
    with pytest.raises(SourceError, match="rows do not travel"):
        engine_for([origin_of(visits), origin_of(duckdb_file(tmp_path), table="o")])
    with pytest.raises(NotDeclaredError, match="no place of its own"):
        dp.open(visits, unit=user("patient"), budget=Budget(1))
    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(SourceError, match="needs the package pyspark") as caught:
        spark_sessions.pyspark()
    assert "defocus[spark]" in str(caught.value)


def duckdb_file(folder: Path) -> str:
    with duckdb.connect(folder / "o.duckdb") as connection:
        connection.execute("CREATE TABLE o AS SELECT 1 AS patient")
    return str(folder / "o.duckdb")


def absent(name: str) -> Any:
    raise ImportError(name)


def test_a_closed_table_says_so(visits: Any) -> None:
    made = source(visits)
    made.engine.close()
    made.engine.close()
    with pytest.raises(EngineError, match="was closed"):
        made.engine.run(made.relation)


def test_characters_change_case_as_in_duckdb() -> None:
    from defocus.engines.casing import cased  # noqa: PLC0415

    for function in ("LOWER", "UPPER"):
        before, after = cased(function)
        assert answer(f"{function}(ward)", ward=before) == after


def elsewhere(work: Callable[[], Any]) -> Any:
    """What a thread of its own finds, for which no session is the active one."""
    with ThreadPoolExecutor(1) as one:
        return one.submit(work).result()


def test_a_session_of_the_user_is_not_taken_for_an_own_one_in_another_thread(spark: Any) -> None:
    session, own = elsewhere(lambda: spark_sessions.started("spark"))
    assert not own
    assert session.sparkContext is spark.sparkContext
    with pytest.raises(SourceError, match="with another master"):
        elsewhere(lambda: spark_sessions.started("local[7]"))


def test_tables_that_share_a_spark_are_counted_from_all_threads(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary({spark.sparkContext: 2})
    monkeypatch.setattr(spark_sessions, "_STARTED_HERE", held)
    session, own = elsewhere(lambda: spark_sessions.started("spark"))
    assert own
    assert list(held.values()) == [3]
    spark_sessions.stopped(session)
    spark_sessions.stopped(spark.newSession())  # on the same Spark, in another object
    assert list(held.values()) == [1]
    assert spark.range(3).count() == 3


def test_no_own_session_stays_active_in_a_thread_that_had_none(spark: Any, engine: SparkEngine) -> None:
    def publish() -> Any:
        engine.withdraw(engine.publish("keys", pa.table({"a": [1]})))
        return type(spark).getActiveSession()

    before = type(spark).getActiveSession()
    assert elsewhere(publish) is None
    assert type(spark).getActiveSession() is before


def test_a_table_may_be_closed_by_garbage_collection_while_another_begins() -> None:
    def nested() -> None:
        with spark_sessions._HUSHING, spark_sessions.hushed(None):
            pass

    thread = threading.Thread(target=nested, daemon=True)
    thread.start()
    thread.join(10)
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
        with spark_sessions.hushed(spark):
            assert (levels()[core], levels()[storage]) == ("OFF", "OFF")
        assert levels() == before
        assert log4j.LogManager.getLogger(storage).getLevel().toString() == before[""]
    finally:
        known.getConfiguration().removeLogger(core)
        known.updateLoggers()


def test_a_spark_that_was_stopped_here_is_told_as_such(
    spark: Any, visits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(visits, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(spark.sparkContext, "_jsc", None)  # as stop() leaves it
        with pytest.raises(QuestionFailedError, match="or it was stopped"):
            table.agg(n=count()).release(epsilon=1)
    table.close()


class ThrownError(Exception):
    """A failure whose cause is a Java exception of some class."""

    def __init__(self, name: str) -> None:
        super().__init__("secret")
        self.java_exception = SimpleNamespace(
            getClass=lambda: SimpleNamespace(getName=lambda: name),
            getMessage=lambda: "secret",
            getCause=lambda: None,
        )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("java.time.format.DateTimeParseException", "not repeated"),
        ("java.text.ParseException", "not repeated"),
        ("org.apache.spark.sql.catalyst.parser.ParseException", "does not understand"),
        ("java.lang.OutOfMemoryError", "memory ran out"),
    ],
)
def test_only_classes_that_say_nothing_about_a_value_are_told_apart(engine: SparkEngine, name: str, told: str) -> None:
    def fail(_: Any) -> Any:
        raise ThrownError(name)

    with pytest.raises(EngineError, match=told) as caught:
        engine.read(fail)
    assert "secret" not in "".join(map(str, [caught.value, caught.value.__context__, caught.value.__cause__]))


def test_servers_of_spark_connect_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa.parquet.write_table(pa.table({"x": [1]}), tmp_path / "visits.parquet")
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})

    def connected(endpoint: str) -> Any:
        session: Any = kind()
        session.client = SimpleNamespace(_builder=SimpleNamespace(endpoint=endpoint))
        return origin_of(tmp_path / "visits.parquet", engine=session)

    monkeypatch.setattr("defocus.engines.choosing.SparkEngine", lambda session, own: (session, own))
    engine_for([connected("one:15002"), connected("one:15002")])
    with pytest.raises(SourceError, match="different Sparks"):
        engine_for([connected("one:15002"), connected("two:15002")])
