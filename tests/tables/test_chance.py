"""Who is drawn is decided by a secret key, fairly, and by nobody else's rows."""

from collections import Counter
from typing import Any

from sqlglot import exp
from tests.tables.worlds import engine

from defocus.noise import system
from defocus.tables.chance import Chance


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
    for choice in (None, "rows"):
        drawn = run(Chance("key").first(values(ROWS), 2, ("g",), choice=choice))
        assert Counter(row["unit"] for row in drawn) == {1: 2, 2: 2}


def test_distinct_rows_are_drawn_by_what_they_hold_so_others_do_not_matter() -> None:
    alone = run(Chance("key").first(values(ROWS[:5]), 2, ("g",)))
    among = run(Chance("key").first(values([(9, "g1"), *reversed(ROWS)]), 2, ("g",)))
    assert {row["g"] for row in alone} == {row["g"] for row in among if row["unit"] == 1}


def test_every_row_is_drawn_equally_often() -> None:
    for choice in (None, "rows"):
        drawn = Counter(
            row["g"]
            for i in range(100)
            for row in run(Chance(f"key {i}").first(values(ROWS[:5]), 1, ("g",), choice=choice))
        )
        assert sum(drawn.values()) == 100
        assert sum((n - 20) ** 2 / 20 for n in drawn.values()) < 18.5  # chi-square, four degrees, one in a thousand


def test_keys_are_fresh_and_not_shown() -> None:
    one, other = Chance.drawn(system()), Chance.drawn(system())
    assert one.key != other.key
    assert len(one.key) == 32
    assert one.key not in repr(one)


def test_numbers_in_two_choices_or_statements_are_two_lotteries() -> None:
    number = exp.column("no", quoted=True)
    texts = {
        chance.rank([number], choice).sql("duckdb")
        for chance in (Chance("k"), Chance("k").of("a"), Chance("k").of("b"))
        for choice in ("rows", "rows of a group", None)
    }
    assert len(texts) == 7
