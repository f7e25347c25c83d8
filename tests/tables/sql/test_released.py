"""SELECTs over released groups are computed from released numbers; those that group by the person are not releases."""

import math
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.tables.sql.hospital import charges, hospital

from defocus.answers.rules import below
from defocus.errors import DefocusError
from defocus.tables import Table

INNER = """SELECT ward, age > 50 AS old, COUNT(*) AS n, AVG(days) AS m FROM visits WHERE ward IN ('A', 'B')
GROUP BY ward, old"""
OUTER = [
    "SELECT AVG(n) AS x, SUM(n) AS t, COUNT(*) AS c, MIN(m) AS l, MAX(m) AS h, MEDIAN(n) AS d FROM {}",
    "SELECT ward, SUM(n) AS t, AVG(m) AS x FROM {} GROUP BY ward",
    "SELECT ward, SUM(n) / SUM(SUM(n)) OVER () AS share FROM {} GROUP BY ward",
    "SELECT old, COUNT(*) AS c, SUM(n) AS t FROM {} GROUP BY 1 HAVING SUM(n) IS NOT NULL ORDER BY t DESC",
    "SELECT UPPER(ward) AS w, SUM(n * 2 + 1) AS t FROM {} GROUP BY w ORDER BY w DESC LIMIT 1",
    "SELECT SUM(n) FILTER (WHERE old) AS t, COUNT(DISTINCT ward) AS c FROM {} WHERE ward = 'A'",
    "SELECT q.n / 2 AS h FROM {} WHERE ward = 'A'",
    "SELECT *, RANK() OVER (ORDER BY n DESC) AS r FROM {} ORDER BY r",
    "SELECT *, RANK() OVER (PARTITION BY old ORDER BY n DESC) AS r FROM {} QUALIFY r = 1 ORDER BY old",
    "SELECT AVG(t) AS x FROM (SELECT ward, SUM(n) AS t FROM {} GROUP BY ward)",
    "SELECT ward, old, n - total AS rest FROM (SELECT *, SUM(n) OVER () AS total FROM {})",
    "SELECT SUM(n) AS t FROM {} WHERE n < -1e9",
]


def over(text: str) -> str:
    return text.format(INNER)


def released(table: Table, text: str, **more: Any) -> Any:
    return table.sql(text, epsilon=1, **more)


@pytest.mark.slow
@pytest.mark.parametrize("text", OUTER)
@pytest.mark.parametrize("way", ["sub-query", "WITH"])
def test_a_select_over_released_groups_is_that_of_plain_duckdb_over_them(visits: Table, text: str, way: str) -> None:
    asked = text.format(f"({INNER}) AS q") if way == "sub-query" else f"WITH q AS ({INNER}) {text.format('q')}"
    before = charges(visits)
    answer = released(visits, asked, request=f"{way} {text}")
    inner = visits.sql_query(asked)
    raw = inner.finish.apply(inner.query.release(epsilon=1, request=f"{way} {text}"), "")  # the same release, recalled
    assert charges(visits) == before + 1
    database = duckdb.connect(":memory:")
    database.register("q", raw.to_arrow().select(["ward", "old", "n", "m"]))
    plain = database.sql(text.format("q")).to_arrow_table()
    for column in answer.columns:
        wanted = [math.nan if x is None else float(x) for x in plain.column(column.name).to_pylist()]
        order = slice(None) if "ORDER BY" in text.rpartition("FROM")[2] else np.argsort(wanted)
        mine = column.values if isinstance(order, slice) else np.sort(column.values)
        assert np.allclose(mine, np.array(wanted)[order], equal_nan=True, rtol=1e-12)


def test_an_average_of_released_counts_has_their_error_divided(visits: Table) -> None:
    bounded = visits.bound(rows=16)  # one bound for both: found ones may differ
    answer = released(bounded, over("SELECT AVG(n) AS x, SUM(n) AS t, MIN(n) AS l FROM ({})"))
    each = released(bounded, INNER)["n"].errors[0]
    assert np.isclose(answer["t"].errors[0], 2 * each)
    assert np.isclose(answer["x"].errors[0], each / 2)
    assert "exact error" in answer["x"].how
    assert np.isfinite(answer["l"].low[0])
    assert "computed from 4 released groups" in answer.processing


@pytest.mark.parametrize(
    "picked",
    ["SELECT COUNT(*) AS k FROM ({}) AS q WHERE n > 0", "SELECT COUNT(*) AS k FROM ({} HAVING COUNT(*) > 0) AS q"],
)
def test_a_number_of_groups_that_noise_picked_has_no_interval(visits: Table, picked: str) -> None:
    unsure = released(visits, over(picked))["k"]
    assert np.isnan([unsure.low[0], unsure.high[0], unsure.errors[0]]).all()
    assert "noise decided" in unsure.how
    sure = released(visits, over("SELECT COUNT(*) AS k FROM ({}) AS q"))["k"]
    assert sure.low[0] == sure.values[0] == sure.high[0] == 4


@pytest.mark.slow
def test_intervals_of_what_is_computed_from_released_groups_hold() -> None:
    text = over("SELECT SUM(n) AS t, SUM(m * n) / SUM(n) AS x, MAX(n) AS most FROM ({})")
    with hospital() as opened:
        visits = opened.bound(rows=16)
        true = visits.sql(text, epsilon=10**5)
        seen = [visits.sql(text, epsilon=20) for _ in range(40)]
    for name in ("t", "x", "most"):
        held = [one[name].low[0] <= true[name].values[0] <= one[name].high[0] for one in seen]
        assert sum(held) >= 35


def test_a_sub_query_that_groups_by_the_person_makes_features_and_no_release(visits: Table) -> None:
    query = visits.sql_query(
        "SELECT SUM(CLAMP(n, 0, 9)) AS t FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)"
    )
    assert not query.outer
    assert visits.sql_query("SELECT SUM(n) AS t FROM (SELECT COUNT(*) AS n FROM visits)").outer


def test_the_preview_says_what_is_computed_from_what(visits: Table) -> None:
    seen = visits.sql_query(over("SELECT AVG(n) AS x FROM ({})")).preview(epsilon=1)
    assert [(column.name, column.how) for column in seen.columns] == [("x", "computed from x")]
    kept = visits.sql_query(over("SELECT ward, old, n AS k FROM ({})")).preview(epsilon=1)
    assert kept.columns[0].error is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT nosuch FROM ({})", "There is no column 'nosuch'"),
        ("SELECT x.n FROM ({}) q", "There is no column 'x.n'"),
        ("SELECT n, SUM(m) FROM ({})", "The raw column n"),
        ("SELECT SUM(n) FROM ({}) GROUP BY old HAVING n > 3", "The raw column n"),
        ("SELECT SUM(n) FROM ({}) WHERE SUM(n) > 1", "in WHERE"),
        ("SELECT SUM(n) FROM ({}) WHERE ward", "WHERE needs a condition|kind"),
        ("SELECT NOSUCH(n) FROM ({})", "NOSUCH"),
        ("SELECT SUM(ward) FROM ({})", "DuckDB cannot compute"),
        ("SELECT DISTINCT n FROM ({})", "SELECT DISTINCT"),
        ("SELECT ward || 'x' AS y FROM ({})", "among the selected|kind"),
    ],
)
def test_mistakes_over_released_groups_are_told_free_of_charge(visits: Table, text: str, words: str) -> None:
    before = visits.ledger.anchor()
    with pytest.raises(DefocusError, match=words):
        visits.sql(text.format(INNER), epsilon=1)
    assert visits.ledger.anchor() == before


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY ward",
        "SELECT SUM(n) AS t FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)",
    ],
)
def test_totals_over_groups_tell_below_them_that_rows_of_other_groups_are_not_in_them(visits: Table, text: str) -> None:
    answer = released(visits, text, keys=["A", "B"])
    assert "rows of others are left out" in "\n".join(below(answer.rules))


def test_numbers_of_single_groups_do_not_tell_so() -> None:
    with hospital() as table:
        answer = released(table, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", keys=["A", "B"])
    assert "rows of others" not in "\n".join(below(answer.rules))
    assert "rows of others" in "\n".join(answer.rules)
