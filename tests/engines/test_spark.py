"""The Spark engine: what it promises, on a real Spark in this process."""

import math
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp
from tests.engines.visits import opened
from tests.waiting import again_and_again

from defocus import count, mean
from defocus.engines.sources import source
from defocus.engines.spark import SparkEngine
from defocus.engines.syntax import column, named
from defocus.errors import EngineError, QuestionFailedError
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
    assert plan.count("BroadcastExchange") == 1


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
