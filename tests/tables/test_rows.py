"""Filters and derived columns keep every row with its person, and never fail on one."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.tables.worlds import engine, rows_of

import defocus as dp
from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    SourceError,
    UnknownColumnError,
    UnsupportedSqlError,
    WrongKindError,
)
from defocus.tables.rows import Rows
from defocus.tables.table import Table

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


ONE = "CASE WHEN u = 1999 THEN 'aaaaaaaaaaaaaaaa' ELSE '' END"


def longer(name: str, times: int = 64) -> str:
    return f"REPLACE({name}, 'a', '{'a' * times}')"


def test_a_text_does_not_grow_without_end_from_one_derived_column_to_the_next() -> None:
    rows = rows_of([ROW], "u").derive({"z0": ONE}).derive({"z1": longer("z0")}).derive({"z2": longer("z1", 16)})
    for refused in (lambda: rows.derive({"z3": longer("z2")}), lambda: rows.values(longer("z2"))):
        with pytest.raises(UnsupportedSqlError, match="A text that can grow so long"):
            refused()
    with pytest.raises(UnsupportedSqlError, match="A text that can grow so long"):
        rows.where("y > 0").where(f"{longer('z2')} <> 'b'")


def test_a_text_of_the_data_does_not_double_without_end() -> None:
    rows = rows_of([ROW], "u").derive({"d0": "k"})
    for i in range(6):
        rows = rows.derive({f"d{i + 1}": f"d{i} || d{i}"})
    assert rows.schema["d6"].growth == (64, 0)
    with pytest.raises(UnsupportedSqlError, match="A text that can grow so long"):
        rows.derive({"d7": "d6 || d6"})
    with pytest.raises(UnsupportedSqlError, match="A text that can grow so long"):
        rows.derive({"d7": "CASE WHEN y = 1 THEN CONCAT(d6, k) ELSE k END"})


def test_many_long_texts_together_are_refused() -> None:
    rows = rows_of([ROW], "u").derive({"z0": ONE}).derive({"z1": longer("z0")})
    with pytest.raises(UnsupportedSqlError, match="So many derived columns of long text"):
        rows.derive({f"y{i}": longer("z1", 16) for i in range(10)})
    with pytest.raises(UnsupportedSqlError, match="So many derived columns of long text"):
        rows.derive({f"y{i}": longer("k") for i in range(100)})
    for i in range(3):
        rows = rows.derive({f"x{i}_{j}": longer("z1", 16) for j in range(2)})
    with pytest.raises(UnsupportedSqlError, match="An expression of so many long texts"):
        rows.where(" AND ".join(f"{longer('z1', 16)} <> 'b{i}'" for i in range(10)))
    with pytest.raises(UnsupportedSqlError, match="So many derived columns of long text"):
        rows.derive({f"w{j}": longer("z1", 16) for j in range(2)})


def test_texts_that_grow_a_little_are_no_trouble() -> None:
    rows = rows_of([ROW], "u").derive({"a": "CONCAT(k, '-', s)", "b": "UPPER(k)", "c": "REPLACE(k, 'a', 'and')"})
    for i in range(20):
        rows = rows.derive({f"u{i}": f"LOWER({f'u{i - 1}' if i else 'a'})", f"n{i}": f"LENGTH(b) + {i}"})
    assert counted(rows.where("u19 = 'a-v' AND b = 'A' AND c || a = 'anda-v' AND n19 = 20")) == 1


def test_what_is_declared_about_a_derived_text_leaves_its_length_as_it_was() -> None:
    rows = rows_of([ROW], "u").derive({"a": longer("k", 32)})
    assert rows.schema.declare({"a": ["x"]})["a"].growth == (32, 0)
    assert rows.derive({"n": "LENGTH(a)"}).schema["n"].growth is None


@pytest.mark.parametrize("step", ["where", "derive"])
def test_so_many_steps_that_sql_could_not_be_written_are_refused_at_once(step: str) -> None:
    def after(rows: Rows, i: int) -> Rows:
        return rows.where("y > 0") if step == "where" else rows.derive({f"z{i}": f"{f'z{i - 1}' if i else 'y'} + 1"})

    rows = rows_of([ROW], "u")
    for i in range(48):
        rows = after(rows, i)
    assert counted(rows) == 1
    with pytest.raises(UnsupportedSqlError, match="more than 48 filters, derived columns and joins") as refused:
        after(rows, 48)
    assert "AND in one filter" in refused.value.fix


def test_deep_expressions_count_for_several_steps() -> None:
    deep = "y + (" * 30 + "y" + ")" * 30 + " > 0"
    rows = rows_of([ROW], "u").where(deep)
    assert 10 < rows.steps < 40
    for _ in range(rows.steps, 48):
        rows = rows.where("y > 0")
    assert counted(rows) == 1
    with pytest.raises(UnsupportedSqlError, match="deep nesting for several"):
        rows.where("y > 0")


VISITS = pa.table({"u": [1, 1, 2, 3, None], "k": ["a", "b", "a", "z", "a"], "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
PEOPLE = pa.table({"u": [1, 1, 2, 9], "age": [10, 20, 30, 90]})
WARDS = pa.table({"k": ["a", "b", None], "floor": [1, 2, 3]})


def opened(where: Path, unit: Any = None, **more: Any) -> Table:
    ledger = where / f"{len(list(where.iterdir()))}.ledger"
    return dp.open(VISITS, unit=unit or dp.user("u"), budget=dp.Budget(10_000), ledger=ledger, name="visits", **more)


def counts(table: Table, text: str = "x") -> float:
    return float(np.round(table.bound(rows=9).agg(n=dp.count(text)).release(epsilon=1000).columns[0].values[0]))


def test_a_public_table_adds_columns_and_an_inner_join_drops_the_rest(tmp_path: Path) -> None:
    with opened(tmp_path, public={"wards": WARDS}) as table:
        assert counts(table.join(WARDS, on="k")) == 4
        assert counts(table.join(WARDS, on="k"), "floor") == 3
        assert counts(table.join("wards", on="k", how="inner")) == 3
        assert counts(table.join(WARDS, on="k").where("floor = 1")) == 2


def test_a_public_table_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as table, pytest.raises(SourceError, match="several rows for the same k"):
        table.join(pa.table({"k": ["a", "a"], "floor": [1, 2]}), on="k")


def test_a_private_table_is_joined_by_the_person_and_bounded_afterwards(tmp_path: Path) -> None:
    with opened(tmp_path, private={"people": PEOPLE}) as table:
        joined = table.join("people", on="u")
        assert counts(joined) == 6  # two visits of 1 with two lines each, 2, and 3 without a match
        assert counts(joined, "age") == 5
        assert counts(table.join("people", on="u", how="inner").where("age > 15")) == 3
        few = joined.bound(rows=1).agg(n=dp.count()).release(epsilon=1000).columns[0].values[0]
        assert round(few, 1) == 3
        other = table.join(table.other("people").where("age < 15"), on="u", how="inner")
        assert counts(other) == 2


@pytest.mark.parametrize("on", ["k", [], None, 3, ["u", 4], "nothing"])
def test_private_tables_are_joined_on_nothing_but_the_person(tmp_path: Path, on: Any) -> None:
    with opened(tmp_path, private={"people": PEOPLE}) as table, pytest.raises(DefocusError):
        table.join("people", on=on)


def test_where_rows_are_protected_no_other_private_table_is_about_the_same_people(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="protects one row"):
        opened(tmp_path, dp.rows(), private={"people": PEOPLE})


def test_tables_that_were_not_opened_together_cannot_be_joined(tmp_path: Path) -> None:
    with opened(tmp_path) as table, opened(tmp_path) as other:
        renamed = other.derive(more="x + 1")
        with pytest.raises(InvalidParameterError, match="opened together"):
            table.join(renamed, on="u")


def test_columns_of_other_kinds_are_not_compared(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        with pytest.raises(WrongKindError):
            table.join(pa.table({"k": [1], "floor": [1]}), on="k")
        with pytest.raises(WrongKindError):
            table.join(pa.table({"x": [1.0], "floor": [1]}), on="x")
        with pytest.raises(SourceError):
            table.join(pa.table({"k": ["a"], "X": [1]}), on="k")
        with pytest.raises(InvalidParameterError, match="no join"):
            table.join(WARDS, on="k", how="full")


def test_rows_of_nobody_meet_nobody(tmp_path: Path) -> None:
    with opened(tmp_path, private={"people": pa.table({"u": [None, 1], "age": [1, 2]})}) as table:
        assert counts(table.join("people", on="u", how="inner")) == 2


def test_a_join_keeps_how_long_a_derived_text_can_be_and_nothing_is_charged(tmp_path: Path) -> None:
    longer = "REPLACE({}, 'a', '" + "a" * 64 + "')"
    with opened(tmp_path, private={"people": PEOPLE}) as table:
        other = table.other("people").derive(z0="CASE WHEN age = 90 THEN 'aaaa' ELSE '' END")
        other = other.derive(z1=longer.format("z0")).derive(z2=longer.format("z1"))
        joined = table.join(other, on="u").join(WARDS, on="k")
        assert joined.schema["z2"].growth == (0, 4 * 64 * 64)
        before = table.remaining()
        with pytest.raises(UnsupportedSqlError, match="A text that can grow so long"):
            joined.agg(n=dp.count_distinct(longer.format("z2"))).release(epsilon=1)
        with pytest.raises(UnsupportedSqlError, match="A text that can grow so long"):
            joined.derive(z3=longer.format("z2"))
        assert table.remaining() == before


def test_a_join_counts_for_six_steps_and_those_of_the_other_table(tmp_path: Path) -> None:
    with opened(tmp_path, private={"people": PEOPLE}) as table:
        mine, other = table, table.other("people")
        for _ in range(21):
            mine, other = mine.where("x > 0"), other.where("age > 0")
        assert counts(mine.join(other, on="u")) == 6
        with pytest.raises(UnsupportedSqlError, match="more than 48 filters, derived columns and joins"):
            mine.where("x > 0").join(other, on="u")
        for _ in range(22):
            mine = mine.where("x > 0")
        with pytest.raises(UnsupportedSqlError, match="a join counts for 6"):
            mine.join(WARDS, on="k")
