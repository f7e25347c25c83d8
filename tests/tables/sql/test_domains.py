"""Which values a key can have, as far as the text and declared facts tell."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import defocus as dp
from defocus.errors import NotDeclaredError
from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions.ranges import domain
from defocus.tables.sql.bounds import conjuncts, listed


def tree(text: str) -> exp.Expression:
    made = sqlglot.parse_one(text, read="duckdb")
    assert isinstance(made, exp.Expression)
    return made


@pytest.mark.parametrize(
    ("condition", "kind", "values"),
    [
        ("k IN ('a', 'b')", Kind.TEXT, ["a", "b"]),
        ("k IN ('a', 'a', NULL)", Kind.TEXT, ["a"]),
        ("k = 'a'", Kind.TEXT, ["a"]),
        ("'a' = k", Kind.TEXT, ["a"]),
        ("((k IN (1, -2)) AND z > 3)", Kind.INTEGER, [1, -2]),
        ("k IN (1, 2, 3) AND k IN (2, 3, 4) AND k <> 2", Kind.INTEGER, [2, 3]),
        ("k IN (1) AND k IN (2)", Kind.INTEGER, []),
        ("k BETWEEN 2 AND 4", Kind.INTEGER, [2, 3, 4]),
        ("k = DATE '2024-02-29'", Kind.DATE, [date(2024, 2, 29)]),
        ("k IN ('2024-02-29')", Kind.DATE, [date(2024, 2, 29)]),
        ("k = TRUE", Kind.BOOLEAN, [True]),
        ("k IN ('a') OR z > 3", Kind.TEXT, None),
        ("NOT k IN ('a')", Kind.TEXT, None),
        ("k <> 'a'", Kind.TEXT, None),
        ("k IN (z, 'a')", Kind.TEXT, None),
        ("k IN ('1')", Kind.INTEGER, None),
        ("k IN (1.5)", Kind.INTEGER, None),
        ("k = NULL", Kind.TEXT, None),
        ("k BETWEEN 1 AND 100000", Kind.INTEGER, None),
        ("k BETWEEN 4 AND 2", Kind.INTEGER, None),
        ("k = '2024-02-31'", Kind.DATE, None),
        ("z IN ('a')", Kind.TEXT, None),
    ],
)
def test_conditions_leave_certain_values_to_a_key(condition: str, kind: Kind, values: list[Any] | None) -> None:
    assert listed(tree("k"), kind, conjuncts(tree(condition))) == values


def test_expressions_are_recognised_as_they_are_written() -> None:
    conditions = conjuncts(tree("YEAR(k) IN (2023, 2024) AND UPPER(z) = 'A'"))
    assert listed(tree("YEAR(k)"), Kind.INTEGER, conditions) == [2023, 2024]
    assert listed(tree("k"), Kind.DATE, conditions) is None


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("CASE WHEN x > 1 THEN 'a' WHEN x > 0 THEN 'b' ELSE 'a' END", Kind.TEXT, ["a", "b"]),
        ("CASE WHEN x > 1 THEN 'a' END", Kind.TEXT, ["a"]),
        ("(CASE x WHEN 1 THEN 10 ELSE NULL END)", Kind.INTEGER, [10]),
        ("IF(x > 1, 1, 2)", Kind.INTEGER, [1, 2]),
        ("CASE WHEN x > 1 THEN y ELSE 'a' END", Kind.TEXT, None),
        ("QUARTER(d)", Kind.INTEGER, [1, 2, 3, 4]),
        ("YEAR(d)", Kind.INTEGER, None),
        ("x > 3", Kind.BOOLEAN, [False, True]),
        ("x", Kind.TEXT, None),
        ("STRFTIME(d, '%a')", Kind.TEXT, ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]),
        ("STRFTIME(d, '%Y')", Kind.TEXT, None),
        ("DAYNAME(d)", Kind.TEXT, ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]),
    ],
)
def test_some_expressions_show_all_their_values(text: str, kind: Kind, values: list[Any] | None) -> None:
    found = domain(tree(text), kind, Schema([]))
    assert (None if found is None else list(found)) == values


def test_a_declared_domain_comes_first() -> None:
    assert domain(tree("(x)"), Kind.TEXT, Schema([Column("x", Kind.TEXT, values=("a", "b"))])) == ("a", "b")
    assert conjuncts(None) == []


def test_where_bounds_what_is_averaged_and_lists_the_groups_of_dates(tmp_path: Path) -> None:
    days = [date(2020, 1, 1) + timedelta(days=i % 200) for i in range(2000)]
    data = pa.table({"p": range(2000), "age": [i % 120 for i in range(2000)], "day": days})
    with dp.open(data, unit=dp.user("p"), budget=dp.Budget(10**4), ledger=tmp_path / "w", name="stays") as table:
        asked = table.bound(rows=1)
        where = " FROM stays WHERE age >= 18 AND age < 91 AND day BETWEEN '2020-02-10' AND DATE '2020-05-20'"
        mean = asked.sql("SELECT AVG(age) AS age" + where, epsilon=1000)
        inside = [date(2020, 2, 10) <= day <= date(2020, 5, 20) for day in days]
        kept = [i % 120 for i, told in enumerate(inside) if told and 18 <= i % 120 < 91]
        assert mean["age"].values[0] == pytest.approx(sum(kept) / len(kept), abs=0.5)
        assert any("clipped to [18, 90]" in str(rule) for rule in mean.rules)
        stay = asked.sql("SELECT AVG(DATE_DIFF('day', DATE '2020-01-01', day)) AS d" + where, epsilon=1000)
        assert any("clipped to [40, 140]" in str(rule) for rule in stay.rules)
        months = asked.sql("SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n" + where + " GROUP BY m", epsilon=1)
        assert months.to_arrow()["m"].to_pylist() == [date(2020, month, 1) for month in (2, 3, 4, 5)]
        with pytest.raises(NotDeclaredError, match="Nobody declared"):
            asked.sql("SELECT AVG(age) AS age FROM stays WHERE age < 91 OR day > '2020-01-01'", epsilon=1)
