"""Survival curves: those of the life table without noise, with intervals that hold the truth with it."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defocus as dp
from defocus.errors import DefocusError
from defocus.noise.testing import seeded
from defocus.tables.survival import kaplan_meier
from defocus.tables.table import Table

Floats = npt.NDArray[np.float64]


def drawn(rng: np.random.Generator, n: int, steps: int, censoring: float = 2.0) -> tuple[Floats, Floats]:
    """Events at rate one, censored evenly up to ``censoring``; numbers in steps up to 1, and beyond."""
    event, censored = rng.exponential(1.0, n), rng.uniform(0, censoring, n)
    time, happened = np.minimum(event, censored), event <= censored
    place = np.minimum((time * steps).astype(int), steps)
    return tuple(np.bincount(place[happened == flag], minlength=steps + 1).astype(float) for flag in (True, False))  # type: ignore[return-value]


def test_without_noise_it_is_the_life_table() -> None:
    events, censored = np.array([10.0, 20.0, 5.0, 0.0]), np.array([4.0, 0.0, 10.0, 51.0])
    curve = kaplan_meier(events, censored, 0.0)
    first, second, third = 1 - 10 / 98, 1 - 20 / 86, 1 - 5 / 61
    assert curve.values == pytest.approx([1, first, first * second, first * second * third])
    greenwood = 10 / (98 * 88) + 20 / (86 * 66) + 5 / (61 * 56)
    assert curve.sampling[3] == pytest.approx(curve.values[3] * np.sqrt(greenwood))
    assert (curve.noise == 0).all()


def test_noise_is_felt_as_its_derivatives_say() -> None:
    """Each cell is moved by itself: brute force."""
    events, censored = drawn(np.random.default_rng(1), 5000, 10)
    sloped = kaplan_meier(events, censored, 1.0).noise[-1]
    felt = 0.0
    for part in range(2):
        for cell in range(11):
            moved = (events.copy(), censored.copy())
            moved[part][cell] += 1e-3
            change = kaplan_meier(moved[0], moved[1], 0.0).values[-1] - kaplan_meier(events, censored, 0.0).values[-1]
            felt += (change / 1e-3) ** 2
    assert sloped == pytest.approx(np.sqrt(felt), rel=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "steps", "scale"), [(300, 10, 0.1), (2000, 20, 1), (1000, 10, 5), (20_000, 10, 20)])
def test_intervals_hold_the_truth_and_errors_are_those_announced(n: int, steps: int, scale: float) -> None:
    rng, runs = np.random.default_rng(2), 400
    truth = np.exp(-np.arange(1, steps + 1) / steps)
    curves = []
    for _ in range(runs):
        events, censored = (part + rng.laplace(0, scale, steps + 1) for part in drawn(rng, n, steps))
        curves.append(kaplan_meier(events, censored, 2 * scale**2))
    for at in (1, steps // 2, steps):
        held = [curve.low[at] <= truth[at - 1] <= curve.high[at] for curve in curves]
        assert np.mean(held) > 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / runs)
    values = np.array([curve.values[steps // 2] for curve in curves])
    announced = np.mean([np.hypot(curve.noise[steps // 2], curve.sampling[steps // 2]) for curve in curves])
    assert 0.8 < values.std() / announced < 1.2


@given(st.lists(st.floats(-50, 500), min_size=3, max_size=12), st.integers(0, 100))
def test_a_curve_never_rises_and_stays_between_one_and_zero(noisy: list[float], seed: int) -> None:
    censored = np.random.default_rng(seed).uniform(-50, 500, len(noisy))
    curve = kaplan_meier(np.array(noisy), censored, 10.0)
    known = curve.values[~np.isnan(curve.values)]
    assert known[0] == 1
    assert (np.diff(known) <= 1e-12).all()
    assert (known >= 0).all()
    assert ((curve.low >= 0) & (curve.high <= 1) & (curve.low <= curve.high)).all()


PEOPLE = 3000
RNG = np.random.default_rng(3)
EVENT, CENSORED = RNG.exponential(300, PEOPLE), RNG.uniform(0, 800, PEOPLE)
DATA = pa.table(
    {
        "u": range(PEOPLE),
        "ward": ["A" if i % 3 else "B" for i in range(PEOPLE)],
        "days": np.minimum(EVENT, CENSORED),
        "died": EVENT <= CENSORED,
        "status": [int(x) for x in EVENT <= CENSORED],
    }
)


def opened(where: Path) -> Table:
    ledger = where / f"{len(list(where.iterdir()))}.ledger"
    return dp.open(DATA, unit=dp.user("u"), budget=dp.Budget(10**6, 1e-3), ledger=ledger, name="t")


def test_a_curve_is_one_charge_and_is_recalled_drawn_and_explained(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        query = table.survival("days", "died", 360, steps=12)
        answer = query.release(epsilon=2, bits=seeded(1), request="curve")
        assert answer.names == ["time", "survival", "sampling"]
        assert answer.keys["time"].to_pylist() == [30.0 * i for i in range(13)]
        truth = np.exp(-np.arange(13) * 30 / 300)
        assert np.abs(answer["survival"].values - truth).max() < 0.05
        assert "the median of days is 2" in answer.explain()
        again = query.release(epsilon=2, request="curve")
        assert str(again) == str(answer)
        assert again.to_json() == answer.to_json()
        for each in (answer, again):
            assert each.figure == "series"
            assert each.plot() is not None
        charges = [each for each in table.ledger.history() if each["kind"] == "charge"]
        assert len(charges) == 1


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_groups_have_curves_of_their_own(tmp_path: Path, delta: float | None) -> None:
    with opened(tmp_path) as table:
        query = table.survival("days", "died", 360, steps=4, by="ward", keys=["A", "B"])
        answer = query.release(epsilon=5, delta=delta, bits=seeded(2))
        assert answer.keys["ward"].to_pylist() == ["A"] * 5 + ["B"] * 5
        assert answer["survival"].values[[0, 5]].tolist() == [1, 1]
        assert len(answer.notes) == 2
        assert answer.plot() is not None


def test_previews_foretell_the_error_of_releases(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        query = table.survival("days", "died", 200, steps=5)
        (column,) = query.preview(epsilon=1).columns
        found = query.release(epsilon=1, bits=seeded(3))["survival"]
        noise = {n: error for n, error, _ in column.by_size}
        assert noise[10_000] < found.errors[-1] < noise[1000]


def test_what_a_curve_needs_is_refused_by_name(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        wrong: Any
        for wrong in (
            lambda: table.survival("days", "status", 360),
            lambda: table.survival("days", "died", 0),
            lambda: table.survival("days", "died", 360, steps=1),
            lambda: table.survival("ward", "died", 360),
            lambda: table.survival("days", "died", 360, by="ward"),
            lambda: table.bound(rows=3).survival("days", "died", 360),
            lambda: table.derive(time="ward").survival("days", "died", 360, by="time", keys=["A"]),
        ):
            with pytest.raises(DefocusError, match="To fix"):
                wrong()
