"""Tables are built step by step, and every step is checked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, NotDeclaredError, UnknownColumnError
from defocus.ledger import Ledger
from defocus.tables.contribution import Bound
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


def test_bounds_and_keys_follow_from_expressions_as_they_do_in_sql(table: Table) -> None:
    known = table.declare(x=(0, 120), u=[1, 2, 5])
    asked = known.agg(hours=dp.mean("x / 60"), root=dp.sum("SQRT(x)"), listed=dp.sum("u"), late=dp.mean("x > 15"))
    bounds = {
        name: (split.low, split.high)
        for name, statistic in asked.arrangement.statistics
        for split in (statistic.arguments[0],)
    }
    assert bounds == {"hours": (0, 2), "root": (0, 120**0.5), "listed": (1, 5), "late": (0, 1)}
    derived = known.derive(half="x / 2", size="CASE WHEN x > 1 THEN 'large' ELSE 'small' END", up="x > 1")
    assert (derived.schema["half"].low, derived.schema["half"].high) == (0, 60)
    groups = derived.group_by("size", "up").keys
    assert groups is not None
    assert groups.table.to_pydict() == {"size": ["large", "large", "small", "small"], "up": [False, True, False, True]}
    with pytest.raises(NotDeclaredError):
        table.agg(m=dp.mean("x / 60"))


def test_columns_are_renamed_with_what_is_declared_about_them(table: Table) -> None:
    renamed = table.declare(x=(0, 3), k=["a", "b"]).rename({"x": "cost", "u": "person"})
    assert renamed.schema.names == ["person", "k", "cost", "b", "l"]
    assert (renamed.rows.unit, renamed.schema["cost"].high) == ("person", 3)
    answer = renamed.bound(rows=1).group_by("k").agg(m=dp.mean("cost")).preview(epsilon=1)
    assert answer.columns[0].name == "m"
    for wrong in ({"x": "k"}, {"x": "K"}, {"nothing": "y"}, {"x": ""}, {"x": 3}, ["x"], {"l": "m"}):
        with pytest.raises(DefocusError) as refused:
            table.rename(wrong)  # type: ignore[arg-type]
        assert refused.value.fix


def test_columns_that_are_called_otherwise_are_joined(table: Table) -> None:
    wards = pa.table({"code": ["a", "b"], "beds": [10, 20]})
    joined = table.bound(rows=1).join(wards, on={"k": "code"})
    assert joined.schema.names == [*table.schema.names, "beds"]
    for on in ({"k": "nothing"}, {"nothing": "code"}, {}, {"k": 1}, {"k": "code", "x": "code"}, 3, {"u": "code"}):
        with pytest.raises(DefocusError) as refused:
            table.join(wards, on=on)  # type: ignore[arg-type]
        assert refused.value.fix
    with pytest.raises(InvalidParameterError, match="besides"):
        table.join(pa.table({"code": ["a"], "k": ["b"]}), on={"k": "code"})


def test_private_tables_that_call_the_person_otherwise_are_joined(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l", budget=dp.Budget(10**9), unit=dp.user("u"), dataset="t")
    stays = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    people = pa.table({"u": [1, 2], "old": [True, False]})
    with dp.open(stays, ledger=ledger, name="t", private={"people": people}) as table:
        other = table.other("people").rename({"u": "who"})
        joined = table.bound(rows=2).join(other, on={"u": "who"}).where("old")
        answer = joined.agg(n=dp.count(), x=dp.sum("x", 0, 5)).release(epsilon=10**5)
        assert [round(float(answer[name].values[0])) for name in ("n", "x")] == [2, 3]


def test_a_bound_has_sensible_defaults(table: Table) -> None:
    assert table.bound(groups=3).contribution == Bound(find=True, groups=3)
    assert table.bound(per_group=2).contribution == Bound(rows=5, per_group=2)
    assert table.agg(n=dp.count()).bound == Bound(find=True)


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
    with pytest.raises(DefocusError):
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


def test_names_of_groups_are_given_one_by_one_or_as_one_list(table: Table) -> None:
    known = table.declare(k=["a", "b"])
    one_by_one = known.group_by("k", "b")
    for grouped in (known.group_by(["k", "b"]), known.group_by(("k", "b"))):
        assert grouped.by == one_by_one.by
        assert grouped.keys is not None
        assert grouped.keys.number == 4
    assert known.cube(["k", "b"]).question == known.cube("k", "b").question
    with pytest.raises(InvalidParameterError, match="needs a column"):
        known.cube([])


@pytest.mark.parametrize("columns", [(5,), (["k", 5],), ("k", ["w"]), (None,), ({"k": "w"},), (b"k",)])
def test_what_is_no_name_is_refused_with_a_hint(table: Table, columns: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidParameterError, match=r'write group_by\("ward", "year"\)'):
        table.group_by(*columns)
    with pytest.raises(InvalidParameterError, match=r'write cube\("ward", "year"\)'):
        table.cube(*columns)


def test_everything_shows_itself_in_one_line(table: Table) -> None:
    grouped = table.where("x > 1").group_by("b")
    shown = {
        "Table('t': u, k, x, b, l; protects everything about one u, added or removed)": table,
        "Grouped('t' by b: 2 groups)": grouped,
        "Grouped('t' by k: groups to be found)": table.group_by("k"),
        "Query(number of rows as n, by b; only rows where x > 1)": grouped.agg(n=dp.count()),
        "SqlQuery(SELECT COUNT(*) AS n FROM t)": table.sql_query("SELECT COUNT(*) AS n FROM t"),
    }
    assert [repr(thing) for thing in shown.values()] == list(shown)


def test_a_table_and_its_ledger_protect_the_same(table: Table, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "rows.ledger", unit=dp.rows(), budget=dp.Budget(1), dataset="t") as by_rows:
        with pytest.raises(InvalidParameterError, match="The ledger protects one row"):
            replace(table, ledger=by_rows)
        with pytest.raises(InvalidParameterError, match="The ledger protects everything about one u"):
            replace(table, rows=replace(table.rows, unit=None))
        alone = replace(table, rows=replace(table.rows, unit=None), ledger=by_rows)
        with pytest.raises(InvalidParameterError, match="protected alone"):
            replace(alone, contribution=Bound(rows=5))


def test_a_share_is_checked_when_it_is_given(table: Table) -> None:
    asked = table.agg(n=dp.count(), s=dp.sum("x", 0, 1))
    assert asked.share(n=2).share(s=3).weights == {"n": 2, "s": 3}
    with pytest.raises(InvalidParameterError, match="choose among n, s"):
        asked.share(m=2)
    for wrong in (0, -1, float("nan"), float("inf"), True, "2"):
        with pytest.raises(InvalidParameterError):
            asked.share(n=wrong)  # type: ignore[arg-type]  # on purpose


def test_an_aggregate_without_a_name_is_told_to_have_one(table: Table) -> None:
    for asked in (table, table.group_by("k")):
        with pytest.raises(InvalidParameterError, match=r"needs a name(?s:.)*agg\(visits=dp.count\(\)\)"):
            asked.agg(dp.count())
