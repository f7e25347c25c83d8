"""Joins never turn one row into rows of somebody else, nor into several where rows are protected."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, SourceError, UnsupportedSqlError, WrongKindError
from defocus.tables.table import Table

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
