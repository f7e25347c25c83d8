"""What the engine is asked to do can be looked at beforehand, and says nothing about a row."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.tables.test_query import DATA, opened

import defocus as dp
from defocus.engines.duckdb import DuckDbEngine

ASKED: dict[str, Any] = {
    "n": dp.count(),
    "m": dp.mean("x", 0, 10),
    "f": dp.sum("x", bounds="find"),
    "q": dp.median("x", 0, 10),
    "h": dp.histogram("x", [0, 1, 10]),
    "d": dp.count_distinct("s", at_most=2),
    "p": dp.count_units(),
}


def test_a_plan_says_what_the_engine_is_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        plan = table.bound(rows=2).group_by("k", keys=[0, 2]).agg(n=dp.count(), m=dp.mean("x", 0, 10)).plan(epsilon=1)
    assert str(plan).splitlines() == [
        "n, m: 3 sums in each group, with discrete Laplace noise, standard deviation 2.83 rows",
        "statement 1: sum",
        "  aggregate by group",
        "    join on u",
        "      keep the rows of the public keys, which are sent along",
        "        read the rows",
        "      aggregate by u",
        "        keep the rows of the public keys, which are sent along",
        "          read the rows",
    ]
    assert plan.statements[0].sql.startswith("SELECT ")


def test_keys_without_a_gap_are_a_condition_and_are_not_sent_along(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        plan = table.bound(rows=2).group_by("k", keys=[0, 1]).agg(n=dp.count()).plan(epsilon=1)
    assert str(plan).count("keep the rows of the public keys") == 2
    assert "sent along" not in str(plan)


def test_everything_that_is_found_is_a_statement_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        plan = table.bound(rows="find").group_by("k", keys=None).agg(**ASKED).plan(epsilon=1, delta=1e-6)
    assert [each.purpose for each in plan.statements] == [
        "find the keys that enough people have",
        "find in how many groups people are",
        "find how many rows people have",
        "find the bounds of x",
        "sum",
        "compute q",
        "compute h",
        "compute d",
        "compute p",
    ]
    assert "bring the rows of each u together" in str(plan.statements[0])


def test_where_windows_are_better_the_rows_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDbEngine, "reads_once", True)
    with opened(tmp_path) as table:
        plan = table.bound(rows=2).group_by("k", keys=[0, 1]).agg(m=dp.mean("x", 0, 10)).plan(epsilon=1)
    assert str(plan).count("read the rows") == 1
    assert "bring the rows of each u together" in str(plan)


def test_no_row_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as table:
        query = table.bound(rows=2).group_by("k", keys=[0, 1]).agg(**ASKED)
        monkeypatch.setattr(DuckDbEngine, "run", None)
        monkeypatch.setattr(DuckDbEngine, "publish", None)
        assert len(query.plan(epsilon=1).statements) == 6


def test_no_row_changes_a_plan(tmp_path: Path) -> None:
    """An optimiser's plan would: it knows that nothing is above the largest value."""
    seen = set()
    for data in (DATA, DATA.slice(0, 0), DATA.slice(0, 1)):
        with opened(tmp_path, data) as table:
            query = table.where("x > 1000").bound(rows=2).group_by("k", keys=[0, 1]).agg(**ASKED)
            seen.add(str(query.plan(epsilon=1)))
    assert len(seen) == 1


def test_what_is_shown_is_what_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    run = DuckDbEngine.run

    def seen(self: DuckDbEngine, select: Any, **more: Any) -> Any:
        sent.append(self.written(select))
        return run(self, select, **more)

    with opened(tmp_path) as table:
        query = table.bound(rows=2, groups=2).group_by("k", keys=None).agg(p=dp.count_units(), m=dp.mean("x", 0, 10))
        plan = query.plan(epsilon=100, delta=1e-6)
        monkeypatch.setattr(DuckDbEngine, "run", seen)
        query.release(epsilon=100, delta=1e-6)
    assert [plain(text) for text in sent] == [plain(each.sql) for each in plan.statements]


def test_people_are_shown_with_the_weight_they_have_where_the_bound_is_yet_to_be_found(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        plan = table.bound(rows="find").agg(p=dp.count_units()).plan(epsilon=1)
    assert plan.people_grid != plan.grid
    assert f"CAST({plan.people_grid} AS BIGINT)" in plan.statements[-1].sql


def plain(text: str) -> str:
    """A statement without what is drawn for each release, and without the name of its keys."""
    hidden = re.sub(r"'[^']*#0:#|'[^']*#\d+:\w+#", "'", text)
    return re.sub(r'"?keys( [0-9a-f]{32})?"?( AS "p")?', "keys", hidden)
