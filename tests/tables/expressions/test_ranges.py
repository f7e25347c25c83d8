"""Bounds that follow from declared columns and constants hold for every row that keeps to the declared ones."""

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
    "FLOOR(x / 3)": (-1, 2),
    "CEIL(0.3 * y)": (0, 3),
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
    "free", "x + free", "1 / x", "CAST(free AS BIGINT)", "SQRT(y)", "YEAR(day)", "CASE WHEN truth THEN free ELSE 1 END",
    "1e99 * 1e99 * y", "CAST(y AS TEXT)", "'3'", "NULL", "nothing",
)  # fmt: skip


def tree(text: str) -> exp.Expression:
    made = sqlglot.parse_one(text, read="duckdb")
    assert isinstance(made, exp.Expression)
    return made


@pytest.mark.parametrize("text", KNOWN)
def test_bounds_follow_from_those_of_the_parts(text: str) -> None:
    assert interval(tree(text), SCHEMA) == KNOWN[text]


@pytest.mark.parametrize("text", UNKNOWN)
def test_where_a_part_is_unknown_so_is_the_whole(text: str) -> None:
    assert interval(tree(text), SCHEMA) is None


@pytest.mark.parametrize("text", [text for text in KNOWN if "day" not in text])
def test_no_row_within_the_declared_bounds_leaves_them(text: str) -> None:
    chance = random.Random(5)
    low, high = KNOWN[text]
    rows = [
        (chance.choice([-2.0, 0.0, 5.0, chance.uniform(-2, 5)]), chance.randint(1, 9), i % 2 == 0) for i in range(60)
    ]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x DOUBLE, y BIGINT, truth BOOLEAN)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        found = connection.execute(f"SELECT {text} FROM t").fetchall()  # noqa: S608 # the texts above
    assert all(low - 1e-9 <= float(value) <= high + 1e-9 for (value,) in found if value is not None)


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
