"""What may lie beyond a bound that was found, and intervals that hold it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import defocus as dp
from defocus.answers import Effect
from defocus.errors import InvalidParameterError
from defocus.noise.testing import seeded
from defocus.tables import Table
from defocus.tables.found_bound import EDGES, FoundBound, Tail, best_bound, hidden_rows

Ints = npt.NDArray[np.int64]


def _found(rows: Ints, random: np.random.Generator, scale: float = 4.0) -> FoundBound:
    """The bound for a count of all rows at an epsilon of 1: a quarter finds it, and the rest is noise."""
    exact = np.bincount(np.minimum(np.searchsorted(EDGES, rows), len(EDGES) - 1), minlength=len(EDGES))
    noisy = exact + np.round(random.laplace(0, scale, len(EDGES))).astype(np.int64)
    noise = math.sqrt(2) * scale / 3
    return best_bound(noisy, scale=scale, groups=1, noise=noise, counts=True, quotients=False)


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("Pareto 1.5", lambda random: 1 + random.pareto(1.5, 4000)),
        ("Pareto 3", lambda random: 1 + random.pareto(3, 4000)),
        ("Pareto 1.1 to 500", lambda random: np.minimum(1 + random.pareto(1.1, 4000), 500)),
        ("log-normal", lambda random: random.lognormal(1.6, 2, 4000)),
    ],
)
def test_intervals_of_counts_hold_on_heavy_tails_and_would_not_for_the_noise_alone(
    name: str, drawn: Callable[[np.random.Generator], Any]
) -> None:
    random = np.random.default_rng(3)
    held, bare = 0, 0
    for _ in range(100):
        rows = np.maximum(drawn(random), 1).astype(np.int64)
        found = _found(rows, random)
        scale = found.rows * 4 / 3
        shown, half = np.minimum(rows, found.rows).sum() + random.laplace(0, scale), math.log(20) * scale
        more = found.tail.beyond(found.rows, np.ones(1))[1][0]
        held += shown - half <= rows.sum() <= shown + half + more
        bare += abs(shown - rows.sum()) <= half
    assert held >= 90, name
    assert bare < held, name


def test_people_with_equally_many_rows_have_hardly_anything_beyond_the_bound() -> None:
    found = _found(np.full(4000, 7), np.random.default_rng(1))
    assert 7 <= found.rows <= 16
    assert found.missing < 0.005


def test_a_smaller_group_misses_fewer_rows() -> None:
    rows = (1 + np.random.default_rng(4).pareto(1.5, 4000)).astype(np.int64)
    found = _found(rows, np.random.default_rng(5))
    whole, part = (found.tail.beyond(found.rows, shares)[1][0] for shares in (np.ones(1), np.full(2, 1 / 12)))
    assert 0 < part < whole / 4


def test_the_tail_is_a_function_of_the_noisy_histogram() -> None:
    noisy = np.random.default_rng(6).integers(-9, 900, len(EDGES))
    assert (Tail.of(noisy, 4).people == Tail.of(noisy, 4).people).all()


def test_nobody_is_in_more_groups_than_there_are() -> None:
    noisy = np.random.default_rng(6).integers(0, 9, len(EDGES))
    bounded, endless = (Tail.of(noisy, 9.0, most=most).missing(1.0, [12])[0] for most in (12, None))
    assert bounded == 0 < endless


@pytest.fixture
def heavy(tmp_path: Path) -> Table:
    rows = (1 + np.random.default_rng(7).pareto(1.3, 1500)).astype(np.int64)
    who = np.repeat(np.arange(1500), rows)
    data = pa.table({"who": who, "v": (who % 10) / 10, "g": who % 3})
    unit, budget = dp.user("who"), dp.Budget(1000)
    return dp.open(data, unit=unit, budget=budget, ledger=tmp_path / "l", columns={"v": (0, 1)}, name="heavy")


def test_an_answer_widens_the_side_on_which_rows_may_be_missing_and_says_so(heavy: Table) -> None:
    answer = heavy.agg(n=dp.count(), s=dp.sum("v"), m=dp.mean("v")).release(epsilon=1, bits=seeded(1))
    for name in ("n", "s"):
        column = answer[name]
        assert column.high[0] - column.values[0] > 1.5 * (column.values[0] - column.low[0])
    assert 1.96 * answer["m"].errors[0] < answer["m"].half[0]
    (told,) = [rule for rule in answer.rules if "found privately" in rule]
    assert told.effect is Effect.OPEN
    assert "intervals hold what lies beyond it, up to " in told


def test_what_is_computed_from_such_counts_keeps_the_wider_interval(heavy: Table) -> None:
    answer = heavy.group_by("g", keys=[0, 1, 2]).agg(n=dp.count()).release(epsilon=1, bits=seeded(2))
    more = answer.derive(twice="2 * n + 1")["twice"]
    assert more.high - more.values == pytest.approx(2 * (answer["n"].high - answer["n"].values))


def test_what_is_declared_about_the_bound_counts_instead(heavy: Table) -> None:
    asked = heavy.agg(n=dp.count())
    plain, declared = (each.release(epsilon=1, bits=seeded(3))["n"] for each in (asked, asked.covering(beyond=0.01)))
    assert declared.values[0] == plain.values[0]
    assert declared.high[0] < plain.high[0]


def test_people_who_are_taken_for_noise_are_told_as_people_who_may_be_hidden() -> None:
    people = np.zeros(len(EDGES), np.int64)
    people[:3] = 2000
    how: dict[str, Any] = {"scale": 2.5, "groups": 1, "noise": 2.0, "counts": True, "quotients": False}
    assert best_bound(people, **how).hidden == 8
    people[EDGES.index(512)] = 20  # too few to be told from noise
    found = best_bound(people, **how)
    assert found.rows < 512
    assert found.hidden == 28


def test_rows_beyond_any_bound_are_held_if_nobody_has_more_than_is_declared() -> None:
    random, exact = np.random.default_rng(8), np.zeros(len(EDGES), np.int64)
    exact[EDGES.index(2)], exact[EDGES.index(512)] = 3000, 20
    held = 0
    for _ in range(200):
        noisy = exact + np.round(random.laplace(0, 2.5, len(EDGES))).astype(np.int64)
        hidden = hidden_rows(noisy, 2.5, [3, 8, 64, 256], 500)
        held += bool((hidden >= 20 * (500 - np.array([3, 8, 64, 256]))).all())
    assert 190 <= held < 200  # all four together, in 97.5 % or more of the draws, and not in all
    assert hidden_rows(exact, 2.5, [499, 500, 600], 500).tolist()[1:] == [0, 0]


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A hundred of 8 000 rows are of each of 28 people, who hide in the noise."""
    rows = np.where(np.arange(4000) < 28, 100, 2)
    who = np.repeat(np.arange(4000), rows)
    data = pa.table({"who": who, "v": np.where(who < 28, 9.0, 1.0), "g": who % 4})
    place, facts = tmp_path_factory.mktemp("rare") / "l", {"v": (0, 10)}
    return dp.open(data, unit=dp.user("who"), budget=dp.Budget(10**5), ledger=place, columns=facts, name="rare")


ASKED: dict[str, Any] = {"n": dp.count(), "s": dp.sum("v"), "m": dp.mean("v"), "q": dp.variance("v")}
ROWS = 3972 * 2 + 28 * 100
VALUES = 3972 * 2 * 1 + 28 * 100 * 9
TRUTHS = {"n": ROWS, "s": VALUES, "m": VALUES / ROWS}


def test_an_end_is_open_where_people_with_many_rows_may_hide_and_says_so_in_the_same_line(rare: Table) -> None:
    missed, answer = 0, rare.agg(**ASKED).release(epsilon=0.5)
    for seed in range(10):
        answer = rare.agg(**ASKED).release(epsilon=0.5, bits=seeded(seed))
        missed += any(not answer[name].low[0] <= truth <= answer[name].high[0] for name, truth in TRUTHS.items())
        for name, truth in TRUTHS.items():
            low, high = answer.interval(column=name)
            assert low <= truth <= high
    assert missed  # the ends that are shown do not hold it
    assert [answer[name].opened for name in ASKED] == [["above"], ["above"], ["both"], ["both"]]
    line = str(answer).splitlines()[2]
    assert line.count(" or more") == 2
    assert line.count(" or beyond") == 2
    assert answer.to_arrow()["m_open"].to_pylist() == ["both"]
    assert next(iter(answer))["n_open"] == "above"
    assert "n_open" in answer.to_csv()
    assert "\nends are open: one who counts with at most " in str(answer)


def test_ends_are_closed_and_hold_where_the_largest_number_of_rows_is_declared(rare: Table) -> None:
    held, others = dict.fromkeys(TRUTHS, 0), set()
    for seed in range(20):
        answer = rare.bound(most=100).agg(**ASKED).release(epsilon=0.5, bits=seeded(seed))
        for name, truth in TRUTHS.items():
            held[name] += answer[name].low[0] <= truth <= answer[name].high[0]
            assert answer[name].opened == [None]
        others |= set(answer["q"].opened)
    assert min(held.values()) >= 19
    assert "both" in others  # what hidden rows do to other statistics is not known


def test_nothing_is_open_where_as_many_rows_count_as_anybody_has(rare: Table) -> None:
    for asked in (rare.bound(rows=100, most=100), rare.bound(most=1)):
        answer = asked.agg(**ASKED).release(epsilon=1, bits=seeded(1))
        assert all(each.limits[0] > each.limits[1] for each in answer.columns)
        assert not [rule for rule in answer.rules if rule.effect in {Effect.OPEN, Effect.BOUND} and "rows" in rule]


def test_what_is_computed_from_an_open_column_is_open(rare: Table) -> None:
    answer = rare.group_by("g", keys=range(4)).agg(n=dp.count()).release(epsilon=1, bits=seeded(2))
    more = answer.derive(less="1 - n", part="n / SUM(n) OVER ()", place="RANK() OVER (ORDER BY n)")
    assert [more[name].opened[0] for name in ("n", "less", "part", "place")] == ["above", "below", "both", "both"]


def test_open_ends_are_recalled_and_the_declared_most_belongs_to_the_request(rare: Table) -> None:
    asked = rare.agg(n=dp.count())
    first, again = (asked.release(epsilon=1, request="open") for _ in range(2))
    assert again["n"].limits == first["n"].limits == (math.inf, math.inf)
    with pytest.raises(InvalidParameterError):
        rare.bound(most=7).agg(n=dp.count()).release(epsilon=1, request="open")


def test_what_nobody_exceeds_is_not_known_of_rows_that_met_those_of_another_table(tmp_path: Path) -> None:
    data = pa.table({"who": [1, 1, 2], "v": [1, 2, 3]})
    other = pa.table({"who": [1, 1, 2], "w": [1, 2, 3]})
    terms: dict[str, Any] = {"unit": dp.user("who"), "budget": dp.Budget(9), "ledger": tmp_path / "l", "name": "t"}
    with dp.open(data, private={"other": other}, bound=dp.tables.Bound.of(most=2), **terms) as table:
        public = table.join(pa.table({"v": [1, 2, 3], "x": [1, 2, 3]}), on="v")
        assert (
            table.where("v > 1").agg(n=dp.count()).bound == public.agg(n=dp.count()).bound == dp.tables.Bound.of(most=2)
        )
        both = table.join("other", on="who")
        assert both.agg(n=dp.count()).bound == dp.tables.Bound.of()
        assert both.bound(most=4).agg(n=dp.count()).bound == dp.tables.Bound.of(most=4)
        assert table.sql_query("SELECT COUNT(*) FROM t").query.bound == dp.tables.Bound.of(most=2)
        joined = table.sql_query("SELECT COUNT(*) FROM t JOIN other USING (who)")
        assert joined.query.bound == dp.tables.Bound.of()


def test_ends_of_what_is_measured_by_itself_are_open_as_well_and_a_rank_stands_in_the_line(rare: Table) -> None:
    asked: dict[str, Any] = {
        "q": dp.median("v", intervals=True),
        "h": dp.histogram("v", [0, 5, 10]),
        "d": dp.count_distinct("g"),
        "r": dp.median("v"),
    }
    answer = rare.agg(**asked).release(epsilon=4, bits=seeded(3))
    assert answer["q"].limits == (0.0, 10.0)
    assert [answer[name].opened[0] for name in ("h_0_to_5", "d", "r")] == ["above", "above", "both"]
    assert "rows in rank" in str(answer).splitlines()[2]
    assert "r has no interval in values, unless intervals=True is asked for" in str(answer)
    said = "SELECT MEDIAN(v) AS r FROM rare"
    known = rare.sql(said, epsilon=1, intervals=True, bits=seeded(1))["r"]
    assert known.rank is None
    assert known.low[0] <= known.high[0]
    assert rare.sql(said, epsilon=1, bits=seeded(1), request="rank")["r"].rank is not None
    assert rare.sql(said, epsilon=1, request="rank")["r"].rank is not None  # as the ledger keeps it


def test_people_who_count_in_fewer_groups_than_there_are_leave_ends_open(tmp_path: Path) -> None:
    who = np.repeat(np.arange(2000), 2)
    data = pa.table({"who": who, "g": (who + np.arange(len(who)) % 2) % 12})
    terms: dict[str, Any] = {"unit": dp.user("who"), "budget": dp.Budget(9), "ledger": tmp_path / "l", "name": "t"}
    with dp.open(data, **terms) as table:
        answer = table.group_by("g", keys=range(12)).agg(p=dp.count_units()).release(epsilon=1, bits=seeded(1))
        assert answer["p"].opened == ["above"] * 12
