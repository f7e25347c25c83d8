"""Weights in the engine hold the bound of every person exactly."""

import hashlib
from collections import Counter
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.tables.worlds import engine, rows_of

from defocus.engines.duckdb import DuckDbEngine
from defocus.noise import system
from defocus.tables.contribution import Bound
from defocus.tables.keys import Keys, public_keys
from defocus.tables.weights import Groups, RowSampler, first_of_range, numbered

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


@pytest.mark.slow
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


@pytest.mark.parametrize("bound", [Bound(rows=2), Bound(rows=3, per_group=1), None])
def test_keys_without_a_gap_weigh_the_same_without_a_join(bound: Bound | None) -> None:
    held = [(1, 5), (1, 5), (1, 6), (2, 7), (2, 4), (2, 8), (3, None), (3, 2**63 - 1), (3, -(2**63)), (3, 5)]
    made = rows_of([{"u": u, "k": "a", "y": y, "x": 0.0, "z": 0.0, "s": None} for u, y in held], "u")
    keys = public_keys([made.schema["y"]], [5, 6, 7])

    def weights(found: Groups) -> list[tuple[int, int]]:
        table = engine().run(found.weighted({}, 1 << 24, RowSampler("k")))
        return sorted(zip(found.places(table).tolist(), table["w"].to_pylist(), strict=True))

    called = numbered(made, ("y",), keys, bound)
    with patch("defocus.tables.weights.first_of_range", lambda _: None):
        joined = numbered(made, ("y",), keys, bound)
    assert (called.first, joined.first) == (5, None)
    assert weights(called) == weights(joined)


@pytest.mark.parametrize(
    ("values", "first"),
    [([3], 3), ([-1, 0, 1], -1), ([1, 2, 4], None), ([2, 1], None), ([1, None], None), (["a"], None), ([], None)],
)
def test_a_range_of_keys_begins_somewhere(values: list[Any], first: int | None) -> None:
    assert first_of_range(Keys(pa.table({"k": pa.array(values, None if values else pa.int64())}))) == first


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


def run(select: exp.Expression) -> list[dict[str, Any]]:
    return list(engine().run(select).to_pylist())


def values(rows: list[tuple[int, str]]) -> exp.Select:
    lines = [exp.tuple_(exp.Literal.number(u), exp.Literal.string(v)) for u, v in rows]
    made = exp.Values(
        expressions=lines,
        alias=exp.TableAlias(
            this=exp.to_identifier("v", quoted=True),
            columns=[exp.to_identifier(name, quoted=True) for name in ("unit", "g")],
        ),
    )
    return exp.select(exp.column("unit", quoted=True), exp.column("g", quoted=True)).from_(made)


ROWS = [(u, f"g{i}") for u in (1, 2) for i in range(5)]


def test_at_most_so_many_of_each_person_are_drawn() -> None:
    drawn = run(RowSampler("key").first(values(ROWS), 2, ("g",), choice="rows"))
    assert Counter(row["unit"] for row in drawn) == {1: 2, 2: 2}


def test_rows_are_drawn_by_what_they_hold_so_neither_other_people_nor_the_order_matter() -> None:
    for mine in (ROWS[:5], [*ROWS[:3], *ROWS[:3]]):
        alone = run(RowSampler("key").first(values(mine), 3, ("g",), choice="rows"))
        among = run(RowSampler("key").first(values([(9, "g1"), *reversed(mine), *ROWS[5:]]), 3, ("g",), choice="rows"))
        assert Counter(row["g"] for row in alone) == Counter(row["g"] for row in among if row["unit"] == 1)


def test_the_same_key_draws_the_same_rows_everywhere() -> None:
    """Golden: what SHA-256 says of the key, the choice, the person and the number in the order of what rows hold."""
    drawn = run(RowSampler("key").of("sums").first(values(ROWS[:5]), 2, ("g",), choice="rows"))
    digests = [hashlib.sha256(f"key#4:sums#4:rowsv1:1v1:{i}".encode()).hexdigest() for i in range(1, 6)]
    first = sorted(range(5), key=digests.__getitem__)[:2]
    assert {row["g"] for row in drawn} == {f"g{i}" for i in first}


def test_groups_are_the_same_in_every_statement_and_rows_are_not() -> None:
    chance = RowSampler("key")
    pairs = values(ROWS)
    assert {chance.of(name).pairs(pairs, 2).sql("duckdb") for name in ("sums", "column a")} == {
        chance.pairs(pairs, 2).sql("duckdb")
    }
    assert len({chance.of(name).first(pairs, 2, ("g",), choice="rows").sql() for name in ("sums", "column a")}) == 2


def test_rows_that_hold_the_same_are_told_apart() -> None:
    drawn = run(RowSampler("key").first(values([(1, "g0")] * 4), 3, ("g",), choice="rows"))
    assert Counter(row["g"] for row in drawn) == {"g0": 3}


def test_only_some_rows_of_a_person_are_drawn_within_each_group() -> None:
    rows = [(1, "g0")] * 3 + [(1, "g1")] * 2 + [(2, "g0")]
    drawn = run(RowSampler("key").first(values(rows), 1, ("g",), within=("unit", "g"), choice="rows of a group"))
    assert Counter((row["unit"], row["g"]) for row in drawn) == {(1, "g0"): 1, (1, "g1"): 1, (2, "g0"): 1}


def test_every_row_is_drawn_equally_often() -> None:
    drawn = Counter(
        row["g"]
        for i in range(100)
        for row in run(RowSampler(f"key {i}").first(values(ROWS[:5]), 1, ("g",), choice="rows"))
    )
    assert sum(drawn.values()) == 100
    assert sum((n - 20) ** 2 / 20 for n in drawn.values()) < 18.5  # chi-square, four degrees, one in a thousand


def test_keys_are_fresh_and_not_shown() -> None:
    one, other = RowSampler.drawn(system()), RowSampler.drawn(system())
    assert one.key != other.key
    assert len(one.key) == 32
    assert one.key not in repr(one)


def test_numbers_in_two_choices_or_statements_are_two_lotteries() -> None:
    number = exp.column("no", quoted=True)
    texts = {
        chance.rank([number], choice).sql("duckdb")
        for chance in (RowSampler("k"), RowSampler("k").of("a"), RowSampler("k").of("b"))
        for choice in ("rows", "rows of a group", "")
    }
    assert len(texts) == 9
