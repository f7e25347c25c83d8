"""ROLLUP, CUBE and GROUPING SETS: one charge, totals that are the sums of their parts, labels that are not NULL."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.tables.attacks.exact import table
from tests.tables.reference import Row

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, NotDeclaredError
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise.testing import seeded
from defocus.tables.grouping_sets import GroupingSets, Layout, _on_levels, _shared, _top_down, are_totals, labelled
from defocus.tables.keys import Keys
from defocus.tables.measurement import Measuring
from defocus.tables.planner import Plan
from defocus.tables.query import Query
from defocus.tables.table import Table
from defocus.tables.weights import RowSampler, published

HUGE = 10**5
"""An epsilon at which noise is next to nothing."""


def opened(place: Path, rows: list[tuple[int, str | None, int, float]], **how: Any) -> Table:
    person, ward, year, days = zip(*rows, strict=True) if rows else ((), (), (), ())
    data = pa.table({
        "person": pa.array(person, pa.int64()),
        "ward": pa.array(ward, pa.string()),
        "year": pa.array(year, pa.int64()),
        "days": pa.array(days, pa.float64()),
    })  # fmt: skip
    unit = how.pop("unit", dp.rows())
    table = dp.open(data, unit=unit, budget=dp.Budget(10**9, 0.01), ledger=place, name="stays", **how)
    return table.declare(ward=["A", "B"], year=[2025, 2026, 2027], days=(0, 10))


ROWS: list[tuple[int, str | None, int, float]] = [
    (i, "AB"[i % 2], 2025 + i % 3, float((i * i) % 11)) for i in range(60)
]


@pytest.fixture
def stays(tmp_path: Path) -> Iterator[Table]:
    with opened(tmp_path / "a.ledger", ROWS) as table:
        yield table


def lines(answer: Any) -> dict[tuple[Any, ...], dict[str, float]]:
    keys = list(zip(*(column.to_pylist() for column in answer.keys.values()), strict=True))
    return {key: {c.name: float(c.values[i]) for c in answer.columns} for i, key in enumerate(keys)}


ASKED = {"n": dp.count("days"), "total": dp.sum("days"), "mean": dp.mean("days")}
SETS: dict[str, Any] = {
    "rollup": "rollup",
    "cube": "cube",
    "one by one": [["ward"], ["year"], []],
    "without a total": [["ward", "year"], ["year"]],
    "not the finest": [["ward"], ["year"]],
}


@pytest.mark.parametrize("how", SETS.values(), ids=SETS)
def test_every_set_has_the_numbers_of_its_groups(stays: Table, how: Any) -> None:
    answer = stays.group_by("ward", "year", sets=how).agg(**ASKED).release(epsilon=HUGE)
    named = {"rollup": ["", "ward", "wardyear"], "cube": ["", "ward", "year", "wardyear"]}
    wanted = named[how] if isinstance(how, str) else ["".join(one) for one in how]
    exact: dict[tuple[str, str], list[float]] = {}
    for one in wanted:
        for _, ward, year, days in ROWS:
            key = (str(ward) if "ward" in one else "all", str(year) if "year" in one else "all")
            exact.setdefault(key, []).append(min(days, 10))
    found = {tuple(map(str, key)): numbers for key, numbers in lines(answer).items()}
    assert set(found) == set(exact)
    for key, values in exact.items():
        assert found[key]["n"] == pytest.approx(len(values), abs=0.01)
        assert found[key]["total"] == pytest.approx(sum(values), abs=0.05)
        assert found[key]["mean"] == pytest.approx(np.mean(values), abs=0.05)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("how", ["rollup", "cube"])
def test_totals_are_the_sums_of_their_parts_and_means_are_quotients(
    stays: Table, how: str, delta: float | None
) -> None:
    wide = stays.declare(year=list(range(1900, 2100)))  # so many groups that totals are worth measuring
    answer = wide.group_by("ward", "year", sets=how).agg(**ASKED).release(epsilon=1, delta=delta, bits=seeded(4))
    found = lines(answer)
    assert len(found) == {"rollup": 403, "cube": 603}[how]
    for column in ("n", "total"):
        for ward in "AB":
            parts = [found[ward, str(year)][column] for year in range(1900, 2100)]
            assert found[ward, "all"][column] == pytest.approx(sum(parts), abs=1e-6)
        assert found["all", "all"][column] == pytest.approx(sum(found[w, "all"][column] for w in "AB"), abs=1e-6)
        if how == "cube":
            years = [found["all", str(year)][column] for year in range(1900, 2100)]
            assert found["all", "all"][column] == pytest.approx(sum(years), abs=1e-6)
    for numbers in found.values():
        if numbers["n"] > 1:
            quotient = np.clip(numbers["total"] / numbers["n"], 0, 10)
            assert numbers["mean"] == pytest.approx(quotient, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("how", "delta"), [("rollup", None), ("rollup", 1e-6), ("cube", None), ("cube", 1e-6)])
def test_errors_are_those_of_the_noise_and_not_a_tenth_smaller(stays: Table, how: str, delta: float | None) -> None:
    wide = stays.declare(year=list(range(1900, 2300)))
    query = wide.group_by("ward", "year", sets=how).agg(total=dp.sum("days"))
    bits, scores = seeded(8), list[Any]()
    exact = lines(query.release(epsilon=HUGE))
    for _ in range(4):
        answer = query.release(epsilon=1, delta=delta, bits=bits)
        keys = list(lines(answer))
        column = answer.columns[0]
        truth = np.array([exact[key]["total"] for key in keys])
        scores.append((column.values - truth) / column.errors)
        inside = (column.low <= truth) & (truth <= column.high)
        assert inside.mean() > 0.9
    spread = float(np.mean(np.square(np.concatenate(scores))))
    assert 0.9 < spread < 1.1


def test_the_grand_total_errs_less_than_the_sum_of_all_groups(stays: Table) -> None:
    wide = stays.declare(year=list(range(1900, 2300)))
    together = wide.group_by("ward", "year", sets="rollup").agg(n=dp.count()).release(epsilon=1, delta=1e-6)
    alone = wide.group_by("ward", "year").agg(n=dp.count()).release(epsilon=1, delta=1e-6)
    total = together.columns[0].errors[-1]
    assert total < 0.25 * np.sqrt(np.square(alone.columns[0].errors).sum())


def test_one_charge_pays_for_all_sets(stays: Table) -> None:
    query = stays.group_by("ward", "year", sets="cube").agg(**ASKED)
    answer = query.release(epsilon=1)
    assert answer.receipt.sequence == 1
    assert dp.privacy.account(answer.receipt.event).epsilon(0) == pytest.approx(1, abs=1e-6)
    assert query.preview(epsilon=1).event == answer.receipt.event


def test_a_request_is_answered_again_with_its_labels_and_not_for_other_sets(stays: Table) -> None:
    grouped = stays.group_by("ward", "year", sets="rollup")
    first = grouped.agg(n=dp.count()).release(epsilon=1, request="a")
    again = grouped.agg(n=dp.count()).release(epsilon=1, request="a")
    assert lines(first) == lines(again)
    assert again.processing == first.processing
    with pytest.raises(InvalidParameterError, match="another question"):
        stays.group_by("ward", "year", sets=[["ward", "year"], []]).agg(n=dp.count()).release(epsilon=1, request="a")


def test_null_is_a_key_of_its_own_and_no_total(tmp_path: Path) -> None:
    rows = [*ROWS, *[(90 + i, None, 2025, 1.0) for i in range(7)]]
    with opened(tmp_path / "n", rows) as table:
        keys = [(ward, year) for ward in ("A", "B", None) for year in (2025, 2026, 2027)]
        answer = table.group_by("ward", "year", keys=keys, sets="rollup").agg(n=dp.count()).release(epsilon=HUGE)
        found = lines(answer)
        assert found[None, "all"]["n"] == pytest.approx(7, abs=0.01)
        assert found["all", "all"]["n"] == pytest.approx(67, abs=0.01)
        shown = list(found)
        assert shown[-1] == ("all", "all")
        assert shown.index((None, "all")) == len(shown) - 2


def test_a_value_that_is_called_all_is_told_from_the_total(tmp_path: Path) -> None:
    with opened(tmp_path / "c", [(1, "All", 2025, 1.0), (2, "(all)", 2025, 1.0)]) as table:
        query = table.group_by("ward", keys=["All", "(all)"], sets="rollup").agg(n=dp.count())
        answer = query.release(epsilon=HUGE)
        assert list(lines(answer)) == [("(all)",), ("All",), ("((all))",)]
        assert any("'((all))' in ward" in rule for rule in answer.rules)
        assert are_totals(answer.keys["ward"].to_pylist()).tolist() == [0, 0, 1]


def test_labels_are_none_of_the_values() -> None:
    for values in (["a"], ["ALL"], ["all", "(ALL)"], ["(((all)))"], ["(all", "all)"], []):
        label = labelled(pa.array(values, pa.string()))
        assert label.casefold() not in {value.casefold() for value in values}
        assert are_totals([*values, label]).tolist() == [0] * len(values) + [1]


def test_keys_that_are_found_are_rolled_up(tmp_path: Path) -> None:
    with opened(tmp_path / "f", [(i, "A", 2025 + i % 2, 1.0) for i in range(4000)]) as table:
        grouped = table.group_by("ward", "year", keys=None, sets="rollup")
        answer = grouped.agg(n=dp.count()).release(epsilon=5, delta=1e-4, bits=seeded(2))
        assert set(lines(answer)) == {("A", "2025"), ("A", "2026"), ("A", "all"), ("all", "all")}
        with pytest.raises(NotDeclaredError, match="not nested"):
            table.group_by("ward", "year", keys=None, sets="cube").agg(n=dp.count())


def test_a_column_of_all_sets_keeps_its_type(stays: Table) -> None:
    grouped = stays.group_by("ward", "year", sets=[["year"], ["ward", "year"]])
    table = grouped.agg(n=dp.count()).release(epsilon=1).to_arrow()
    assert (table.schema.field("ward").type, table.schema.field("year").type) == (pa.string(), pa.int64())


REFUSED: dict[str, tuple[Any, str]] = {
    "a word": ("rollups", "are not understood"),
    "a number": (3, "are not understood"),
    "nothing": ([], "no sets of groups"),
    "an unknown column": ([["ward"], ["days"]], "names 'days'"),
    "a column in no set": ([["ward"], []], "No set of groups has the column 'year'"),
}


@pytest.mark.parametrize(("how", "words"), REFUSED.values(), ids=REFUSED)
def test_sets_that_make_no_sense_are_refused(stays: Table, how: Any, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        stays.group_by("ward", "year", sets=how)


@pytest.mark.parametrize(
    "aggregate", [dp.count_units(), dp.count_distinct("year"), dp.median("days"), dp.histogram("days", [0, 5, 10])]
)
def test_what_does_not_add_up_is_refused_free_of_charge(stays: Table, aggregate: Any) -> None:
    with pytest.raises(InvalidParameterError, match="does not add up"):
        stays.group_by("ward", "year", sets="rollup").agg(x=aggregate)
    assert len(stays.ledger.history()) == 1  # that it was opened


def test_a_cube_of_some_combinations_is_refused(stays: Table) -> None:
    keys = [("A", 2025), ("B", 2025), ("B", 2026)]
    with pytest.raises(InvalidParameterError, match="all combinations"):
        stays.group_by("ward", "year", keys=keys, sets="cube").agg(n=dp.count())
    stays.group_by("ward", "year", keys=keys, sets="rollup").agg(n=dp.count()).preview(epsilon=1)


def test_other_statistics_of_sums_are_read_from_all_sets(stays: Table) -> None:
    asked = {"v": dp.variance("days"), "s": dp.std("days")}
    found = lines(stays.group_by("ward", "year", sets="rollup").agg(**asked).release(epsilon=HUGE))
    days = [min(row[3], 10.0) for row in ROWS]
    assert found["all", "all"]["v"] == pytest.approx(np.var(days), rel=0.01)
    assert found["all", "all"]["s"] == pytest.approx(np.std(days), rel=0.01)


# --- How far one person moves all sets together ------------------------------------------------------------------


def measured(query: Query, plan: Plan) -> list[Any]:
    """Every vector that noise is added to: for each split, for each set."""
    assert query.keys is not None and query.layout is not None  # noqa: PT018
    with published(query.rows, query.by, query.keys, query.bound) as groups:
        cells = Measuring(groups, plan.grid, RowSampler("k")).cells(plan.arrangement.splits)
    return [query.layout.sums(each) for each in cells]


def far(change: Any, noise: Any) -> tuple[Fraction, Fraction]:
    """How far a vector moved and may move, squared, in the norm that is charged for."""
    steps = [int(step) for step in change.ravel()]
    if isinstance(noise.mechanism, Gaussian):
        return Fraction(sum(step * step for step in steps)), Fraction(noise.mechanism.sensitivity) ** 2
    assert isinstance(noise.mechanism, Laplace)
    return Fraction(sum(map(abs, steps)) ** 2), Fraction(noise.mechanism.sensitivity) ** 2


BOUNDS: dict[str, dict[str, Any]] = {"rows": {"rows": 2}, "per group": {"rows": 2, "per_group": 1}}


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, 0.01])
@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("how", ["rollup", "cube"])
def test_no_person_moves_a_set_by_more_than_is_charged(how: str, bound: dict[str, Any], delta: float | None) -> None:
    """All persons with up to three rows among four groups, added to a small table."""
    places: list[dict[str, Any]] = [
        {"k": key, "y": year, "x": 10.0, "z": 0.0, "s": ""} for key in "ab" for year in (0, 1)
    ]
    base: list[Row] = [{**places[0], "u": 1}, {**places[3], "u": 2, "x": 7.0}, {**places[1], "u": 2}]

    def exact(rows: list[Row]) -> tuple[list[Any], Plan]:
        small = table(rows).declare(k=["a", "b"], y=[0, 1], x=(0, 10)).bound(**bound)
        query = small.group_by("k", "y", sets=how).agg(total=dp.sum("x"))
        assert query.sets is not None
        even = (1 / len(query.sets.sets),) * len(query.sets.sets)  # so that every set is measured
        query = replace(query, sets=replace(query.sets, weights=even))
        plan = query._planned(0.02 if delta else 1, delta)
        return measured(query, plan)[0], plan

    before, plan = exact(base)
    noises = [noise for noise in plan.levels[0] if noise is not None]
    assert {type(noise.mechanism) for noise in noises} == {Gaussian if delta else Laplace}
    worst = [Fraction(0)] * len(noises)
    for way in [way for size in (1, 2, 3) for way in itertools.combinations_with_replacement(places, size)]:
        after, _ = exact([*base, *({**row, "u": 9} for row in way)])
        for level, noise in enumerate(noises):
            moved, allowed = far(after[level] - before[level], noise)
            assert moved <= allowed
            worst[level] = max(worst[level], moved / allowed)
    assert min(worst) > Fraction(99, 100)  # and the noise is for no more than that


def test_the_event_is_made_of_the_noise_of_every_set(stays: Table) -> None:
    wide = stays.declare(year=list(range(1900, 2300)))
    plan = wide.group_by("ward", "year", sets="rollup").agg(n=dp.count(), s=dp.sum("days")).plan(epsilon=1, delta=1e-6)
    noises = [noise for split in plan.levels for noise in split if noise is not None]
    assert len(noises) >= 2
    assert plan.event == dp.privacy.events.compose([noise.event for noise in noises])


def test_a_layout_of_irregular_keys_is_a_tree() -> None:
    table = pa.table({"a": ["y", "x", "x", None], "b": [2, 1, 3, 1]})
    layout = Layout(GroupingSets.of(["a", "b"], "rollup"), Keys(table))
    sums = layout.sums(np.array([[10], [20], [30], [40]]))
    assert [level.ravel().tolist() for level in sums] == [[100], [50, 10, 40], [20, 30, 10, 40]]
    keys, _ = layout.keys()
    assert keys.to_pydict() == {
        "a": ["x", "x", "x", "y", "y", None, None, "all"],
        "b": ["1", "3", "all", "2", "all", "1", "all", "all"],
    }


def test_no_charge_is_made_for_what_is_refused(stays: Table) -> None:
    for names in (("ward", "ward"), ("days",)):
        with pytest.raises(DefocusError):
            stays.group_by(*names, sets="cube")
    assert len(stays.ledger.history()) == 1  # that it was opened


@pytest.mark.parametrize(("exact", "power"), [(0, 1), (0, 2), (2, 1), (2, 2)])
def test_no_level_of_a_tree_errs_by_more_than_top_down_with_even_parts(exact: int, power: int) -> None:
    sizes, number = (1, 50, 1000, 10_000, 1_000_000), 5 - exact
    parts, _ = _shared((sizes, ()), exact, None, (0.2,) * 5, power)
    found = _on_levels(sizes, exact)(np.array(parts[exact:]) ** -power)[-number:]
    assert (found <= _top_down(sizes, exact, number**power) * (1 + 1e-9)).all()
