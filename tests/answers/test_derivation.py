"""What is derived is what plain DuckDB makes of the released table, and nothing else can be reached."""

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.answers.making import HOSTILE
from tests.answers.released import answer, column, exact

from defocus.answers import Released
from defocus.answers.answer import columns_in, columns_out
from defocus.errors import DefocusError, InvalidParameterError, UnknownColumnError, UnsupportedSqlError, WrongKindError
from defocus.ledger import Receipt

FORMULAS = [
    "n + s * 2 - p / 3",
    "RANK() OVER (ORDER BY n DESC)",
    "DENSE_RANK() OVER (ORDER BY place, n)",
    "ROW_NUMBER() OVER (PARTITION BY place ORDER BY n)",
    "NTILE(3) OVER (ORDER BY n)",
    "PERCENT_RANK() OVER (ORDER BY s)",
    "CUME_DIST() OVER (PARTITION BY block ORDER BY s)",
    "n / SUM(n) OVER ()",
    "SUM(n) OVER (PARTITION BY block ORDER BY place)",
    "SUM(n) OVER (ORDER BY n DESC)",
    "AVG(n) OVER (ORDER BY block, place ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "AVG(n) OVER (ORDER BY place RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "SUM(n) OVER (ORDER BY block, place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW)",
    "n - LAG(n) OVER (PARTITION BY block ORDER BY place)",
    "LEAD(n, 2, 0) OVER (PARTITION BY block ORDER BY place)",
    "FIRST_VALUE(n) OVER (PARTITION BY block ORDER BY place)",
    "LAST_VALUE(n) OVER (PARTITION BY block)",
    "NTH_VALUE(n, 2) OVER (PARTITION BY block ORDER BY place)",
    "LAG(hole IGNORE NULLS) OVER (ORDER BY block, place)",
    "SUM(hole) OVER (PARTITION BY block)",
    "AVG(hole) FILTER (WHERE n > 200) OVER (PARTITION BY block)",
    "COUNT(hole) OVER (PARTITION BY block)",
    "COUNT(*) OVER ()",
    "MAX(n) OVER (PARTITION BY block) - MIN(n) OVER (PARTITION BY block)",
    "STDDEV(n) OVER (PARTITION BY block)",
    "COALESCE(hole, n, 0)",
    "COALESCE(hole, 0)",
    "NULLIF(place, 2) * n",
    "CASE WHEN n > 250 THEN 1 WHEN n > 150 THEN n END",
    "CASE place WHEN 1 THEN n WHEN 2 THEN s ELSE p END",
    "IF(n > s, n, s)",
    "GREATEST(n, p, hole)",
    "ROUND(s / n, 1) + FLOOR(n) + CEIL(p)",
    "n > 200 AND place < 3",
    "CAST(n AS INTEGER) % 7",
    "LN(n) + SQRT(s) + EXP(p / 1000) + LOG10(n) + POWER(n, 1.5)",
    "SUM(n * place) OVER () / SUM(n) OVER (PARTITION BY block)",
    "10 ** (n / 100) - ABS(-n)",
]


def wide(receipt: Receipt) -> Released:
    made = answer(receipt, exact(4, 1), 2)
    hole = np.where(np.arange(20) % 3 == 0, np.nan, made["n"].values)
    return Released(made.keys, (*made.columns, column("hole", hole, None)), "numbers", receipt)


@pytest.mark.parametrize("formula", FORMULAS)
def test_derived_numbers_are_those_of_plain_duckdb(receipt: Receipt, formula: str) -> None:
    released = wide(receipt)
    numbers = {each.name: pa.array(each.values, mask=np.isnan(each.values)) for each in released.columns}
    database = duckdb.connect(":memory:")
    database.register("t", pa.table({"i": np.arange(20), **released.keys, **numbers}))
    plain = database.sql(f"SELECT ({formula})::DOUBLE AS x FROM t ORDER BY i").fetchall()  # noqa: S608
    wanted = [math.nan if x is None else x for (x,) in plain]
    assert np.array_equal(released.derive(y=formula)["y"].values, wanted, equal_nan=True)


@pytest.mark.parametrize(
    "formula", ["n / 0", "n / (n - n)", "LN(-n)", "SQRT(-1 - n)", "n % 0", "CAST('x' AS DOUBLE)", "POWER(0, -n)"]
)
def test_what_has_no_value_is_missing(receipt: Receipt, formula: str) -> None:
    made = wide(receipt).derive(y=formula, z=f"COALESCE({formula}, 7)", total=f"SUM({formula}) OVER ()")
    assert np.isnan(made["y"].values).all()
    assert (made["z"].values == 7).all()
    assert np.isnan(made["total"].values).all()
    assert all(np.isnan(getattr(made[name], part)).all() for name in ("y", "total") for part in ("errors", "low"))


def test_infinite_numbers_are_missing(receipt: Receipt) -> None:
    odd = column("x", np.array([1.0, math.inf, -math.inf, math.nan]), None)
    made = Released({}, (odd,), "q", receipt).derive(
        y="SUM(x) OVER ()", z="COUNT(x) OVER ()", rank="RANK() OVER (ORDER BY x)"
    )
    assert made["y"].values.tolist() == [1] * 4
    assert made["z"].values.tolist() == [1] * 4
    assert made["rank"].values.tolist() == [1, 2, 2, 2]


def test_ties_are_taken_in_the_order_of_the_answer(receipt: Receipt) -> None:
    same = column("x", np.ones(6), None)
    made = Released({"k": list("abcdef")}, (same,), "q", receipt).derive(
        row="ROW_NUMBER() OVER (ORDER BY x)",
        rank="RANK() OVER (ORDER BY x)",
        run="SUM(x) OVER (ORDER BY x ROWS 9 PRECEDING)",
    )
    assert made["row"].values.tolist() == made["run"].values.tolist() == [1, 2, 3, 4, 5, 6]
    assert made["rank"].values.tolist() == [1] * 6
    assert made["row"].low.tolist() == [1] * 6
    assert made["row"].high.tolist() == [6] * 6


def test_an_answer_without_entries_stays_one(receipt: Receipt) -> None:
    nothing = wide(receipt).take(np.zeros(0, np.int64), "nothing")
    made = nothing.derive(
        share="n / SUM(n) OVER ()", rank="RANK() OVER (ORDER BY m)", run="SUM(s) OVER (ORDER BY place)"
    )
    assert len(made) == 0
    assert made.names[-3:] == ["share", "rank", "run"]


def test_names_match_in_any_case_unless_they_are_quoted(receipt: Receipt) -> None:
    released = Released({"a b": ["x"]}, (column("Visits", np.ones(1), None),), "q", receipt)
    assert released.derive(y="VISITS * 2", z='"Visits" + LENGTH("a b")')["z"].values.tolist() == [2]
    with pytest.raises(UnknownColumnError):
        released.derive(y='"VISITS"')


@pytest.mark.parametrize("name", HOSTILE)
def test_keys_that_strangers_wrote_are_values_and_nothing_else(receipt: Receipt, name: str) -> None:
    made = Released({"k": [name, "b"]}, (column("n", np.array([1.0, 2.0]), None),), "q", receipt)
    assert made.derive(y="SUM(n) OVER (PARTITION BY k)")["y"].values.tolist() == [1, 2]


REFUSED: list[tuple[Any, type[DefocusError], str]] = [
    ("", InvalidParameterError, "must be text"),
    (5, InvalidParameterError, "must be text"),
    ("n" * 20_000, InvalidParameterError, "must be text"),
    ("n +", InvalidParameterError, "cannot be read"),
    ("n, s", InvalidParameterError, "cannot be read"),
    ("n AS x", InvalidParameterError, "cannot be read"),
    ("*", InvalidParameterError, "cannot be read"),
    ("n FROM read_csv('/etc/passwd')", InvalidParameterError, "cannot be read"),
    ("n; DROP TABLE released", InvalidParameterError, "cannot be read"),
    ("(SELECT MAX(n) FROM released)", UnsupportedSqlError, "sub-query"),
    ("SUM(n)", UnsupportedSqlError, "SUM without OVER"),
    ("nosuch + 1", UnknownColumnError, "nosuch"),
    ("released.n", UnknownColumnError, "released.n"),
    ("NOSUCH(n)", InvalidParameterError, "DuckDB cannot compute"),
    ("n || 'x'", WrongKindError, "holds numbers"),
    ("RANK() OVER w", InvalidParameterError, "DuckDB cannot compute"),
    ("SUM(SUM(n) OVER ()) OVER ()", InvalidParameterError, "DuckDB cannot compute"),
]


@pytest.mark.parametrize(("text", "kind", "words"), REFUSED)
def test_what_cannot_be_derived_is_refused(receipt: Receipt, text: Any, kind: type[DefocusError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        wide(receipt).derive(y=text)
    assert caught.value.fix


def test_names_that_would_meet_are_refused(receipt: Receipt) -> None:
    for name in ("n", "N_error", "place"):
        with pytest.raises(InvalidParameterError, match="would be called"):
            wide(receipt).derive(**{name: "1"})
    with pytest.raises(InvalidParameterError, match="Nothing is derived"):
        wide(receipt).derive()


def test_a_recorded_answer_derives_the_same_errors(receipt: Receipt) -> None:
    first = wide(receipt)
    again = Released(first.keys, columns_in(columns_out(first.columns), absolute=False), "q", receipt)
    formulas = {"a": "n + s", "b": "n / SUM(n) OVER ()", "c": "m - LAG(m) OVER (ORDER BY block, place)"}
    one, other = first.derive(**formulas), again.derive(**formulas)
    for name in formulas:
        assert np.array_equal(one[name].errors, other[name].errors, equal_nan=True)
        assert np.array_equal(one[name].low, other[name].low, equal_nan=True)
