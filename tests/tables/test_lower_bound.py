"""Means with a lower bound: what one person moves, and how exact the means are."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.worlds import rows_of

import defocus as dp
from defocus.answers import AnswerColumn
from defocus.answers.noise_sources import Noise
from defocus.engines.duckdb import DuckDbEngine
from defocus.noise.testing import seeded
from defocus.tables.contribution import Bound
from defocus.tables.found_bound import EDGES, best_bound
from defocus.tables.keys import EVERYTHING, public_keys
from defocus.tables.lower_bound import Ladder, combined, lower_bound
from defocus.tables.measurement import Measuring
from defocus.tables.noise import CellNoise
from defocus.tables.splits import PRESENCE, Argument, Split
from defocus.tables.weights import RowSampler, numbered

BOUNDS = st.tuples(st.integers(1, 600), st.integers(1, 600)).filter(lambda both: both[0] > both[1])


@given(st.integers(1 << 12, 1 << 40), BOUNDS, st.integers(1, 5000))
def test_what_a_person_weighs_with_both_bounds_together_is_no_more_than_a_person_may(
    person: int, bounds: tuple[int, int], rows: int
) -> None:
    weights = Ladder.of(person, bounds).weights(rows)
    assert min(weights) >= 0
    assert rows * sum(weights) <= person


MEAN = Split((Argument("y", 0, 9),), (1,))
KEYS = ["a", "b", "c"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(KEYS), st.integers(-3, 12)), min_size=1, max_size=30),
    st.sampled_from([(3, 1), (8, 2), (9, 4)]),
    st.sampled_from([(), ("k",)]),
    st.booleans(),
)
def test_one_person_moves_the_sums_with_both_bounds_together_by_no_more_than_a_person_weighs(
    rows: list[tuple[int, str, int]], bounds: tuple[int, int], by: tuple[str, ...], once: bool
) -> None:
    person = 1000
    ladder = Ladder.of(person, bounds)

    def sums(kept: list[tuple[int, str, int]]) -> np.ndarray:
        made = rows_of([{"u": u, "k": k, "y": y, "x": 0.0, "z": 0.0, "s": None} for u, k, y in kept], "u")
        keys = public_keys([made.schema["k"]], KEYS) if by else EVERYTHING
        groups = numbered(made, by, keys, Bound(rows=bounds[0]))
        measuring = Measuring(groups, ladder.grids[0], RowSampler("k"))
        with patch.object(DuckDbEngine, "reads_once", once):
            cells = measuring.laddered([MEAN, PRESENCE], [MEAN], ladder)
        assert [len(each) for each in cells] == [2, 1]
        return np.concatenate([each.ravel() for each in cells[0]])

    whole = sums(rows)
    assert (whole >= 0).all()
    for left in {u for u, _, _ in rows}:
        assert np.abs(whole - sums([row for row in rows if row[0] != left])).sum() <= person


ROWS = st.tuples(st.integers(0, 3), st.integers(0, 2), st.none() | st.floats(-1, 2), st.floats(0, 1))


@settings(max_examples=15, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=40), st.sampled_from([None, 1e-6]))
def test_one_person_moves_what_a_release_adds_noise_to_by_no_more_than_the_noise_is_for(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, float | None, float]], delta: float | None
) -> None:
    added: dict[int, tuple[CellNoise, list[np.ndarray]]] = {}
    add, best = CellNoise.add, best_bound

    def watched(self: CellNoise, cells: np.ndarray, bits: Any) -> np.ndarray:
        added.setdefault(id(self), (self, []))[1].append(cells.copy())
        return add(self, cells, bits)

    def released(kept: list[tuple[int, int, float | None, float]]) -> list[tuple[CellNoise, np.ndarray]]:
        added.clear()
        who, g, v, x = ([row[i] for row in kept] for i in range(4))
        data = pa.table({"who": pa.array(who, pa.int64()), "g": g, "v": pa.array(v, pa.float64()), "x": x})
        folder, columns = tmp_path_factory.mktemp("ledger"), {"v": (0, 1), "x": (0, 1)}
        unit, budget = dp.user("who"), dp.Budget(1000, 1e-3)
        with dp.open(data, unit=unit, budget=budget, columns=columns, ledger=folder / "l", name="t") as table:
            asked = table.group_by("g", keys=[0, 1, 2])
            aggregates = {"n": dp.count(), "m": dp.mean("v"), "r": dp.ratio("v", "x"), "d": dp.variance("x")}
            asked.agg(**aggregates).release(epsilon=1, delta=delta, bits=seeded(1))
        return [(noise, np.concatenate([cells.ravel() for cells in calls])) for noise, calls in added.values()]

    def found(*_: Any, **how: Any) -> Any:  # whatever the histogram shows, since it is noisy itself
        return replace(best(np.zeros(len(EDGES), np.int64), **how), rows=8)

    with (
        patch.object(CellNoise, "add", watched),
        patch("defocus.tables.execution.best_bound", found),
        patch("defocus.tables.execution.lower_bound", lambda *_: 2),
    ):
        whole = released(rows)
        less = released([row for row in rows if row[0] != rows[0][0]] or [(9, 9, 0.0, 0.0)])
    assert len(whole) == len(less) == 4  # the histogram and three divisions of rows
    for (noise, cells), (_, others) in zip(whole, less, strict=True):
        assert noise.sensitivity is not None
        assert 0 <= np.abs(cells - others).sum() <= noise.sensitivity.l1
        assert np.square((cells - others).astype(float)).sum() <= float(noise.sensitivity.l2) ** 2 * (1 + 1e-9)


def _column(values: np.ndarray, error: float) -> AnswerColumn:
    errors = np.full(len(values), error)
    return AnswerColumn("m", values, errors, values - 2 * error, values + 2 * error, integral=False, how="")


def _error(groups: int, off: float, differing: float) -> float:
    """Of means whose lower bound is so far off, in units of the noise of the first, of ten times that of the lower."""
    random = np.random.default_rng(5)
    squares = []
    for _ in range(200):
        truth = random.normal(0, 1, groups)
        first = truth + random.laplace(0, np.sqrt(0.5), groups)
        lower = truth + off + random.normal(0, differing, groups) + random.laplace(0, np.sqrt(0.5) / 10, groups)
        column = combined(_column(first, 1.0), _column(lower, 0.1), (-np.inf, np.inf))
        assert (column.low <= np.minimum(first - 2, column.values)).all()
        assert (column.high >= np.maximum(first + 2, column.values)).all()
        squares.append(np.square(column.values - truth).mean())
    return float(np.sqrt(np.mean(squares)))


@pytest.mark.parametrize("groups", [1, 12, 100])
def test_means_are_nearly_as_exact_as_the_better_of_two(groups: int) -> None:
    assert _error(groups, 0, 0) < (0.9 if groups == 1 else 0.4)
    assert _error(groups, 9, 3) < 1.2
    assert _error(groups, 2, 0) < (1.4 if groups == 1 else 0.6)


def test_quotients_stay_in_the_range_in_which_they_lie_whatever_the_data() -> None:
    first, lower = np.full(40, 0.9), np.linspace(0.5, 1.0, 40)  # all groups together are moved up
    column = combined(_column(first, 0.1), _column(lower, 0.001), (0.0, 1.0))
    assert column.values.max() == 1.0
    assert (column.low <= column.values).all()
    assert (column.values <= column.high).all()


@pytest.mark.parametrize(("off", "kept"), [(0.0, 0.0), (50.0, 1.0)])
def test_quotients_of_the_same_sums_are_not_taken_to_cancel(off: float, kept: float) -> None:
    random = np.random.default_rng(1)
    values, apart = np.full(30, 3.0), off * np.where(random.random(30) < 0.5, -1, 1)
    cells = np.tile([[0.6, 0.8]], (30, 1))
    noises = [Noise({source: size * cells}, 1.96, linear=False) for source, size in (("sums", 1.0), ("lower", 0.1))]
    first, lower = _column(values, 1.0), _column(values + apart, 0.1)
    one, other = (
        combined(replace(first, name=name, noise=noises[0]), replace(lower, noise=noises[1]), (-np.inf, np.inf)).noise
        for name in ("one", "other")
    )
    assert isinstance(one, Noise)
    assert isinstance(other, Noise)
    assert one.errors(30) == pytest.approx(1.0)
    together = sum(
        (one.factors[source] * other.factors[source]).sum(axis=1) for source in {*one.factors} & {*other.factors}
    )
    assert together == pytest.approx(kept, abs=0.05)


def test_means_and_deviations_beside_a_lower_bound_stay_in_range_and_differ_by_no_less_than_their_noise(
    tmp_path: Path,
) -> None:
    random = np.random.default_rng(3)
    rows = np.where(random.random(20_000) < 0.02, 200, 4)
    who = np.repeat(np.arange(len(rows)), rows)
    data = pa.table({"who": who, "g": random.integers(0, 20, len(who)), "v": np.where(rows == 200, 0.0, 1.0)[who]})
    unit, budget, columns = dp.user("who"), dp.Budget(1000), {"v": (0, 1)}
    with dp.open(data, unit=unit, budget=budget, columns=columns, ledger=tmp_path / "l", name="visits") as table:
        asked = table.group_by("g", keys=list(range(20))).agg(n=dp.count(), m=dp.mean("v"), s=dp.std("v"))
        answer = asked.release(epsilon=1, bits=seeded(0))
    assert any("also count at most" in rule for rule in answer.rules)
    assert ((answer["s"].values >= 0) & (answer["s"].values <= 0.5)).all()
    apart = answer.derive(y="m - s")["y"]
    assert (apart.errors > 0.9 * answer["m"].errors).all()


def _found(rows: np.ndarray) -> int | None:
    exact = np.bincount(np.minimum(np.searchsorted(EDGES, rows), len(EDGES) - 1), minlength=len(EDGES))
    found = best_bound(exact, scale=5, groups=100, noise=1.8, counts=True, quotients=True)
    return lower_bound(found, 100, 1.8)


def test_a_lower_bound_is_there_where_few_have_many_rows_and_not_where_all_have_as_many() -> None:
    random = np.random.default_rng(2)
    many = np.maximum(1, random.lognormal(1.4, 1.35, 100_000)).astype(np.int64)
    assert (_found(many) or 99) < 50
    assert _found(np.full(100_000, 7)) is None


def test_a_mean_by_group_is_more_exact_than_with_the_bound_of_its_count(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rows = np.where(random.random(20_000) < 0.02, 200, 4)
    who = np.repeat(np.arange(len(rows)), rows)
    groups = random.integers(0, 20, len(who))
    data = pa.table({"who": who, "g": groups, "v": random.random(len(who))})
    unit, budget, columns = dp.user("who"), dp.Budget(1000), {"v": (0, 1)}
    with dp.open(data, unit=unit, budget=budget, columns=columns, ledger=tmp_path / "l", name="visits") as table:
        asked = table.group_by("g", keys=list(range(20))).agg(n=dp.count(), m=dp.mean("v"))
        answer = asked.release(epsilon=1, bits=seeded(4))
    (told,) = [rule for rule in answer.rules if "found privately" in rule]
    assert "means and other quotients also count at most" in told
    truth = np.bincount(groups, data["v"].to_numpy()) / np.bincount(groups)
    mean = answer["m"]
    assert np.sqrt(np.square(mean.values - truth).mean()) < 0.3 * mean.errors.mean()
    assert ((mean.low <= truth) & (truth <= mean.high)).mean() >= 0.9
