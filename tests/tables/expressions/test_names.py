"""A text that is the name of a column is that column, and nobody guesses."""

from pathlib import Path

import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError
from defocus.tables import Column, Kind, Schema, Table
from defocus.tables.expressions import expression

NAMES = Schema([Column("a-b", Kind.INTEGER, 0, 100), Column("a", Kind.INTEGER), Column("b", Kind.INTEGER)])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    people = pa.table({"u": range(100), "a-b": [99] * 100, "a": [9] * 100, "b": [2] * 100, "a - b": [50] * 100})
    return dp.open(
        people.drop_columns(["a - b"]),
        unit=dp.user("u"),
        budget=dp.Budget(10**9),
        ledger=tmp_path / "l",
        name="t",
        columns={"a-b": (0, 100), "a": (0, 100), "b": (0, 100)},
    )


def test_the_name_of_a_column_wins(table: Table) -> None:
    assert expression("a-b", NAMES).columns == {"a-b"}
    assert expression('"a-b"', NAMES).columns == {"a-b"}
    assert expression("(a-b)", NAMES).columns == {"a", "b"}
    with table:
        answer = table.bound(rows=1).agg(m=dp.mean("a-b"), n=dp.count("a-b"), q=dp.sum("a-b")).release(epsilon=10**5)
        assert [round(float(answer[name].values[0])) for name in ("m", "n", "q")] == [99, 100, 9900]


@pytest.mark.parametrize("text", ["a - b", "A-B", " a -b"])
def test_what_may_be_either_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError, match="may be an expression") as refused:
        expression(text, NAMES)
    assert '"a-b"' in refused.value.fix


def test_in_sql_an_expression_is_one_and_a_quoted_name_a_name(table: Table) -> None:
    with table:
        text = 'SELECT AVG(a-b) AS e, AVG(a - b) AS f, AVG("a-b") AS m, SUM(a-b) FILTER (WHERE a-b > 3) AS s FROM t'
        answer = table.bound(rows=1).sql(text, epsilon=10**5)
        assert [round(float(answer[name].values[0])) for name in ("e", "f", "m", "s")] == [7, 7, 99, 700]
        groups = table.bound(rows=1).sql("SELECT a-b AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1, keys=[7, 99])
        assert groups.keys["k"].to_pylist() == [7, 99]
