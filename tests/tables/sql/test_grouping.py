"""ROLLUP, CUBE and GROUPING SETS in SQL: the groups and numbers of the database itself, with labels for NULL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError
from defocus.tables.table import Table

ROWS = pa.table({
    "ward": ["A", "B", "B", "A", "B", None] * 20,
    "year": [2025, 2026, 2025, 2026, 2026, 2026] * 20,
    "days": [float(i % 10) for i in range(120)],
})  # fmt: skip


@pytest.fixture
def stays(tmp_path: Path) -> Iterator[Table]:
    ledger = tmp_path / "a.ledger"
    with dp.open(ROWS, unit=dp.rows(), budget=dp.Budget(10**7, 1e-3), ledger=ledger, name="stays") as table:
        yield table.declare(ward=["A", "B"], year=[2025, 2026], days=(0, 9))


def shown(answer: Any) -> set[tuple[Any, ...]]:
    """Keys as text, and numbers to two digits."""
    keys = [[str(key) for key in column.to_pylist()] for column in answer.keys.values()]
    numbers = [np.round(column.values, 2).tolist() for column in answer.columns]
    return set(zip(*keys, *numbers, strict=True))


def _text(key: Any) -> str:
    return "all" if key is None else str(key).lower() if isinstance(key, bool) else str(key)


AGREES = tuple(
    f"SELECT {wanted} FROM stays WHERE ward IN ('A', 'B') GROUP BY {groups}"  # noqa: S608  # constants
    for wanted, groups in (
        ("ward, year, COUNT(*) AS n", "ROLLUP (ward, year)"),
        ("ward, year, COUNT(*) AS n, SUM(days) AS s", "ROLLUP (ward, year)"),
        ("ward, year, AVG(days) AS s", "CUBE (ward, year)"),
        ("ward, year, SUM(days) AS s", "GROUPING SETS ((ward), (year), ())"),
        ("ward, year, SUM(days) AS s", "GROUPING SETS ((ward, year), year)"),
        ("ward, year, COUNT(*) AS s", "ward, ROLLUP (year)"),
        ("ward, year, SUM(days) AS s", "ROLLUP (ward), ROLLUP (year)"),
        ("ward, year, days > 4 AS long, SUM(days) AS s", "ROLLUP ((ward, year), long)"),
        ("ward, year, SUM(days) AS s, GROUPING(ward) AS g, GROUPING(ward, year) AS b", "CUBE (1, 2)"),
        ("ward, SUM(days) AS s", "ROLLUP (ward) HAVING GROUPING(ward) = 1"),
        ("ward, year, SUM(days) AS s", "GROUPING SETS (ROLLUP (ward), (ward, year))"),
    )
)


@pytest.mark.parametrize("text", AGREES)
def test_groups_and_numbers_are_those_of_the_database(stays: Table, text: str) -> None:
    with duckdb.connect() as database:
        database.register("stays", ROWS)
        found = database.execute(text).fetchall()
    answer = stays.sql(text, epsilon=10**5)
    keys = len(answer.keys)
    exact = {(*map(_text, row[:keys]), *(round(float(x), 2) for x in row[keys:])) for row in found}
    for mine, theirs in zip(sorted(shown(answer)), sorted(exact), strict=True):
        assert mine[:keys] == theirs[:keys]
        assert mine[keys:] == pytest.approx(theirs[keys:], abs=0.03)


def test_orders_and_limits_see_labels(stays: Table) -> None:
    text = "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ROLLUP (ward) HAVING ward <> 'all' ORDER BY ward DESC"
    assert stays.sql(text, epsilon=1).keys["ward"].to_pylist() == ["B", "A"]
    last = "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ROLLUP (ward) ORDER BY GROUPING(ward) DESC, n LIMIT 1"
    assert stays.sql(last, epsilon=1).keys["ward"].to_pylist() == ["all"]


def test_counts_alone_are_whole_and_counts_with_sums_are_not(stays: Table) -> None:
    alone = stays.sql("SELECT ward, year, COUNT(*) AS n FROM stays GROUP BY ROLLUP (ward, year)", epsilon=0.1)
    values = alone["n"].values
    assert (values == np.rint(values)).all() and (values >= 0).all()  # noqa: PT018
    both = "SELECT ward, COUNT(*) AS n, SUM(days) AS s FROM stays GROUP BY ROLLUP (ward)"
    assert (stays.sql(both, epsilon=0.1)["n"].values % 1 > 0).any()


def test_rollup_of_another_dialect(stays: Table) -> None:
    text = "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward WITH ROLLUP"
    answer = stays.sql(text, epsilon=1, dialect="mysql")
    assert answer.keys["ward"].to_pylist() == ["A", "B", "all"]


def test_a_key_that_is_null_is_no_total(stays: Table) -> None:
    text = "SELECT ward, COUNT(*) AS n, GROUPING(ward) AS g FROM stays GROUP BY ROLLUP (ward)"
    answer = stays.sql(text, epsilon=10**5, keys=["A", "B", None])
    assert answer.keys["ward"].to_pylist() == ["A", "B", None, "all"]
    assert answer["n"].values.tolist() == [40, 60, 20, 120]
    assert answer["g"].values.tolist() == [0, 0, 0, 1]
    assert "g_error" not in answer.to_arrow().column_names


REFUSED = {
    "SELECT ward, COUNT(DISTINCT year) FROM stays GROUP BY ROLLUP (ward)": "does not add up",
    "SELECT ward, MEDIAN(days) FROM stays GROUP BY CUBE (ward)": "does not add up",
    "SELECT ward, COUNT(*) FROM (SELECT ward FROM stays GROUP BY ROLLUP (ward)) GROUP BY ward": "outer query",
    "SELECT GROUPING(days), COUNT(*) FROM stays GROUP BY ROLLUP (ward)": "GROUPING",
    "SELECT COUNT(*) FROM stays GROUP BY GROUPING SETS ((ward, COUNT(*)))": "aggregate",
    "SELECT ward, COUNT(*) FROM stays GROUP BY ROLLUP (1, 7)": "names no selected column",
    "SELECT COUNT(*) FROM stays GROUP BY CUBE (ward, ward, ward, ward, ward, ward, ward, ward, ward, ward, ward)": "11",
    "SELECT ward, COUNT(*) FROM stays GROUP BY ROLLUP (ward) HAVING GROUPING(1) = 1": "GROUPING",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_meaning_is_refused_free_of_charge(stays: Table, text: str) -> None:
    with pytest.raises(DefocusError, match=REFUSED[text]):
        stays.sql(text, epsilon=1)
    assert len(stays.ledger.history()) == 1
