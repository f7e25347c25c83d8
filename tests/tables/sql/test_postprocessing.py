"""HAVING, ORDER BY, LIMIT and formulas are computed from released numbers alone, and are those of plain Python."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sqlglot import exp

from defocus.answers import PICKED
from defocus.errors import NotFinishedError
from defocus.tables import AnswerColumn, Released, Table
from defocus.tables.sql import SqlQuery
from defocus.tables.sql.parser import DIALECT
from defocus.tables.sql.postprocessing import Linear, computed, linear, references

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
    return query.finish.apply(answered(query, **values), table.rows.engine, query.text)


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


@settings(max_examples=12)
@given(numbers, numbers, numbers)
def test_no_released_number_makes_finishing_fail(visits: Table, n: Any, m: Any, s: Any) -> None:
    answer = finished(visits, "HAVING n / m > LN(r) OR n IS NOT NULL ORDER BY SQRT(r), n", n=n, m=m, sum_days=s)
    for ward, value in zip(answer.to_arrow().select(["ward"]).to_pydict()["ward"], answer["r"].values, strict=True):
        place = WARDS.index(ward)
        with np.errstate(all="ignore"):
            expected = s[place] / n[place] if n[place] else math.nan
        assert np.isclose(value, expected, equal_nan=True)


def test_finishing_an_answer_without_groups_gives_one(visits: Table) -> None:
    query = visits.sql_query("SELECT ward, COUNT(*) * 2 AS n FROM visits GROUP BY ward HAVING n > 1 ORDER BY n LIMIT 2")
    empty = query.query.release(epsilon=1e-3, delta=1e-7)
    assert len(empty) == 0
    assert query.finish.apply(empty, visits.rows.engine, "").keys["ward"].to_pylist() == []


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


FUNCTIONS: dict[str, Callable[[float, float], float]] = {
    "a0 + a1": lambda x, y: x + y,
    "a0 - 2 * a1": lambda x, y: x - 2 * y,
    "a0 * a1": lambda x, y: x * y,
    "a0 / a1": lambda x, y: x / y if y else math.nan,
    "a0 / NULLIF(a1, 0)": lambda x, y: x / y if y else math.nan,
    "ROUND(a0 / a1, 1)": lambda x, y: round(x / y, 1) if y else math.nan,
    "(a0 - a1) / (a0 + a1)": lambda x, y: (x - y) / (x + y) if x + y else math.nan,
    "ABS(a0) + SQRT(a1)": lambda x, y: abs(x) + math.sqrt(y),
    "-a0 * -(3 + a1)": lambda x, y: -x * -(3 + y),
    "EXP(a0 / 100) - LN(a1 + 1)": lambda x, y: math.exp(x / 100) - math.log(y + 1),
}


def tree(text: str) -> exp.Expression:
    made = sqlglot.parse_one(text, read=DIALECT)
    assert isinstance(made, exp.Expression)
    return made


def column(name: str, value: float, half: float, error: float = 1.0) -> AnswerColumn:
    one = np.array([value])
    return AnswerColumn(name, one, np.array([error]), one - half, one + half, integral=True, how="noise")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a0", Linear("a0", 1, 0)),
        ("(a0)", Linear("a0", 1, 0)),
        ("100 * a0", Linear("a0", 100, 0)),
        ("a0 / 4 - 1", Linear("a0", 0.25, -1)),
        ("10 - a0", Linear("a0", -1, 10)),
        ("-(a0 + 2) * 3", Linear("a0", -3, -6)),
        ("3 - (2 - a0)", Linear("a0", 1, 1)),
        ("a0 * a0", None),
        ("a0 + a1", None),
        ("1 / a0", None),
        ("a0 / 0", None),
        ("k0 * 2", None),
        ("ABS(a0)", None),
    ],
)
def test_multiples_of_one_column_are_recognised(text: str, expected: Linear | None) -> None:
    assert linear(tree(text)) == expected


@given(st.floats(-1e3, 1e3), st.floats(0.01, 100), st.sampled_from([2.0, -3.0, 0.5]))
def test_a_multiple_has_the_error_and_the_interval_scaled(value: float, half: float, factor: float) -> None:
    made = computed(
        "x", tree(f"{factor} * a0 + 1"), np.array([factor * value + 1]), {"a0": column("n", value, half, 3)}, {}
    )
    assert made.errors[0] == abs(factor) * 3
    assert np.isclose(made.high[0] - made.low[0], 2 * abs(factor) * half)
    assert made.low[0] <= made.values[0] <= made.high[0]
    assert made.how == "computed from n: noise"
    assert not made.integral


@pytest.mark.parametrize("text", FUNCTIONS)
@given(
    x=st.floats(-50, 50),
    y=st.floats(0.5, 50),
    halves=st.tuples(st.floats(0.01, 5), st.floats(0.01, 0.4)),
    at=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_an_interval_holds_the_formula_of_everything_in_the_columns(
    text: str, x: float, y: float, halves: tuple[float, float], at: tuple[float, float]
) -> None:
    value = FUNCTIONS[text](x, y)
    columns = {"a0": column("p", x, halves[0]), "a1": column("q", y, halves[1])}
    made = computed("z", tree(text), np.array([value]), columns, {})
    assert math.isnan(made.errors[0])
    true = FUNCTIONS[text](x + at[0] * halves[0], y + at[1] * halves[1])
    if not math.isnan(made.low[0]):
        assert made.low[0] - 1e-9 <= true <= made.high[0] + 1e-9
        assert made.low[0] <= value <= made.high[0]
    assert made.how == "computed from p and q; the interval holds for all 2 together"


def test_two_columns_widen_each_interval_so_that_both_hold() -> None:
    columns = {"a0": column("p", 10, 3), "a1": column("q", 5, 3)}
    made = computed("z", tree("a0 + a1"), np.array([15.0]), columns, {})
    half = (made.high[0] - made.low[0]) / 2
    assert np.isclose(half, 6 * (1 + math.log(2) / math.log(20)))
    rate = math.log(20) / 3  # of Laplace noise whose 95 % interval has the half-width 3
    assert np.isclose(2 * math.exp(-rate * half / 2), 0.05)


@pytest.mark.parametrize("text", ["a0 / a1", "1 / a1", "a0 % 3 + a1", "CASE WHEN a0 > 1 THEN a1 ELSE a0 END"])
def test_where_no_interval_follows_none_is_given(text: str) -> None:
    columns = {"a0": column("p", 10, 3), "a1": column("q", 1, 3)}
    made = computed("z", tree(text), np.array([10.0]), columns, {})
    assert math.isnan(made.low[0])
    assert math.isnan(made.high[0])


def test_keys_are_exact_in_formulas() -> None:
    made = computed("z", tree("a0 / k0"), np.array([5.0]), {"a0": column("p", 10, 2)}, {"k0": np.array([2.0])})
    assert (made.low[0], made.high[0]) == (4, 6)
    assert references(tree("a0 / k0 + a3 * a0")) == ["a0", "a3"]


def test_the_preview_of_a_multiple_is_scaled(visits: Table) -> None:
    seen = visits.sql_query("SELECT COUNT(*) AS n, COUNT(*) * 100 AS h, COUNT(*) / SUM(days) AS q FROM visits").preview(
        epsilon=1
    )
    n, h, q = seen.columns
    assert n.error is not None
    assert h.error == 100 * n.error
    assert (q.error, q.by_size) == (None, ())
    assert q.how == "computed from n and sum_days"
