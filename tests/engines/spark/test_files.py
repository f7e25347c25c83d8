"""Files that Spark reads by itself: no row decides whether they can be read, nor what their columns are."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.engines.sources import source
from defocus.errors import DefocusError, SourceError, WrongKindError
from defocus.tables.contribution import naming
from defocus.tables.table import Table

pytestmark = pytest.mark.slow

_FAR = 2**62


def read(data: Any, spark: Any) -> tuple[list[str], list[str]]:
    """The columns that are of use, and the rows in them."""
    made = source(data, engine=spark)
    try:
        usable = [column.name for column in made.schema if str(column.kind) != "other"]
        return usable, sorted(str(row) for row in made.engine.run(made.relation).select(usable).to_pylist())
    finally:
        made.engine.close()


def moments(unit: str, *values: int) -> pa.Table:
    return pa.table({"p": list(range(len(values))), "t": pa.array(values, pa.timestamp(unit))})


def test_a_moment_too_far_away_does_not_make_a_remote_file_fail(spark: Any, tmp_path: Path) -> None:
    pq.write_table(moments("ms", 0, _FAR), tmp_path / "ms.parquet")
    pq.write_table(moments("us", 0, 2**63 - 1), tmp_path / "us.parquet")
    assert read(f"file://{tmp_path}/ms.parquet", spark) == read(tmp_path / "ms.parquet", spark)
    assert read(f"file://{tmp_path}/us.parquet", spark) == read(tmp_path / "us.parquet", spark)
    assert read(f"file://{tmp_path}/ms.parquet", spark)[0] == ["p"]
    with pytest.raises(SourceError, match="not one table"):
        read(f"file://{tmp_path}/*s.parquet", spark)
    assert read(f"file://{tmp_path}/us.parquet", spark)[0] == ["p", "t"]


def test_folders_under_a_pattern_are_no_columns_of_csv(spark: Any, tmp_path: Path) -> None:
    home = tmp_path / "visits"
    for day in ("1", "日本"):
        (home / f"day={day}").mkdir(parents=True)
        (home / f"day={day}" / "a.csv").write_text("a,é\n1,é\n\n,\n2,y\n")
    local = read(home, spark)
    assert local[0] == ["a", "é", "day"]
    assert len(local[1]) == 4
    for path in ("*/*.csv", "*/a.csv", "day=*/*.csv"):
        assert read(f"file://{home}/{path}", spark) == local, path
    (home / "day=1" / "a.csv").write_text("day,x\n5,2\n")
    with pytest.raises(SourceError, match="look the same"):
        read(f"file://{home}/day=1*/a.csv", spark)


def opened(data: Any, folder: Path, **more: Any) -> Table:
    return dp.open(data, unit=dp.user("p"), budget=dp.Budget(10), ledger=folder / "v.ledger", name="v", **more)


def asked(table: Table) -> tuple[str, int]:
    """What is answered, and how many entries the ledger has then."""
    with table:
        answer = table.agg(n=dp.count()).release(epsilon=0.1, request="monday")
        return str(answer.to_arrow().to_pydict()), len(list(table.ledger.entries()))


def test_a_kept_answer_is_found_again_and_only_for_the_same_files_or_table(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"p": [1, 2, 3]})
    frame = spark.createDataFrame(rows)
    for name in ("visits", "others"):
        frame.createOrReplaceTempView(name)
    for name in ("folder", "remote", "frame", "table"):
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "1.parquet")
    folder, remote = tmp_path / "folder", tmp_path / "remote"
    ways: list[tuple[Path, Any, dict[str, Any]]] = [
        (folder, str(folder / "*.parquet"), {"engine": spark}),
        (remote, f"file://{remote}/*.parquet", {"engine": spark}),
        (tmp_path / "frame", frame, {}),
        (tmp_path / "table", spark, {"table": "visits"}),
    ]
    for place, data, more in ways:
        assert asked(opened(data, place, **more)) == asked(opened(data, place, **more))
    for place, data, more in [*ways[:2], (ways[3][0], spark, {"table": "others"})]:
        pq.write_table(rows, place / "2.parquet")
        with pytest.raises(DefocusError, match=r"to another question|other data under the name"):
            asked(opened(data, place, **more))


def test_moments_that_spark_may_have_cut_name_nobody(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    pq.write_table(moments("ns", 1_001, 1_002), path, use_deprecated_int96_timestamps=True)
    pq.write_table(moments("us", 1, 2), tmp_path / "us.parquet")
    spark.read.parquet(str(path)).createOrReplaceTempView("old")
    cut: list[tuple[Any, dict[str, Any]]] = [
        (f"file://{path}", {"engine": spark}),
        (path, {"engine": spark}),
        (spark, {"table": "old"}),
        (spark.read.parquet(str(path)), {}),
    ]
    for data, more in cut:
        made = source(data, **more)
        with pytest.raises(WrongKindError, match="two people could become one"):
            naming(made, "t")
        assert naming(made, "p") is made
        made.engine.close()
    whole: list[Any] = [tmp_path / "us.parquet", moments("us", 1, 2)]
    for data in whole:
        made = source(data, engine=spark)
        assert naming(made, "t") is made
        made.engine.close()


def test_remote_files_that_are_not_alike_are_no_table(spark: Any, tmp_path: Path) -> None:
    """Columns in another order would be taken for each other: somebody's rows for somebody else's."""
    (tmp_path / "a 1.csv").write_text("person,visit\n1,2\n")
    (tmp_path / "b%2.csv").write_text("person,visit\n3,4\n")
    assert source(f"file://{tmp_path}/*.csv", engine=spark).schema.names == ["person", "visit"]
    (tmp_path / "c.csv").write_text("visit,person\n1,9\n")
    with pytest.raises(SourceError, match="not one table"):
        source(f"file://{tmp_path}/*.csv", engine=spark)
    for name, columns in {"a": {"person": [1], "x": [1]}, "b": {"person": [2], "x": [0.5]}}.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    assert source(f"file://{tmp_path}/a.parquet", engine=spark).schema.names == ["person", "x"]
    with pytest.raises(SourceError, match="not one table"):
        source(f"file://{tmp_path}/*.parquet", engine=spark)


def test_a_part_by_a_folder_of_text_leaves_the_other_folders_unread(spark: Any, tmp_path: Path) -> None:
    """And is another question when more have come, unlike in DuckDB: a name stands for all files."""
    home = tmp_path / "visits"
    for day in ("1", "2"):
        (home / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), home / f"day={day}" / "a.parquet")
    facts = []
    for _ in range(2):
        terms: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(1), "ledger": tmp_path / "v.ledger"}
        with dp.open(home, engine=spark, parts="day", name="v", **terms) as table:
            part = table.part("1").rows
            frame = part.engine._session.sql(part.engine.written(part.relation))  # type: ignore[attr-defined]  # Spark's
            assert "PartitionFilters: [isnotnull(day" in frame._jdf.queryExecution().executedPlan().toString()
            facts.append(part.facts())
        (home / "day=3").mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": [1]}), home / "day=3" / "a.parquet")
    assert facts[0] != facts[1]


def test_folders_that_spark_spells_otherwise_are_refused(spark: Any, tmp_path: Path) -> None:
    """DuckDB and Hive read %C3%A9 as one letter, and Spark as two: one row would have two labels."""
    for ending, write in (("csv", lambda path: path.write_text("x\n1\n")), ("parquet", _one_row)):
        home = tmp_path / ending
        (home / "day=%C3%A9").mkdir(parents=True)
        write(home / "day=%C3%A9" / f"a.{ending}")
        for data in (home, f"file://{home}/*/a.{ending}"):
            with pytest.raises(SourceError, match="other letters"):
                source(data, engine=spark)


def _one_row(path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), path)
