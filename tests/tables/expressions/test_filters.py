# ruff: noqa: S608 the SQL is what is tested

import math

import pytest
from tests.tables.expressions.asking import SCHEMA, engine

from defocus.tables.expressions import expression


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("age > 3", '"age" > 3'),
        ("pay < 3", "CAST(\"pay\" AS DOUBLE) < CAST('3.0' AS DOUBLE)"),
        ("3 > pay", "CAST(\"pay\" AS DOUBLE) < CAST('3.0' AS DOUBLE)"),
        ("born = '2020-01-01'", "\"born\" = CAST('2020-01-01' AS DATE)"),
        ("born >= '2020-01-01'", "\"born\" >= CAST('2020-01-01' AS DATE) AND \"born\" <= CAST('9999-12-31' AS DATE)"),
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
