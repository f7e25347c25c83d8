"""Every type that Spark knows becomes the one of its kind."""

import math
from datetime import date, datetime
from typing import Any

import pytest
from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.engines.spark import SparkEngine
from defocus.engines.syntax import column, named
from defocus.errors import SourceError

pytestmark = pytest.mark.slow


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


def test_every_type_becomes_the_one_of_its_kind(spark: Any, spark_engine: SparkEngine) -> None:
    frame = spark.sql("SELECT " + ", ".join(f"{sql} AS `{name}`" for name, sql, _, _ in EVERY_TYPE))
    table = spark_engine.attached(frame)
    known = spark_engine.schema(table)
    assert {column.name: column.kind for column in known} == {name: kind for name, _, kind, _ in EVERY_TYPE}
    usable = [name for name, _, kind, _ in EVERY_TYPE if kind is not Kind.OTHER]
    relation = spark_engine.canonical(table, {})
    assert [column.kind for column in spark_engine.schema(relation)] == [kind for _, _, kind, _ in EVERY_TYPE]
    found = spark_engine.run(exp.select(*map(column, usable)).from_(relation.subquery("t"))).to_pylist()[0]
    assert found == {name: value for name, _, kind, value in EVERY_TYPE if kind is not Kind.OTHER}
    written = [name for name, _, kind, _ in EVERY_TYPE if kind not in {Kind.OTHER, Kind.NUMBER}]
    as_text = spark_engine.canonical(table, dict.fromkeys(written, Kind.TEXT))
    texts = spark_engine.run(exp.select(*map(column, written)).from_(as_text.subquery("t"))).to_pylist()[0]
    assert (texts["boolean"], texts["ntz"], texts["int"]) == ("true", "2024-06-01 12:00:00.123456", "7")
    with pytest.raises(SourceError, match="cannot be read as text alike"):
        spark_engine.canonical(table, {"double": Kind.TEXT})


def test_a_collated_column_is_compared_by_its_bytes(spark: Any, spark_engine: SparkEngine) -> None:
    frame = spark.sql("SELECT x COLLATE UTF8_LCASE AS x FROM VALUES ('a'), ('A'), ('b') AS t(x)")
    relation = spark_engine.canonical(spark_engine.attached(frame), {})
    equal = exp.EQ(this=column("x"), expression=exp.Literal.string("a"))
    number = exp.select(named(exp.Count(this=exp.Star()), "n")).from_(relation.subquery("t")).where(equal)
    assert spark_engine.run(number)["n"].to_pylist() == [1]
