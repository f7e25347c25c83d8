"""The SQL that goes to other engines: what can be seen without running them."""

import math

import pytest
import sqlglot
from tests.tables.expressions.asking import SCHEMA, engine, sql

from defocus.tables.expressions import expression

TEXTS = [
    "age >= 18",
    "pay > 3",
    "age + 1",
    "age / 2",
    "age % 7",
    "age // 7",
    "SQRT(pay)",
    "LN(pay)",
    "EXP(pay)",
    "POWER(pay, age)",
    "FLOOR(pay)",
    "SIGN(pay)",
    "ABS(age)",
    "LOWER(ward)",
    "TRIM(ward)",
    "LENGTH(ward)",
    "SUBSTRING(ward, 1, 2)",
    "CONCAT(ward, 'x')",
    "ward || 'x'",
    "REPLACE(ward, 'a', 'b')",
    "LEFT(ward, 2)",
    "STARTS_WITH(ward, 'a')",
    "ward LIKE 'a!%' ESCAPE '!'",
    "YEAR(born)",
    "EXTRACT(dow FROM born)",
    "DATE_TRUNC('month', born)",
    "DATE_DIFF('day', born, seen)",
    "DATE_DIFF('week', born, seen)",
    "CASE ward WHEN 'a' THEN 1 END",
    "pay IS DISTINCT FROM 1",
    "LEAST(age, 3)",
    "age IN (1, 2)",
    "CAST(well AS INT)",
    "BUCKET(age, 10)",
    "ward = 'it''s \\ a'",
]


@pytest.mark.parametrize("dialect", ["postgres", "spark"])
@pytest.mark.parametrize("text", TEXTS)
def test_the_sql_is_written_in_other_dialects_and_read_back(text: str, dialect: str) -> None:
    written = sql(text, dialect)
    again = sqlglot.parse_one(written, read=dialect)
    assert again.sql(dialect).lower() == written.lower()
    assert '"age"' not in written if dialect == "spark" else "`" not in written


def test_nothing_but_attempts_needs_try_cast() -> None:
    needing = {text for text in TEXTS if "TRY_CAST" in sql(text)}
    assert needing == {"age + 1", "SIGN(pay)", "ABS(age)", "BUCKET(age, 10)"}


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_the_decimal_logarithm_keeps_its_own_name(dialect: str) -> None:
    assert "LOG10(" in sql("LOG10(pay)", dialect)


def test_division_is_of_floats_on_every_engine() -> None:
    assert sql("age / 2", "postgres") == "CAST(\"age\" AS DOUBLE PRECISION) / CAST('2.0' AS DOUBLE PRECISION)"
    assert sql("age / 2", "spark") == "CAST(`age` AS DOUBLE) / CAST('2.0' AS DOUBLE)"


# ruff: noqa: S608 the SQL is what is tested


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("age > 3", '"age" > 3'),
        ("pay < 3", "CAST(\"pay\" AS DOUBLE) < CAST('3.0' AS DOUBLE)"),
        ("3 > pay", "CAST(\"pay\" AS DOUBLE) < CAST('3.0' AS DOUBLE)"),
        ("born = '2020-01-01'", "\"born\" = CAST('2020-01-01' AS DATE)"),
        ("born >= '2020-01-01'", "\"born\" >= CAST('2020-01-01' AS DATE)"),
    ],
)
def test_a_filter_leaves_the_column_bare(text: str, condition: str) -> None:
    assert expression(text, SCHEMA).condition.sql("duckdb") == condition


@pytest.mark.parametrize("sign", ["=", "<", "<=", ">", ">=", "<>", "IN", "BETWEEN", "NOT"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_filter_keeps_the_rows_on_which_the_expression_is_true(sign: str, swapped: bool) -> None:
    text = {
        "IN": "pay IN (1, NULL, 3)",
        "BETWEEN": "pay BETWEEN 0 AND 1 OR age = 7",
        "NOT": "NOT (pay > 1 AND pay < 3)",
    }.get(sign, f"1 {sign} pay" if swapped else f"pay {sign} 1")
    read = expression(text, SCHEMA)
    rows = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, 2.0, 3.0]
    values = ", ".join(f"(CAST('{x}' AS DOUBLE), 0)" for x in rows) + ", (NULL, 7)"
    table = f"(VALUES {values}) AS t(pay, age)"
    kept = engine().execute(f"SELECT pay FROM {table} WHERE {read.condition.sql('duckdb')}").fetchall()
    true = engine().execute(f"SELECT pay FROM {table} WHERE ({read.sql.sql('duckdb')}) IS TRUE").fetchall()
    assert kept == true
    assert not any(x is not None and math.isnan(x) for (x,) in kept)
