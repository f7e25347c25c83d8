"""HAVING, ORDER BY, LIMIT and formulas are computed from released numbers alone, and are those of plain Python."""

import math
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sqlglot import exp
from tests.tables.sql.hospital import charges

from defocus.answers import PICKED
from defocus.answers.propagation import Affine
from defocus.errors import NotFinishedError
from defocus.tables import AnswerColumn, Released, Table
from defocus.tables.sql import SqlQuery
from defocus.tables.sql.parser import DIALECT
from defocus.tables.sql.postprocessing import linear, references

WARDS = ["A", "B", "C"]
QUERY = """SELECT ward, COUNT(*) AS n, AVG(days) AS m, SUM(days) / COUNT(*) AS r FROM visits
WHERE ward IN ('A', 'B', 'C') GROUP BY ward {}"""


def answered(query: SqlQuery, **values: list[float]) -> Released:
    """An answer to the question behind a query, with the given numbers in place of noisy ones."""
    held = query.query.release(epsilon=1)
    columns = [
        AnswerColumn(
            name,
            np.array(numbers),
            np.ones(3),
            np.array(numbers) - 2,
            np.array(numbers) + 2,
            integral=False,
            how="test",
        )
        for name, numbers in values.items()
    ]
    return replace(held, columns=tuple(columns))


def finished(table: Table, ending: str, **values: list[float]) -> Released:
    query = table.sql_query(QUERY.format(ending))
    return query.finish.apply(answered(query, **values), query.text)


@pytest.mark.parametrize(
    ("ending", "wards", "said"),
    [
        ("", ["A", "B", "C"], ()),
        ("HAVING n > 10", ["B", "C"], ("only groups with n > 10 kept",)),
        ("HAVING COUNT(*) > 10 AND ward <> 'C'", ["B"], ("only groups with COUNT(*) > 10 AND ward <> 'C' kept",)),
        ("HAVING n > 1000", [], ("only groups with n > 1000 kept",)),
        ("ORDER BY n", ["A", "B", "C"], ("ordered by n",)),
        ("ORDER BY n DESC", ["C", "B", "A"], ("ordered by n, largest first",)),
        ("ORDER BY 2 DESC", ["C", "B", "A"], ("ordered by COUNT(*), largest first",)),
        ("ORDER BY ward DESC LIMIT 2", ["C", "B"], ("ordered by ward, largest first", "the first 2 groups kept")),
        ("ORDER BY m, n DESC", ["C", "A", "B"], ("ordered by m, n, largest first",)),
        (
            "ORDER BY -n LIMIT 1 OFFSET 1",
            ["B"],
            ("ordered by -n", "the first 1 groups skipped", "the first 1 groups kept"),
        ),
        ("ORDER BY ABS(n - 20), ward", ["B", "C", "A"], ("ordered by ABS(n - 20), ward",)),
        ("LIMIT 2", ["A", "B"], ("the first 2 groups kept",)),
        ("LIMIT 0", [], ("the first 0 groups kept",)),
        ("OFFSET 5", [], ("the first 5 groups skipped",)),
        ("FETCH FIRST 1 ROWS ONLY", ["A"], ("the first 1 groups kept",)),
    ],
)
def test_groups_are_kept_ordered_and_cut_as_asked(
    visits: Table, ending: str, wards: list[str], said: tuple[str, ...]
) -> None:
    answer = finished(visits, ending, n=[5.0, 20.0, 30.0], m=[3.0, 4.0, 2.0], sum_days=[10.0, 20.0, 30.0])
    assert answer.to_arrow().select(["ward"]).to_pydict() == {"ward": wards}
    assert tuple(why.removesuffix(f"; {PICKED}") for why in answer.processing) == said
    assert answer["n"].values.tolist() == [{"A": 5.0, "B": 20.0, "C": 30.0}[ward] for ward in wards]


@pytest.mark.parametrize(("nulls", "wards"), [("", "BCA"), ("NULLS LAST", "BCA"), ("NULLS FIRST", "ABC")])
def test_missing_values_come_at_the_end_that_was_asked_for(visits: Table, nulls: str, wards: str) -> None:
    ending = f"ORDER BY n {nulls}"
    answer = finished(visits, ending, n=[math.nan, 20.0, 30.0], m=[3.0, 4.0, 2.0], sum_days=[1.0, 1.0, 1.0])
    assert "".join(answer.to_arrow().select(["ward"]).to_pydict()["ward"]) == wards


def test_a_group_whose_condition_is_unknown_is_dropped(visits: Table) -> None:
    answer = finished(visits, "HAVING n > 1", n=[math.nan, 20.0, 0.0], m=[3.0, 4.0, 2.0], sum_days=[1.0, 1.0, 1.0])
    assert answer.to_arrow().select(["ward"]).to_pydict() == {"ward": ["B"]}


numbers = arrays(np.float64, 3, elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, math.nan, math.inf]))


@pytest.mark.slow
@settings(max_examples=12)
@given(numbers, numbers, numbers)
def test_no_released_number_makes_finishing_fail(visits: Table, n: Any, m: Any, s: Any) -> None:
    answer = finished(visits, "HAVING n / m > LN(r) OR n IS NOT NULL ORDER BY SQRT(r), n", n=n, m=m, sum_days=s)
    for ward, value in zip(answer.to_arrow().select(["ward"]).to_pydict()["ward"], answer["r"].values, strict=True):
        place = WARDS.index(ward)
        with np.errstate(all="ignore"):
            expected = s[place] / n[place] if n[place] else math.nan
            expected = expected if math.isfinite(s[place] + n[place]) else math.nan
        assert np.isclose(value, expected, equal_nan=True)


def test_finishing_an_answer_without_groups_gives_one(visits: Table) -> None:
    query = visits.sql_query("SELECT ward, COUNT(*) * 2 AS n FROM visits GROUP BY ward HAVING n > 1 ORDER BY n LIMIT 2")
    empty = query.query.release(epsilon=1e-3, delta=1e-7)
    assert len(empty) == 0
    assert query.finish.apply(empty, "").keys["ward"].to_pylist() == []


def test_an_answer_that_cannot_be_finished_is_not_lost(visits: Table) -> None:
    query = visits.sql_query(QUERY.format("ORDER BY n"))
    wrong = replace(query, finish=replace(query.finish, held={**query.finish.held, "a0": "nothing"}))
    with pytest.raises(NotFinishedError, match="the answer in the `answer` attribute") as caught:
        wrong.release(epsilon=1)
    assert caught.value.answer.to_arrow().select(["ward"]).to_pydict() == {"ward": WARDS}


def test_keys_keep_their_types(visits: Table) -> None:
    text = (
        "SELECT day, COUNT(*) AS n FROM visits WHERE day IN ('2023-01-12', '2023-01-01') GROUP BY day HAVING n > -1e9"
    )
    answer = visits.sql(text, epsilon=1)
    assert answer.keys["day"].type == pa.date32()
    assert len(answer) == 2


def tree(text: str) -> exp.Expression:
    made = sqlglot.parse_one(text, read=DIALECT)
    assert isinstance(made, exp.Expression)
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a0", Affine("a0", 1, 0)),
        ("(a0)", Affine("a0", 1, 0)),
        ("100 * a0", Affine("a0", 100, 0)),
        ("a0 / 4 - 1", Affine("a0", 0.25, -1)),
        ("10 - a0", Affine("a0", -1, 10)),
        ("-(a0 + 2) * 3", Affine("a0", -3, -6)),
        ("3 - (2 - a0)", Affine("a0", 1, 1)),
        ("a0 * a0", None),
        ("a0 + a1", None),
        ("1 / a0", None),
        ("a0 / 0", None),
        ("k0 * 2", None),
        ("ABS(a0)", None),
    ],
)
def test_multiples_of_one_column_are_recognised(text: str, expected: Affine | None) -> None:
    assert linear(tree(text)) == expected


def test_released_columns_in_a_formula_are_named_once() -> None:
    assert references(tree("a0 / k0 + a3 * a0 + SUM(a2) OVER (ORDER BY k1)")) == ["a0", "a3", "a2"]


def test_the_preview_of_a_multiple_is_scaled(visits: Table) -> None:
    seen = visits.sql_query("SELECT COUNT(*) AS n, COUNT(*) * 100 AS h, COUNT(*) / SUM(days) AS q FROM visits").preview(
        epsilon=1
    )
    n, h, q = seen.columns
    assert n.error is not None
    assert h.error == 100 * n.error
    assert (q.error, q.by_size) == (None, ())
    assert q.how == "computed from n and sum_days"


WINDOWS = {
    "COUNT(*) / SUM(COUNT(*)) OVER ()": "n / SUM(n) OVER ()",
    "RANK() OVER (ORDER BY COUNT(*) DESC)": "RANK() OVER (ORDER BY n DESC)",
    "AVG(days) - LAG(AVG(days)) OVER (ORDER BY ward)": "m - LAG(m) OVER (ORDER BY ward)",
    "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)": (
        "SUM(n) OVER (ORDER BY ward ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    ),
    "COUNT(*) - AVG(COUNT(*)) OVER (PARTITION BY ward <> 'B')": "n - AVG(n) OVER (PARTITION BY ward <> 'B')",
    "SUM(COUNT(*)) FILTER (WHERE AVG(days) > 0) OVER ()": "SUM(n) FILTER (WHERE m > 0) OVER ()",
    "COALESCE(LEAD(COUNT(*)) OVER (ORDER BY ward), 0)": "COALESCE(LEAD(n) OVER (ORDER BY ward), 0)",
    "CASE WHEN NTILE(2) OVER (ORDER BY COUNT(*)) = 1 THEN 0 ELSE ROUND(AVG(days), 1) END": (
        "CASE WHEN NTILE(2) OVER (ORDER BY n) = 1 THEN 0 ELSE ROUND(m, 1) END"
    ),
    "ROW_NUMBER() OVER (ORDER BY ward DESC)": "ROW_NUMBER() OVER (ORDER BY ward DESC)",
}
ASKED = "SELECT ward, COUNT(*) AS n, AVG(days) AS m, {} AS y FROM visits WHERE ward IN ('A', 'B', 'C') GROUP BY ward"


@pytest.mark.parametrize("formula", WINDOWS)
def test_windows_over_aggregates_are_those_of_plain_duckdb_over_the_released_table(visits: Table, formula: str) -> None:
    before = charges(visits)
    answer = visits.sql(ASKED.format(formula), epsilon=1)
    assert charges(visits) == before + 1
    database = duckdb.connect(":memory:")
    database.register("t", answer.to_arrow())
    plain = database.sql(f"SELECT ({WINDOWS[formula]})::DOUBLE FROM t ORDER BY ward").fetchall()  # noqa: S608
    wanted = [math.nan if x is None else x for (x,) in plain]
    assert np.array_equal(answer["y"].values, wanted, equal_nan=True)
    derived = answer.derive(z=WINDOWS[formula])["z"]
    assert np.array_equal(derived.errors, answer["y"].errors, equal_nan=True)
    assert np.array_equal(derived.low, answer["y"].low, equal_nan=True)


@pytest.mark.parametrize(
    ("ending", "wards"),
    [
        ("QUALIFY RANK() OVER (ORDER BY n DESC) <= 2 ORDER BY ward", ["B", "C"]),
        ("HAVING n > 10 QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1", ["B"]),
        ("QUALIFY n = MAX(n) OVER ()", ["C"]),
        ("ORDER BY SUM(n) OVER (ORDER BY ward DESC), ward", ["C", "B", "A"]),
        ("QUALIFY RANK() OVER (ORDER BY n) > 3", []),
    ],
)
def test_windows_keep_and_order_groups_after_having(visits: Table, ending: str, wards: list[str]) -> None:
    answer = finished(visits, ending, n=[5.0, 20.0, 30.0], m=[3.0, 4.0, 2.0], sum_days=[10.0, 20.0, 30.0])
    assert answer.to_arrow().select(["ward"]).to_pydict() == {"ward": wards}


def test_a_window_sees_only_the_groups_that_having_leaves(visits: Table) -> None:
    query = visits.sql_query(ASKED.format("SUM(COUNT(*)) OVER ()") + " HAVING COUNT(*) > 10")
    answer = query.finish.apply(answered(query, n=[5.0, 20.0, 30.0], m=[1.0, 1.0, 1.0]), "")
    assert answer["y"].values.tolist() == [50, 50]


def test_a_recalled_answer_has_the_same_errors(visits: Table) -> None:
    text = ASKED.format("AVG(days) / COUNT(*) - SUM(days) / SUM(COUNT(*)) OVER ()")
    first = visits.sql(text, epsilon=1, request="twice")
    again = visits.sql(text, epsilon=1, request="twice")
    assert first.receipt.sequence == again.receipt.sequence
    for one, other in zip(first.columns, again.columns, strict=True):
        assert all(
            np.array_equal(getattr(one, part), getattr(other, part), equal_nan=True)
            for part in ("values", "errors", "low", "high")
        )


def test_found_keys_without_a_group_give_an_answer_without_entries(visits: Table) -> None:
    text = "SELECT ward, COUNT(*) AS n, n / 2 AS h FROM visits GROUP BY ward".replace(
        "n / 2", "COUNT(*) / SUM(COUNT(*)) OVER ()"
    )
    assert len(visits.sql(text, epsilon=1e-3, delta=1e-7)) == 0


def test_sums_of_one_split_have_the_covariance_of_their_cells(visits: Table) -> None:
    """With bounds 0 and 10 and no missing value, SUM is 10 times the second of two cells, and COUNT both."""
    text = "SELECT COUNT(*) AS n, SUM(CLAMP(days, 0, 10)) AS s, SUM(CLAMP(days, 0, 10)) - 4 * COUNT(*) AS y FROM visits"
    answer = visits.sql(text, epsilon=1)
    cells = 3  # one for missing values
    cell = answer["n"].errors[0] / math.sqrt(cells)
    assert np.isclose(answer["s"].errors[0], 10 * cell)
    assert np.isclose(answer["y"].errors[0], cell * math.sqrt(4**2 + 6**2 + 4**2))
    assert "exact error" in answer["y"].how
