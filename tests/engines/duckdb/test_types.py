from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from defocus.engines import DuckDbEngine
from defocus.engines.schema import Kind

ENGINE = DuckDbEngine()
KINDS = [kind for kind in Kind if kind is not Kind.OTHER]
hostile = st.sampled_from(
    [
        *("", " ", "nan", "NaN", "inf", "-inf", "infinity", "-infinity", "1e999", "9" * 400, "0x10", "1_000", "epoch"),
        *("2020-02-30", "99999-01-01", "290309-12-22 (BC)", "24:00:00", "true", "NULL", "''", '"', "\\", "١٢٣", "１"),
        *("2020-01-01 00:00:00+99:99", "294247-01-10 04:00:54.775807", "-9223372036854775809", "1.5", "−1", "\u202e"),
    ]
)
texts = st.one_of(hostile, st.text(max_size=30).map(lambda text: text.encode("utf-8", "ignore").decode()))


def read(column: Any, kind: Kind | None = None) -> list[Any]:
    relation = ENGINE.publish("rows", pa.table({"x": column}))
    values: list[Any] = ENGINE.run(ENGINE.canonical(relation, {"x": kind} if kind else {})).column("x").to_pylist()
    return values


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.none() | texts, min_size=1, max_size=8), st.sampled_from(KINDS))
def test_no_text_makes_a_declared_type_fail_and_each_row_is_converted_alone(rows: list[str | None], kind: Kind) -> None:
    together = read(pa.array(rows, pa.string()), kind)
    alone = [read(pa.array([row], pa.string()), kind)[0] for row in rows]
    assert repr(together) == repr(alone)


@settings(max_examples=50)
@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from(KINDS),
)
def test_no_moment_makes_reading_fail(rows: list[int | None], unit: str, kind: Kind) -> None:
    moments = pa.array(rows, pa.int64()).cast(pa.timestamp(unit))
    assert len(read(moments, kind)) == len(rows)
    for value in read(moments):
        assert value is None or 1 <= value.year <= 9999
    zoned = pa.array(rows, pa.int64()).view(pa.timestamp("us", "Europe/Berlin"))
    assert read(zoned) == read(pa.array(rows, pa.int64()).cast(pa.timestamp("us")))


@settings(max_examples=60)
@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=8), st.sampled_from(KINDS))
def test_no_date_makes_reading_fail(rows: list[int | None], kind: Kind) -> None:
    days = pa.array(rows, pa.int32()).view(pa.date32())
    assert len(read(days, kind)) == len(rows)
    assert all(value is None or 1 <= value.year <= 9999 for value in read(days))


@settings(max_examples=30)
@given(st.lists(st.none() | st.floats(), min_size=1, max_size=8), st.sampled_from(KINDS))
def test_no_float_makes_a_declared_type_fail(rows: list[float | None], kind: Kind) -> None:
    assert len(read(pa.array(rows, pa.float64()), kind)) == len(rows)


def test_integers_wider_than_64_bits_are_missing_where_they_do_not_fit() -> None:
    assert read(pa.array([1, 2**63 - 1, 2**63, 2**64 - 1], pa.uint64())) == [1, 2**63 - 1, None, None]


def test_a_moment_with_a_zone_is_read_in_utc_whatever_the_connection_thinks() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    engine = DuckDbEngine(connection)
    moment = parse_one("SELECT CAST('2020-06-01 12:00:00+02' AS TIMESTAMPTZ) AS x", dialect="duckdb")
    assert isinstance(moment, exp.Expression)
    for chosen in (engine, ENGINE):
        read_back = chosen.run(chosen.canonical(moment, {})).column("x")
        assert read_back.type == pa.timestamp("us")
        assert read_back.to_pylist() == [datetime(2020, 6, 1, 10)]  # noqa: DTZ001 - moments have no zone


def test_a_collation_does_not_make_one_key_of_two() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (c VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO t VALUES ('A'), ('a')")
    engine = DuckDbEngine(connection)
    rows = engine.canonical(exp.to_table("t"), {}).subquery("t")
    keys = engine.publish("keys", pa.table({"k": ["A", "a"]}))
    joined = exp.select("k").from_(rows).join(keys, on=exp.column("c").eq(exp.column("k")))
    assert sorted(engine.run(joined).column("k").to_pylist()) == ["A", "a"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.INTEGER, "42", 42),
        (Kind.NUMBER, "1.5", 1.5),
        (Kind.BOOLEAN, "true", True),
        (Kind.DATE, "2020-02-29", date(2020, 2, 29)),
        (Kind.TIMESTAMP, "2020-02-29 12:00:00", datetime(2020, 2, 29, 12)),  # noqa: DTZ001 - moments have no zone
        (Kind.TEXT, "42", "42"),
    ],
)
def test_declared_types_read_what_they_should(kind: Kind, text: str, value: object) -> None:
    assert read(pa.array([text, "no such value"]), kind)[0] == value
