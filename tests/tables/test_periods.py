"""Budget periods: the unit is what one person has in one period, and each period has a budget."""

import itertools
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.spark import SparkEngine
from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    InvalidParameterError,
    LedgerMismatchError,
    WrongKindError,
)
from defocus.ledger import Parts
from defocus.privacy.translation import appearance
from defocus.privacy.wire import read_unit, write_unit
from defocus.tables.contribution import Bound
from defocus.tables.keys import public_keys
from defocus.tables.measurement import Measuring
from defocus.tables.parts import in_periods
from defocus.tables.rows import Rows
from defocus.tables.splits import PRESENCE
from defocus.tables.weights import RowSampler, published

MONTHS = (date(2026, 10, 1), date(2026, 11, 1))
UNIT = dp.user("patient", period="month", of="day")


def visits(rows: Sequence[tuple[Any, date | None, int]]) -> pa.Table:
    patients, days, wards = zip(*rows, strict=True) if rows else ((), (), ())
    types = pa.schema([("patient", pa.string()), ("day", pa.date32()), ("ward", pa.int64())])
    return pa.table({"patient": patients, "day": days, "ward": wards}, schema=types)


SOME = visits([(str(i), date(2026, month, 1 + i % 28), i % 2) for i in range(200) for month in (10, 11) for _ in "ab"])


def opened(home: Path, rows: pa.Table = SOME, unit: Any = UNIT, **more: Any) -> Any:
    return dp.open(rows, unit=unit, budget=dp.Budget(1), ledger=home / "v.ledger", name="visits", **more)


def test_each_month_has_the_whole_budget_and_a_release_from_all_is_charged_to_each(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        asked = [table.part(month).bound(rows=2).agg(n=dp.count()) for month in MONTHS]
        assert [abs(one.release(epsilon=0.7).value - 400) < 60 for one in asked] == [True, True]
        with pytest.raises(BudgetExceededError):
            asked[0].release(epsilon=0.7)
        table.bound(rows=2).agg(n=dp.count()).release(epsilon=0.2)
        assert [round(table.part(month).remaining().epsilon, 6) for month in (*MONTHS, "2026-12-01")] == [0.1, 0.1, 0.8]
        assert table.ledger.verify()


def test_it_is_said_what_is_protected_and_what_is_not(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        told = table.part("2026-11-01").bound(rows=1).agg(n=dp.count()).release(epsilon=0.1).explain()
        assert "everything about one patient in one month, added or removed" in told
        assert "protected by the sum" in told
        assert "one patient in one month counts with at most 1 row" in told
        assert "has a budget of its own" in told
        assert "parts by month (date); each unit is what one person has in one part" in str(table)


def test_the_period_may_be_a_column_and_a_ledger_knows_it_without_being_told(tmp_path: Path) -> None:
    rows = SOME.append_column("quarter", pa.array(["Q4"] * SOME.num_rows))
    with opened(tmp_path, rows, dp.user("patient", period="quarter")) as table:
        table.part("Q4").bound(rows=1).agg(n=dp.count()).release(epsilon=0.5)
    with opened(tmp_path, rows, None) as table:
        assert round(table.part("Q4").remaining().epsilon, 6) == 0.5
    with pytest.raises(LedgerMismatchError):
        opened(tmp_path, rows, dp.user("patient"))


def cells(engine: DuckDbEngine, rows: Sequence[Any], bound: Bound) -> np.ndarray:
    """The exact weights of every ward in a question about all months, in units of the grid."""
    read = engine.canonical(engine.publish("visits", visits(rows)), {})
    named = in_periods(Rows(engine, read, engine.schema(read), "patient"), UNIT)
    with published(named, ("ward",), public_keys([named.schema["ward"]], [0, 1]), bound) as groups:
        return Measuring(groups, 840, RowSampler("secret")).cells([PRESENCE])[0].ravel()


@pytest.mark.slow
@pytest.mark.parametrize("bound", [Bound(rows=1), Bound(rows=2, per_group=1)])
def test_no_unit_of_any_small_table_weighs_more_than_the_bound_also_across_months(bound: Bound) -> None:
    """All tables of up to three rows of a person in two months and wards, and a row of another; each unit removed."""
    days, engine, moved = (date(2026, 10, 5), date(2026, 11, 5)), DuckDbEngine(threads=1), []
    weigh = cache(lambda rows: cells(engine, rows, bound))
    every = [("a", day, ward) for day in days for ward in (0, 1)]
    for size in (1, 2, 3):
        for chosen in itertools.combinations_with_replacement(every, size):
            rows = (*chosen, ("b", days[0], 0))
            before = weigh(rows)
            for day in {day for _, day, _ in chosen}:
                after = weigh(tuple(row for row in rows if row[:2] != ("a", day)))
                moved.append(int(np.abs(before - after).sum()))
    engine.close()
    assert len(moved) > 30
    assert max(moved) == 840 * bound.total  # attained, and never more


def test_names_of_units_cannot_be_mistaken_and_rows_without_a_part_are_nobodys(tmp_path: Path) -> None:
    """1 in 12026… and 11 in 2026… differ, and so do texts that look like both."""
    rows = pa.table(
        {
            "patient": ["1", "11", "1:1", "", None, "2"],
            "period": ["12", "2", "2", "112", "2", None],
        }
    )
    with opened(tmp_path, rows, dp.user("patient", period="period")) as table:
        found = table.rows.engine.run(table.rows.relation)["patient in one period"].to_pylist()
        counted = table.bound(rows=1).agg(n=dp.count(), u=dp.count_units())
        assert len({name for name in found if name is not None}) == 4
        assert counted.preview(epsilon=0.1).columns[0].name == "n"
        with published(table.rows, (), table.agg(n=dp.count()).keys, Bound(rows=1)) as groups:
            assert int(Measuring(groups, 1, RowSampler("x")).cells([PRESENCE])[0].sum()) == 4


REFUSED: dict[str, tuple[Callable[[], object], type[DefocusError], str]] = {
    "a fortnight": (lambda: dp.user("p", period="fortnight", of="day"), InvalidParameterError, "not understood"),
    "of nothing": (lambda: dp.user("p", of="day"), InvalidParameterError, "not understood"),
    "a number": (lambda: dp.user("p", period=7), InvalidParameterError, "not understood"),  # type: ignore[arg-type]
    "replaced": (lambda: dp.user("p", period="month", replace=True), InvalidParameterError, "not replaced"),
    "rows": (lambda: dp.privacy.Unit("rows", period="month"), InvalidParameterError, "not a unit"),
    "a person's ledger": (lambda: appearance(dp.user("patient"), UNIT), LedgerMismatchError, "many periods"),
    "a person in it": (lambda: appearance(UNIT, dp.user("patient")), LedgerMismatchError, "many periods"),
    "edges in it": (lambda: appearance(UNIT, dp.edge(per_person=3)), LedgerMismatchError, "many periods"),
    "parts of rows": (lambda: Parts("month", "date", "rows").check(UNIT), InvalidParameterError, "says nothing"),
    "another period": (lambda: Parts("week", "date", "periods").check(UNIT), InvalidParameterError, "says nothing"),
    "no periods": (lambda: Parts("day", "date", "periods").check(dp.user("p")), InvalidParameterError, "says nothing"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_units_and_parts_that_do_not_fit_are_refused(name: str) -> None:
    make, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"parts": "ward"}, InvalidParameterError, "parts are those of"),
        ({"unit": dp.user("patient", period="month", of="ward")}, WrongKindError, "no dates"),
        ({"unit": dp.user("patient", period="nothing")}, DefocusError, "nothing"),
        ({"private": {"more": SOME}}, InvalidParameterError, "does not say in which month"),
    ],
)
def test_what_the_unit_cannot_mean_is_refused_when_the_table_is_opened(
    tmp_path: Path, more: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        opened(tmp_path, **more)
    assert not list(tmp_path.iterdir())


def test_a_unit_with_a_period_is_written_and_read() -> None:
    assert read_unit(write_unit(UNIT)) == UNIT
    assert "period" not in write_unit(dp.user("patient"))


def test_a_dataset_file_says_it(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(SOME, tmp_path / "visits.parquet")
    text = 'name = "visits"\ndata = "visits.parquet"\n[unit]\ncolumn = "patient"\nperiod = "month"\nof = "day"\n'
    (tmp_path / "visits.toml").write_text(text + "[budget]\nepsilon = 1\n")
    with dp.open(tmp_path / "visits.toml") as table:
        assert table.ledger.unit == UNIT


@pytest.mark.slow
def test_units_have_the_same_names_on_spark(spark: Any) -> None:
    odd = [("a", date(2026, 10, 5), 0), ("é:1", date(2026, 11, 5), 1), (None, date(2026, 11, 5), 1), ("b", None, 1)]
    here, there = DuckDbEngine(), SparkEngine(spark)

    def names(engine: Any) -> list[Any]:
        read = engine.canonical(engine.publish("visits", visits(odd)), {})
        rows = in_periods(Rows(engine, read, engine.schema(read), "patient"), UNIT)
        return sorted(map(str, engine.run(rows.relation)["patient in one month"].to_pylist()))

    assert names(here) == names(there) == ["1:a2026-10-01", "3:é:12026-11-01", "None"]
    here.close()
    there.close()
