"""Which values a key can have, as far as the text and declared facts tell."""

from datetime import date
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

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
