"""HAVING, ORDER BY, LIMIT and formulas are computed from released numbers alone, and are those of plain Python."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from defocus.errors import NotFinishedError
from defocus.tables import Answer, AnswerColumn, Table
from defocus.tables.answers import PICKED
from defocus.tables.sql import SqlQuery

WARDS = ["A", "B", "C"]
QUERY = """SELECT ward, COUNT(*) AS n, AVG(days) AS m, SUM(days) / COUNT(*) AS r FROM visits
WHERE ward IN ('A', 'B', 'C') GROUP BY ward {}"""


def answered(query: SqlQuery, **values: list[float]) -> Answer:
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


def finished(table: Table, ending: str, **values: list[float]) -> Answer:
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
    assert answer.keys.to_pydict() == {"ward": wards}
    assert tuple(why.removesuffix(f"; {PICKED}") for why in answer.processing) == said
    assert answer["n"].values.tolist() == [{"A": 5.0, "B": 20.0, "C": 30.0}[ward] for ward in wards]


@pytest.mark.parametrize(("nulls", "wards"), [("", "BCA"), ("NULLS LAST", "BCA"), ("NULLS FIRST", "ABC")])
def test_missing_values_come_at_the_end_that_was_asked_for(visits: Table, nulls: str, wards: str) -> None:
    ending = f"ORDER BY n {nulls}"
    answer = finished(visits, ending, n=[math.nan, 20.0, 30.0], m=[3.0, 4.0, 2.0], sum_days=[1.0, 1.0, 1.0])
    assert "".join(answer.keys.to_pydict()["ward"]) == wards


def test_a_group_whose_condition_is_unknown_is_dropped(visits: Table) -> None:
    answer = finished(visits, "HAVING n > 1", n=[math.nan, 20.0, 0.0], m=[3.0, 4.0, 2.0], sum_days=[1.0, 1.0, 1.0])
    assert answer.keys.to_pydict() == {"ward": ["B"]}


numbers = arrays(np.float64, 3, elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, math.nan, math.inf]))


@settings(max_examples=12)
@given(numbers, numbers, numbers)
def test_no_released_number_makes_finishing_fail(visits: Table, n: Any, m: Any, s: Any) -> None:
    answer = finished(visits, "HAVING n / m > LN(r) OR n IS NOT NULL ORDER BY SQRT(r), n", n=n, m=m, sum_days=s)
    for ward, value in zip(answer.keys.to_pydict()["ward"], answer["r"].values, strict=True):
        place = WARDS.index(ward)
        with np.errstate(all="ignore"):
            expected = s[place] / n[place] if n[place] else math.nan
        assert np.isclose(value, expected, equal_nan=True)


def test_finishing_an_answer_without_groups_gives_one(visits: Table) -> None:
    query = visits.sql_query("SELECT ward, COUNT(*) * 2 AS n FROM visits GROUP BY ward HAVING n > 1 ORDER BY n LIMIT 2")
    empty = query.query.release(epsilon=1e-3, delta=1e-7)
    assert len(empty) == 0
    assert query.finish.apply(empty, visits.rows.engine, "").keys.to_pydict() == {"ward": []}


def test_an_answer_that_cannot_be_finished_is_not_lost(visits: Table) -> None:
    query = visits.sql_query(QUERY.format("ORDER BY n"))
    wrong = replace(query, finish=replace(query.finish, held={**query.finish.held, "a0": "nothing"}))
    with pytest.raises(NotFinishedError, match="the answer in the `answer` attribute") as caught:
        wrong.release(epsilon=1)
    assert caught.value.answer.keys.to_pydict() == {"ward": WARDS}


def test_keys_keep_their_types(visits: Table) -> None:
    text = (
        "SELECT day, COUNT(*) AS n FROM visits WHERE day IN ('2023-01-12', '2023-01-01') GROUP BY day HAVING n > -1e9"
    )
    answer = visits.sql(text, epsilon=1)
    assert answer.keys.schema.field("day").type == pa.date32()
    assert len(answer) == 2
