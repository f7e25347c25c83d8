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
from defocus.noise.testing import seeded
from defocus.tables import Table
from defocus.tables.found_bound import EDGES, FoundBound, Tail, best_bound

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
    assert told.effect is Effect.TOLD
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
