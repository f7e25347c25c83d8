"""Filters and derived columns keep every row with its person, and never fail on one."""

import math

import pytest
from tests.tables.worlds import engine, rows_of

from defocus.errors import DefocusError, InvalidParameterError, UnknownColumnError
from defocus.tables.rows import Rows

ROW = {"u": 1, "k": "a", "y": 1, "x": 0.5, "z": 1.0, "s": "v"}


def counted(rows: Rows) -> int:
    from sqlglot import exp  # noqa: PLC0415  # only here

    return int(engine().run(rows.select([exp.Count(this=exp.Star())])).column(0)[0].as_py())


def test_rows_of_nobody_are_left_out() -> None:
    assert counted(rows_of([ROW, ROW | {"u": None}], "u")) == 1
    assert counted(rows_of([ROW, ROW | {"u": None}], None)) == 2


def test_a_condition_keeps_the_rows_for_which_it_holds() -> None:
    rows = rows_of([ROW | {"x": x} for x in (0.0, 1.0, None, math.nan, math.inf)], "u")
    assert counted(rows.where("x > 0.5")) == 2
    assert counted(rows.where("NOT x > 0.5")) == 1
    assert counted(rows.where("x IS NULL")) == 2
    assert rows.where("x > 0.5").where("x < 9").words == ("only rows where x > 0.5", "only rows where x < 9")


def test_a_derived_column_can_be_used_like_any_other() -> None:
    rows = rows_of([ROW | {"y": y} for y in range(10)], "u").derive({"band": "y // 3", "far": "y > 7"})
    assert counted(rows.where("band = 2")) == 3
    assert counted(rows.where("far")) == 2


def test_names_of_our_own_columns_may_be_used_by_the_table() -> None:
    rows = rows_of([ROW], "u").derive(dict.fromkeys(("unit", "g", "w", "v0", "k0", "t", "r", "n", "s0"), "x + 1"))
    assert counted(rows.where("unit > 1 AND g > 1 AND w > 1 AND t > 1")) == 1


@pytest.mark.parametrize("name", ["", "x", "u"])
def test_a_derived_column_needs_a_name_of_its_own(name: str) -> None:
    with pytest.raises(InvalidParameterError, match="cannot be called"):
        rows_of([], "u").derive({name: "1"})


def test_a_name_that_differs_in_case_only_is_refused() -> None:
    with pytest.raises(DefocusError):
        rows_of([], "u").derive({"X": "1"})


@pytest.mark.parametrize("text", ["x", "x + 1", "s", "NULL"])
def test_a_condition_is_true_or_false(text: str) -> None:
    with pytest.raises(InvalidParameterError):
        rows_of([], "u").where(text)


@pytest.mark.parametrize("text", ["", "x >", "x = (SELECT 1)", "COUNT(*) > 1", "1 = 1; DROP TABLE t", "x > 1 --"])
def test_what_is_no_condition_on_one_row_is_refused(text: str) -> None:
    with pytest.raises(DefocusError):
        rows_of([], "u").where(text)


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(UnknownColumnError):
        rows_of([], "u").where("nothing > 1")
    with pytest.raises(UnknownColumnError):
        rows_of([], "u").derive({"a": "1", "b": "a"})
