"""Weights in the engine hold the bound of every person exactly."""

from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.tables.worlds import engine, rows_of

from defocus.engines.duckdb import DuckDbEngine
from defocus.tables.contribution import Bound
from defocus.tables.keys import public_keys
from defocus.tables.sampling import RowSampler
from defocus.tables.weights import Groups, numbered

KEYS = ["a", "b", "c"]


def groups(rows: list[tuple[int, str]], bound: Bound) -> Groups:
    made = rows_of([{"u": u, "k": k, "y": u, "x": 0.0, "z": 0.0, "s": None} for u, k in rows], "u")
    return numbered(made, ("k",), public_keys([made.schema["k"]], KEYS), bound)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([*KEYS, "elsewhere"])), max_size=25),
    st.integers(1, 9),
    st.none() | st.integers(1, 4),
    st.sampled_from([1, 10, 1 << 24]),
    st.sampled_from(["weights", "sampling"]),
)
def test_no_person_weighs_more_than_the_bound(
    rows: list[tuple[int, str]], most: int, per_group: int | None, grid: int, by: str
) -> None:
    bound = Bound(rows=most, per_group=per_group, by=by)
    made = groups(rows, bound)
    found = engine().run(made.weighted({"y": made.rows.values("y").sql}, grid, RowSampler("k"))).to_pylist()
    whole, parts = Counter[int](), Counter[tuple[int, int]]()
    for row in found:
        assert 0 <= row["w"] <= grid
        whole[row["y"]] += row["w"]
        parts[row["y"], row["g"]] += row["w"]
    assert all(weight <= grid * bound.total for weight in whole.values())
    assert all(weight <= grid * (per_group or most) for weight in parts.values())
    people = engine().run(made.people(grid, RowSampler("k"))).to_pylist()
    assert sum(row["w"] for row in people) <= grid * min(bound.people_in, 3) * 3


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([*KEYS, "elsewhere"])), max_size=25),
    st.integers(1, 9),
    st.none() | st.integers(1, 4),
    st.none() | st.integers(1, 2),
)
@example([(1, "a")] * 5 + [(1, "b")] * 5, 2, 1, None)
@example([(1, "a"), (1, "b"), (1, "c")], 2, None, 1)
def test_rows_weigh_the_same_counted_beside_them_and_joined(
    rows: list[tuple[int, str]], most: int, per_group: int | None, in_groups: int | None
) -> None:
    made = groups(rows, Bound(rows=most, groups=in_groups, per_group=per_group))
    statements = []
    for once in (False, True):
        with patch.object(DuckDbEngine, "reads_once", once):
            statements.append(
                (made.weighted({"y": made.rows.values("y").sql}, 64, RowSampler("k")), made.people(64, RowSampler("k")))
            )
    for joined, beside in zip(*statements, strict=True):
        totals = [Counter((row["g"], row["w"]) for row in engine().run(one).to_pylist()) for one in (joined, beside)]
        assert totals[0] == totals[1]


def test_those_within_the_bound_weigh_as_much_as_they_have() -> None:
    made = groups([(1, "a"), (1, "b"), (2, "c")], Bound(rows=2))
    assert [row["w"] for row in engine().run(made.weighted({}, 64, RowSampler("k"))).to_pylist()] == [64, 64, 64]


@pytest.mark.parametrize("name", ["unit", "g", "w", "v0", "k0", "n", "t", "r", "c", "b", "s", "rank", "no"])
def test_a_table_may_use_the_names_that_statements_use(name: str) -> None:
    plain = rows_of([{"u": 1, "k": "a", "y": 5, "x": 0.5, "z": 0.0, "s": None}] * 3, "u")
    made = plain if name in plain.schema else plain.derive({name: "y + 1", "key": "k"})
    by = "key" if "key" in made.schema else "k"
    made_groups = numbered(made, (by,), public_keys([made.schema[by]], KEYS), Bound(rows=2, per_group=2))
    value = made.values("y" if name in plain.schema else name).sql
    assert [row["w"] for row in engine().run(made_groups.weighted({"v0": value}, 60, RowSampler("k"))).to_pylist()] == [
        40
    ] * 3
