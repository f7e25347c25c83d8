"""Data frames of Spark whose rows or types depend on chance, on order or on rows are refused before a charge."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

from defocus.engines.sources import source
from defocus.engines.spark import _told
from defocus.errors import SourceError

pytestmark = pytest.mark.slow

STEADY = [
    "SELECT * FROM seen",
    "SELECT id, TRY_CAST(s AS INT) AS x, 'rand(' AS y FROM seen WHERE id > 3",
    "SELECT DISTINCT * FROM seen",
    "SELECT s, COUNT(*) AS n FROM seen GROUP BY s",
]
UNSTEADY = [
    "SELECT * FROM seen TABLESAMPLE (50 PERCENT)",
    "SELECT * FROM seen TABLESAMPLE (50 PERCENT) REPEATABLE (3)",
    "SELECT * FROM (SELECT * FROM seen WHERE RAND() < 0.5) WHERE id > 3",
    "SELECT *, RAND(3) AS r FROM seen",
    "SELECT *, UUID() AS u FROM seen",
    "SELECT *, MONOTONICALLY_INCREASING_ID() AS u FROM seen",
    "SELECT * FROM seen LIMIT 5",
    "SELECT * FROM seen OFFSET 5",
    "SELECT * FROM seen UNION ALL (SELECT * FROM seen LIMIT 5)",
    "SELECT * FROM seen WHERE id IN (SELECT id FROM seen LIMIT 5)",
]


@pytest.fixture(autouse=True)
def _seen(spark: Any) -> None:
    spark.range(100).selectExpr("id", "CAST(id % 10 AS STRING) AS s").createOrReplaceTempView("seen")


def _text(spark: Any, frame: Any) -> str:
    """What Spark Connect would show of the plan."""
    return str(spark._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "extended"))


@pytest.mark.parametrize("text", STEADY)
def test_rows_that_are_the_same_each_time_are_read(spark: Any, text: str) -> None:
    source(spark.sql(text)).engine.close()


@pytest.mark.parametrize("text", UNSTEADY)
def test_rows_that_are_drawn_are_refused_as_frames_and_as_views(spark: Any, text: str) -> None:
    frame = spark.sql(text)
    frame.createOrReplaceTempView("drawn")
    for data, more in ((frame, {}), (spark, {"table": "drawn"}), (frame.cache(), {})):
        with pytest.raises(SourceError, match="may differ from one reading to the next") as caught:
            source(data, **more)  # type: ignore[arg-type]  # the name of a table
        assert caught.value.__context__ is None
    frame.unpersist()
    assert _told(_text(spark, frame)) is not None


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of Spark, about pandas
def test_parts_of_a_frame_and_inferred_types_are_refused(spark: Any, tmp_path: Path) -> None:
    seen = spark.table("seen")
    seen.write.option("header", value=True).csv(str(tmp_path / "csv"))
    drawn = functions.udf(lambda _: 1, "int").asNondeterministic()
    for frame in (
        seen.dropDuplicates(["s"]),
        seen.randomSplit([0.5, 0.5])[0],
        seen.withColumn("u", drawn("id")),
        spark.read.csv(str(tmp_path / "csv"), header=True, inferSchema=True).where("id > 3"),
    ):
        with pytest.raises(SourceError, match="may differ"):
            source(frame)
    source(spark.read.csv(str(tmp_path / "csv"), "id BIGINT, s STRING", header=True)).engine.close()
    source(seen.sample(0.5).localCheckpoint()).engine.close()
