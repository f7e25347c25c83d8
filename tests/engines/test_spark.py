"""The Spark engine, on a real Spark: what it promises, how tables are opened and files are read, what losses do."""

import json
import math
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp
from tests.engines.visits import opened
from tests.waiting import HANGS, again_and_again

import defocus as dp
from defocus import Budget, count, count_units, mean, median, user
from defocus.engines.origins import origin_of
from defocus.engines.sources import engine_for, source
from defocus.engines.spark import SparkEngine, sessions
from defocus.engines.syntax import column, named
from defocus.errors import DatasetFileError, EngineError, NotDeclaredError, QuestionFailedError, SourceError
from defocus.noise.testing import seeded

pytestmark = pytest.mark.slow


def test_published_tables_are_known_until_they_are_withdrawn(spark_engine: SparkEngine) -> None:
    given = pa.table({"a": [1, None], "b `%s`.x": ["é'\\", None], "c": [math.inf, None], "d": [True, None]})
    table = spark_engine.publish('a "name`.', given)
    asked = exp.select("*").from_(table)
    assert spark_engine.run(asked).to_pydict() == given.to_pydict()
    spark_engine.withdraw(table)
    spark_engine.withdraw(table)
    with pytest.raises(EngineError, match="a table is gone") as caught:
        spark_engine.run(asked)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_sum_beyond_64_bits_fails_and_does_not_wrap(spark_engine: SparkEngine) -> None:
    table = spark_engine.publish("big", pa.table({"x": [2**63 - 1, 1]}))
    with pytest.raises(EngineError):
        spark_engine.run(exp.select(named(exp.Sum(this=column("x")), "s")).from_(table))


def test_a_query_is_cancelled_from_another_thread_and_another_can_be_asked(
    spark: Any, spark_engine: SparkEngine
) -> None:
    long = spark_engine.attached(spark.range(10**13).selectExpr("id % 7 AS x"))
    with again_and_again(spark_engine.cancel, 1), pytest.raises(EngineError, match="it was cancelled"):
        spark_engine.run(exp.select(column("x"), exp.Count(this=exp.Star())).from_(long).group_by(column("x")))
    assert spark_engine.run(exp.select(named(exp.Literal.number(1), "one"))).num_rows == 1


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
    assert "BroadcastExchange" not in plan  # keys without a gap are a condition and no join


def test_progress_is_told(spark: Any, spark_engine: SparkEngine) -> None:
    told: list[float] = []
    rows = spark_engine.attached(spark.range(0, 100_000_000, 1, 20).selectExpr("id % 7 AS x"))
    question = exp.select(column("x"), exp.Count(this=exp.Star())).from_(rows).group_by(column("x"))
    for _ in range(50):  # until it happens to be looked at in the middle
        spark_engine.run(question, progress=told.append)
        if told:
            break
    assert told
    assert told == sorted(told)
    assert all(0 <= one <= 100 for one in told)


def test_a_closed_table_says_so(visits: Any) -> None:
    made = source(visits)
    made.engine.close()
    made.engine.close()
    with pytest.raises(EngineError, match="was closed"):
        made.engine.run(made.relation)


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
def test_only_classes_that_say_nothing_about_a_value_are_told_apart(
    spark_engine: SparkEngine, name: str, told: str
) -> None:
    def fail(_: Any) -> Any:
        raise ThrownError(name)

    with pytest.raises(EngineError, match=told) as caught:
        spark_engine.read(fail)
    assert "secret" not in "".join(map(str, [caught.value, caught.value.__context__, caught.value.__cause__]))


def test_rows_that_are_kept_stay_as_they_were_until_they_are_done_with(spark_engine: SparkEngine) -> None:
    drawn = spark_engine.read(lambda reader: reader._spark.range(40).selectExpr("rand() AS x"))
    with spark_engine.kept(exp.select(column("x")).from_(drawn)) as kept:
        assert spark_engine.run(kept).equals(spark_engine.run(kept))
        assert spark_engine.run(kept).num_rows == 40
    with pytest.raises(EngineError, match="a table is gone"):
        spark_engine.run(kept)


def test_a_lost_executor_and_a_lost_driver_lose_no_charge_and_release_nothing(tmp_path: Path) -> None:
    """In a program of its own, since a killed Java machine would take other tests with it."""
    script = Path(__file__).with_name("spark_losses.py")
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-W", "ignore", str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["killed"] == 1
    assert said["failed tasks"] >= 1
    assert said["executor"] == "same" or "executors were lost" in said["executor"]
    assert "connection to it was lost" in said["java"]
    assert said["context"] == "None"
    assert said["charged"]
    assert said["verified"]
    assert said["again"]
    assert "it was stopped" in said["stopped"]


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
        sessions.pyspark()
    assert "defocus[spark]" in str(caught.value)


def duckdb_file(folder: Path) -> str:
    with duckdb.connect(folder / "o.duckdb") as connection:
        connection.execute("CREATE TABLE o AS SELECT 1 AS patient")
    return str(folder / "o.duckdb")


def absent(name: str) -> Any:
    raise ImportError(name)


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
    pq.write_table(table, tmp_path / "t.parquet")
    there, here = both(spark, tmp_path / "t.parquet")
    assert there == here


def test_a_filter_on_floats_does_not_look_at_what_other_rows_hold(spark: Any, tmp_path: Path) -> None:
    """A dictionary or a range of a file that holds -0 only, or NaN, must not decide about rows."""
    for i, values in enumerate(([-0.0, 5.0], [math.nan, 1.0], [0.0, -0.0])):
        pq.write_table(pa.table({"x": values * 3}), tmp_path / f"{i}.parquet")
    for wanted in ("x = 0", "x >= 0", "x < 2", "x > 4", "NOT x <= 4"):
        there, here = both(spark, tmp_path, wanted)
        assert [len(there), there] == [len(here), here]


def test_folders_called_key_and_value_add_columns_of_text(spark: Any, tmp_path: Path) -> None:
    home = tmp_path / "odd [name]"
    for day, value in (("2024-01-01", 1), ("01", 2), ("__HIVE_DEFAULT_PARTITION__", 3), ("a%20b", 4)):
        (home / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [value]}), home / f"day={day}" / "a*b.parquet")
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
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="is not the same in"):
        source(tmp_path, engine=spark)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError):
        source(f"file://{tmp_path}/broken.parquet", engine=spark)
    with pytest.raises(SourceError):
        source("s3a://nowhere/visits/", engine=spark)
