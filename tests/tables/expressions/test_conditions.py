"""What a condition tells about columns holds on every row that it keeps, whatever is in it."""

import math
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.worlds import rows_of

from defocus.engines.syntax import column, named
from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions import expression
from defocus.tables.expressions.conditions import confined, ends
from defocus.tables.expressions.parser import parsed
from defocus.tables.expressions.ranges import interval

SCHEMA = Schema(
    [
        Column("x", Kind.NUMBER),
        Column("y", Kind.INTEGER),
        Column("z", Kind.NUMBER, 0, 100),
        Column("listed", Kind.INTEGER, values=(1, 5, 9)),
        Column("s", Kind.TEXT),
        Column("truth", Kind.BOOLEAN),
        Column("day", Kind.DATE),
        Column("at", Kind.TIMESTAMP),
        Column("stay", Kind.DATE, date(2020, 1, 1), date(2021, 12, 31)),
    ]
)
INF = math.inf
TOLD: dict[str, dict[str, tuple[float, float]]] = {
    "x BETWEEN 18 AND 90": {"x": (18, 90)},
    "x >= 18": {"x": (18, INF)},
    "18 <= x AND 90.5 > x": {"x": (18, 90.5)},
    "y > 17 AND y < 91": {"y": (18, 90)},
    "y >= 17.5 AND y <= 90.5": {"y": (18, 90)},
    "y > 17.5": {"y": (18, INF)},
    "x = 3": {"x": (3, 3)},
    "x IN (3, -7, 5)": {"x": (-7, 5)},
    "x > 0 AND (y = 1 OR y IN (4, 2)) AND s = 'a'": {"x": (0, INF), "y": (1, 4)},
    "x BETWEEN 0 AND 1 OR x BETWEEN 5 AND 6": {"x": (0, 6)},
    "x BETWEEN 0 AND 1 OR y BETWEEN 5 AND 6": {},
    "x < 0 OR truth": {},
    "NOT x > 5": {"x": (-INF, 5)},
    "NOT (x > 5 OR y < 2)": {"x": (-INF, 5), "y": (2, INF)},
    "NOT (x > 5 AND y < 2)": {},
    "NOT (x > 5 AND x < 2)": {"x": (-INF, INF)},
    "NOT (x < 2 AND x < 3)": {"x": (2, INF)},
    "NOT NOT x <= 5": {"x": (-INF, 5)},
    "NOT x <> 5": {"x": (5, 5)},
    "NOT x BETWEEN 0 AND 1": {},
    "NOT x = 5": {},
    "x <> 5": {},
    "NOT x IN (1, 2)": {},
    "x IN (1, 2, NULL)": {},
    "x < y": {},
    "x + 1 < 5": {},
    "ABS(x) < 5": {},
    "CASE WHEN x < 5 THEN TRUE ELSE FALSE END": {},
    "(x < 5) IS NOT NULL": {},
    "x IS NULL OR x < 5": {},
    "COALESCE(x < 5, TRUE)": {},
    "s < '5'": {},
    "truth": {},
}


@pytest.mark.parametrize("text", TOLD)
def test_what_a_condition_tells(text: str) -> None:
    assert dict(expression(text, SCHEMA).ends) == TOLD[text]


@pytest.mark.parametrize(
    ("text", "name", "bounds"),
    [
        ("z > 20", "z", (20, 100)),
        ("z > -20 AND z < 500", "z", (0, 100)),
        ("x > 20", "x", (20, None)),
        ("x > 20 AND x < 10", "x", (None, None)),
        ("z > 200", "z", (0, 100)),
        ("z = 5", "z", (0, 100)),
        ("listed < 7", "listed", (1, 6)),
        ("x > 0 AND x < 1e80", "x", (0, None)),
    ],
)
def test_columns_are_between_what_is_declared_and_what_is_told(
    text: str, name: str, bounds: tuple[float | None, float | None]
) -> None:
    narrowed = confined(SCHEMA, expression(text, SCHEMA).ends)[name]
    assert (narrowed.low, narrowed.high) == bounds


def moments(*texts: str) -> tuple[datetime, ...]:
    return tuple(map(datetime.fromisoformat, texts))


FIRST, LAST = date(2020, 3, 5), date(2020, 9, 1)


@pytest.mark.parametrize(
    ("text", "name", "bounds"),
    [
        ("day BETWEEN '2020-03-05' AND DATE '2020-09-01'", "day", (FIRST, LAST)),
        ("day > '2020-03-04' AND day < CAST('2020-09-02' AS DATE)", "day", (FIRST, LAST)),
        ("NOT (day < '2020-03-05' OR '2020-09-01' < day)", "day", (FIRST, LAST)),
        ("day IN ('2020-09-01', '2020-03-05')", "day", (FIRST, LAST)),
        ("day >= TIMESTAMP '2020-03-05 12:00:00'", "day", (None, None)),
        ("day >= '2020-03-05' AND day <> '2020-09-01'", "day", (FIRST, None)),
        ("day > '9999-12-31'", "day", (None, None)),
        ("at >= '2020-03-05' AND at < '2020-09-01 12:00'", "at", moments("2020-03-05", "2020-09-01 11:59:59.999999")),
        ("at <= DATE '2020-03-05' AND at > '2020-03-04'", "at", moments("2020-03-04 00:00:00.000001", "2020-03-05")),
        ("stay > '2020-06-30'", "stay", (date(2020, 7, 1), date(2021, 12, 31))),
        ("stay > '2022-06-30'", "stay", (date(2020, 1, 1), date(2021, 12, 31))),
    ],
)  # fmt: skip
def test_dates_are_between_what_is_declared_and_what_is_told(text: str, name: str, bounds: Any) -> None:
    narrowed = confined(SCHEMA, expression(text, SCHEMA).ends)[name]
    assert (narrowed.low, narrowed.high) == bounds


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("CASE WHEN x BETWEEN 0 AND 9 THEN x END", (0, 9)),
        ("CASE WHEN x BETWEEN 0 AND 9 THEN x ELSE -1 END", (-1, 9)),
        ("CASE WHEN x < 0 THEN 0 WHEN x < 9 THEN z ELSE 7 END", (0, 100)),
        ("CASE WHEN x > 0 THEN 0 ELSE x END", None),
        ("CASE WHEN y > 3 AND x > 0 THEN 0 ELSE x END", None),
        ("CASE x WHEN 5 THEN x END", None),
        ("IF(x > 0 AND x < 5, x * 2, 0)", (0, 10)),
    ],
)
def test_a_choice_between_values_uses_its_conditions(text: str, bounds: Any) -> None:
    assert interval(parsed(text), SCHEMA) == bounds


NUMBERS = st.sampled_from(["-3", "0", "1", "2.5", "7", "1e30"])
COMPARISONS = (
    st.tuples(st.sampled_from(["x", "y"]), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), NUMBERS).map(" ".join)
    | st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.sampled_from(["x", "y"])).map(" ".join)
    | st.tuples(st.sampled_from(["x", "y"]), NUMBERS, NUMBERS).map(lambda of: f"{of[0]} BETWEEN {of[1]} AND {of[2]}")
    | st.tuples(st.sampled_from(["x", "y"]), NUMBERS, NUMBERS).map(lambda of: f"{of[0]} IN ({of[1]}, {of[2]})")
    | st.sampled_from(["x IS NULL", "s = 'a'", "CASE WHEN x > 0 THEN TRUE END", "x < y"])
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda of: f"({' '.join(of)})")
        | inner.map(lambda one: f"NOT ({one})")
    ),
    max_leaves=6,
)
XS = [None, -INF, -3.0, -0.0, 0.5, 1.0, 2.5, 7.0, 8.0, 1e30, INF, math.nan]
YS = [None, -(2**63), -4, 0, 1, 2, 3, 7, 8, 2**53 + 1, 2**63 - 1]
ROWS = [{"u": 1, "k": "a", "y": y, "x": x, "z": 0.0, "s": s} for x in XS for y in YS for s in ("a", None)]


@pytest.mark.usefixtures("any_engine")
@settings(max_examples=25)
@given(CONDITIONS)
def test_every_row_that_is_kept_lies_between_the_ends(text: str) -> None:
    rows = rows_of(ROWS, "u")
    told = ends(parsed(text), rows.schema)
    kept = rows.engine.run(rows.where(text).select([named(column(name), name) for name in ("x", "y")])).to_pydict()
    for name, (low, high) in told.items():
        assert all(low <= value <= high for value in kept[name] if value is not None and not math.isnan(value)), text


DATES = [date(2020, 1, 1) + timedelta(days=37 * i) for i in range(24)]
MOMENTS = [datetime.fromisoformat("2020-12-30 23:59:59") + timedelta(hours=31, seconds=i) * i for i in range(18)]
DATED = {"u": pa.int64(), "day": pa.date32(), "at": pa.timestamp("us")}


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize(
    "text",
    [
        *(f"DATE_DIFF('{unit}', day, at)" for unit in ("year", "quarter", "month", "week", "day")),
        *(f"DATE_DIFF('{unit}', at, TIMESTAMP '2021-01-01 00:00:00')" for unit in ("hour", "minute", "second")),
        "DATE_DIFF('day', '2020-02-28', day)",
        "DATE_DIFF('day', CAST(at AS DATE), day)",
        "day - DATE '2020-02-28'",
        "YEAR(day)",
        "EXTRACT(year FROM at)",
    ],
)
def test_what_follows_from_the_ends_of_dates_holds_on_every_row(text: str) -> None:
    rows = rows_of(
        [{"u": i, "day": day, "at": at} for i, (day, at) in enumerate((d, m) for d in DATES for m in (MOMENTS[::5]))]
        + [{"u": 0, "day": DATES[0], "at": at} for at in (*MOMENTS, None)],
        "u",
        DATED,
    )
    kept = rows.where("day BETWEEN '2020-02-03' AND '2021-12-01' AND at < '2021-01-20' AND at >= '2020-12-31'")
    value = kept.values(text)
    (found,) = kept.engine.run(kept.select([named(value.sql, "v")])).to_pydict().values()
    assert value.bounds is not None
    assert len(found) > 20
    assert value.bounds[0] <= min(found) <= max(found) <= value.bounds[1]
    if value.values is not None:
        assert set(found) <= set(value.values)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day"])
@pytest.mark.parametrize(("name", "listed"), [("day", DATES), ("at", MOMENTS)])
def test_truncated_dates_between_ends_are_listed(unit: str, name: str, listed: list[Any]) -> None:
    rows = rows_of([{"u": 0, "day": None, "at": None, name: one} for one in listed], "u", DATED)
    low, high = min(listed), max(listed)
    value = rows.where(f"{name} BETWEEN '{low}' AND '{high}'").values(f"DATE_TRUNC('{unit}', {name})")
    (found,) = rows.engine.run(rows.select([named(value.sql, "v")])).to_pydict().values()
    listed_units: list[Any] = list(value.values or ())
    assert set(found) <= set(listed_units)
    assert (min(found), max(found)) == (min(listed_units), max(listed_units))
    assert len(listed_units) == len(set(listed_units)) <= 1_000


def test_truncated_dates_that_are_too_many_are_not_listed() -> None:
    schema = confined(SCHEMA, expression("day BETWEEN '1990-01-01' AND '2020-01-01'", SCHEMA).ends)
    assert expression("DATE_TRUNC('day', day)", schema).values is None
    assert expression("DATE_TRUNC('month', day)", schema).values is not None
