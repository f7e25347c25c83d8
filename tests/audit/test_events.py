import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from defocus.audit.events import Event, Split, choose
from defocus.audit.outcomes import read
from defocus.audit.runs import Raised

N = 20_000
SPLIT = Split(n=N, learn=N // 4, train=N // 2)
Draw = Callable[[np.random.Generator], NDArray[Any]]


def chosen(first: Draw, second: Draw, delta: float = 0.0) -> Event:
    rng = np.random.default_rng(3)
    return choose(read((first(rng), second(rng)), SPLIT.train), SPLIT, alpha=1e-3, delta=delta)


def rates(event: Event) -> tuple[float, float]:
    first, second = SPLIT.of(event.holds, "judge")
    return float(first.mean()), float(second.mean())


def test_a_shift_is_told_by_a_threshold() -> None:
    event = chosen(lambda r: np.round(r.laplace(0, 1, N), 3), lambda r: np.round(r.laplace(1, 1, N), 3))
    assert event.words.startswith("output is ")
    p, q = rates(event)[event.likelier], rates(event)[1 - event.likelier]
    assert np.log(p / q) == pytest.approx(1, abs=0.1)


def test_a_change_of_spread_is_told_by_two_ranges() -> None:
    event = chosen(lambda r: np.round(r.normal(0, 1, N), 2), lambda r: np.round(r.normal(0, 3, N), 2))
    assert event.likelier == 1
    assert " or " in event.words
    assert rates(event)[1] > 50 * rates(event)[0]


def test_parity_is_told_by_a_residue() -> None:
    event = chosen(
        lambda r: 2.0 * r.integers(0, 10**6, N), lambda r: 2.0 * r.integers(0, 10**6, N) + r.integers(0, 2, N)
    )
    assert "mod" in event.words or "lowest set bit" in event.words
    assert min(rates(event)) == 0


def test_the_grid_of_floats_is_told_by_the_lowest_set_bit() -> None:
    event = chosen(lambda r: r.integers(0, 2**20, N) * 2.0**-20, lambda r: r.integers(0, 2**24, N) * 2.0**-24)
    assert "lowest set bit" in event.words
    assert event.likelier == 1
    assert rates(event)[1] > 0.9
    assert rates(event)[0] == 0


def test_two_columns_together_tell_what_neither_tells_alone() -> None:
    def correlated(sign: int) -> Draw:
        def draw(rng: np.random.Generator) -> NDArray[np.float64]:
            x = rng.choice([-1.0, 1.0], N)
            return np.column_stack([x, sign * x])

        return draw

    event = chosen(correlated(1), correlated(-1))
    assert "together with" in event.words
    assert sorted(rates(event)) == [0.0, 1.0]


def test_many_weak_entries_are_told_by_a_learned_score() -> None:
    event = chosen(lambda r: np.round(r.normal(0, 1, (N, 30)), 2), lambda r: np.round(r.normal(0.4, 1, (N, 30)), 2))
    assert "of all entries" in event.words
    assert max(rates(event)) > 50 * min(rates(event))


def test_a_strong_entry_among_hundreds_is_found() -> None:
    def draw(rng: np.random.Generator, at: float) -> NDArray[np.float64]:
        rows = rng.normal(0, 1, (N, 100)).round(2)
        rows[:, 70] += at
        return rows

    event = chosen(lambda r: draw(r, 0), lambda r: draw(r, 9))
    assert max(rates(event)) > 0.9
    assert min(rates(event)) < 1e-3


def test_an_event_is_not_changed_by_the_judging_runs() -> None:
    rng = np.random.default_rng(8)
    first, second = rng.normal(0, 1, N), rng.normal(1, 1, N)
    before = choose(read((first, second), SPLIT.train), SPLIT, alpha=1e-3, delta=0.0)
    first[SPLIT.train :] = 77
    second[SPLIT.train :] = -77
    after = choose(read((first, second), SPLIT.train), SPLIT, alpha=1e-3, delta=0.0)
    assert (before.words, before.likelier, before.promise) == (after.words, after.likelier, after.promise)


@pytest.mark.parametrize(
    "late",
    [math.nan, math.inf, -0.0, 0.5, 10**30, None, "text", (1, 2), {"a": 1}, Raised("ValueError", "late"), np.zeros(3)],
)
@pytest.mark.parametrize("early", [float, int, lambda x: {"a": float(x)}, lambda x: [x, x]])
def test_nothing_the_judging_runs_show_changes_the_event(early: Callable[[float], Any], late: Any) -> None:
    split = Split(n=400, learn=100, train=200)
    rng = np.random.default_rng(8)
    sides = [[early(x) for x in rng.normal(at, 3, 400).round(1).tolist()] for at in (0, 2)]
    before = choose(read((sides[0], sides[1]), split.train), split, alpha=1e-3, delta=0.0)
    for side in sides:
        side[split.train :] = [late] * 200
    after = choose(read((sides[0], sides[1]), split.train), split, alpha=1e-3, delta=0.0)
    assert (before.words, before.likelier, before.promise) == (after.words, after.likelier, after.promise)
    for one, other in zip(split.of(before.holds, "choose"), split.of(after.holds, "choose"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_output_always_gives_an_event_without_promise() -> None:
    event = chosen(lambda _: np.zeros(N), lambda _: np.zeros(N))
    assert event.promise <= 0


@pytest.mark.filterwarnings("error")
def test_hostile_numbers_raise_no_warning() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.0])
    rows = np.random.default_rng(1).choice(values, (2, N, 3))
    choose(read((rows[0], rows[1]), SPLIT.train), SPLIT, alpha=1e-3, delta=0.0)
