"""Every way to open a table on Spark, and what cannot be one."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.engines.visits import opened

import defocus as dp
from defocus import Budget, count, count_units, mean, median, user
from defocus.engines.origins import origin_of
from defocus.engines.sources import engine_for, source
from defocus.engines.spark import sessions
from defocus.errors import DatasetFileError, NotDeclaredError, SourceError
from defocus.noise.testing import seeded

pytestmark = pytest.mark.slow


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
