"""Intervals of formulas hold what they should, and errors are given only where they are known."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from defocus.tables import AnswerColumn, Table
from defocus.tables.sql.formulas import Linear, computed, linear, references
from defocus.tables.sql.parsing import DIALECT

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
