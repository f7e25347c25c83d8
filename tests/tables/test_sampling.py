"""Who is drawn is decided by a secret key, fairly, and by nobody else's rows."""

import hashlib
from collections import Counter
from typing import Any

from sqlglot import exp
from tests.tables.worlds import engine

from defocus.noise import system
from defocus.tables.sampling import RowSampler


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
