"""Text becomes one SELECT or a refusal, quickly, in every dialect."""
# ruff: noqa: S608  # hostile text is what is tested

from typing import Any

import pytest
from tests.tables.sql.hospital import exact

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables import Table
from defocus.tables.sql.parser import canonical, select

DIALECTS = {
    "postgres": "SELECT ward, SUM(days) / COUNT(*) AS x FROM visits WHERE ward = ANY(ARRAY['A']) GROUP BY ward",
    "mysql": "SELECT `ward`, AVG(days) AS x FROM visits WHERE ward IN ('A') GROUP BY `ward` LIMIT 0, 5",
    "spark": "SELECT `ward`, avg(days) AS x FROM visits WHERE ward IN ('A') GROUP BY `ward`",
    "bigquery": "SELECT ward, AVG(days) AS x FROM `visits` WHERE ward IN ('A') GROUP BY 1",
    "snowflake": "SELECT ward, AVG(days) AS x FROM visits WHERE ward IN ('A') GROUP BY 1",
    "tsql": "SELECT TOP 2 [ward], AVG(days) AS x FROM visits WHERE ward IN ('A') GROUP BY [ward]",
    "sqlite": "SELECT ward, AVG(days) AS x FROM visits WHERE ward IN ('A') GROUP BY ward",
    "oracle": "SELECT ward, AVG(days) AS x FROM visits WHERE ward IN ('A') GROUP BY ward FETCH FIRST 5 ROWS ONLY",
}


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "postgres"])
def test_other_dialects_are_read(visits: Table, dialect: str) -> None:
    assert exact(visits, DIALECTS[dialect], dialect=dialect) == {"ward": ["A"], "x": [4.5]}


def test_quantiles_of_postgres_are_read(visits: Table) -> None:
    text = "SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY days DESC) AS q FROM visits"
    same = visits.sql_query("SELECT QUANTILE_CONT(days, 0.9) AS q FROM visits")
    read = visits.sql_query(text, dialect="postgres")
    assert read.query.arrangement.aggregates == same.query.arrangement.aggregates


def test_what_a_dialect_has_and_duckdb_has_not_is_refused(visits: Table) -> None:
    with pytest.raises(UnsupportedSqlError):
        visits.sql_query(DIALECTS["postgres"], dialect="postgres")


@pytest.mark.parametrize("dialect", ["", "klingon", None, 3, "duckdb; DROP", b"duckdb"])
def test_an_unknown_dialect_is_refused(visits: Table, dialect: Any) -> None:
    with pytest.raises(InvalidParameterError, match="There is no dialect"):
        visits.sql_query("SELECT COUNT(*) FROM visits", dialect=dialect)


@pytest.mark.parametrize("text", [None, 3, b"SELECT COUNT(*) FROM visits", ["SELECT"], True])
def test_only_text_is_read(visits: Table, text: Any) -> None:
    with pytest.raises(InvalidParameterError, match="must be text"):
        visits.sql_query(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*) FROM visits WHERE age > " + "(" * 5000 + "1" + ")" * 5000, "nested more than"),
        ("SELECT COUNT(*) FROM visits WHERE " + "NOT " * 5000 + "smoker", "nested more than"),
        ("SELECT COUNT(*) FROM visits WHERE age > " + "-" * 3000 + "1", "nested more than|is empty|cannot be read"),
        ("SELECT " + "(SELECT " * 2000 + "1" + ")" * 2000 + " FROM visits", "nested more than"),
        ("SELECT COUNT(*) FROM visits WHERE age IN (" + ",".join(map(str, range(30_000))) + ")", "100000|words and"),
        ("SELECT COUNT(*) FROM visits WHERE age > " + "+".join(["1"] * 4000), "nested more than"),
        (
            "SELECT COUNT(*) FROM visits WHERE " + "CASE WHEN smoker THEN " * 500 + "1" + " END" * 500,
            "nested more than",
        ),
        ("SELECT " + ", ".join(["COUNT(*)"] * 1001) + " FROM visits", "1 to 1000 columns"),
        ("SELECT COUNT(*) FROM visits " + " " * 100_001, "100000"),
        ("SELECT COUNT(*) AS \0 FROM visits", "NUL"),
        ("SELECT COUNT(*) AS \ud800 FROM visits", "surrogate"),
        ("SELECT COUNT(*) AS " + "x" * 300 + " FROM visits", "300 characters"),
        ("SELECT 'COUNT(*) FROM visits", "cannot be read"),
        ("SELECT /* COUNT(*) FROM visits", "cannot be read|1 to 1000|without FROM"),
    ],
)
def test_huge_and_broken_text_ends_in_a_refusal(visits: Table, text: str, expected: str) -> None:
    with pytest.raises(InvalidParameterError, match=expected):
        visits.sql_query(text)


def test_a_long_list_and_a_long_chain_are_read(visits: Table) -> None:
    listed = ", ".join(map(str, range(2000)))
    chained = " OR ".join(f"age = {i}" for i in range(200))
    visits.sql_query(f"SELECT COUNT(*) FROM visits WHERE age IN ({listed}) AND ({chained})")


def test_a_tree_is_written_in_one_line_without_comments() -> None:
    tree = select("SELECT COUNT(*) -- DROP\n  FROM visits /* x */ WHERE ward = 'a\nb'")
    assert canonical(tree) == "SELECT COUNT(*) FROM visits WHERE ward = 'a b'"
