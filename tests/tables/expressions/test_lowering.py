"""The SQL that goes to other engines: what can be seen without running them."""

import pytest
import sqlglot
from tests.tables.expressions.asking import sql

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
