"""Expressions mean what the same text means in plain DuckDB, wherever that has a value: row by row, on awkward rows."""

import itertools
import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pytest

from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions import expression

TYPES = {
    "i": (Kind.INTEGER, "BIGINT"),
    "j": (Kind.INTEGER, "BIGINT"),
    "x": (Kind.NUMBER, "DOUBLE"),
    "y": (Kind.NUMBER, "DOUBLE"),
    "s": (Kind.TEXT, "VARCHAR"),
    "u": (Kind.TEXT, "VARCHAR"),
    "b": (Kind.BOOLEAN, "BOOLEAN"),
    "d": (Kind.DATE, "DATE"),
    "e": (Kind.DATE, "DATE"),
    "t": (Kind.TIMESTAMP, "TIMESTAMP"),
    "v": (Kind.TIMESTAMP, "TIMESTAMP"),
}
SCHEMA = Schema(Column(name, kind) for name, (kind, _) in TYPES.items())
DAYS = [
    date(y, m, d) for y in (1969, 1999, 2000, 2023, 2024) for m, d in ((1, 1), (1, 31), (2, 28), (12, 29), (12, 31))
]
DAYS += [date(2024, 2, 29), date(2000, 2, 29), date(1970, 1, 1), date(1600, 2, 29), date(2023, 1, 2), date(1, 1, 8)]
TEXTS = [
    "",
    " ",
    "abc",
    "ABC",
    " Ab c ",
    "Élan",
    "éLAN",
    "straße",
    "漢字 x",
    "😀a",
    "a%b",
    "a_b",
    "12",
    "-3.5",
    "2024-02-29",
    "x",
]
PARTS = ["year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second"]
UNITS = ["year", "quarter", "month", "week", "day"]


def texts() -> Iterator[str]:
    for a, b, sign in itertools.product(
        ("i", "j", "x", "y", "3", "-2", "0.5"), ("i", "j", "x", "y", "7", "-4"), "+-*/%"
    ):
        if {a, b} & {"i", "j", "x", "y"}:
            yield f"{a} {sign} {b}"
    yield from (f"i // {n}" for n in ("3", "-4", "j"))
    yield from (
        f"{f}({a})" for f in ("ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "TRUNC") for a in ("i", "x", "-x", "x / 7")
    )
    yield from (f"ROUND({a}, {n})" for a in ("x", "x / 3", "i") for n in (-2, -1, 0, 1, 2))
    yield from ("SQRT(ABS(x))", "LN(ABS(x) + 1)", "LOG10(ABS(i) + 1)", "EXP(x / 100)", "POWER(x, 2)", "x ** 3", "x ^ 2")
    yield from ("FLOOR(x / 500) * 500", "MOD(i, 3)", "(i + j) * 2 - i", "-i", "x / NULLIF(y, 0)", "i - -j")
    yield from (f"{a} {sign} {b}" for a, b in (("i", "j"), ("i", "x"), ("s", "u"), ("d", "e"), ("t", "v"), ("d", "t"))
                for sign in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))  # fmt: skip
    yield from (
        "i IN (1, 2, NULL)",
        "i NOT IN (1, 2)",
        "s IN ('abc', '')",
        "i BETWEEN j AND 5",
        "i NOT BETWEEN -1 AND 1",
    )
    yield from ("b AND i > 0", "b OR i > 0", "NOT b", "b IS NULL", "b IS NOT TRUE", "b IS FALSE", "i IS NULL OR b")
    yield from ("CASE WHEN i > 0 THEN x WHEN b THEN y END", "CASE i WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE s END")
    yield from ("IF(b, i, j)", "COALESCE(i, j, 0)", "COALESCE(x, i)", "NULLIF(i, j)", "IFNULL(s, u)")
    yield from (f"{f}({a})" for f in ("LEAST", "GREATEST") for a in ("i, j", "i, x", "x, y, 0", "s, u", "d, e"))
    yield from (f"{f}(s)" for f in ("LOWER", "UPPER", "TRIM", "LTRIM", "RTRIM", "LENGTH"))
    yield from (
        "SUBSTRING(s, 2, 2)",
        "SUBSTR(s, 2)",
        "LEFT(s, 2)",
        "RIGHT(s, 2)",
        "s || u",
        "CONCAT(s, '-', i)",
        "s || i",
    )
    yield from ("CONCAT(s, b, d)", "REPLACE(s, 'a', 'bb')", "STARTS_WITH(s, u)", "CONTAINS(s, u)", "CONTAINS(s, 'a')")
    yield from ("ENDS_WITH(s, 'c')", "ENDS_WITH(s, '')", "POSITION('b' IN s)", "STRPOS(s, u)", "STRPOS(s, '字')")
    yield from (f"s {like} '{p}'" for like in ("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE")
                for p in ("a%", "%B%", "É%", "_b_", "%", "", "é%n", "STRASS_", "%SS%"))  # fmt: skip
    yield from ("s ILIKE 'A!%B' ESCAPE '!'", "TRY_CAST(s AS INT)", "TRY_CAST(s AS DOUBLE)", "TRY_CAST(s AS DATE)")
    yield from ("CAST(x AS BIGINT)", "CAST(i AS DOUBLE)", "CAST(b AS INT)", "CAST(i AS VARCHAR)", "CAST(d AS VARCHAR)")
    yield from ("CAST(t AS DATE)", "CAST(d AS TIMESTAMP)", "CAST(x AS DECIMAL(12, 2))", "CAST(i AS DECIMAL(12, 1))")
    yield from (f"EXTRACT({part} FROM t)" for part in PARTS)
    yield from (f"DATE_PART('{part}', {'d' if part in UNITS else 't'})" for part in PARTS)
    yield from (f"{f}(d)" for f in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "ISODOW", "DAYOFYEAR"))
    yield from (f"DATE_TRUNC('{unit}', {a})" for unit in UNITS for a in ("d", "t"))
    yield from (f"DATE_DIFF('{unit}', {pair})" for unit in UNITS for pair in ("d, e", "t, v", "d, t"))
    yield from (f"DATE_DIFF('{unit}', t, v)" for unit in ("hour", "minute", "second"))
    yield from (f"{a} {sign} INTERVAL {n} {unit}" for a, sign, n, unit in
                itertools.product(("d", "t"), "+-", (1, 13), (*UNITS, "hour", "minute", "second")))  # fmt: skip
    yield from ("d + 7", "d - 400", "3 + d", "d - e", "DATE_ADD(d, INTERVAL 1 MONTH)", "d + INTERVAL '2 weeks'")
    yield from ("LAST_DAY(d)", "LAST_DAY(t)", "MONTHNAME(d)", "DAYNAME(t)", "STRFTIME(d, '%Y-%m-%d')")
    yield from (f"STRFTIME({a}, '%{p}')" for a in ("d", "t") for p in "YmdHMSjBbAa")
    yield from ("STRFTIME(d, 'day')", "STRFTIME(t, '%H h')")
    yield from ("STRFTIME(t, '%-d.%-m.%Y um %H:%M, 100%%')", "d < '2024-01-01'", "t >= '2023-12-31 23:59:59'")


def rows() -> list[tuple[Any, ...]]:
    chance = random.Random(3)
    cells: dict[str, list[Any]] = {
        "i": [0, 1, -1, 2, 7, -7, 12, 1000, -999],
        "x": [0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.675, -1234.5678, 1e6, 99.995],
        "s": TEXTS,
        "b": [True, False],
        "d": DAYS,
        "t": [datetime(day.year, day.month, day.day) + timedelta(seconds=s) for day in DAYS for s in (0, 1, 86_399)],  # noqa: DTZ001  # zoneless
    }
    same = {"j": "i", "y": "x", "u": "s", "e": "d", "v": "t"}
    return [
        tuple(None if chance.random() < 0.1 else chance.choice(cells[same.get(name, name)]) for name in TYPES)
        for _ in range(150)
    ]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as made:
        made.execute(f"CREATE TABLE r ({', '.join(f'{name} {its}' for name, (_, its) in TYPES.items())})")
        made.executemany(f"INSERT INTO r VALUES ({', '.join('?' * len(TYPES))})", rows())  # noqa: S608  # question marks
        yield made


def alike(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, date) and not isinstance(mine, datetime) and isinstance(theirs, datetime):
        return datetime(mine.year, mine.month, mine.day) == theirs  # noqa: DTZ001  # DATE_TRUNC of a date stays one here
    if mine == theirs or mine is None or theirs is None or isinstance(mine, str | bool | date):
        return bool(mine == theirs)
    return abs(float(mine) - float(theirs)) <= 1e-12 * max(1.0, abs(float(theirs)))


@pytest.mark.parametrize("text", list(dict.fromkeys(texts())))
def test_a_row_has_the_value_that_duckdb_gives_it(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    mine = expression(text, SCHEMA).sql.sql("duckdb")
    found = connection.execute(f"SELECT {mine}, TRY({text}) FROM r").fetchall()  # noqa: S608  # the texts above
    apart = [pair for pair in found if not alike(*pair) and not (pair[0] is None and is_missing(pair[1]))]
    assert not apart, f"{text}: {apart[:3]}"


def is_missing(value: Any) -> bool:
    """NaN is missing here, and so are what is divided by zero and days before the year 1."""
    if isinstance(value, str):
        return "(BC)" in value
    return isinstance(value, float) and (value != value or abs(value) == float("inf"))  # noqa: PLR0124  # NaN
