"""Statistics share measurements where one answers another, and only there."""

from typing import Any

import pytest
from tests.tables.worlds import rows_of

from defocus.errors import DefocusError, NotDeclaredError, UnknownColumnError, WrongKindError
from defocus.tables import (
    correlation,
    count,
    count_distinct,
    covariance,
    histogram,
    mean,
    median,
    std,
    sum,  # noqa: A004  # as in questions
    variance,
)
from defocus.tables.aggregates import Aggregate
from defocus.tables.planner import MeasurementPlan, plan_measurements


def arranged(**aggregates: Aggregate) -> MeasurementPlan:
    return plan_measurements(rows_of([], "u"), aggregates)


def test_count_sum_and_mean_share_one_split() -> None:
    found = arranged(n=count(), x=count("x"), s=sum("x", 0, 1), m=mean("x", 0, 1))
    assert len(found.splits) == 1
    assert set(found.source.values()) == {0}
    assert found.importance(0, {"m": 3.0}) == 6


def test_the_highest_degree_answers_all() -> None:
    found = arranged(m=mean("x", 0, 1), v=variance("x", 0, 1), s=std("x", 0.0, 1.0))
    assert [split.degrees for split in found.splits] == [(2,)]
    pair: dict[str, Any] = {"x_bounds": (0, 1), "y_bounds": (0, 1)}
    found = arranged(c=covariance("x", "z", **pair), r=correlation("x", "z", **pair))
    assert [split.degrees for split in found.splits] == [(2, 2)]


def test_other_bounds_other_values_and_other_missing_ones_do_not_share() -> None:
    assert len(arranged(a=mean("x", 0, 1), b=mean("x", 0, 2)).splits) == 2
    assert len(arranged(a=mean("x", 0, 1), b=mean("z", 0, 1)).splits) == 2
    filled = arranged(a=mean("x", 0, 1, missing=0), n=count("x"))
    assert len(filled.splits) == 2
    assert filled.source == {"a": 0, "n": 1}
    assert len(arranged(a=mean("x", 0, 1, missing=0), n=count()).splits) == 1


def test_bounds_are_those_declared_for_the_column_unless_given() -> None:
    rows = rows_of([], "u")
    with pytest.raises(NotDeclaredError, match="Nobody declared"):
        plan_measurements(rows, {"m": mean("x")})
    with pytest.raises(NotDeclaredError):
        plan_measurements(rows, {"m": mean("x + 1")})
    assert arranged(m=mean("x", bounds="find"), q=median("x", bounds="find")).searched == ("x",)


@pytest.mark.parametrize(
    "aggregate",
    [mean("s", 0, 1), median("s", 0, 1), histogram("s", [0, 1]), count_distinct("x"), mean("s || 'x'", 0, 1)],
    ids=str,
)
def test_values_of_another_kind_are_refused(aggregate: Aggregate) -> None:
    with pytest.raises(WrongKindError):
        arranged(a=aggregate)


@pytest.mark.parametrize("text", ["nothing", "SUM(x)", "(SELECT 1)", "x; DROP TABLE t", "x FROM t --", "random()", "*"])
def test_what_is_no_expression_over_one_row_is_refused(text: str) -> None:
    with pytest.raises(DefocusError):
        arranged(n=count(text))


def test_unknown_columns_are_named() -> None:
    with pytest.raises(UnknownColumnError, match="'xx'"):
        arranged(m=mean("xx", 0, 1))


def test_a_row_brings_one_value_where_rows_are_protected() -> None:
    found = plan_measurements(rows_of([], None), {"d": count_distinct("s", at_most=9)})
    assert found.aggregates[0][1] == count_distinct("s", at_most=1)
