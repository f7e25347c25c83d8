"""Files that Spark reads by itself: no row decides whether they can be read, nor what their columns are."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus.engines.sources import source
from defocus.errors import SourceError

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
    assert read(f"file://{tmp_path}/*s.parquet", spark)[0] == ["p"]  # one file in milliseconds is enough
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
