"""Bounds that follow from declared columns and constants hold for every row that keeps to the declared ones."""

import math
import random
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions.ranges import clamp, interval, is_whole, number, part

SCHEMA = Schema(
    [
        Column("x", Kind.NUMBER, -2, 5),
        Column("y", Kind.INTEGER, 1, 9),
        Column("free", Kind.NUMBER),
        Column("truth", Kind.BOOLEAN),
        Column("day", Kind.DATE),
        Column("counted", Kind.INTEGER, 0, 30),
        Column("listed", Kind.INTEGER, values=(2, 5, 3)),
    ]
)
KNOWN: dict[str, tuple[Any, Any]] = {
    "x": (-2, 5),
    "(x)": (-2, 5),
    "-x": (-5, 2),
    "x + y": (-1, 14),
    "x - y": (-11, 4),
    "x * y": (-18, 45),
    "x / y": (-2, 5),
    "2 * x + 1": (-3, 11),
    "x * x": (-10, 25),
    "ABS(x)": (0, 5),
    "ABS(y)": (1, 9),
    "ABS(-y)": (1, 9),
    "ROUND(x / 3)": (-1, 2),
    "FLOOR(x / 3)": (-1, 1),
    "FLOOR(0.1 * counted)": (0, 3),
    "FLOOR(x / 500) * 500": (-500, 0),
    "CEIL(0.3 * y)": (1, 3),
    "TRUNC(x / 2)": (-1, 2),
    "ROUND(x / 3, 1)": (-0.7, 1.7),
    "ROUND(100 * x, -2)": (-200, 500),
    "CAST(x / 3 AS BIGINT)": (-1, 2),
    "CAST(x / 3 AS DECIMAL(4, 1))": (-0.7, 1.7),
    "SIGN(x)": (-1, 1),
    "SIGN(y)": (1, 1),
    "SQRT(y)": (1, 3),
    "SQRT(x + 2)": (0, 7**0.5),
    "SQRT(x)": (0, 5**0.5),
    "LN(y)": (0, math.log(9)),
    "LOG10(10 * y)": (1, math.log10(90)),
    "EXP(-y)": (math.exp(-9), math.exp(-1)),
    "POWER(x, 2)": (0, 25),
    "POWER(x, 3)": (-8, 125),
    "POWER(y, -1)": (1 / 9, 1),
    "POWER(y, 0.5)": (1, 3),
    "POWER(x, 0.5)": (0, math.pow(5, 0.5)),
    "POWER(2, y)": (2, 512),
    "POWER(0.5, y)": (1 / 512, 0.5),
    "y % 4": (0, 3),
    "-y % 4": (-3, 0),
    "x % 4": (-2, 4),
    "x % 4.5": (-2, 4.5),
    "counted % 100": (0, 30),
    "free % 3": (-3, 3),
    "y // 2": (0, 4),
    "-y // 2": (-4, 0),
    "x / counted": (-2, 5),
    "x / (counted - 10)": (-5, 5),
    "NULLIF(y, 3)": (1, 9),
    "LEAST(y, 5)": (1, 5),
    "GREATEST(x, 0)": (0, 5),
    "BUCKET(x, 2)": (-2, 4),
    "listed": (2, 5),
    "listed * 2": (4, 10),
    "COALESCE(x, y, 0)": (-2, 9),
    "CAST(x ILIKE 'a' AS INT)": (0, 1),
    "CASE WHEN truth THEN 1 ELSE 0 END": (0, 1),
    "CASE WHEN truth THEN x END": (-2, 5),
    "CASE WHEN truth THEN x ELSE NULL END": (-2, 5),
    "IF(truth, y, 100)": (1, 100),
    "COALESCE(x, 7)": (-2, 7),
    "LEAST(x, y)": (-2, 9),
    "CAST(y AS DOUBLE)": (1, 9),
    "CAST(truth AS BIGINT)": (0, 1),
    "CAST(x > 3 AND truth AS INT)": (0, 1),
    "EXTRACT(month FROM day)": (1, 12),
    "HOUR(day)": (0, 23),
    "3": (3, 3),
    "-3.5": (-3.5, -3.5),
}
UNKNOWN = (
    "free", "x + free", "1 / x", "CAST(free AS BIGINT)", "SQRT(free)", "LN(x)",
    "LN(x + 2)", "POWER(x, -1)", "POWER(x, y)", "EXP(1e6 * y)", "YEAR(day)",
    "LEAST(free, 3)", "x // (y - 5.5)", "SQRT(-y)", "POWER(-y, 0.5)", "CASE WHEN truth THEN free ELSE 1 END",
    "1e99 * 1e99 * y", "CAST(y AS TEXT)", "'3'", "NULL", "nothing",
)  # fmt: skip


def tree(text: str) -> exp.Expression:
    made = sqlglot.parse_one(text, read="duckdb")
    assert isinstance(made, exp.Expression)
    return made


@pytest.mark.parametrize("text", KNOWN)
def test_bounds_follow_from_those_of_the_parts(text: str) -> None:
    assert interval(tree(text), SCHEMA) == pytest.approx(KNOWN[text], rel=1e-12)


@pytest.mark.parametrize("text", UNKNOWN)
def test_where_a_part_is_unknown_so_is_the_whole(text: str) -> None:
    assert interval(tree(text), SCHEMA) is None


@pytest.mark.parametrize(
    "text", [text for text in KNOWN if not any(word in text for word in ("day", "ILIKE", "CLAMP", "BUCKET"))]
)
def test_no_row_within_the_declared_bounds_leaves_them(text: str) -> None:
    chance = random.Random(5)
    low, high = KNOWN[text]
    rows = [
        (
            chance.choice([-2.0, 0.0, 5.0, chance.uniform(-2, 5)]),
            chance.choice([1, 9, chance.randint(1, 9)]),
            i % 2 == 0,
            chance.choice([0, 10, 30, chance.randint(0, 30)]),
            chance.choice([2, 3, 5]),
            chance.uniform(-99, 99),
        )
        for i in range(100)
    ]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (x DOUBLE, y BIGINT, truth BOOLEAN, counted BIGINT, listed BIGINT, free DOUBLE)"
        )
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        found = connection.execute(f"SELECT TRY({text}) FROM t").fetchall()  # noqa: S608 # the texts above
    assert all(
        low - 1e-9 <= float(value) <= high + 1e-9 for (value,) in found if value is not None and math.isfinite(value)
    )


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("CLAMP(free, 0, 30)", (0, 30)),
        ("clamp((free), -1.5, 30)", (-1.5, 30)),
        ("LEAST(GREATEST(free, 0), 30)", (0, 30)),
        ("LEAST(30, GREATEST(0, free))", (0, 30)),
        ("GREATEST(LEAST(free, 30), 0)", (0, 30)),
        ("(GREATEST(0, (LEAST(30, free))))", (0, 30)),
    ],
)
def test_clamping_is_recognised_in_all_its_forms(text: str, bounds: tuple[float, float]) -> None:
    found = clamp(tree(text))
    assert found is not None
    inner, *ends = found
    assert inner.find(exp.Column) is not None
    assert tuple(ends) == bounds


@pytest.mark.parametrize(
    "text",
    ["free", "CLAMP(free, 0)", "CLAMP(free, 0, y)", "LEAST(free, 30)", "LEAST(GREATEST(free, y), 30)", "LEAST(1, 2)"],
)
def test_other_forms_are_not_bounds(text: str) -> None:
    assert clamp(tree(text)) is None


def test_constants_are_numbers_and_nothing_else() -> None:
    assert [number(tree(text)) for text in ("3", "-2.5", "(4)", "'4'", "x", "TRUE", "1 + 1")] == [
        3,
        -2.5,
        4,
        *[None] * 4,
    ]


def test_parts_of_dates_have_bounds() -> None:
    assert part(tree("EXTRACT(dow FROM day)")) == (0, 6)
    assert part(tree("EXTRACT(year FROM day)")) is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("FLOOR(x / 500) * 500", True),
        ("ROUND(x) + y", True),
        ("ROUND(x, 1)", False),
        ("-CEIL(x) % 7", True),
        ("FLOOR(x) / 2", False),
        ("FLOOR(x) * 0.5", False),
        ("CASE WHEN truth THEN 1 ELSE FLOOR(x) END", True),
        ("CASE WHEN truth THEN 1 ELSE x END", False),
        ("BUCKET(x, 2)", True),
        ("BUCKET(x, 0.5)", False),
        ("CAST(x AS BIGINT)", True),
        ("x", False),
        ("nothing", False),
    ],
)
def test_whole_numbers_are_recognised_by_their_form(text: str, whole: bool) -> None:
    assert is_whole(tree(text), SCHEMA) is whole
