"""Files mean the same in Spark as in DuckDB, value by value."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from defocus.engines.sources import source
from defocus.errors import SourceError

pytestmark = pytest.mark.slow


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
