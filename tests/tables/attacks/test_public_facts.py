"""What is public must be settled before the charge, and a kept answer belongs to one question only."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError
from defocus.tables import Table

ROWS = pa.table({"u": np.arange(300) % 60, "k": ["a", "b", "c"] * 100, "x": np.linspace(0, 20, 300)})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return dp.open(ROWS, unit=dp.user("u"), budget=dp.Budget(1000, 1e-5), ledger=tmp_path / "t.ledger", name="t")


PAIRS: list[tuple[Callable[[Table], Any], Callable[[Table], Any]]] = [
    (
        lambda t: t.group_by("k", keys=["a", "b"]).agg(n=dp.count()),
        lambda t: t.group_by("k", keys=["a", "c"]).agg(n=dp.count()),
    ),
    (lambda t: t.agg(m=dp.mean("x", 0, 10)), lambda t: t.agg(m=dp.mean("x", 0, 1000))),
    (lambda t: t.agg(m=dp.mean("x", 0, 10)), lambda t: t.agg(m=dp.mean("x", 0, 10, missing=3))),
    (lambda t: t.agg(h=dp.histogram("x", [0, 1, 2])), lambda t: t.agg(h=dp.histogram("x", [0, 10, 20]))),
    (lambda t: t.where("x > 1").agg(n=dp.count()), lambda t: t.where("x > 2").agg(n=dp.count())),
    (lambda t: t.bound(rows=5).agg(n=dp.count()), lambda t: t.bound(rows=5, groups=1).agg(n=dp.count())),
]


@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_a_kept_answer_is_for_the_same_question_only(table: Table, pair: int) -> None:
    mine, other = (make(table) for make in PAIRS[pair])
    first = mine.release(epsilon=1, request="r")
    charges = len(table.ledger)
    again = mine.release(epsilon=1, request="r")
    assert [column.values.tolist() for column in first.columns] == [column.values.tolist() for column in again.columns]
    assert len(table.ledger) == charges
    with pytest.raises(InvalidParameterError, match="another question"):
        other.release(epsilon=1, request="r")
    assert len(table.ledger) == charges


@pytest.mark.parametrize("missing", ["a", 500, float("nan")])
def test_what_stands_for_missing_values_is_checked_before_the_charge(table: Table, missing: Any) -> None:
    declared = table.declare(x=(0, 10))
    with pytest.raises(DefocusError):
        declared.agg(m=dp.mean("x", missing=missing))


def test_a_bound_in_place_of_low_is_told_how_bounds_are_written() -> None:
    with pytest.raises(InvalidParameterError) as refusal:
        dp.mean("x", (0, 10))  # type: ignore[arg-type]  # the slip this is about
    assert "bounds=(0, 30)" in refusal.value.fix


def test_two_tables_on_one_connection_do_not_share_what_they_publish(tmp_path: Path) -> None:
    """The second once replaced the public table that the first had joined, and one row became fifty."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT range AS r, 'w' AS ward FROM range(100)")
    connection.execute("CREATE TABLE b AS SELECT * FROM a")
    connection.execute('CREATE VIEW "joined 1" AS SELECT 42 AS mine')
    opened = [
        dp.open(
            connection,
            table=name,
            unit=dp.rows(),
            budget=dp.Budget(1000),
            ledger=tmp_path / f"{name}.ledger",
            name=name,
        )
        for name in ("a", "b")
    ]
    wards = [
        pa.table({"ward": ["w"], "floor": [1]}),
        pa.table({"ward": [f"w{i}" for i in range(50)], "floor": [2] * 50}),
    ]
    joined = [table.join(ward, on="ward") for table, ward in zip(opened, wards, strict=True)]
    for table in joined:
        assert table.agg(n=dp.count()).release(epsilon=500)["n"].values[0] == pytest.approx(100, abs=1)
    for table in opened:
        table.rows.engine.close()
    left = {
        name for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    }
    assert left == {"joined 1"}
    assert connection.execute('SELECT mine FROM "joined 1"').fetchall() == [(42,)]


def test_a_kept_answer_knows_its_tables_and_its_joins(tmp_path: Path) -> None:
    people = pa.table({"u": np.arange(60), "age": np.arange(60)})
    table = dp.open(
        ROWS,
        unit=dp.user("u"),
        budget=dp.Budget(1000),
        ledger=tmp_path / "t.ledger",
        name="t",
        private={"p1": people, "p2": people.slice(0, 10)},
    )
    wards = [pa.table({"k": ["a", "b"], "y": [number, number]}) for number in (1, 9)]
    asked: dict[str, list[Table]] = {
        "tables": [table, table.other("p1"), table.other("p2")],
        "partners": [table.join("p1", on="u"), table.join("p2", on="u")],
        "sides": [table.join("p1", on="u"), table.join("p1", on="u", how="inner")],
        "public": [table.join(ward, on="k") for ward in wards],
    }
    for name, kinds in asked.items():
        kinds[0].agg(n=dp.count()).release(epsilon=1, request=name)
        charges = len(table.ledger)
        kinds[0].agg(n=dp.count()).release(epsilon=1, request=name)
        assert len(table.ledger) == charges
        for other in kinds[1:]:
            with pytest.raises(InvalidParameterError, match="another question"):
                other.agg(n=dp.count()).release(epsilon=1, request=name)


def test_the_same_public_table_joined_anew_is_the_same_question(table: Table) -> None:
    ward = pa.table({"k": ["a", "b"], "y": [1, 2]})
    first, again = (table.join(ward, on="k").where("y = 1").agg(n=dp.count()) for _ in range(2))
    values = [query.release(epsilon=1, request="w")["n"].values[0] for query in (first, again)]
    assert values[0] == values[1]


@pytest.mark.parametrize("weight", [10**400, 0, -1, float("nan"), "2"])
def test_shares_of_absurd_size_are_refused_in_words(table: Table, weight: Any) -> None:
    with pytest.raises(InvalidParameterError):
        table.agg(n=dp.count()).share(n=weight)
