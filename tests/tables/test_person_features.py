"""Features of a person: the same on every engine, made of one person's rows alone, and never further than planned."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tables.attacks.exact import exact, moved, noises, table
from tests.tables.reference import Row
from tests.tables.worlds import HOSTILE, rows_of

import defocus as dp
from defocus.engines.syntax import column, named
from defocus.errors import DefocusError, InvalidParameterError, UnsupportedSqlError, WrongKindError
from defocus.tables.person_features import derived, per_person
from defocus.tables.query import Query
from defocus.tables.rows import Rows, join_private, join_public
from defocus.tables.table import Table

TYPES = {
    "u": pa.int64(), "k": pa.string(), "y": pa.int64(), "x": pa.float64(), "d": pa.date32(), "b": pa.bool_(),
}  # fmt: skip
DAYS = [None, date(2026, 1, 1), date(2026, 1, 2), date(2026, 2, 1)]
ODD: list[Row] = [
    {"u": 1, "k": "a", "y": 1, "x": 0.1, "d": DAYS[1], "b": True},
    {"u": 1, "k": "a", "y": 1, "x": 0.2, "d": DAYS[1], "b": False},
    {"u": 1, "k": "a", "y": 1, "x": 0.2, "d": DAYS[1], "b": False},
    {"u": 1, "k": "A", "y": None, "x": math.nan, "d": DAYS[2], "b": None},
    {"u": 2, "k": None, "y": 2**63 - 1, "x": math.inf, "d": None, "b": None},
    {"u": 2, "k": HOSTILE[5], "y": 2**63 - 1, "x": -math.inf, "d": DAYS[3], "b": True},
    {"u": 2, "k": "é", "y": 5, "x": 1e308, "d": DAYS[3], "b": True},
    {"u": 3, "k": "", "y": -(2**63), "x": -0.0, "d": DAYS[1], "b": False},
    {"u": 3, "k": "z", "y": -(2**63), "x": 0.0, "d": DAYS[2], "b": False},
    {"u": 4, "k": None, "y": None, "x": None, "d": None, "b": None},
    {"u": None, "k": "a", "y": 7, "x": 7.0, "d": DAYS[1], "b": True},
    {"u": None, "k": "b", "y": 8, "x": 8.0, "d": DAYS[2], "b": True},
]
STEP = 2.0**-20


def people(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """The rows of everybody, without those of nobody."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        if row["u"] is not None:
            found.setdefault(row["u"], []).append(row)
    return found


def absent(value: Any) -> bool:
    """Whether a value is missing: NULL or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def known(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if not absent(row[name])]


def total(numbers: Sequence[int]) -> int | None:
    return None if not numbers else max(-(2**63), min(2**63 - 1, sum(numbers)))


def steps(rows: Sequence[Row]) -> list[int]:
    """Floats on the grid; those beyond 64 bits are missing."""
    scaled = [x / STEP for x in known(rows, "x")]
    return [round(x) for x in scaled if abs(x) < 2.0**63]


FEATURES = {
    "n": "COUNT(*)",
    "ys": "COUNT(y)",
    "large": "COUNT(*) FILTER (WHERE y > 1)",
    "small": "COUNT_IF(x < 1)",
    "kinds": "COUNT(DISTINCT k)",
    "sum_y": "SUM(y)",
    "sum_x": "SUM(x)",
    "mean_y": "AVG(y)",
    "mean_x": "AVG(x)",
    "low": "MIN(x)",
    "last": "MAX(d)",
    "word": "MAX(k)",
    "some": "ANY_VALUE(k)",
    "ever": "BOOL_OR(b)",
    "always": "BOOL_AND(b)",
    "truths": "SUM(b)",
    "most": "MAX(b)",
    "span": "DATE_DIFF('day', MIN(d), MAX(d))",
    "rate": "CASE WHEN COUNT(y) > 1 THEN SUM(y) / COUNT(*) ELSE 0 END",
}


def features(rows: Sequence[Row]) -> dict[str, Any]:
    """What a person's rows tell together."""
    ys, ks, ds, bs = (known(rows, name) for name in "ykdb")
    grid = steps(rows)
    words = sorted(ks, key=lambda word: word.encode())
    return {
        "n": len(rows),
        "ys": len(ys),
        "large": sum(y > 1 for y in ys),
        "small": sum(x < 1 for x in known(rows, "x")),
        "kinds": len(set(ks)),
        "sum_y": total(ys),
        "sum_x": None if not grid else float(total(grid) or 0) * STEP,
        "mean_y": None if not ys else float(total(ys) or 0) / len(ys),
        "mean_x": None if not grid else float(total(grid) or 0) * STEP / len(grid),
        "low": min(known(rows, "x"), default=None),
        "last": max(ds, default=None),
        "word": words[-1] if words else None,
        "some": words[0] if words else None,
        "ever": any(bs) if bs else None,
        "always": all(bs) if bs else None,
        "truths": total(bs),
        "most": any(bs) if bs else None,
        "span": (max(ds) - min(ds)).days if ds else None,
        "rate": float(total(ys) or 0) / len(rows) if len(ys) > 1 else 0.0,
    }


def read(rows: Rows, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows as the engine computes them, in one order."""
    found = rows.engine.run(rows.select([named(column(name), f"c{i}") for i, name in enumerate(names)]))
    return ordered(zip(*(found.column(i).to_pylist() for i in range(len(names))), strict=True))


def ordered(rows: Any) -> list[tuple[Any, ...]]:
    """Rows of plain values in one order; missing is None, and there is one zero."""
    plain = [
        tuple(None if absent(value) else value + 0 if isinstance(value, float) else value for value in row)
        for row in rows
    ]
    return sorted(plain, key=lambda row: [(value is None, str(type(value)), value) for value in row])


def one_row() -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries(
        {
            "u": st.sampled_from([None, 1, 1, 2, 2, 2, -(2**63)]),
            "k": st.sampled_from([None, "a", "A", *HOSTILE]),
            "y": st.sampled_from([None, 0, 1, 2, -(2**63), 2**63 - 1]),
            "x": st.sampled_from([None, 0.0, -0.0, 0.1, 1 / 3, 1e308, math.inf, -math.inf, math.nan, 5e-324, 2.0**43]),
            "d": st.sampled_from(DAYS),
            "b": st.sampled_from([None, True, False]),
        }
    )


TABLES = st.lists(one_row(), max_size=8).flatmap(lambda rows: st.permutations([*rows, *rows[:2]]))


def agree_about_features(made: Sequence[Row]) -> None:
    rows = per_person(rows_of(made, "u", TYPES), (), FEATURES)
    assert rows.single
    wanted = ordered((u, *features(own).values()) for u, own in people(made).items())
    assert read(rows, ["u", *FEATURES]) == wanted


def test_features_of_odd_rows(any_engine: str) -> None:
    assert any_engine
    agree_about_features(ODD)
    agree_about_features([])


@pytest.mark.slow
@given(TABLES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_features_of_any_rows(made: list[Row]) -> None:
    agree_about_features(made)


def test_a_person_may_have_several_groups(any_engine: str) -> None:
    assert any_engine
    rows = per_person(rows_of(ODD, "u", TYPES), ("k", "d"), {"n": "COUNT(*)"})
    assert not rows.single
    groups: dict[tuple[Any, ...], int] = {}
    for u, own in people(ODD).items():
        for row in own:
            key = u, row["k"], row["d"]
            groups[key] = groups.get(key, 0) + 1
    assert read(rows, ["u", "k", "d", "n"]) == ordered((*key, n) for key, n in groups.items())


WINDOWS = {
    "before": "LAG(x) OVER (ORDER BY d)",
    "after": "LEAD(k, 2) OVER (ORDER BY d)",
    "place": "ROW_NUMBER() OVER (ORDER BY y DESC)",
    "rank": "RANK() OVER (ORDER BY d)",
    "dense": "DENSE_RANK() OVER (ORDER BY d NULLS FIRST)",
    "so_far": "SUM(y) OVER (ORDER BY d)",
    "few": "COUNT(*) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "lately": "SUM(x) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "mean": "AVG(y) OVER ()",
    "within": "COUNT(y) OVER (PARTITION BY k)",
    "first": "FIRST_VALUE(k) OVER (ORDER BY d)",
    "end": "LAST_VALUE(y) OVER (ORDER BY d ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "gap": "DATE_DIFF('day', LAG(d) OVER (ORDER BY d), d)",
}


def _key(value: Any, *, first: bool = True, down: bool = False) -> Any:
    """Where a value comes in an order; NaN is missing."""
    missing = absent(value)
    plain: Any = (
        0
        if missing
        else value.encode()
        if isinstance(value, str)
        else value.toordinal()
        if isinstance(value, date)
        else value
    )
    return (missing is not first, 0 if missing else -plain if down else plain)


def windows(own: Sequence[Row]) -> list[dict[str, Any]]:
    """What window functions say beside each row of one person."""
    names = [name for name in TYPES if name != "u"]
    numbered = sorted(own, key=lambda row: [_key(row[name]) for name in names])
    place = {id(row): i for i, row in enumerate(numbered)}
    by_day = sorted(numbered, key=lambda row: (_key(row["d"], first=False), place[id(row)]))
    by_y = sorted(numbered, key=lambda row: (_key(row["y"], first=False, down=True), place[id(row)]))
    found = []
    for row in own:
        i = next(i for i, other in enumerate(by_day) if other is row)
        until = [other for other in by_day if _key(other["d"], first=False) <= _key(row["d"], first=False)]
        earlier = [other for other in own if _key(other["d"]) < _key(row["d"])]
        lately = by_day[max(0, i - 1) : i + 1]
        ys, grid = known(own, "y"), steps(lately)
        before = by_day[i - 1] if i else None
        found.append(
            {
                "before": None if before is None else before["x"],
                "after": by_day[i + 2]["k"] if i + 2 < len(by_day) else None,
                "place": 1 + next(j for j, other in enumerate(by_y) if other is row),
                "rank": 1 + sum(_key(other["d"], first=False) < _key(row["d"], first=False) for other in own),
                "dense": 1 + len({_key(other["d"]) for other in earlier}),
                "so_far": total(known(until, "y")),
                "few": len(lately),
                "lately": None if not grid else float(total(grid) or 0) * STEP,
                "mean": None if not ys else float(total(ys) or 0) / len(ys),
                "within": len(known([other for other in own if other["k"] == row["k"]], "y")),
                "first": by_day[0]["k"],
                "end": by_day[-1]["y"],
                "gap": None if before is None or None in (row["d"], before["d"]) else (row["d"] - before["d"]).days,
            }
        )
    return found


def agree_about_windows(made: Sequence[Row], texts: Mapping[str, str] = WINDOWS) -> None:
    copies = [dict(row) for row in made]  # so that rows that hold the same are two
    rows = derived(rows_of(copies, "u", TYPES), texts)
    assert not rows.single
    assert rows.schema.names == [*TYPES, *texts]
    wanted = [
        (row["u"], row["k"], row["x"], *(value for name, value in said.items() if name in texts))
        for own in people(copies).values()
        for row, said in zip(own, windows(own), strict=True)
    ]
    assert read(rows, ["u", "k", "x", *texts]) == ordered(wanted)


def test_windows_beside_odd_rows(any_engine: str) -> None:
    assert any_engine
    agree_about_windows(ODD)
    agree_about_windows([])
    agree_about_windows(ODD, {"gap": WINDOWS["gap"]})


@pytest.mark.slow
@given(TABLES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_windows_beside_any_rows(made: list[Row]) -> None:
    agree_about_windows(made)


def test_a_row_has_one_place_among_its_equals(any_engine: str) -> None:
    """Rows that hold the same are numbered once, and not differently by each window."""
    assert any_engine
    same = [{"u": 1, "k": "a", "y": 1, "x": 0.0, "d": DAYS[1], "b": True}] * 40
    rows = derived(
        rows_of(same, "u", TYPES),
        {"up": "ROW_NUMBER() OVER (ORDER BY d)", "down": "ROW_NUMBER() OVER (ORDER BY d DESC, y DESC)"},
    )
    assert read(rows, ["up", "down"]) == [(i, i) for i in range(1, 41)]


# Nobody moves anything further than planned. ------------------------------------------------------------------------

ONE: list[Row] = [
    {"u": 0, "k": k, "y": y, "x": x, "z": 0.0, "s": "v"} for k, y, x in (("a", 0, 1.0), ("b", 1, None), ("a", 2, 9.0))
]
OWN = [list(chosen) for size in range(4) for chosen in itertools.combinations_with_replacement(ONE, size)]


def person(rows: Sequence[Row], u: int | None) -> list[Row]:
    return [{**row, "u": u} for row in rows]


def totals(made: Table) -> Query:
    """One row for each person."""
    shown = made.per_person(n="COUNT(*)", s="SUM(y)", m="AVG(x)", k="MAX(k)", late="BOOL_OR(y > 1)").where("n <> 2")
    return shown.group_by("k", keys=["a", "b", None]).agg(
        n=dp.mean("n", 0, 2), s=dp.variance("s", 0, 4), people=dp.count_units(), m=dp.median("m", 0, 9, buckets=4)
    )


def by_group(made: Table) -> Query:
    """Rows of a person and a group, under the bound of the table."""
    shown = made.bound(rows=2).per_person("k", n="COUNT(*)")
    return shown.group_by("k", keys=["a", "b"]).agg(n=dp.sum("n", 0, 2), rows=dp.count(), people=dp.count_units())


def gaps(made: Table) -> Query:
    """Windows beside the rows, filtered by what they say."""
    shown = made.bound(rows=2).derive(gap="y - LAG(y) OVER (ORDER BY y)", no="ROW_NUMBER() OVER (ORDER BY x)")
    return shown.where("gap IS NOT NULL OR no > 1").agg(gap=dp.mean("gap", 0, 2), no=dp.sum("no", 0, 3))


def counted(made: Table) -> Query:
    """Windows beside all rows, which are counted on the way."""
    return made.bound(rows=2).derive(before="LAG(y) OVER (ORDER BY y)").agg(n=dp.count(), s=dp.sum("before", 0, 2))


def joined(made: Table) -> Query:
    """Features beside the rows they were made of."""
    shown = made.bound(rows=2).join(made.per_person(n="COUNT(*)"), on="u")
    return shown.agg(n=dp.sum("n", 0, 3), rows=dp.count())


@pytest.mark.slow
@pytest.mark.parametrize("ask", [totals, by_group, gaps, counted, joined])
@pytest.mark.parametrize(
    "others", [[], [*person(ONE, 1), *person(ONE[:1], 2), *person(ONE, None)]], ids=["none", "some"]
)
def test_nobody_moves_a_feature_further_than_planned(ask: Any, others: list[Row]) -> None:
    plan = ask(table(others)).plan(epsilon=1)
    limits = noises(plan)
    without = exact(ask(table(others)), plan)
    reached = dict.fromkeys(limits, 0.0)
    for own in OWN:
        vectors = exact(ask(table([*others, *person(own, 7)])), plan)
        for name, noise in limits.items():
            far, limit = moved(noise, vectors[name] - without[name])
            assert far <= limit, (name, own)
            reached[name] = max(reached[name], math.sqrt(far / limit))
    assert max(reached.values()) > 0.9, reached


@pytest.mark.parametrize("bound", [{"rows": 2}, {"rows": 2, "per_group": 1}, {"rows": 7}], ids=str)
def test_rows_weigh_the_same_however_they_are_counted(any_engine: str, bound: dict[str, Any]) -> None:
    assert any_engine
    made = table([*person(ONE, 1), *person(ONE * 2, 2), *person(ONE, None)])
    asked = made.bound(**bound).derive(before="LAG(y) OVER (ORDER BY y)").agg(n=dp.count(), s=dp.sum("before", 0, 2))
    plan = asked.plan(epsilon=1)
    assert asked.rows.counted is not None
    counted = exact(asked, plan)
    again = exact(replace(asked, rows=replace(asked.rows, counted=None)), plan)
    assert {name: vector.tolist() for name, vector in counted.items()} == {
        name: vector.tolist() for name, vector in again.items()
    }


def test_what_leaves_rows_out_forgets_how_many_there_were() -> None:
    rows = derived(rows_of(ODD, "u", TYPES), {"before": "LAG(y) OVER (ORDER BY y)"})
    assert rows.counted is not None
    assert rows.derive({"after": "before + 1"}).counted == rows.counted
    assert rows.derive({rows.counted.upper(): "before + 1"}).counted is None
    assert rows.where("y > 0").counted is None
    assert join_private(rows, per_person(rows, (), {"n": "COUNT(*)"}), "u", "inner").counted is None
    assert join_public(rows, pa.table({"k": ["a"], "name": ["b"]}), "k", "inner").counted is None


def test_nobody_who_is_missing_is_a_person() -> None:
    """Rows without a person are not one group of many people."""
    rows = rows_of(ODD, "u", TYPES)
    alone = rows_of([row for row in ODD if row["u"] is not None], "u", TYPES)
    makers: list[Callable[[Rows], Rows]] = [
        lambda own: per_person(own, (), {"n": "COUNT(*)"}),
        lambda own: derived(own, {"n": "COUNT(*) OVER ()"}),
    ]
    for make in makers:
        assert read(make(rows), ["u", "n"]) == read(make(alone), ["u", "n"])


# What is kept, and what is refused. ---------------------------------------------------------------------------------


def test_one_row_for_each_person_needs_no_bound() -> None:
    made = table(person(ONE, 1))
    assert made.per_person(n="COUNT(*)").agg(n=dp.count()).bound == dp.tables.Bound(rows=1)
    assert made.bound(rows=9).per_person(n="COUNT(*)").agg(n=dp.count()).bound == dp.tables.Bound(rows=1)
    assert made.bound(rows=9).per_person("k", n="COUNT(*)").agg(n=dp.count()).bound == dp.tables.Bound(rows=9)
    question = made.per_person(n="COUNT(*)").agg(n=dp.sum("n", 0, 5))
    assert "each u is one row" in str(question.release(epsilon=1).explain())
    assert "default" not in str(question.preview(epsilon=1))
    assert str(question.plan(epsilon=1).statements[0]).count("aggregate by u") == 1


def test_joins_know_whether_a_person_is_one_row() -> None:
    rows = rows_of(ODD, "u", TYPES)
    one = per_person(rows, (), {"n": "COUNT(*)"})
    other = per_person(rows, (), {"m": "COUNT(*)"})
    assert join_private(one, other, "u", "left").single
    assert not join_private(one, per_person(rows, ("k",), {"m": "COUNT(*)"}), "u", "left").single
    assert not join_private(rows, one, "u", "left").single
    assert join_public(one, pa.table({"n": [1, 2], "name": ["a", "b"]}), "n", "left").single


def test_the_number_of_rows_is_declared_no_more() -> None:
    rows = rows_of(ODD, "u", TYPES)
    assert not per_person(rows, (), {}).number_is_declared
    assert not derived(rows, {"n": "COUNT(*) OVER ()"}).number_is_declared


def test_declared_facts_follow_values() -> None:
    made = table(ONE).declare(y=(0, 5), k=["a", "b", "c"])
    shown = made.per_person(low="MIN(y)", kinds="COUNT(DISTINCT k)", n="COUNT(*)", k="ANY_VALUE(k)").schema
    assert (shown["low"].low, shown["low"].high) == (0, 5)
    assert (shown["kinds"].low, shown["kinds"].high) == (0, 3)
    assert shown["n"].low is None
    assert shown["k"].values == ("a", "b", "c")
    assert made.derive(before="LAG(y) OVER (ORDER BY x)").schema["before"].high == 5


def test_examples_are_one_row_for_each_person() -> None:
    made = table([*person(ONE, 1), *person(ONE[:1], 2), *person(ONE, None)])
    inputs, _, persons = (
        made.per_person(n="COUNT(*)", s="SUM(y)").declare(s=(0, 9)).examples(["n", "s"]).read_examples()
    )
    assert persons == [2, 1, None]
    assert inputs[:2].tolist() == [[1.0, 0.0], [3.0, 3.0]]


def opened(home: Path, **more: Any) -> Table:
    folders = home / "visits"
    for day in ("2026-01-01", "2026-01-02"):
        (folders / f"day={day}").mkdir(parents=True)
        held = pa.table({"u": [1, 1, 2], "y": [int(day[-1]), 5, 6]})
        pq.write_table(held, folders / f"day={day}" / "part.parquet")
    return dp.open(folders, unit=dp.user("u"), budget=dp.Budget(10**6), ledger=home / "a", name="visits", **more)


def test_a_column_of_the_name_that_divides_does_not_divide(tmp_path: Path) -> None:
    """Otherwise a feature could choose who is charged."""
    with opened(tmp_path, parts=dp.parts("day", people="in one part")) as made:
        shown = made.per_person(day="'2026-01-01'", n="COUNT(*)")
        with pytest.raises(InvalidParameterError, match="divides"):
            shown.part("2026-01-01")
        assert shown.rows.charged == ()
        part = made.part("2026-01-01").per_person(n="COUNT(*)")
        assert part.rows.charged == ("2026-01-01",)
        assert read(part.rows, ["u", "n"]) == [(1, 2), (2, 1)]


def test_a_window_sees_the_rows_of_all_parts(tmp_path: Path) -> None:
    """Files of other parts are not left out before a window has looked at them."""
    with opened(tmp_path, parts="day") as made:
        later = made.derive(n="COUNT(*) OVER ()").part("2026-01-02")
        assert read(later.rows, ["u", "n"]) == [(1, 4), (1, 4), (2, 2)]
        earlier = made.part("2026-01-02").derive(n="COUNT(*) OVER ()")
        assert read(earlier.rows, ["u", "n"]) == [(1, 2), (1, 2), (2, 1)]


@pytest.mark.parametrize("name", ["n; DROP TABLE t", 'a"b', "argument", "rows of the person", "患者", "count", "place"])
def test_hostile_names(name: str) -> None:
    made = table(person(ONE, 1))
    assert read(made.per_person(**{name: "COUNT(*)", "other": "AVG(y)"}).rows, [name, "other"]) == [(3, 1.0)]
    windowed = made.derive(**{name: "1 + ROW_NUMBER() OVER (ORDER BY y)"}).derive(
        second=f'"{name.replace(chr(34), 2 * chr(34))}" + 1'
    )
    assert read(windowed.rows, ["second"]) == [(3,), (4,), (5,)]
    assert exact(windowed.agg(n=dp.count()), windowed.agg(n=dp.count()).plan(epsilon=1))


REFUSED: dict[str, tuple[type[DefocusError], str]] = {
    "n": (UnsupportedSqlError, "ANY_VALUE"),
    "MEDIAN(y)": (UnsupportedSqlError, "FIRST_VALUE"),
    "SUM(k)": (WrongKindError, "SUM needs numbers"),
    "COUNT(DISTINCT x)": (WrongKindError, "floats"),
    "SUM(DISTINCT y)": (UnsupportedSqlError, "DISTINCT"),
    "BOOL_OR(y)": (WrongKindError, "condition"),
    "MAX(SUM(y))": (UnsupportedSqlError, "aggregate"),
    "LAG(y) OVER (ORDER BY y)": (UnsupportedSqlError, "inside an aggregate"),
    "COUNT(*); DROP TABLE t": (InvalidParameterError, ""),
    "COUNT(nothing)": (DefocusError, "nothing"),
    "MAX(y) /* all */": (DefocusError, "comment"),
}
STRAY: dict[str, tuple[type[DefocusError], str]] = {
    "LAG(y) OVER ()": (UnsupportedSqlError, "ORDER BY"),
    "LAG(y, y) OVER (ORDER BY y)": (UnsupportedSqlError, "whole number"),
    "LAG(y, 1, 0) OVER (ORDER BY y)": (UnsupportedSqlError, "DEFAULT"),
    "LAG(y IGNORE NULLS) OVER (ORDER BY y)": (UnsupportedSqlError, "window function"),
    "LAST_VALUE(y) OVER (ORDER BY y)": (UnsupportedSqlError, "ROWS"),
    "RANK() OVER ()": (UnsupportedSqlError, "ORDER BY"),
    "NTILE(4) OVER (ORDER BY y)": (UnsupportedSqlError, "LAG, LEAD"),
    "SUM(y) OVER (ORDER BY y RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)": (UnsupportedSqlError, "frame"),
    "SUM(y) OVER (ORDER BY y ROWS BETWEEN y PRECEDING AND CURRENT ROW)": (UnsupportedSqlError, "frame"),
    "SUM(y) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)": (UnsupportedSqlError, "ORDER BY"),
    "COUNT(DISTINCT y) OVER ()": (UnsupportedSqlError, "DISTINCT"),
    "COUNT(*) OVER (PARTITION BY x)": (WrongKindError, "partition"),
    "SUM(LAG(y) OVER (ORDER BY y)) OVER ()": (UnsupportedSqlError, "window"),
    "LAG(y) OVER (ORDER BY 1)": (UnsupportedSqlError, "constant"),
    "LAG(y) OVER w": (UnsupportedSqlError, "ALIAS"),
    "ROW_NUMBER() OVER (ORDER BY nothing)": (DefocusError, "nothing"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_feature_is_refused(text: str) -> None:
    kind, words = REFUSED[text]
    with pytest.raises(kind, match=f"(?s){words}"):
        table(ONE).per_person(f=text if text != "n" else "y")


@pytest.mark.parametrize("text", STRAY)
def test_what_is_no_window_over_one_person_is_refused(text: str) -> None:
    kind, words = STRAY[text]
    with pytest.raises(kind, match=f"(?s){words}"):
        table(ONE).derive(f=text)


def test_a_release_is_no_feature() -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)COUNT\(\*\).*dp.count"):
        table(ONE).per_person(n=dp.count())  # type: ignore[arg-type]


def test_names_are_taken_once() -> None:
    with pytest.raises(InvalidParameterError, match="cannot be called"):
        table(ONE).per_person(u="COUNT(*)")
    with pytest.raises(InvalidParameterError, match="cannot be called"):
        table(ONE).derive(K="COUNT(*) OVER ()")


def test_where_rows_are_protected_nobody_has_features() -> None:
    made = table(ONE, by_rows=True)
    with pytest.raises(UnsupportedSqlError, match=r"(?s)no column names the person.*dp.user"):
        made.per_person(n="COUNT(*)")
    with pytest.raises(UnsupportedSqlError, match=r"(?s)no column names the person.*dp.user"):
        made.derive(n="COUNT(*) OVER ()")
