"""Tables are built step by step, and every step is checked."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, UnknownColumnError
from defocus.tables.bounding import DEFAULT_ROWS, Bound
from defocus.tables.table import Table

DATA = pa.table({"u": [1, 2], "k": ["a", "b"], "x": [1.0, 2.0], "b": [True, False], "l": [[1], [2]]})


@pytest.fixture
def table(tmp_path: Path) -> Any:
    with dp.open(DATA, unit=dp.user("u"), budget=dp.Budget(1), ledger=tmp_path / "t.ledger", name="t") as opened:
        yield opened


def test_every_step_returns_a_new_table(table: Table) -> None:
    narrowed = table.where("x > 1").derive(y="x + 1").declare(y=(0, 3), k=["a", "b"])
    assert table.schema.names == ["u", "k", "x", "b", "l"]
    assert narrowed.schema.names == [*table.schema.names, "y"]
    assert narrowed.group_by("k").agg(m=dp.mean("y")).keys is not None
    assert table.group_by("k").agg(n=dp.count()).keys is None
    assert table.group_by("b").agg(n=dp.count()).keys is not None


def test_a_bound_has_sensible_defaults(table: Table) -> None:
    assert table.bound(groups=3).contribution == Bound(rows=DEFAULT_ROWS, groups=3)
    assert table.bound(groups=9).contribution == Bound(rows=9, groups=9)
    assert table.bound(per_group=2).contribution == Bound(rows=DEFAULT_ROWS, per_group=2)
    assert table.agg(n=dp.count()).bound == Bound(rows=DEFAULT_ROWS)
    assert table.agg(n=dp.count()).proposed
    assert not table.bound(rows=5).agg(n=dp.count()).proposed


@pytest.mark.parametrize("wrong", [0, -1, True, "x", 1.5, 10**9])
def test_wrong_bounds_are_refused(table: Table, wrong: Any) -> None:
    for name in ("rows", "groups", "per_group"):
        with pytest.raises(DefocusError):
            table.bound(**{name: wrong})


def test_rows_are_bounded_already(tmp_path: Path) -> None:
    with dp.open(DATA, unit=dp.rows(), budget=dp.Budget(1), ledger=tmp_path / "r.ledger", name="r") as rows:
        with pytest.raises(InvalidParameterError, match="one contribution already"):
            rows.bound(rows=1)
        assert rows.agg(n=dp.count()).bound is None


@pytest.mark.parametrize("columns", [(), ("nothing",), ("k", "k"), ("x",), ("l",), (3,)])
def test_groups_need_columns_that_can_be_keys(table: Table, columns: Any) -> None:
    with pytest.raises((DefocusError, TypeError)):
        table.group_by(*columns, keys=["a"])


def test_unknown_tables_and_columns_are_refused(table: Table) -> None:
    with pytest.raises(InvalidParameterError, match="no other private table"):
        table.other("people")
    with pytest.raises(UnknownColumnError):
        table.declare(nothing=(0, 1))
    with pytest.raises(DefocusError):
        table.declare(x=(1, 1))


def test_a_table_says_what_it_protects(table: Table) -> None:
    assert "everything about one u" in str(table)
    assert "x (number)" in str(table)
